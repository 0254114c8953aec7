//! Those who write to stdout, one at a time: a thread that may wait for the reader, and beside those who send,
//! whoever need not.

use std::io;
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::pipe::OutputPipe;
use crate::{Outgoing, WriterStep};

/// Short frames are written together; one longer than this is written from where it is.
const COALESCE_BYTES_MAX: usize = 64 << 10;

/// This much is written without waking the thread, if the pipe is empty: to wake it would cost more.
const SHORT_BYTES_MAX: usize = 8 << 10;

/// Where frames are written.
pub(super) struct StdoutWriter<O> {
    queue: Outgoing,
    state: Mutex<WriteState<O>>,
    /// Wakes the thread.
    wake: Notify,
}

/// Held by whoever writes, from the taking of frames until they are written, so that they stay in order.
struct WriteState<O> {
    pipe: OutputPipe<O>,
    frames: Vec<Bytes>,
    text: Vec<u8>,
    /// Why nothing more can be written.
    failed: Option<io::Error>,
}

impl<O: AsFd> StdoutWriter<O> {
    pub(super) fn new(output: O, queue: Outgoing, deadline: Duration) -> Self {
        Self {
            queue,
            state: Mutex::new(WriteState {
                pipe: OutputPipe::new(output, deadline),
                frames: Vec::new(),
                text: Vec::new(),
                failed: None,
            }),
            wake: Notify::new(),
        }
    }

    /// Writes what can be written without waiting, and wakes the thread for the rest, until the peer is gone.
    pub(super) async fn write_short(&self) {
        while !self.queue.is_gone() {
            self.queue.filled().await;
            if !self.try_write() {
                self.wake.notify_one();
            }
        }
        // The thread must see that it is over.
        self.wake.notify_one();
    }

    /// Writes what is queued, if that is short; says whether it did. Why it cannot be written is said by the
    /// thread.
    fn try_write(&self) -> bool {
        let mut pen = match self.state.try_lock() {
            Ok(pen) => pen,
            Err(TryLockError::Poisoned(pen)) => pen.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        if pen.failed.is_some() {
            return false;
        }
        let room = pen.pipe.free_bytes().map(|room| room.min(SHORT_BYTES_MAX));
        if !room.is_some_and(|room| self.queue.take_short(room, &mut pen.frames)) {
            return false;
        }
        pen.failed = pen.write().err();
        self.queue.wrote();
        pen.failed.is_none()
    }

    /// Writes everything, until nothing more comes.
    pub(super) fn write(&self, runtime: &Handle) -> io::Result<()> {
        loop {
            let mut pen = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(failed) = pen.failed.take() {
                return Err(failed);
            }
            match self.queue.take_now(&mut pen.frames) {
                Some(WriterStep::Closed(_)) => return Ok(()),
                Some(WriterStep::Frames) => pen.write()?,
                None => {
                    drop(pen);
                    runtime.block_on(self.wake.notified());
                }
            }
        }
    }
}

impl<O: AsFd> WriteState<O> {
    /// Writes the frames, each on a line.
    fn write(&mut self) -> io::Result<()> {
        for frame in self.frames.drain(..) {
            if self.text.len() + frame.len() > COALESCE_BYTES_MAX {
                self.pipe.write_all(&self.text)?;
                self.text.clear();
            }
            if frame.len() > COALESCE_BYTES_MAX {
                self.pipe.write_all(&frame)?;
            } else {
                self.text.extend_from_slice(&frame);
            }
            self.text.push(b'\n');
        }
        self.pipe.write_all(&self.text)?;
        self.text.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use rustix::pipe::{PipeFlags, pipe_with};

    use super::*;

    fn open() -> (OwnedFd, Outgoing, StdoutWriter<OwnedFd>) {
        let (reader, output) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
        let queue = Outgoing::new(1 << 20);
        let desk = StdoutWriter::new(output, queue.clone(), Duration::from_secs(30));
        (reader, queue, desk)
    }

    fn read(reader: &OwnedFd) -> String {
        let mut text = [0; 100];
        let count = rustix::io::read(reader, &mut text).expect("something to read");
        String::from_utf8_lossy(&text[..count]).into_owned()
    }

    #[test]
    fn only_what_is_short_is_written_beside_and_only_into_an_empty_pipe() {
        let (reader, queue, desk) = open();
        assert!(!desk.try_write(), "nothing was sent");
        queue.send(Bytes::from_static(b"1"));
        queue.send(Bytes::from_static(b"2"));
        assert!(desk.try_write());
        assert_eq!(queue.queued_bytes(), 0);
        queue.send(Bytes::from_static(b"3"));
        assert!(!desk.try_write(), "the pipe is not empty");
        assert_eq!(read(&reader), "1\n2\n");
        let pen = desk.state.lock().expect("the pen");
        assert!(!desk.try_write(), "the thread writes");
        drop(pen);
        assert!(desk.try_write());
        assert_eq!(read(&reader), "3\n");
        queue.send(Bytes::from(vec![b'x'; SHORT_BYTES_MAX]));
        assert!(!desk.try_write(), "with the end of its line it is too long");
    }

    #[tokio::test]
    async fn the_thread_says_why_nothing_can_be_written() {
        let (reader, queue, desk) = open();
        drop(reader);
        queue.send(Bytes::from_static(b"1"));
        assert!(!desk.try_write());
        let said = desk.write(&Handle::current());
        let said = said.expect_err("the reader is gone");
        assert_eq!(said.kind(), io::ErrorKind::BrokenPipe);
    }
}
