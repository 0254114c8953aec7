//! The connection to the parent process over stdin and stdout, one message per line.
//!
//! Both ends are plain threads. The descriptors may be shared with a terminal or another process,
//! so they are never switched to non-blocking, nor expected to be blocking. A stalled reader stalls
//! only its thread. Short frames go into an empty pipe without waking that thread. Only this module
//! may write to stdout.

mod pipe;
mod stdout_writer;

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;

use rustix::event::PollFlags;
use rustix::io::Errno;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use self::stdout_writer::StdoutWriter;
use crate::connection::{Batch, Batches};
use crate::{
    Connection, ConnectionLimits, DataLoss, Frame, Incoming, LineCodec, Outgoing, Peer, Transport,
};

/// Maximum number of batches of lines in the channel.
const BATCHES: usize = 4;

/// Size of one read.
const READ_BYTES: usize = 64 << 10;

/// Returns the connection to the parent process.
pub fn stdio(limits: ConnectionLimits) -> io::Result<Connection> {
    pipes(io::stdin(), io::stdout(), limits)
}

/// Resolves when stdin has ended, and discards its data. For use after the connection has ended.
pub async fn stdin_end() {
    let (ended_tx, ended_rx) = oneshot::channel();
    let reading = thread::Builder::new().name("stdin".into()).spawn(|| {
        drain(&io::stdin());
        let _ = ended_tx.send(());
    });
    if reading.is_ok() {
        let _ = ended_rx.await;
    }
}

/// Reads to the end. An input that cannot be read counts as ended.
fn drain(input: &impl AsFd) {
    let mut chunk = vec![0; READ_BYTES];
    loop {
        match rustix::io::read(input, &mut chunk) {
            Ok(0) => return,
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if pipe::wait(input, PollFlags::IN, None).is_ok() => {}
            Err(_) => return,
        }
    }
}

/// Creates a connection over any two descriptors, one to read and one to write.
///
/// It ends when the input ends, or when no byte of the output is read for
/// [`ConnectionLimits::write`].
pub fn pipes<I, O>(input: I, output: O, limits: ConnectionLimits) -> io::Result<Connection>
where
    I: AsFd + Send + 'static,
    O: AsFd + Send + 'static,
{
    let outgoing = Outgoing::new(limits.outgoing_bytes_max);
    let loss = DataLoss::default();
    let (sender, receiver) = mpsc::channel(BATCHES);

    let lines = LineCodec::new(limits.message_bytes_max);
    let mut ahead = ReadAhead::new(limits.message_bytes_max, sender)?;
    let data_loss = loss.clone();
    thread::Builder::new().name("stdin".into()).spawn(move || {
        if let Err(error) = read(&input, lines, &mut ahead) {
            tracing::info!(%error, "stdin failed");
            data_loss.note(format!("stdin failed: {error}"));
        }
        // The receiver sees the end only now.
        drop(ahead);
    })?;

    let runtime = Handle::current();
    let writer = Arc::new(StdoutWriter::new(output, outgoing.clone(), limits.write));
    let short_writer = writer.clone();
    runtime.spawn(async move { short_writer.write_short().await });
    let data_loss = loss.clone();
    let queue = outgoing.clone();
    thread::Builder::new()
        .name("stdout".into())
        .spawn(move || {
            if let Err(error) = writer.write(&runtime) {
                tracing::info!(%error, "responses are lost");
                data_loss.note(format!("responses are lost: {error}"));
            }
            queue.mark_gone();
        })?;

    Ok(Connection {
        peer: Peer {
            transport: Transport::Stdio,
            principal: None,
        },
        incoming: Incoming::Batches(Batches::new(receiver)),
        outgoing,
        loss,
    })
}

/// Limits reading ahead to a few batches, and in bytes, with the line being read, to the maximum of
/// one message. Large lines that arrive fast wait in the pipe.
struct ReadAhead {
    runtime: Handle,
    sender: mpsc::Sender<Batch>,
    budget: Arc<Semaphore>,
    /// Permits of the bytes that are read and not yet sent.
    reserved: OwnedSemaphorePermit,
}

impl ReadAhead {
    fn new(message_bytes_max: usize, sender: mpsc::Sender<Batch>) -> io::Result<Self> {
        // The longest line fits with its end, and with the bytes that were read together with its
        // end.
        let bytes = message_bytes_max.saturating_add(2 * READ_BYTES);
        let budget = Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS)));
        let reserved = budget.clone().try_acquire_many_owned(0);
        Ok(Self {
            runtime: Handle::current(),
            sender,
            budget,
            reserved: reserved.map_err(io::Error::other)?,
        })
    }

    /// Waits for capacity for this many more bytes.
    fn reserve(&mut self, bytes: u32) {
        // Nearly always there is capacity.
        let permit = self.budget.clone().try_acquire_many_owned(bytes);
        let permit = permit.or_else(|_| {
            let budget = self.budget.clone();
            self.runtime.block_on(budget.acquire_many_owned(bytes))
        });
        // The semaphore is never closed.
        if let Ok(permit) = permit {
            self.reserved.merge(permit);
        }
    }

    /// Sends a batch, and keeps permits only for the remaining bytes. Returns false if the receiver
    /// is closed.
    fn push(&mut self, frames: Vec<Frame>, bytes_left: usize) -> bool {
        let sent_bytes = self.reserved.num_permits().saturating_sub(bytes_left);
        let permit = self.reserved.split(sent_bytes);
        let batch = Batch { frames, permit };
        batch.frames.is_empty() || self.sender.blocking_send(batch).is_ok()
    }
}

fn read(input: &impl AsFd, mut lines: LineCodec, ahead: &mut ReadAhead) -> io::Result<()> {
    let mut chunk = vec![0; READ_BYTES];
    let mut ended = false;
    while !ended {
        match rustix::io::read(input, &mut chunk) {
            Ok(0) => {
                // The last line may lack its line end.
                lines.buffer().extend_from_slice(b"\n");
                ended = true;
            }
            Ok(count) => {
                ahead.reserve(count as u32);
                lines.buffer().extend_from_slice(&chunk[..count]);
            }
            Err(Errno::INTR) => continue,
            // Another process made the descriptor non-blocking.
            Err(Errno::AGAIN) => {
                pipe::wait(input, PollFlags::IN, None)?;
                continue;
            }
            Err(error) => return Err(error.into()),
        }
        let frames: Vec<_> = std::iter::from_fn(|| lines.next_line()).collect();
        if !ahead.push(frames, lines.buffer().len()) {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
