//! One client connection, from its first frame to its last response.

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
use tracing::Instrument;

use crate::draining::DrainPhase;
use crate::gate;
use crate::relay;
use crate::services::{ServerState, threads};
use crate::session::Session;

/// Flush timeout of a peer inside this process that reads none of its last responses. The other
/// transports have such a timeout of their own.
const MEMORY_FLUSH: Duration = Duration::from_secs(30);

/// Serves a connection until the client disconnects or the server drains.
pub(crate) async fn serve(
    connection: Connection,
    state: Arc<ServerState>,
    draining: watch::Receiver<DrainPhase>,
) {
    let Connection {
        peer,
        incoming,
        outgoing,
        loss,
    } = connection;
    let session = Arc::new(Session::new(peer, outgoing, &state));
    let span = session.span.clone();
    let serving = serve_session(session, incoming, loss, state, draining);
    serving.instrument(span).await;
}

async fn serve_session(
    session: Arc<Session>,
    mut incoming: Incoming,
    loss: DataLoss,
    state: Arc<ServerState>,
    mut draining: watch::Receiver<DrainPhase>,
) {
    let outgoing = session.outgoing.clone();
    let _panic_guard = PanicGuard {
        state: state.clone(),
        session: session.clone(),
        loss: loss.clone(),
    };
    let _metrics_entry = state
        .metrics
        .enter(session.number, &session.peer, &outgoing);
    tracing::debug!(peer = ?session.peer, "connected");

    let close = tokio::select! {
        close = read(&mut incoming, &state, &session) => close,
        // A client that no longer reads responses must not cause more work.
        () = outgoing.when_gone() => Close::NORMAL,
        _ = draining.wait_for(|it| *it >= DrainPhase::Draining) => Close::GOING_AWAY,
    };

    // Drops unread frames now: finishing the rest may take long.
    drop(incoming);
    // Pending requests are still answered, as far as the client reads the responses. The client
    // receives no further events.
    session.watches().clear();
    session.processes.end_all();
    if !finish(&session, &draining, state.options.drain).await {
        tracing::warn!(
            connection = session.number,
            "requests still running at the end of their connection"
        );
        loss.note("requests were still running at the end");
    }
    session.end();
    session.relay.close().await;
    wait_for_unload(&session, &mut draining).await;
    threads::unsubscribe_all(&state.threads, &session).await;
    outgoing.close(close);
    tokio::select! {
        () = flush(&outgoing, session.peer.transport, &loss) => {}
        // A client must not keep the server from stopping.
        () = drain_timeout(&mut draining, state.options.drain) => {
            tracing::warn!(connection = session.number, "responses were not read in time");
            loss.note("responses were not read in time");
        }
    }
    outgoing.mark_gone();
    tracing::debug!(counts = ?session.counts, "disconnected");
}

/// While the server drains, keeps a relayed connection until the threads are unloaded: then the
/// other process can open them.
async fn wait_for_unload(session: &Session, draining: &mut watch::Receiver<DrainPhase>) {
    let is_draining = *draining.borrow() >= DrainPhase::Draining;
    if is_draining && session.peer.transport == Transport::Relay {
        let unloaded = draining.wait_for(|it| *it == DrainPhase::ThreadsUnloaded);
        tokio::select! {
            _ = unloaded => {}
            () = session.outgoing.when_gone() => {}
        }
    }
}

/// Ends the connection if its own task panics outside of any handler: no other code is left to end
/// it.
struct PanicGuard {
    state: Arc<ServerState>,
    session: Arc<Session>,
    loss: DataLoss,
}

/// Close frame for a client whose connection's task panicked.
const PANIC_CLOSE: Close = Close {
    code: 1011,
    reason: Cow::Borrowed("internal error; see the server's log"),
};

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let panicked_connections = self
            .state
            .panicked_connections
            .fetch_add(1, Ordering::Relaxed)
            + 1;
        // Frees resources first, then reports.
        self.session.end();
        self.session.outgoing.close(PANIC_CLOSE);
        self.loss.note("internal error");
        tracing::error!(
            connection = self.session.number,
            panicked_connections,
            "a connection's task panicked; the connection ends"
        );
    }
}

