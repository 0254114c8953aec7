//! Reads lines that the user types at the terminal.

use std::sync::mpsc as std_mpsc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::stdio::stdin;
use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::mpsc;

const READ_BYTES: usize = 4096;

/// The keyboard. It is read only here, and only while a question is open, so discarded input is
/// really gone and no line of it is still in transit.
#[derive(Debug, Default)]
pub(crate) struct Keyboard {
    watcher: Option<InputWatcher>,
    /// Bytes of an incomplete line.
    buffer: Vec<u8>,
}

impl Keyboard {
    /// Discards all input typed so far.
    pub(crate) fn discard_input(&mut self) {
        self.buffer.clear();
        // On failure there is no terminal any more, and nothing is read either.
        let _ = tcflush(stdin(), QueueSelector::IFlush);
    }

    /// Returns the next line, or `None` at the end of input. Cancel-safe: read bytes are kept.
    pub(crate) async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(line) = self.whole() {
                return Some(line);
            }
            if !has_input(Some(&Timespec::default())) {
                self.watcher
                    .get_or_insert_with(InputWatcher::new)
                    .wait_for_input()
                    .await?;
                // The input may have been discarded since, and a read would block.
                continue;
            }
            let mut bytes = [0; READ_BYTES];
            match rustix::io::read(stdin(), &mut bytes) {
                Ok(0) => return None,
                Ok(count) => self.buffer.extend(&bytes[..count]),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(_) => return None,
            }
        }
    }

    fn whole(&mut self) -> Option<String> {
        let end = self.buffer.iter().position(|it| *it == b'\n')?;
        let line: Vec<u8> = self.buffer.drain(..=end).collect();
        Some(String::from_utf8_lossy(&line).into_owned())
    }
}

/// Signals when input is available, without reading it. Its thread lives until the process ends.
#[derive(Debug)]
struct InputWatcher {
    request: std_mpsc::Sender<()>,
    ready: mpsc::Receiver<()>,
    is_watching: bool,
}

impl InputWatcher {
    fn new() -> Self {
        let (request, requests) = std_mpsc::channel();
        let (input_ready, ready) = mpsc::channel(1);
        std::thread::spawn(move || {
            for () in requests {
                has_input(None);
                if input_ready.blocking_send(()).is_err() {
                    return;
                }
            }
        });
        Self {
            request,
            ready,
            is_watching: false,
        }
    }

    async fn wait_for_input(&mut self) -> Option<()> {
        if !self.is_watching {
            self.request.send(()).ok()?;
            self.is_watching = true;
        }
        self.ready.recv().await?;
        self.is_watching = false;
        Some(())
    }
}

/// Whether a read would not block; waits at most this time, or without limit.
fn has_input(time: Option<&Timespec>) -> bool {
    let stdin = stdin();
    let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
    // If the poll fails, the read reports the error.
    !matches!(poll(&mut polled, time), Ok(0) | Err(Errno::INTR))
}
