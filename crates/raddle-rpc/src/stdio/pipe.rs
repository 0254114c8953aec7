//! Writing to a descriptor that may block, that may not block, and whose reader may be asleep.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::fcntl_getpipe_size;

/// A pipe that polls as writable takes this much without waiting, even when it is a blocking one.
const CHUNK_BYTES: usize = 4096;

/// How many times within the deadline it is looked whether the reader took anything.
const PROGRESS_CHECKS: u32 = 8;

/// The writing end of a pipe, or whatever stdout is.
pub(super) struct OutputPipe<O> {
    output: O,
    /// How long the reader may take nothing.
    deadline: Duration,
    /// How much it holds, if it is a pipe. Of a pipe the system says how much the reader has not taken
    /// yet, which matters: it is writable again only when a whole page of it is free, and a slow reader
    /// may need longer than that.
    capacity: Option<usize>,
}

impl<O: AsFd> OutputPipe<O> {
    pub(super) fn new(output: O, deadline: Duration) -> Self {
        let capacity = fcntl_getpipe_size(&output).ok();
        Self {
            output,
            deadline,
            capacity,
        }
    }

    /// How much can be written without waiting, if it is a pipe and its reader has taken everything.
    pub(super) fn free_bytes(&self) -> Option<usize> {
        self.capacity.filter(|_| self.unread() == Some(0))
    }

    /// Writes everything, however long that takes, as long as the reader takes something in time.
    pub(super) fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let room = self.wait_for_space()?;
            let chunk = &bytes[..bytes.len().min(room)];
            match rustix::io::write(&self.output, chunk) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// How much can be written now without waiting.
    fn wait_for_space(&self) -> io::Result<usize> {
        if let Some(room) = self.free_bytes() {
            return Ok(room);
        }
        let mut unread = self.unread();
        let mut progress = Instant::now();
        while !wait(
            &self.output,
            PollFlags::OUT,
            Some(self.deadline / PROGRESS_CHECKS),
        )? {
            let now = self.unread();
            if now != unread {
                unread = now;
                progress = Instant::now();
            }
            if progress.elapsed() >= self.deadline {
                let text = format!("nobody read stdout for {:?}", self.deadline);
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
        }
        Ok(CHUNK_BYTES)
    }

    fn unread(&self) -> Option<u64> {
        self.capacity?;
        rustix::io::ioctl_fionread(&self.output).ok()
    }
}

/// Waits until the descriptor is ready or broken, which its next use will tell; false when it was not
/// so in time.
pub(super) fn wait(
    descriptor: &impl AsFd,
    ready: PollFlags,
    patience: Option<Duration>,
) -> io::Result<bool> {
    let patience = patience.and_then(|patience| Timespec::try_from(patience).ok());
    match poll(&mut [PollFd::new(descriptor, ready)], patience.as_ref()) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
