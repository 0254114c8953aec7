//! A command's stdin, stdout and stderr: pipes, or one terminal.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, ioctl_fionbio, read, write};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Limit: input that waits for a process (a single chunk may be larger); beyond it, the server
/// rejects the request with -32001 and says when to retry.
const INPUT_BYTES_MAX: usize = 1 << 20;

/// The end-of-file character of a terminal.
const END_OF_INPUT: &[u8] = &[4];

/// The streams of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stdio {
    /// Pipes; without input the command reads the end of file at once.
    Pipes {
        /// Whether the command has a stdin.
        input: bool,
    },
    /// One pipe for all output, which keeps its order; there is no stdin.
    Joined,
    /// A terminal of this size for all three streams.
    Terminal(TerminalSize),
}

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    /// Number of lines on the screen.
    pub rows: u16,
    /// Characters in a line.
    pub cols: u16,
}

impl Default for TerminalSize {
    /// Returns the size that programs expect by default.
    fn default() -> Self {
        Self { rows: 24, cols: 80 }
    }
}

/// Our ends of the streams, and those of the command.
pub(super) struct StreamEnds {
    pub(super) input: Option<Input>,
    pub(super) stdout: Output,
    pub(super) stderr: Option<Output>,
    pub(super) terminal: Option<Arc<AsyncFd<OwnedFd>>>,
    pub(super) theirs: [OwnedFd; 3],
}

impl Stdio {
    /// Opens both ends. Ours never block.
    pub(super) fn open(self) -> io::Result<StreamEnds> {
        match self {
            Self::Pipes { input } => pipes(input),
            Self::Joined => joined(),
            Self::Terminal(size) => terminal(size),
        }
    }
}

fn pipes(has_input: bool) -> io::Result<StreamEnds> {
    let (stdin, input) = if has_input {
        let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC)?;
        (theirs, Some(Input::new(register(ours)?, false)))
    } else {
        (open_null()?, None)
    };
    let (stdout, their_stdout) = pipe_with(PipeFlags::CLOEXEC)?;
    let (stderr, their_stderr) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok(StreamEnds {
        input,
        stdout: Output {
            end: register(stdout)?,
        },
        stderr: Some(Output {
            end: register(stderr)?,
        }),
        terminal: None,
        theirs: [stdin, their_stdout, their_stderr],
    })
}

fn joined() -> io::Result<StreamEnds> {
    let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok(StreamEnds {
        input: None,
        stdout: Output {
            end: register(ours)?,
        },
        stderr: None,
        terminal: None,
        theirs: [open_null()?, theirs.try_clone()?, theirs],
    })
}

/// Opens an empty stdin.
fn open_null() -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(open("/dev/null", flags, Mode::empty())?)
}

fn terminal(size: TerminalSize) -> io::Result<StreamEnds> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let theirs = ioctl_tiocgptpeer(&ours, flags)?;
    resize(ours.as_fd(), size)?;
    let ours = register(ours)?;
    Ok(StreamEnds {
        input: Some(Input::new(ours.clone(), true)),
        stdout: Output { end: ours.clone() },
        stderr: None,
        terminal: Some(ours),
        theirs: [theirs.try_clone()?, theirs.try_clone()?, theirs],
    })
}

pub(super) fn resize(terminal: BorrowedFd<'_>, size: TerminalSize) -> io::Result<()> {
    let size = Winsize {
        ws_row: size.rows,
        ws_col: size.cols,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    Ok(tcsetwinsize(terminal, size)?)
}

fn register(end: OwnedFd) -> io::Result<Arc<AsyncFd<OwnedFd>>> {
    ioctl_fionbio(&end, true)?;
    #[expect(
        unsafe_code,
        reason = "tokio cannot see that a descriptor stays the same as long as it is registered"
    )]
    // SAFETY: the registration owns the descriptor, and hands out nothing but references to it.
    let registered = unsafe { AsyncFd::register(end) };
    Ok(Arc::new(registered?))
}

/// An output stream of a command.
#[derive(Debug)]
pub struct Output {
    end: Arc<AsyncFd<OwnedFd>>,
}

