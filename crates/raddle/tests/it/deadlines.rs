//! Deadlines. Those of the binary are long, so these tests open listeners with short ones in their
//! own process, and wait until they pass.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use raddle_rpc::{Auth, ConnectionLimits, ListenAddress, Listener, Listeners};
use raddle_server::{Options, Paths, Server};
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::support::websocket::{CLOSE, FIN, PING, TEXT, Websocket, WebsocketEvent, frame};
use crate::support::{TEST_TIMEOUT, code, eventually, request};

mod draining;
mod full_listeners;
mod stuck;

const SHORT: Duration = Duration::from_millis(200);

/// A server inside the test process.
struct InProcessServer {
    address: SocketAddr,
    socket: PathBuf,
    /// Receives a message whenever a connection has ended.
    ended: mpsc::UnboundedReceiver<()>,
    runtime: Runtime,
    _home: TempDir,
}

impl InProcessServer {
    fn start(limits: ConnectionLimits, first_message: Duration) -> Self {
        let home = TempDir::new().expect("a home");
        let runtime = Runtime::new().expect("a runtime");
        let mut options = options(&home);
        options.first_message = first_message;
        let (sender, ended) = mpsc::unbounded_channel();
        let socket = home.path().join("private/s");
        let unix = Listener {
            listen: ListenAddress::Unix(Some(socket.clone())),
            ..listener(limits)
        };
        let address = runtime.block_on(async {
            let mut server = Server::open(options, crate::script::threads(&[])).expect("a server");
            let mut listeners = Listeners::new();
            listeners.open(listener(limits)).await.expect("a listener");
            listeners.open(unix).await.expect("a listener");
            let banner = listeners.banners()[0]
                .lines()
                .next()
                .expect("a line")
                .to_owned();
            tokio::spawn(async move {
                while let Some(connection) = listeners.next().await {
                    let mut end = server.serve(connection);
                    let sender = sender.clone();
                    tokio::spawn(async move {
                        while end.changed().await.is_ok() {}
                        let _ = sender.send(());
                    });
                }
            });
            let (_, address) = banner.split_once("ws://").expect("an address");
            address.parse().expect("an address")
        });
        Self {
            address,
            socket,
            ended,
            runtime,
            _home: home,
        }
    }

    /// Waits until a connection has ended on the server's side.
    fn wait_for_end(&mut self) {
        let ended = &mut self.ended;
        let ended = self
            .runtime
            .block_on(async { timeout(TEST_TIMEOUT, ended.recv()).await });
        assert_eq!(ended, Ok(Some(())), "the connection goes on");
    }
}

fn options(home: &TempDir) -> Options {
    let home = home.path();
    Options::new(Paths {
        home: home.into(),
        system_config: home.join("system.toml"),
        user_config: home.join("config.toml"),
        skills: home.join("skills"),
        shared_skills: Vec::new(),
        rules: Vec::new(),
        threads: None,
    })
}

fn listener(limits: ConnectionLimits) -> Listener {
    Listener {
        listen: "ws://127.0.0.1:0".parse().expect("an address"),
        default_socket: "unused".into(),
        auth: Auth::Open,
        insecure_loopback: true,
        host_names: Arc::new([]),
        admin_pages: None,
        limits,
    }
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the listener is open");
    stream
        .set_read_timeout(Some(TEST_TIMEOUT))
        .expect("an option");
    stream
}

/// Reads to the end, which must come, and ignores the data.
fn ends(stream: &mut TcpStream) {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
        Err(error) => panic!("the connection goes on: {error}"),
    }
}

#[test]
fn a_handshake_must_end_in_time() {
    let limits = ConnectionLimits {
        handshake: SHORT,
        ..ConnectionLimits::default()
    };
    let server = InProcessServer::start(limits, TEST_TIMEOUT);
    let begun = Instant::now();
    for beginning in ["", "G", "GET / HTTP/1.1\r\nHost: "] {
        let mut stream = connect(server.address);
        stream.write_all(beginning.as_bytes()).expect("it is open");
        ends(&mut stream);
    }
    assert!(begun.elapsed() >= SHORT, "it was given its time");
}

/// Progress does not extend the deadline.
#[test]
fn a_handshake_that_drips_must_end_in_time_too() {
    let limits = ConnectionLimits {
        handshake: SHORT,
        ..ConnectionLimits::default()
    };
    let server = InProcessServer::start(limits, TEST_TIMEOUT);
    let mut stream = connect(server.address);
    let mut drips = b"GET / HTTP/1.1\r\n"
        .iter()
        .chain(b"X: y\r\n".iter().cycle());
    eventually("the server to give up", || {
        std::thread::sleep(SHORT / 20);
        let byte = drips.next().expect("there is always more");
        stream.write_all(&[*byte]).err()
    });
}

