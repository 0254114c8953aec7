//! A server with all workers blocked: it reports this itself, and in time.

use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier};

use raddle_rpc::Watchdog;
use serde_json::Value;

use super::*;
use crate::support::http::{self, HttpResponse};

const WORKERS: usize = 2;

/// How long `/livez` may take to report a stuck server.
const IN_TIME: Duration = Duration::from_secs(5);

/// A server with a watchdog.
struct WatchedServer {
    address: SocketAddr,
    socket: PathBuf,
    /// Receives a message whenever the server was seen to run.
    beats: Receiver<()>,
    runtime: Runtime,
    _watch: Watchdog,
    _home: TempDir,
}

impl WatchedServer {
    fn start() -> Self {
        let home = TempDir::new().expect("a home");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(WORKERS)
            .enable_all()
            .build()
            .expect("a runtime");
        let socket = home.path().join("private/s");
        let (beat, beats) = channel();
        let (address, watch) = runtime.block_on(serve(options(&home), &socket, beat));
        Self {
            address,
            socket,
            beats,
            runtime,
            _watch: watch,
            _home: home,
        }
    }

    /// Blocks all workers, until the returned senders are dropped.
    fn block_workers(&self) -> Vec<Sender<()>> {
        let barrier = Arc::new(Barrier::new(WORKERS + 1));
        let block = |_| {
            let (sender, receiver) = channel::<()>();
            let barrier = barrier.clone();
            self.runtime.spawn(async move {
                barrier.wait();
                receiver.recv()
            });
            sender
        };
        let senders = (0..WORKERS).map(block).collect();
        barrier.wait();
        senders
    }

    fn over_tcp(&self) -> (u16, Value) {
        let address = self.address;
        let request = format!("GET /livez HTTP/1.1\r\nHost: {address}\r\n\r\n");
        read(&http::send(address, &request))
    }

    fn over_unix(&self) -> (u16, Value) {
        let mut stream = UnixStream::connect(&self.socket).expect("the listener is open");
        stream
            .set_read_timeout(Some(TEST_TIMEOUT))
            .expect("an option");
        let request = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";
        stream.write_all(request).expect("someone reads");
        read(&http::exchange(&mut stream))
    }
}

async fn serve(options: Options, socket: &Path, beat: Sender<()>) -> (SocketAddr, Watchdog) {
    let mut server = Server::open(options, crate::script::threads(&[])).expect("a server");
    let (admin_pages, mut callers) = server.status_pages();
    let mut listeners = Listeners::new();
    let unix = ListenAddress::Unix(Some(socket.into()));
    for listen in ["ws://127.0.0.1:0".parse().expect("an address"), unix] {
        let listener = Listener {
            listen,
            admin_pages: Some(admin_pages.clone()),
            ..listener(ConnectionLimits::default())
        };
        listeners.open(listener).await.expect("a listener");
    }
    let beat = move || {
        let _ = beat.send(());
    };
    let watch = listeners
        .watch(&admin_pages.blocked_page(), beat)
        .expect("a thread");
    let address = listeners.addresses()[0].strip_prefix("ws://");
    let address = address.expect("a websocket").parse().expect("an address");
    tokio::spawn(async move {
        loop {
            tokio::select! {
                Some(connection) = listeners.next() => drop(server.serve(connection)),
                Some(caller) = callers.recv() => drop(server.serve(caller)),
                else => break,
            }
        }
    });
    (address, watch.expect("there are doors"))
}

fn read(answer: &HttpResponse) -> (u16, Value) {
    let page = serde_json::from_str(&answer.body);
    (answer.status, page.expect("JSON"))
}

#[test]
fn livez_tells_that_the_loop_is_stuck() {
    let healthy = json!({"status": "ok", "parts": {"loop": "ok", "store": "ok"}});
    let stuck = json!({"status": "stuck", "parts": {"loop": "stuck"}});
    let server = WatchedServer::start();
    assert_eq!(server.over_tcp(), (200, healthy.clone()));
    server.beats.recv_timeout(TEST_TIMEOUT).expect("it runs");

    let blocked = server.block_workers();
    let begun = Instant::now();
    assert_eq!(server.over_tcp(), (503, stuck.clone()));
    assert!(begun.elapsed() < IN_TIME, "{:?}", begun.elapsed());
    // From here on the watchdog knows.
    server.beats.try_iter().for_each(drop);
    let begun = Instant::now();
    assert_eq!(server.over_unix(), (503, stuck));
    assert!(begun.elapsed() < IN_TIME, "{:?}", begun.elapsed());
    assert!(server.beats.try_recv().is_err(), "nobody saw it run");

    drop(blocked);
    server
        .beats
        .recv_timeout(TEST_TIMEOUT)
        .expect("it runs again");
    for answer in [server.over_tcp(), server.over_unix()] {
        assert_eq!(answer, (200, healthy.clone()));
    }
}
