//! A pair of connections inside one process, for tests and for programs that embed the server.

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::connection::{Batch, Batches};
use crate::{
    Connection, ConnectionLimits, DataLoss, Frame, Incoming, Outgoing, Peer, Transport, WriterStep,
};

/// Maximum number of batches between the two ends.
const BATCHES: usize = 16;

/// Creates the two ends of one connection: frames sent on one arrive at the other.
///
/// Requires a running Tokio runtime, which moves the frames.
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
        let step = tokio::select! {
            step = outgoing.take(&mut batch) => step,
            () = sender.closed() => break,
        };
        if matches!(step, WriterStep::Closed(_)) {
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
        // The queue that these frames come from bounds them.
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
