//! One client, from its first frame to its last answer.

use std::sync::Arc;
use std::time::Duration;

use raddle_rpc::{Close, Connection, Fault, Frame, Inbound, Incoming, Transport, parse, refusal};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::gate;
use crate::rooms::Rooms;
use crate::session::Session;

/// How long the last answers may take to reach a client that is leaving.
const FLUSH: Duration = Duration::from_secs(5);

/// Serves a connection until the client leaves or the server drains.
pub(crate) async fn serve(
    connection: Connection,
    rooms: Arc<Rooms>,
    mut draining: watch::Receiver<bool>,
) {
    let Connection {
        peer,
        mut incoming,
        outgoing,
    } = connection;
    let session = Arc::new(Session::new(
        peer,
        outgoing.clone(),
        rooms.options.requests_max,
    ));
    tracing::debug!(connection = session.number, transport = ?session.peer.transport, "connected");

    let close = tokio::select! {
        close = read(&mut incoming, &rooms, &session) => close,
        // A client that takes no answers any more must not have more done for it.
        () = outgoing.when_gone() => Close::NORMAL,
        _ = draining.wait_for(|draining| *draining) => Close::GOING_AWAY,
    };

    // What was asked is still answered, as far as the client will read it.
    if timeout(rooms.options.drain, session.idle()).await.is_err() {
        tracing::warn!(
            connection = session.number,
            "requests still running at the end of their connection"
        );
    }
    session.end();
    outgoing.close(close);
    let _ = timeout(FLUSH, outgoing.when_gone()).await;
    outgoing.gone();
    tracing::debug!(connection = session.number, counts = ?session.counts, "disconnected");
}

async fn read(incoming: &mut Incoming, rooms: &Arc<Rooms>, session: &Arc<Session>) -> Close {
    let first = match session.peer.transport {
        // Nobody else can come in through a pipe or a channel, so there is nothing to protect.
        Transport::Stdio | Transport::Memory => incoming.next().await,
        Transport::Websocket | Transport::Unix => {
            match timeout(rooms.options.first_message, incoming.next()).await {
                Ok(frame) => frame,
                Err(_) => {
                    return Close {
                        code: 1008,
                        reason: "no message came in time".into(),
                    };
                }
            }
        }
    };
    let mut next = first;
    while let Some(frame) = next {
        take(frame, rooms, session);
        // A client that does not read its answers is not read either.
        session.outgoing.room().await;
        next = incoming.next().await;
    }
    Close::NORMAL
}

fn take(frame: Frame, rooms: &Arc<Rooms>, session: &Arc<Session>) {
    let frame = match frame {
        Frame::Message(frame) => frame,
        Frame::TooLong => return session.counts.too_long(),
        Frame::Binary => return session.counts.noise(),
    };
    match parse(&frame) {
        Ok(Inbound::Request(request)) => {
            session.counts.request();
            gate::admit(request, rooms, session);
        }
        // The one notification a client may send, `initialized`, changes nothing; neither do others.
        Ok(Inbound::Notification(notification)) => {
            tracing::trace!(method = %notification.method, "notification");
        }
        Ok(Inbound::Response(response)) => {
            if !session.calls.resolve(response) {
                session.counts.noise();
            }
        }
        Err(Fault::Refused { id, error }) => {
            session.counts.refused();
            session.outgoing.send(refusal(id.as_ref(), &error));
        }
        Err(Fault::Noise(noise)) => {
            session.counts.noise();
            tracing::debug!(connection = session.number, ?noise, "frame dropped");
        }
    }
}
