//! One client, from its first frame to its last answer.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use raddle_rpc::{
    Close, Connection, DataLoss, Frame, FrameError, Inbound, Incoming, Outgoing, Transport, parse,
    refusal,
};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::gate;
use crate::relay;
use crate::server::DrainPhase;
use crate::services::{ServerState, threads};
use crate::session::Session;

/// How long a peer inside this process may take none of its last answers. The other transports have
/// such a deadline of their own.
const MEMORY_FLUSH: Duration = Duration::from_secs(30);

/// Serves a connection until the client leaves or the server drains.
pub(crate) async fn serve(
    connection: Connection,
    rooms: Arc<ServerState>,
    mut draining: watch::Receiver<DrainPhase>,
) {
    let Connection {
        peer,
        mut incoming,
        outgoing,
        loss,
    } = connection;
    let session = Arc::new(Session::new(peer, outgoing.clone(), &rooms));
    let _fall = PanicGuard {
        state: rooms.clone(),
        session: session.clone(),
        loss: loss.clone(),
    };
    let _here = rooms
        .metrics
        .enter(session.number, &session.peer, &outgoing);
    tracing::debug!(connection = session.number, peer = ?session.peer, "connected");

    let close = tokio::select! {
        close = read(&mut incoming, &rooms, &session) => close,
        // A client that takes no answers any more must not have more done for it.
        () = outgoing.when_gone() => Close::NORMAL,
        _ = draining.wait_for(|it| *it >= DrainPhase::Draining) => Close::GOING_AWAY,
    };

    // What was not taken is forgotten now: finishing the rest may take long.
    drop(incoming);
    // What was asked is still answered, as far as the client will read it. What happens from now on it
    // does not hear of.
    session.watches().clear();
    session.processes.end_all();
    if !finish(&session, &draining, rooms.options.drain).await {
        tracing::warn!(
            connection = session.number,
            "requests still running at the end of their connection"
        );
        loss.note("requests were still running at the end");
    }
    session.end();
    session.relay.close().await;
    until_left(&session, &mut draining).await;
    threads::unsubscribe_all(&rooms.threads, &session).await;
    outgoing.close(close);
    tokio::select! {
        () = flush(&outgoing, session.peer.transport, &loss) => {}
        // Nobody keeps a server that was told to stop from stopping.
        () = too_late(&mut draining, rooms.options.drain) => {
            tracing::warn!(connection = session.number, "answers not taken in time");
            loss.note("answers were not taken in time");
        }
    }
    outgoing.mark_gone();
    tracing::debug!(connection = session.number, counts = ?session.counts, "disconnected");
}

/// When the server ends, another process is told of its threads until they are left: it can open them then.
async fn until_left(session: &Session, draining: &mut watch::Receiver<DrainPhase>) {
    let ends = *draining.borrow() >= DrainPhase::Draining;
    if ends && session.peer.transport == Transport::Relay {
        let left = draining.wait_for(|it| *it == DrainPhase::ThreadsUnloaded);
        tokio::select! {
            _ = left => {}
            () = session.outgoing.when_gone() => {}
        }
    }
}

/// A fault of ours in a connection's own task, outside of any handler. Nobody is left to end the
/// connection then, so this does.
struct PanicGuard {
    state: Arc<ServerState>,
    session: Arc<Session>,
    loss: DataLoss,
}

/// What a client is told whose connection fell.
const PANIC_CLOSE: Close = Close {
    code: 1011,
    reason: Cow::Borrowed("the server failed inside; its log says more"),
};

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let fallen = self
            .state
            .panicked_connections
            .fetch_add(1, Ordering::Relaxed)
            + 1;
        // First what frees things, then what is only said.
        self.session.end();
        self.session.outgoing.close(PANIC_CLOSE);
        self.loss.note("the server failed inside");
        tracing::error!(
            connection = self.session.number,
            fallen,
            "a connection's task panicked; the connection ends"
        );
    }
}

