//! Checks from a separate thread whether the runtime still runs. While the runtime is blocked, that
//! thread answers on the listeners: otherwise a health check of a blocked server would wait without
//! an answer.

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

/// Time between two checks.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Limit: consecutive checks, one a second, without a sign of life from the runtime; beyond it, the
/// log and the status pages report it, and the service manager gets no more heartbeats.
///
/// Checks are counted, not seconds: a process that was stopped, or whose machine slept, made no
/// checks either.
const MISSED_CHECKS_MAX: u32 = 5;

/// Time for a client to send its request, and to read the response.
const PEER_TIMEOUT: Duration = Duration::from_millis(200);

/// Maximum size of a request.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// Watches the runtime until it is dropped.
#[derive(Debug)]
pub struct Watchdog {
    _end: Sender<()>,
}

/// Duplicates of the listening sockets, as long as the listeners are open.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchedSockets(Arc<Mutex<Vec<Arc<Socket>>>>);

impl WatchedSockets {
    pub(crate) fn add(&self, listener: &impl AsFd) -> io::Result<()> {
        let listener = listener.as_fd().try_clone_to_owned()?;
        self.all().push(Arc::new(listener.into()));
        Ok(())
    }

    pub(crate) fn close(&self) {
        self.all().clear();
    }

    fn all(&self) -> MutexGuard<'_, Vec<Arc<Socket>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watchdog {
    /// Starts watching the current runtime. While it runs, `beat` is called at every check. While
    /// it is blocked, new connections receive the page.
    pub(crate) fn begin(
        listeners: WatchedSockets,
        blocked_page: &HttpPage,
        beat: impl FnMut() + Send + 'static,
    ) -> io::Result<Self> {
        let (end, ended) = channel();
        let watchdog = WatchdogThread {
            runtime: Handle::current(),
            listeners,
            answer: answer(blocked_page),
            ended,
        };
        let run = move || watchdog.run(beat);
        thread::Builder::new().name("watch".into()).spawn(run)?;
        Ok(Self { _end: end })
    }
}

struct WatchdogThread {
    runtime: Handle,
    listeners: WatchedSockets,
    /// Response while the runtime is blocked.
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
                    log(|| tracing::warn!("the server's runtime runs again"));
                }
                beat();
                (pulse, missed) = (self.probe(), 0);
                continue;
            }
            missed += 1;
            if missed == MISSED_CHECKS_MAX {
                log(|| {
                    tracing::error!(
                        "the server's runtime is blocked; /livez reports it until it runs again"
                    )
                });
            }
        }
    }

    /// Spawns a task that sets the returned flag when the runtime runs it.
    fn probe(&self) -> Arc<AtomicBool> {
        let pulse = Arc::new(AtomicBool::new(false));
        let alive = pulse.clone();
        self.runtime
            .spawn(async move { alive.store(true, Ordering::Release) });
        pulse
    }

    /// Waits for the next check. If the runtime is blocked, answers on the listeners while it
    /// waits. Returns false when the watchdog is dropped.
    fn pause(&self, is_blocked: bool) -> bool {
        if !is_blocked {
            return self.ended.recv_timeout(CHECK_INTERVAL) == Err(RecvTimeoutError::Timeout);
        }
        let end = Instant::now() + CHECK_INTERVAL;
        while let Some(remaining) = end.checked_duration_since(Instant::now()) {
            let listeners = self.listeners.all().clone();
            for listener in ready_listeners(&listeners, remaining) {
                match listener.accept() {
                    // A client that is too slow gets no response.
                    Ok((peer, _)) => drop(self.respond(peer)),
                    // The client has disconnected.
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    // Without descriptors the connection stays in the backlog, and poll would
                    // report it at once again.
                    Err(_) => {
                        return self.ended.recv_timeout(remaining)
                            == Err(RecvTimeoutError::Timeout);
                    }
                }
            }
        }
        self.ended.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty)
    }

    fn respond(&self, mut peer: Socket) -> io::Result<()> {
        peer.set_read_timeout(Some(PEER_TIMEOUT))?;
        peer.set_write_timeout(Some(PEER_TIMEOUT))?;
        // Read the whole request: closing a socket with unread bytes would discard the response.
        let (started, mut head, mut chunk) = (Instant::now(), Vec::new(), [0; 4096]);
        while !head.windows(4).any(|it| it == b"\r\n\r\n") {
            if started.elapsed() > PEER_TIMEOUT || head.len() > HEAD_BYTES_MAX {
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

/// Returns the listeners with a pending connection within this time.
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
    let ready = all.filter(|(_, it)| it.revents().contains(PollFlags::IN));
    ready.map(|(listener, _)| &**listener).collect()
}

/// Logs from a separate thread, because the log itself may be what blocks.
fn log(write_log: impl FnOnce() + Send + 'static) {
    let _ = thread::Builder::new().spawn(write_log);
}

/// Encodes a page as an HTTP response.
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

    /// Simulates a process without descriptors: the connection is pending, but accept fails.
    #[tokio::test]
    async fn a_failed_accept_is_not_retried_at_once() {
        let (listener, mut client) = UnixStream::pair().expect("a pair");
        client.write_all(b"x").expect("it knocks");
        let listeners = WatchedSockets::default();
        listeners.add(&listener).expect("a listener");
        let (end, ended) = channel();
        let watchdog = WatchdogThread {
            runtime: Handle::current(),
            listeners,
            answer: String::new(),
            ended,
        };
        // A thread that waits is woken by the end at once; one that retries in a loop takes the
        // whole interval. A busy machine may delay a wait too, but not every time.
        drop(end);
        let is_woken = (0..10).any(|_| {
            let started = Instant::now();
            assert!(!watchdog.pause(true));
            started.elapsed() < CHECK_INTERVAL
        });
        assert!(is_woken);
    }
}
