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

/// How much may wait for a command that does not read its stdin.
const INPUT_BYTES_MAX: usize = 1 << 20;

/// What a person types to say that no more comes.
const END_OF_INPUT: &[u8] = &[4];

/// What a command is connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stdio {
    /// Pipes; a command that is given no input finds its end at once.
    Pipes {
        /// Whether it is given input.
        input: bool,
    },
    /// One pipe for all it writes, so that nobody has to guess the order; it is given no input.
    Joined,
    /// A terminal of this size, which is all three.
    Terminal(TerminalSize),
}

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    /// How many lines.
    pub rows: u16,
    /// How many in a line.
    pub cols: u16,
}

impl Default for TerminalSize {
    /// That of the oldest screens, which programs expect when nobody says.
    fn default() -> Self {
        Self { rows: 24, cols: 80 }
    }
}

/// Our ends, and those of the command.
pub(super) struct StreamEnds {
    pub(super) input: Option<Input>,
    pub(super) stdout: Output,
    pub(super) stderr: Option<Output>,
    pub(super) terminal: Option<Arc<AsyncFd<OwnedFd>>>,
    pub(super) theirs: [OwnedFd; 3],
}

impl Stdio {
    /// Makes both ends. Ours never block.
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
        (theirs, Some(Input::new(watched(ours)?, false)))
    } else {
        (nothing()?, None)
    };
    let (stdout, their_stdout) = pipe_with(PipeFlags::CLOEXEC)?;
    let (stderr, their_stderr) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok(StreamEnds {
        input,
        stdout: Output {
            end: watched(stdout)?,
        },
        stderr: Some(Output {
            end: watched(stderr)?,
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
            end: watched(ours)?,
        },
        stderr: None,
        terminal: None,
        theirs: [nothing()?, theirs.try_clone()?, theirs],
    })
}

/// What a command reads that is given nothing.
fn nothing() -> io::Result<OwnedFd> {
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
    let ours = watched(ours)?;
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

fn watched(end: OwnedFd) -> io::Result<Arc<AsyncFd<OwnedFd>>> {
    ioctl_fionbio(&end, true)?;
    #[expect(
        unsafe_code,
        reason = "tokio cannot see that a descriptor stays the same as long as it is registered"
    )]
    // SAFETY: it is owned by what is registered, which hands out nothing but references to it.
    let watched = unsafe { AsyncFd::register(end) };
    Ok(Arc::new(watched?))
}

/// What a command writes.
#[derive(Debug)]
pub struct Output {
    end: Arc<AsyncFd<OwnedFd>>,
}

impl Output {
    /// Waits for output and reads what is there; 0 bytes at the end.
    pub async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut ready = self.end.readable().await?;
            let outcome = ready.try_io(|end| Ok(read(end.get_ref(), &mut *buffer)?));
            match outcome {
                // Nobody has the other end of the terminal any more.
                Ok(Err(error)) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => {
                    return Ok(0);
                }
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(outcome) => return outcome,
                Err(_would_block) => {}
            }
        }
    }

    /// Reads to the end, and keeps no more than shows that it is more than `bytes_max`.
    pub(super) async fn read_within(&self, bytes_max: usize) -> io::Result<Vec<u8>> {
        let mut read = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            match self.read(&mut buffer).await? {
                0 => return Ok(read),
                some if read.len() <= bytes_max => read.extend_from_slice(&buffer[..some]),
                _ => {}
            }
        }
    }
}

/// What a command reads. Dropping all of it ends the command's input.
#[derive(Clone, Debug)]
pub struct Input {
    pieces: UnboundedSender<Vec<u8>>,
    waiting: Arc<AtomicUsize>,
    is_terminal: bool,
}

/// As much waits for a command as may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the command does not read its input; {INPUT_BYTES_MAX} bytes wait for it")]
pub struct InputFull;

impl Input {
    fn new(end: Arc<AsyncFd<OwnedFd>>, is_terminal: bool) -> Self {
        let (pieces, queue) = unbounded_channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        tokio::spawn(feed(end, queue, waiting.clone()));
        Self {
            pieces,
            waiting,
            is_terminal,
        }
    }

    /// Queues bytes. One piece is always taken when nothing waits. What a command that has ended does
    /// not read is dropped.
    pub fn write(&self, bytes: Vec<u8>) -> Result<(), InputFull> {
        let waiting = self.waiting.load(Ordering::Relaxed);
        if waiting > 0 && waiting + bytes.len() > INPUT_BYTES_MAX {
            return Err(InputFull);
        }
        self.push(bytes);
        Ok(())
    }

    /// Says that no more comes. A terminal has no end, so there this is typed.
    pub fn close(self) {
        if self.is_terminal {
            self.push(END_OF_INPUT.to_vec());
        }
    }

    fn push(&self, bytes: Vec<u8>) {
        self.waiting.fetch_add(bytes.len(), Ordering::Relaxed);
        let _ = self.pieces.send(bytes);
    }
}

async fn feed(
    end: Arc<AsyncFd<OwnedFd>>,
    mut queue: UnboundedReceiver<Vec<u8>>,
    waiting: Arc<AtomicUsize>,
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
                // It has closed its stdin, or is over.
                Ok(Err(_)) => break,
                Err(_would_block) => {}
            }
        }
        waiting.fetch_sub(piece.len(), Ordering::Relaxed);
    }
}