/// Waits until every request is answered; returns false if that takes too long. A large response is
/// made only when the client has read those before it, so the timeout restarts while the client
/// reads.
async fn finish(
    session: &Session,
    draining: &watch::Receiver<DrainPhase>,
    idle_timeout: Duration,
) -> bool {
    let outgoing = &session.outgoing;
    let mut written_before = outgoing.written_bytes();
    while timeout(idle_timeout, session.idle()).await.is_err() {
        // The transport ensures that the client reads the queue or is disconnected.
        let is_queued = session.peer.transport != Transport::Memory && outgoing.queued_bytes() > 0;
        let now = outgoing.written_bytes();
        if now == written_before && !is_queued || *draining.borrow() >= DrainPhase::Draining {
            return false;
        }
        written_before = now;
    }
    true
}

/// Waits until everything is written. That may take long, as long as the client reads something.
async fn flush(outgoing: &Outgoing, transport: Transport, loss: &DataLoss) {
    if transport != Transport::Memory {
        return outgoing.when_gone().await;
    }
    let mut queued_before = outgoing.queued_bytes();
    while timeout(MEMORY_FLUSH, outgoing.when_gone()).await.is_err() {
        let now = outgoing.queued_bytes();
        if now == queued_before {
            return loss.note("responses were not read in time");
        }
        queued_before = now;
    }
}

/// Resolves when the server has been draining for this long.
async fn drain_timeout(draining: &mut watch::Receiver<DrainPhase>, drain: Duration) {
    let _ = draining.wait_for(|it| *it >= DrainPhase::Draining).await;
    sleep(drain).await;
}

async fn read(incoming: &mut Incoming, state: &Arc<ServerState>, session: &Arc<Session>) -> Close {
    let reading = async {
        while let Some(frame) = incoming.next().await {
            // Starts no work that can no longer be answered.
            if session.outgoing.is_closed() {
                break;
            }
            handle_frame(frame, state, session).await;
            // Backpressure: does not read from a client that does not read its responses.
            session.outgoing.wait_ready().await;
        }
        Close::NORMAL
    };
    tokio::select! {
        close = reading => close,
        close = not_introduced(session, state.options.first_message) => close,
    }
}

/// Resolves when the client has not sent `initialize` in time, whatever else it sent meanwhile.
async fn not_introduced(session: &Session, wait_max: Duration) -> Close {
    match session.peer.transport {
        // A pipe or a channel has only one client, so there is nothing to protect.
        Transport::Stdio | Transport::Memory => std::future::pending().await,
        Transport::Websocket | Transport::Unix | Transport::Relay => {}
    }
    sleep(wait_max).await;
    if session.client().is_some() {
        return std::future::pending().await;
    }
    Close {
        code: 1008,
        reason: "initialize timed out".into(),
    }
}

async fn handle_frame(frame: Frame, state: &Arc<ServerState>, session: &Arc<Session>) {
    let frame = match frame {
        Frame::Message(frame) => frame,
        Frame::TooLong => return session.counts.too_long(),
        Frame::Binary => return session.counts.noise(),
    };
    match parse(&frame) {
        Ok(Inbound::Request(request)) => {
            session.counts.request();
            // Requests that wait for a disk or in a lane keep their frame in memory.
            session.reserve(frame.len()).await;
            gate::admit(request, frame.len(), state, session);
        }
        // `initialized`, the one notification of a client, changes nothing; neither do others.
        Ok(Inbound::Notification(notification)) => {
            tracing::trace!(method = &*notification.method, "notification");
        }
        Ok(Inbound::Response(mut response)) => {
            response.id = session.id_of_thread(response.id);
            if !relay::forward_answer(session, &response, frame.len()) {
                threads::answers::handle_answer(state, session, response);
            }
        }
        Err(FrameError::Refused { id, error }) => {
            session.counts.refused();
            session.outgoing.send(refusal(id.as_ref(), &error));
        }
        Err(FrameError::Dropped(noise)) => {
            session.counts.noise();
            tracing::debug!(?noise, "frame dropped");
        }
    }
}
