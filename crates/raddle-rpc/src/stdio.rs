//! The parent process at the other end of stdin and stdout, one message per line.
//!
//! Both ends are plain threads: the descriptors may be shared with a terminal or another process, so
//! they are never switched to non-blocking, nor expected to be blocking, and a stalled reader stalls
//! only its thread. What is short goes into an empty pipe without waking that thread. Stdout belongs to
//! this file; nothing else in Raddle may write to it.

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

/// How many batches of lines may wait to be taken.
const BATCHES: usize = 4;

/// How much is read at once.
const READ_BYTES: usize = 64 << 10;

/// The connection to whoever started this process.
pub fn stdio(limits: ConnectionLimits) -> io::Result<Connection> {
    pipes(io::stdin(), io::stdout(), limits)
}

/// Resolves when stdin has ended. What comes until then is passed over: use it when the connection is no more.
pub async fn stdin_end() {
    let (tell, told) = oneshot::channel();
    let reading = thread::Builder::new().name("stdin".into()).spawn(|| {
        drain(&io::stdin());
        let _ = tell.send(());
    });
    if reading.is_ok() {
        let _ = told.await;
    }
}

/// Reads to the end. An input that cannot be read has none.
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

/// A connection over any two descriptors, one to read and one to write.
///
/// It ends when the input does, and when nobody takes a byte of the output for as long as
/// [`Limits::write`] says.
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
    let lost = loss.clone();
    thread::Builder::new().name("stdin".into()).spawn(move || {
        if let Err(error) = read(&input, lines, &mut ahead) {
            tracing::info!(%error, "stdin failed");
            lost.note(format!("stdin failed: {error}"));
        }
        // Only now is it seen to have ended.
        drop(ahead);
    })?;

    let runtime = Handle::current();
    let desk = Arc::new(StdoutWriter::new(output, outgoing.clone(), limits.write));
    let beside = desk.clone();
    runtime.spawn(async move { beside.write_short().await });
    let lost = loss.clone();
    let queue = outgoing.clone();
    thread::Builder::new()
        .name("stdout".into())
        .spawn(move || {
            if let Err(error) = desk.write(&runtime) {
                tracing::info!(%error, "answers are lost");
                lost.note(format!("answers are lost: {error}"));
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

/// What is read before it is asked for: a few batches, and together, with the line being read, no
/// more bytes than one message may have. Large lines that come fast wait in the pipe.
struct ReadAhead {
    runtime: Handle,
    sender: mpsc::Sender<Batch>,
    budget: Arc<Semaphore>,
    /// The room of what is read and not yet handed on.
    held: OwnedSemaphorePermit,
}

impl ReadAhead {
    fn new(message_bytes_max: usize, sender: mpsc::Sender<Batch>) -> io::Result<Self> {
        // The longest line fits with its end, and with what was read together with its end.
        let bytes = message_bytes_max.saturating_add(2 * READ_BYTES);
        let room = Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS)));
        let held = room.clone().try_acquire_many_owned(0);
        Ok(Self {
            runtime: Handle::current(),
            sender,
            budget: room,
            held: held.map_err(io::Error::other)?,
        })
    }

    /// Waits until there is room for this many bytes more.
    fn reserve(&mut self, bytes: u32) {
        // Nearly always there is.
        let room = self.budget.clone().try_acquire_many_owned(bytes);
        let room = room.or_else(|_| {
            let room = self.budget.clone();
            self.runtime.block_on(room.acquire_many_owned(bytes))
        });
        // Nobody closes the semaphore.
        if let Ok(room) = room {
            self.held.merge(room);
        }
    }

    /// Hands a batch on, and keeps room only for what is left; false when nobody takes it any more.
    fn push(&mut self, frames: Vec<Frame>, bytes_left: usize) -> bool {
        let done = self.held.num_permits().saturating_sub(bytes_left);
        let room = self.held.split(done);
        let batch = Batch {
            frames,
            permit: room,
        };
        batch.frames.is_empty() || self.sender.blocking_send(batch).is_ok()
    }
}

fn read(input: &impl AsFd, mut lines: LineCodec, ahead: &mut ReadAhead) -> io::Result<()> {
    let mut chunk = vec![0; READ_BYTES];
    let mut ended = false;
    while !ended {
        match rustix::io::read(input, &mut chunk) {
            Ok(0) => {
                // The last line may lack its end.
                lines.buffer().extend_from_slice(b"\n");
                ended = true;
            }
            Ok(count) => {
                ahead.reserve(count as u32);
                lines.buffer().extend_from_slice(&chunk[..count]);
            }
            Err(Errno::INTR) => continue,
            // Whoever gave it to us made it non-blocking.
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