/// Waits until everything is answered; false when that takes too long. A large answer is made only when
/// the client has taken those before it, so as long as it is taking them, time does not count.
async fn finish(
    session: &Session,
    draining: &watch::Receiver<DrainPhase>,
    patience: Duration,
) -> bool {
    let outgoing = &session.outgoing;
    let mut before = outgoing.written_bytes();
    while timeout(patience, session.idle()).await.is_err() {
        // The transport sees to it that what is queued is taken, or the client is gone.
        let is_queued = session.peer.transport != Transport::Memory && outgoing.queued_bytes() > 0;
        let now = outgoing.written_bytes();
        if now == before && !is_queued || *draining.borrow() >= DrainPhase::Draining {
            return false;
        }
        before = now;
    }
    true
}

/// Waits until everything is written. That may take long, as long as the client takes something.
async fn flush(outgoing: &Outgoing, transport: Transport, loss: &DataLoss) {
    if transport != Transport::Memory {
        return outgoing.when_gone().await;
    }
    let mut left = outgoing.queued_bytes();
    while timeout(MEMORY_FLUSH, outgoing.when_gone()).await.is_err() {
        let now = outgoing.queued_bytes();
        if now == left {
            return loss.note("answers were not taken in time");
        }
        left = now;
    }
}

/// Resolves when the server has been draining for this long.
async fn too_late(draining: &mut watch::Receiver<DrainPhase>, drain: Duration) {
    let _ = draining.wait_for(|it| *it >= DrainPhase::Draining).await;
    sleep(drain).await;
}

async fn read(incoming: &mut Incoming, rooms: &Arc<ServerState>, session: &Arc<Session>) -> Close {
    let reading = async {
        while let Some(frame) = incoming.next().await {
            // What can no longer be answered is not begun.
            if session.outgoing.is_closed() {
                break;
            }
            take(frame, rooms, session).await;
            // A client that does not read its answers is not read either.
            session.outgoing.wait_ready().await;
        }
        Close::NORMAL
    };
    tokio::select! {
        close = reading => close,
        close = not_introduced(session, rooms.options.first_message) => close,
    }
}

/// Resolves when the client has not introduced itself in time, whatever else it sent meanwhile.
async fn not_introduced(session: &Session, patience: Duration) -> Close {
    match session.peer.transport {
        // Nobody else can come in through a pipe or a channel, so there is nothing to protect.
        Transport::Stdio | Transport::Memory => std::future::pending().await,
        Transport::Websocket | Transport::Unix | Transport::Relay => {}
    }
    sleep(patience).await;
    if session.client().is_some() {
        return std::future::pending().await;
    }
    Close {
        code: 1008,
        reason: "no initialize came in time".into(),
    }
}

async fn take(frame: Frame, rooms: &Arc<ServerState>, session: &Arc<Session>) {
    let frame = match frame {
        Frame::Message(frame) => frame,
        Frame::TooLong => return session.counts.too_long(),
        Frame::Binary => return session.counts.noise(),
    };
    match parse(&frame) {
        Ok(Inbound::Request(request)) => {
            session.counts.request();
            // Requests that wait for a disk or in a lane keep what they came with.
            session.reserve(frame.len()).await;
            gate::admit(request, frame.len(), rooms, session);
        }
        // The one notification a client may send, `initialized`, changes nothing; neither do others.
        Ok(Inbound::Notification(notification)) => {
            tracing::trace!(method = %notification.method, "notification");
        }
        Ok(Inbound::Response(response)) => {
            if !relay::forward_answer(session, &response.id, &frame) {
                threads::answers::take(rooms, session, response);
            }
        }
        Err(FrameError::Refused { id, error }) => {
            session.counts.refused();
            session.outgoing.send(refusal(id.as_ref(), &error));
        }
        Err(FrameError::Dropped(noise)) => {
            session.counts.noise();
            tracing::debug!(connection = session.number, ?noise, "frame dropped");
        }
    }
}