impl Output {
    /// Waits for output and reads it; returns 0 at the end.
    pub async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            // Readiness alone never yields to other tasks while the process keeps writing.
            tokio::task::coop::consume_budget().await;
            let mut ready = self.end.readable().await?;
            let outcome = ready.try_io(|end| Ok(read(end.get_ref(), &mut *buffer)?));
            match outcome {
                // The other end of the terminal is closed.
                Ok(Err(error)) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => {
                    return Ok(0);
                }
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(outcome) => return outcome,
                Err(_would_block) => {}
            }
        }
    }

    /// Reads to the end, and keeps at most one read more than `bytes_max`, which shows the excess.
    pub(super) async fn read_within(&self, bytes_max: usize) -> io::Result<Vec<u8>> {
        let mut output = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            match self.read(&mut buffer).await? {
                0 => return Ok(output),
                some if output.len() <= bytes_max => output.extend_from_slice(&buffer[..some]),
                _ => {}
            }
        }
    }
}

/// The stdin of a command. Dropping every clone closes it.
#[derive(Clone, Debug)]
pub struct Input {
    pieces: UnboundedSender<Vec<u8>>,
    queued: Arc<AtomicUsize>,
    is_terminal: bool,
}

/// The queue of a command's stdin is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the command does not read its input; {INPUT_BYTES_MAX} bytes wait for it")]
pub struct InputFull;

impl Input {
    fn new(end: Arc<AsyncFd<OwnedFd>>, is_terminal: bool) -> Self {
        let (pieces, queue) = unbounded_channel();
        let queued = Arc::new(AtomicUsize::new(0));
        tokio::spawn(feed(end, queue, queued.clone()));
        Self {
            pieces,
            queued,
            is_terminal,
        }
    }

    /// Queues bytes. When the queue is empty, one piece of any size is accepted. Bytes for a
    /// command that has exited are dropped.
    pub fn write(&self, bytes: Vec<u8>) -> Result<(), InputFull> {
        if !self.accepts(bytes.len()) {
            return Err(InputFull);
        }
        self.push(bytes);
        Ok(())
    }

    /// Whether a piece of this length is accepted.
    pub fn accepts(&self, length: usize) -> bool {
        let queued = self.queued.load(Ordering::Relaxed);
        queued == 0 || queued + length <= INPUT_BYTES_MAX
    }

    /// Closes the stdin. A terminal has no end of file, so it gets the end-of-file character.
    pub fn close(self) {
        if self.is_terminal {
            self.push(END_OF_INPUT.to_vec());
        }
    }

    fn push(&self, bytes: Vec<u8>) {
        self.queued.fetch_add(bytes.len(), Ordering::Relaxed);
        let _ = self.pieces.send(bytes);
    }
}

async fn feed(
    end: Arc<AsyncFd<OwnedFd>>,
    mut queue: UnboundedReceiver<Vec<u8>>,
    queued: Arc<AtomicUsize>,
) {
    while let Some(piece) = queue.recv().await {
        let mut rest = &piece[..];
        while !rest.is_empty() {
            let Ok(mut ready) = end.writable().await else {
                return;
            };
            match ready.try_io(|end| Ok(write(end.get_ref(), rest)?)) {
                Ok(Ok(count)) => rest = &rest[count..],
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                // The command has closed its stdin, or has exited.
                Ok(Err(_)) => break,
                Err(_would_block) => {}
            }
        }
        queued.fetch_sub(piece.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_input_that_is_not_read_accepts_one_long_piece() {
        let flags = PipeFlags::CLOEXEC | PipeFlags::NONBLOCK;
        let (_reader, writer) = pipe_with(flags).expect("a pipe");
        let input = Input::new(register(writer).expect("a pipe"), false);
        assert!(input.accepts(10 * INPUT_BYTES_MAX));
        input
            .write(vec![0; 10 * INPUT_BYTES_MAX])
            .expect("accepted");
        assert!(!input.accepts(1));
        assert_eq!(input.write(vec![0]), Err(InputFull));
    }
}
