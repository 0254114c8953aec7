//! A pair of connections inside one process, for tests and for programs that embed the server.

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::connection::{Batch, Batches};
use crate::{
    Connection, ConnectionLimits, DataLoss, Frame, Incoming, Outgoing, Peer, Transport, WriterStep,
};

/// How many batches may wait between the two ends.
const BATCHES: usize = 16;

/// Two ends of one connection: what goes out of one comes in at the other.
///
/// It needs a running Tokio runtime, which carries the frames across.
pub fn memory(limits: ConnectionLimits) -> (Connection, Connection) {
    let (near_out, near_in) = channel(limits);
    let (far_out, far_in) = channel(limits);
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
        loss: DataLoss::default(),
    }
}

fn channel(limits: ConnectionLimits) -> (Outgoing, mpsc::Receiver<Batch>) {
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
        if matches!(written, WriterStep::Closed(_)) {
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
        if sender
            .send(Batch {
                frames,
                permit: None,
            })
            .await
            .is_err()
        {
            break;
        }
    }
    outgoing.mark_gone();
}
