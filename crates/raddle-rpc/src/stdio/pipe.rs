//! Writing to a descriptor that may be blocking or non-blocking, and whose reader may be stalled.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::platform::pipe_capacity;

/// Bytes that a writable pipe accepts without blocking, even a blocking pipe.
const CHUNK_BYTES: usize = 4096;

/// Number of checks for progress within the deadline.
const PROGRESS_CHECKS: u32 = 8;

/// The output: a pipe, or any other kind of descriptor.
pub(super) struct OutputPipe<O> {
    output: O,
    /// Timeout of a reader that makes no progress.
    deadline: Duration,
    /// Capacity, if the output is a pipe. For a pipe the kernel reports the unread bytes. That
    /// matters: a pipe is writable again only when a whole page is free, and a slow reader may need
    /// longer than the deadline for that.
    capacity: Option<usize>,
}

impl<O: AsFd> OutputPipe<O> {
    pub(super) fn new(output: O, deadline: Duration) -> Self {
        let capacity = pipe_capacity(&output);
        Self {
            output,
            deadline,
            capacity,
        }
    }

    /// Returns the bytes that can be written without waiting, if the output is an empty pipe.
    pub(super) fn free_bytes(&self) -> Option<usize> {
        self.capacity.filter(|_| self.unread() == Some(0))
    }

    /// Writes everything. Times out only if the reader makes no progress within the deadline.
    pub(super) fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let space = self.wait_for_space()?;
            let chunk = &bytes[..bytes.len().min(space)];
            match rustix::io::write(&self.output, chunk) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Waits until the output is writable, and returns the bytes that it accepts without blocking.
    fn wait_for_space(&self) -> io::Result<usize> {
        if let Some(free) = self.free_bytes() {
            return Ok(free);
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
                let text = format!("stdout was not read for {:?}", self.deadline);
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

/// Waits until the descriptor is ready or broken; its next use distinguishes the two. Returns false
/// on timeout.
pub(super) fn wait(
    descriptor: &impl AsFd,
    ready: PollFlags,
    timeout: Option<Duration>,
) -> io::Result<bool> {
    let timespec = timeout.and_then(|it| Timespec::try_from(it).ok());
    match poll(&mut [PollFd::new(descriptor, ready)], timespec.as_ref()) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
