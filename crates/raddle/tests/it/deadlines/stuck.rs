//! A server whose every worker is held up: it says so itself, and in time.

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

/// How long `/livez` may take to say what is stuck.
const IN_TIME: Duration = Duration::from_secs(5);

/// A server that is watched.
struct WatchedServer {
    address: SocketAddr,
    socket: PathBuf,
    /// Says so whenever the server was seen to run.
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

    /// Holds up everyone who could do something, until what it returns is dropped.
    fn hold_up(&self) -> Vec<Sender<()>> {
        let all_there = Arc::new(Barrier::new(WORKERS + 1));
        let hold_up = |_| {
            let (let_go, held) = channel::<()>();
            let all_there = all_there.clone();
            self.runtime.spawn(async move {
                all_there.wait();
                held.recv()
            });
            let_go
        };
        let held = (0..WORKERS).map(hold_up).collect();
        all_there.wait();
        held
    }

    fn over_tcp(&self) -> (u16, Value) {
        let address = self.address;
        let request = format!("GET /livez HTTP/1.1\r\nHost: {address}\r\n\r\n");
        read(&http::send(address, &request))
    }

    fn over_unix(&self) -> (u16, Value) {
        let mut stream = UnixStream::connect(&self.socket).expect("the door is open");
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
    let (board, mut callers) = server.status_pages();
    let mut doors = Listeners::new();
    let unix = ListenAddress::Unix(Some(socket.into()));
    for listen in ["ws://127.0.0.1:0".parse().expect("an address"), unix] {
        let door = Listener {
            listen,
            admin_pages: Some(board.clone()),
            ..door(ConnectionLimits::default())
        };
        doors.open(door).await.expect("a door");
    }
    let beat = move || {
        let _ = beat.send(());
    };
    let watch = doors.watch(&board.blocked_page(), beat).expect("a thread");
    let address = doors.addresses()[0].strip_prefix("ws://");
    let address = address.expect("a websocket").parse().expect("an address");
    tokio::spawn(async move {
        loop {
            tokio::select! {
                Some(connection) = doors.next() => drop(server.serve(connection)),
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
    let well = json!({"status": "ok", "parts": {"loop": "ok", "store": "ok"}});
    let stuck = json!({"status": "stuck", "parts": {"loop": "stuck"}});
    let server = WatchedServer::start();
    assert_eq!(server.over_tcp(), (200, well.clone()));
    server.beats.recv_timeout(TEST_TIMEOUT).expect("it runs");

    let held = server.hold_up();
    let begun = Instant::now();
    assert_eq!(server.over_tcp(), (503, stuck.clone()));
    assert!(begun.elapsed() < IN_TIME, "{:?}", begun.elapsed());
    // From here on it is known.
    server.beats.try_iter().for_each(drop);
    let begun = Instant::now();
    assert_eq!(server.over_unix(), (503, stuck));
    assert!(begun.elapsed() < IN_TIME, "{:?}", begun.elapsed());
    assert!(server.beats.try_recv().is_err(), "nobody saw it run");

    drop(held);
    server
        .beats
        .recv_timeout(TEST_TIMEOUT)
        .expect("it runs again");
    for answer in [server.over_tcp(), server.over_unix()] {
        assert_eq!(answer, (200, well.clone()));
    }
}
