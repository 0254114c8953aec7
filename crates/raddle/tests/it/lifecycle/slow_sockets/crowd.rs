//! The crowd: sockets that send one byte a second of an endless request and reconnect when they are
//! closed, and one client that sends requests and never reads.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::request;
use crate::support::server::TestServer;
use crate::support::websocket::{FIN, TEXT, Websocket, frame};

/// The interval at which each socket sends a byte.
const DRIP: Duration = Duration::from_secs(1);

/// The sockets send at different moments, a few of them at a time.
const SHARES: u32 = 200;

pub struct Crowd {
    stop: Sender<()>,
    drippers: JoinHandle<Duration>,
    /// With full buffers in both directions, kept open.
    _silent: Websocket,
}

impl Crowd {
    /// Returns once every socket has connected, and the server has stopped reading from the silent
    /// client.
    pub fn gather(server: &TestServer, sockets: usize) -> Self {
        let silent = silent(server);
        let (stop, stopped) = channel();
        let (ready, gathered) = channel();
        let address = server.address();
        let drippers = std::thread::spawn(move || drip(address, sockets, &stopped, &ready));
        gathered.recv().expect("all have come");
        Self {
            stop,
            drippers,
            _silent: silent,
        }
    }

    /// Closes all sockets. Returns the lifetime of the oldest one.
    pub fn disperse(self) -> Duration {
        self.stop.send(()).expect("they drip");
        self.drippers.join().expect("no panic")
    }
}

/// A client that has requested more than the server will queue for it.
fn silent(server: &TestServer) -> Websocket {
    let mut silent = server.client();
    // Each response is longer than its request.
    let ask = request("x".repeat(1000), "account/read", json!({}));
    let questions = frame(FIN | TEXT, &ask).repeat(1000);
    let mut sent = 0;
    loop {
        let count = silent.push(&questions, Duration::from_millis(300));
        sent += count;
        if count < questions.len() {
            return silent;
        }
        assert!(
            sent < 100 << 20,
            "the server reads on for a client that does not"
        );
    }
}

struct Dripper {
    stream: TcpStream,
    since: Instant,
}

impl Dripper {
    fn come(address: SocketAddr) -> Self {
        let mut stream = TcpStream::connect(address).expect("the listener is open");
        stream.set_nonblocking(true).expect("an option");
        // The server may close it before it sends anything.
        let _ = stream.write_all(b"GET / HTTP/1.1\r\nX: ");
        Self {
            stream,
            since: Instant::now(),
        }
    }

    /// Sends a byte. Returns false if the server has closed the connection.
    fn drip(&mut self) -> bool {
        let silence = self.stream.read(&mut [0; 256]);
        let there = silence.is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        there && self.stream.write(b"x").is_ok()
    }
}

fn drip(address: SocketAddr, sockets: usize, stop: &Receiver<()>, ready: &Sender<()>) -> Duration {
    let mut all: Vec<Dripper> = (0..sockets).map(|_| Dripper::come(address)).collect();
    ready.send(()).expect("someone waits");
    let mut oldest = Duration::ZERO;
    loop {
        for share in all.chunks_mut(sockets.div_ceil(SHARES as usize)) {
            for dripper in share {
                if dripper.drip() {
                    oldest = oldest.max(dripper.since.elapsed());
                } else {
                    *dripper = Dripper::come(address);
                }
            }
            match stop.recv_timeout(DRIP / SHARES) {
                Err(RecvTimeoutError::Timeout) => {}
                _ => return oldest,
            }
        }
    }
}
