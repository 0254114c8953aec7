//! A pair of connections inside one process, for tests and for programs that embed the server.

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::connection::{Batch, Batches};
use crate::{Connection, Frame, Incoming, Limits, Loss, Outgoing, Peer, Transport, Written};

/// How many batches may wait between the two ends.
const BATCHES: usize = 16;

/// Two ends of one connection: what goes out of one comes in at the other.
///
/// It needs a running Tokio runtime, which carries the frames across.
pub fn memory(limits: Limits) -> (Connection, Connection) {
    let (near_out, near_in) = way(limits);
    let (far_out, far_in) = way(limits);
    (end(near_out, far_in), end(far_out, near_in))
}

fn end(outgoing: Outgoing, incoming: mpsc::Receiver<Batch>) -> Connection {
    Connection {
        peer: Peer {
            transport: Transport::Memory,
            principal: None,
        },
        incoming: Incoming::Batches(Batches::new(incoming)),
        outgoing,
        loss: Loss::default(),
    }
}

fn way(limits: Limits) -> (Outgoing, mpsc::Receiver<Batch>) {
    let outgoing = Outgoing::new(limits.outgoing_bytes_max);
    let (sender, receiver) = mpsc::channel(BATCHES);
    tokio::spawn(carry(outgoing.clone(), sender, limits.message_bytes_max));
    (outgoing, receiver)
}

async fn carry(outgoing: Outgoing, sender: mpsc::Sender<Batch>, bytes_max: usize) {
    let mut batch: Vec<Bytes> = Vec::new();
    loop {
        let written = tokio::select! {
            written = outgoing.take(&mut batch) => written,
            () = sender.closed() => break,
        };
        if matches!(written, Written::Closed(_)) {
            break;
        }
        let frames = batch
            .drain(..)
            .map(|frame| {
                if frame.len() > bytes_max {
                    Frame::TooLong
                } else {
                    Frame::Message(frame)
                }
            })
            .collect();
        // What waits here is bounded by the queue it came from.
        if sender.send(Batch { frames, room: None }).await.is_err() {
            break;
        }
    }
    outgoing.gone();
}
