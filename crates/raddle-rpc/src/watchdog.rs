//! Whether the runtime still runs, seen from a thread outside of it. While it does not, that thread answers at the
//! doors: else whoever asks a stuck server whether it is well would wait, and never be told.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::Socket;
use tokio::runtime::Handle;

use crate::HttpPage;

/// How often it is looked.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// After how many looks without a sign of life it is stuck. Looks are counted, not seconds: a process that was
/// stopped, or whose machine slept, did not look either.
const MISSED_CHECKS_MAX: u32 = 5;

/// How long whoever comes to a door may take to ask, and to be told.
const PEER_TIMEOUT: Duration = Duration::from_millis(200);

/// How much of a request is read.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// Looks after doors until it is dropped.
#[derive(Debug)]
pub struct Watchdog {
    _end: Sender<()>,
}

/// The listeners of doors, which their own tasks have too, for as long as the doors are open.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchedSockets(Arc<Mutex<Vec<Arc<Socket>>>>);

impl WatchedSockets {
    pub(crate) fn add(&self, listener: &impl AsFd) -> io::Result<()> {
        let listener = listener.as_fd().try_clone_to_owned()?;
        self.all().push(Arc::new(listener.into()));
        Ok(())
    }

    /// The doors are closed.
    pub(crate) fn close(&self) {
        self.all().clear();
    }

    fn all(&self) -> MutexGuard<'_, Vec<Arc<Socket>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watchdog {
    /// Begins to look whether this runtime runs. While it does, `beat` is called at every look; while it does not,
    /// whoever comes to a door is shown the page.
    pub(crate) fn begin(
        listeners: WatchedSockets,
        stuck: &HttpPage,
        beat: impl FnMut() + Send + 'static,
    ) -> io::Result<Self> {
        let (end, ended) = channel();
        let looks = WatchdogThread {
            runtime: Handle::current(),
            listeners,
            answer: answer(stuck),
            ended,
        };
        let run = move || looks.run(beat);
        thread::Builder::new().name("watch".into()).spawn(run)?;
        Ok(Self { _end: end })
    }
}

struct WatchdogThread {
    runtime: Handle,
    listeners: WatchedSockets,
    /// What is said while the runtime is stuck.
    answer: String,
    ended: Receiver<()>,
}

impl WatchdogThread {
    fn run(self, mut beat: impl FnMut()) {
        let mut pulse = self.probe();
        let mut missed = 0;
        while self.pause(missed >= MISSED_CHECKS_MAX) {
            if pulse.load(Ordering::Acquire) {
                if missed >= MISSED_CHECKS_MAX {
                    log(|| tracing::warn!("the server's loop runs again"));
                }
                beat();
                (pulse, missed) = (self.probe(), 0);
                continue;
            }
            missed += 1;
            if missed == MISSED_CHECKS_MAX {
                log(|| tracing::error!("the server's loop is stuck; /livez says so until it runs"));
            }
        }
    }

    /// Asks the runtime for a sign of life.
    fn probe(&self) -> Arc<AtomicBool> {
        let pulse = Arc::new(AtomicBool::new(false));
        let felt = pulse.clone();
        self.runtime
            .spawn(async move { felt.store(true, Ordering::Release) });
        pulse
    }

    /// Waits for the next look, and stands in at the doors meanwhile if nobody else does; false when it is over.
    fn pause(&self, stands_in: bool) -> bool {
        if !stands_in {
            return self.ended.recv_timeout(CHECK_INTERVAL) == Err(RecvTimeoutError::Timeout);
        }
        let end = Instant::now() + CHECK_INTERVAL;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            let listeners = self.listeners.all().clone();
            for listener in ready_listeners(&listeners, left) {
                match listener.accept() {
                    // One that does not ask in time is not told.
                    Ok((peer, _)) => drop(self.respond(peer)),
                    // One that has left again.
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    // Without descriptors whoever knocks stays at the door, and would be seen there at once again.
                    Err(_) => {
                        return self.ended.recv_timeout(left) == Err(RecvTimeoutError::Timeout);
                    }
                }
            }
        }
        self.ended.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty)
    }

    fn respond(&self, mut peer: Socket) -> io::Result<()> {
        peer.set_read_timeout(Some(PEER_TIMEOUT))?;
        peer.set_write_timeout(Some(PEER_TIMEOUT))?;
        // A socket that is closed with bytes unread takes back what was written last.
        let (begun, mut head, mut chunk) = (Instant::now(), Vec::new(), [0; 4096]);
        while !head.windows(4).any(|it| it == b"\r\n\r\n") {
            if begun.elapsed() > PEER_TIMEOUT || head.len() > HEAD_BYTES_MAX {
                return Err(io::ErrorKind::TimedOut.into());
            }
            match peer.read(&mut chunk)? {
                0 => return Ok(()),
                count => head.extend_from_slice(&chunk[..count]),
            }
        }
        peer.write_all(self.answer.as_bytes())?;
        peer.shutdown(Shutdown::Both)
    }
}

/// The listeners to which someone has come within this time.
fn ready_listeners(listeners: &[Arc<Socket>], time: Duration) -> Vec<&Socket> {
    let descriptors = listeners.iter();
    let mut polled: Vec<PollFd<'_>> = descriptors
        .map(|it| PollFd::new(&**it, PollFlags::IN))
        .collect();
    let time = Timespec::try_from(time).ok();
    if poll(&mut polled, time.as_ref()).is_err() {
        return Vec::new();
    }
    let all = listeners.iter().zip(&polled);
    let asked = all.filter(|(_, it)| it.revents().contains(PollFlags::IN));
    asked.map(|(listener, _)| &**listener).collect()
}

/// Says something in the log from a thread of its own: the log may be what everyone waits for.
fn log(say: impl FnOnce() + Send + 'static) {
    let _ = thread::Builder::new().spawn(say);
}

/// A page as it goes over the wire.
fn answer(page: &HttpPage) -> String {
    let HttpPage {
        status,
        media,
        text,
    } = page;
    let length = text.len();
    format!(
        "HTTP/1.1 {status} Service Unavailable\r\ncontent-type: {media}\r\ncontent-length: {length}\r\n\
         cache-control: no-store\r\nconnection: close\r\n\r\n{text}"
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    /// As where no descriptor is left: whoever knocks is seen, and cannot be let in.
    #[tokio::test]
    async fn a_door_that_cannot_be_opened_is_not_tried_again_at_once() {
        let (door, mut knocks) = UnixStream::pair().expect("a pair");
        knocks.write_all(b"x").expect("it knocks");
        let listeners = WatchedSockets::default();
        listeners.add(&door).expect("a listener");
        let (end, ended) = channel();
        let looks = WatchdogThread {
            runtime: Handle::current(),
            listeners,
            answer: String::new(),
            ended,
        };
        // Who waits for the end is woken by it; who tries again and again is not, and takes the whole time. A busy
        // machine may make one wait long too, but not always.
        drop(end);
        let is_woken = (0..10).any(|_| {
            let begun = Instant::now();
            assert!(!looks.pause(true));
            begun.elapsed() < CHECK_INTERVAL
        });
        assert!(is_woken);
    }
}