/// Only an accepted `initialize` meets the deadline.
#[test]
fn initialize_must_come_in_time() {
    let server = InProcessServer::start(ConnectionLimits::default(), SHORT);
    let nothing: Vec<u8> = Vec::new();
    let refused = request(1, "initialize", json!({}));
    let over_tcp = || Websocket::connect(server.address);
    let over_unix = || Websocket::connect_unix(&server.socket);
    let cases = [
        (nothing, false),
        (frame(FIN | PING, b"still here"), false),
        (frame(FIN | TEXT, b"noise"), false),
        (
            frame(FIN | TEXT, &request(1, "account/read", json!({}))),
            true,
        ),
        (frame(FIN | TEXT, &refused), true),
    ];
    for (number, (sent, answered)) in cases.iter().chain(&cases).enumerate() {
        let begun = Instant::now();
        let mut peer = if number < cases.len() {
            over_tcp()
        } else {
            over_unix()
        };
        peer.raw(sent);
        if *answered {
            assert!(code(&peer.receive()).is_some());
        }
        match peer.next() {
            WebsocketEvent::Close { code, reason } => {
                assert_eq!((code, reason.as_str()), (1008, "initialize timed out"));
            }
            other => panic!("expected a close, got {other:?}"),
        }
        peer.end();
        assert!(begun.elapsed() >= SHORT, "it was given its time");
    }

    // After that there is no deadline.
    let mut client = Websocket::connect(server.address);
    client.hello();
    std::thread::sleep(2 * SHORT);
    client.ask(&request(1, "account/read", json!({})));
}

/// A large response may take many times the write deadline, if each deadline sees some progress.
#[test]
fn a_slow_client_gets_the_whole_of_a_large_answer() {
    let limits = ConnectionLimits {
        write: 5 * SHORT,
        ..ConnectionLimits::default()
    };
    let server = InProcessServer::start(limits, TEST_TIMEOUT);
    // Not in the home, which is closed to clients.
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("large");
    std::fs::write(&file, vec![b'x'; 12 << 20]).expect("a file");
    let mut client = Websocket::connect(server.address);
    client.hello();
    client.send(&request(1, "fs/readFile", json!({ "path": file })));
    let begun = Instant::now();
    let answer = client.receive_slowly(64 << 10, SHORT / 20);
    assert!(begun.elapsed() > 2 * limits.write, "{:?}", begun.elapsed());
    let data = answer["result"]["dataBase64"].as_str().expect("text");
    assert_eq!(data.len(), 16 << 20);
}

/// A client that sends a close frame gets the responses queued by then.
#[test]
fn a_close_follows_the_queued_answers() {
    let server = InProcessServer::start(ConnectionLimits::default(), TEST_TIMEOUT);
    let mut client = Websocket::connect(server.address);
    client.hello();
    for number in 0..1000 {
        let id = format!("{number} {}", "x".repeat(1000));
        client.send(&request(id, "account/read", json!({})));
    }
    client.raw(&frame(FIN | PING, b"last"));
    client.raw(&frame(FIN | CLOSE, &1001_u16.to_be_bytes()));
    for _ in 0..1000 {
        assert_eq!(code(&client.receive()), None);
    }
    match client.next() {
        WebsocketEvent::Close { code, .. } => assert_eq!(code, 1001, "its own code"),
        other => panic!("expected a close, got {other:?}"),
    }
    client.end();
}

#[test]
fn a_client_that_does_not_read_is_disconnected() {
    let limits = ConnectionLimits {
        write: SHORT,
        outgoing_bytes_max: 64 << 10,
        ..ConnectionLimits::default()
    };
    let mut server = InProcessServer::start(limits, TEST_TIMEOUT);
    let mut silent = Websocket::connect(server.address);
    silent.hello();
    let question = frame(
        FIN | TEXT,
        &request("x".repeat(1000), "account/read", json!({})),
    );
    let questions = question.repeat(1000);
    // Further requests do not help it.
    while silent.push(&questions, SHORT / 2) == questions.len() {}
    server.wait_for_end();
    eventually("the connection to be cut", || {
        (silent.push(&question, SHORT / 20) == 0).then_some(())
    });
}

/// Keepalive detects a peer that vanished silently.
#[test]
fn a_silent_peer_gets_keepalives() {
    let server = InProcessServer::start(ConnectionLimits::default(), TEST_TIMEOUT);
    let mut client = Websocket::connect(server.address);
    client.hello();
    // Columns of `/proc/self/net/tcp`: number, local, remote, state, queues, timer. Timer 2 is
    // keepalive.
    let ours = format!(":{:04X}", server.address.port());
    eventually("the system to look after it", || {
        let table = std::fs::read_to_string("/proc/self/net/tcp").expect("a table");
        let timers = table.lines().filter_map(|line| {
            let mut columns = line.split_whitespace().skip(1);
            let (local, _, state) = (columns.next()?, columns.next()?, columns.next()?);
            let timer = columns.nth(1)?;
            (local.ends_with(&ours) && state == "01").then(|| timer.to_owned())
        });
        timers
            .into_iter()
            .any(|timer| timer.starts_with("02:"))
            .then_some(())
    });
}
