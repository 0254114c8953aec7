//! What is typed at the terminal, a line at a time.

use std::sync::mpsc as std_mpsc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::stdio::stdin;
use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::mpsc;

const READ_BYTES: usize = 4096;

/// The keyboard. It is read only here, and only while an answer is waited for: what is thrown away is gone, and no line
/// of it is on its way.
#[derive(Debug, Default)]
pub(super) struct Keyboard {
    watcher: Option<InputWatcher>,
    /// Read, and no whole line yet.
    begun: Vec<u8>,
}

impl Keyboard {
    /// Forgets what was typed so far.
    pub(super) fn discard_input(&mut self) {
        self.begun.clear();
        // Where it fails there is no terminal any more, and then nothing is read either.
        let _ = tcflush(stdin(), QueueSelector::IFlush);
    }

    /// The next line; nothing when nobody can type any more. What was read stays if this is dropped.
    pub(super) async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(line) = self.whole() {
                return Some(line);
            }
            if !has_input(Some(&Timespec::default())) {
                self.watcher
                    .get_or_insert_with(InputWatcher::new)
                    .seen()
                    .await?;
                // What was seen may have been thrown away since, and a read would wait for more.
                continue;
            }
            let mut bytes = [0; READ_BYTES];
            match rustix::io::read(stdin(), &mut bytes) {
                Ok(0) => return None,
                Ok(count) => self.begun.extend(&bytes[..count]),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(_) => return None,
            }
        }
    }

    fn whole(&mut self) -> Option<String> {
        let end = self.begun.iter().position(|it| *it == b'\n')?;
        let line: Vec<u8> = self.begun.drain(..=end).collect();
        Some(String::from_utf8_lossy(&line).into_owned())
    }
}

/// Says when something is typed, and leaves it there. Its thread stays until the process ends.
#[derive(Debug)]
struct InputWatcher {
    request: std_mpsc::Sender<()>,
    ready: mpsc::Receiver<()>,
    is_watching: bool,
}

impl InputWatcher {
    fn new() -> Self {
        let (request, looks) = std_mpsc::channel();
        let (sees, ready) = mpsc::channel(1);
        std::thread::spawn(move || {
            for () in looks {
                has_input(None);
                if sees.blocking_send(()).is_err() {
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

    async fn seen(&mut self) -> Option<()> {
        if !self.is_watching {
            self.request.send(()).ok()?;
            self.is_watching = true;
        }
        self.ready.recv().await?;
        self.is_watching = false;
        Some(())
    }
}

/// Whether a read would not wait; within this time, or at any time.
fn has_input(time: Option<&Timespec>) -> bool {
    let stdin = stdin();
    let mut wanted = [PollFd::new(&stdin, PollFlags::IN)];
    // If it cannot be found out, the read says why.
    !matches!(poll(&mut wanted, time), Ok(0) | Err(Errno::INTR))
}
