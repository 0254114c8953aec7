//! The writers of stdout, one at a time: a thread that may block, and an async task that writes
//! only when it need not.

use std::io;
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::pipe::OutputPipe;
use crate::{Outgoing, WriterStep};

/// Maximum size of a combined write; a longer frame is written without copying.
const COALESCE_BYTES_MAX: usize = 64 << 10;

/// Limit: frames that a caller writes directly into an empty stdout pipe; beyond it, the stdout
/// thread writes them.
const SHORT_BYTES_MAX: usize = 8 << 10;

/// Writes frames to stdout.
pub(super) struct StdoutWriter<O> {
    queue: Outgoing,
    state: Mutex<WriteState<O>>,
    /// Wakes the thread.
    wake: Notify,
}

/// Locked from taking frames until they are written, so that they stay in order.
struct WriteState<O> {
    pipe: OutputPipe<O>,
    frames: Vec<Bytes>,
    text: Vec<u8>,
    /// Error of an earlier write.
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

    /// Writes short frames without blocking, and wakes the thread for the rest, until the peer is
    /// gone.
    pub(super) async fn write_short(&self) {
        while !self.queue.is_gone() {
            self.queue.filled().await;
            if !self.try_write() {
                self.wake.notify_one();
            }
        }
        // Wake the thread so that it ends as well.
        self.wake.notify_one();
    }

    /// Writes the queued frames if they are short. Returns whether it did. The thread reports write
    /// errors.
    fn try_write(&self) -> bool {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(state)) => state.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        if state.failed.is_some() {
            return false;
        }
        let free = state
            .pipe
            .free_bytes()
            .map(|bytes| bytes.min(SHORT_BYTES_MAX));
        if !free.is_some_and(|free| self.queue.take_short(free, &mut state.frames)) {
            return false;
        }
        state.failed = state.write().err();
        self.queue.mark_written();
        state.failed.is_none()
    }

    /// Writes everything until the queue is closed.
    pub(super) fn write(&self, runtime: &Handle) -> io::Result<()> {
        loop {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(failed) = state.failed.take() {
                return Err(failed);
            }
            match self.queue.take_now(&mut state.frames) {
                Some(WriterStep::Closed(_)) => return Ok(()),
                Some(WriterStep::Frames) => state.write()?,
                None => {
                    drop(state);
                    runtime.block_on(self.wake.notified());
                }
            }
        }
    }
}

impl<O: AsFd> WriteState<O> {
    /// Writes each frame on a line of its own.
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
        let writer = StdoutWriter::new(output, queue.clone(), Duration::from_secs(30));
        (reader, queue, writer)
    }

    fn read(reader: &OwnedFd) -> String {
        let mut text = [0; 100];
        let count = rustix::io::read(reader, &mut text).expect("something to read");
        String::from_utf8_lossy(&text[..count]).into_owned()
    }

    #[test]
    fn only_short_frames_bypass_the_thread_and_only_into_an_empty_pipe() {
        let (reader, queue, writer) = open();
        assert!(!writer.try_write(), "nothing was sent");
        queue.send(Bytes::from_static(b"1"));
        queue.send(Bytes::from_static(b"2"));
        assert!(writer.try_write());
        assert_eq!(queue.queued_bytes(), 0);
        queue.send(Bytes::from_static(b"3"));
        assert!(!writer.try_write(), "the pipe is not empty");
        assert_eq!(read(&reader), "1\n2\n");
        let state = writer.state.lock().expect("the pen");
        assert!(!writer.try_write(), "the thread writes");
        drop(state);
        assert!(writer.try_write());
        assert_eq!(read(&reader), "3\n");
        queue.send(Bytes::from(vec![b'x'; SHORT_BYTES_MAX]));
        assert!(
            !writer.try_write(),
            "with the end of its line it is too long"
        );
    }

    #[tokio::test]
    async fn the_thread_reports_write_errors() {
        let (reader, queue, writer) = open();
        drop(reader);
        queue.send(Bytes::from_static(b"1"));
        assert!(!writer.try_write());
        let result = writer.write(&Handle::current());
        let error = result.expect_err("the reader is gone");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
