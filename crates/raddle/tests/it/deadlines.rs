//! Deadlines. The binary's are long, so these tests open doors inside their own process with short
//! ones, and wait for what happens when they pass.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use raddle_rpc::{Auth, Door, Doors, Limits};
use raddle_server::{Options, Paths, Server};
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::support::websocket::{FIN, PING, Received, TEXT, Websocket, frame};
use crate::support::{PATIENCE, eventually, request};

const SHORT: Duration = Duration::from_millis(200);

/// A server inside the test.
struct Inside {
    address: SocketAddr,
    /// Says so whenever a connection has ended.
    ended: mpsc::UnboundedReceiver<()>,
    runtime: Runtime,
    _home: TempDir,
}

impl Inside {
    fn start(limits: Limits, first_message: Duration) -> Self {
        let home = TempDir::new().expect("a home");
        let runtime = Runtime::new().expect("a runtime");
        let mut options = Options::new(Paths {
            home: home.path().into(),
            system_config: home.path().join("system.toml"),
            user_config: home.path().join("config.toml"),
            skills: home.path().join("skills"),
        });
        options.first_message = first_message;
        let (sender, ended) = mpsc::unbounded_channel();
        let address = runtime.block_on(async {
            let mut server = Server::open(options).expect("a server");
            let mut doors = Doors::new();
            doors.open(door(limits)).await.expect("a door");
            let banner = doors.banners()[0]
                .lines()
                .next()
                .expect("a line")
                .to_owned();
            tokio::spawn(async move {
                while let Some(connection) = doors.next().await {
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
            ended,
            runtime,
            _home: home,
        }
    }

    /// Waits until a connection has ended on the server's side.
    fn one_ended(&mut self) {
        let ended = &mut self.ended;
        let ended = self
            .runtime
            .block_on(async { timeout(PATIENCE, ended.recv()).await });
        assert_eq!(ended, Ok(Some(())), "the connection goes on");
    }
}

fn door(limits: Limits) -> Door {
    Door {
        listen: "ws://127.0.0.1:0".parse().expect("an address"),
        default_socket: "unused".into(),
        auth: Auth::Open,
        insecure_loopback: true,
        host_names: Arc::new([]),
        limits,
    }
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the door is open");
    stream.set_read_timeout(Some(PATIENCE)).expect("an option");
    stream
}

/// Reads to the end, which must come; what came before it does not matter.
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
    let limits = Limits {
        handshake: SHORT,
        ..Limits::default()
    };
    let inside = Inside::start(limits, PATIENCE);
    let begun = Instant::now();
    for beginning in ["", "G", "GET / HTTP/1.1\r\nHost: "] {
        let mut stream = connect(inside.address);
        stream.write_all(beginning.as_bytes()).expect("it is open");
        ends(&mut stream);
    }
    assert!(begun.elapsed() >= SHORT, "it was given its time");
}

/// Progress does not buy time.
#[test]
fn a_handshake_that_drips_must_end_in_time_too() {
    let limits = Limits {
        handshake: SHORT,
        ..Limits::default()
    };
    let inside = Inside::start(limits, PATIENCE);
    let mut stream = connect(inside.address);
    let mut drips = b"GET / HTTP/1.1\r\n"
        .iter()
        .chain(b"X: y\r\n".iter().cycle());
    eventually("the server to give up", || {
        std::thread::sleep(SHORT / 20);
        let byte = drips.next().expect("there is always more");
        stream.write_all(&[*byte]).err()
    });
}

#[test]
fn the_first_message_must_come_in_time() {
    let inside = Inside::start(Limits::default(), SHORT);
    let begun = Instant::now();
    let mut silent = Websocket::connect(inside.address);
    // A ping is not a message.
    silent.raw(&frame(FIN | PING, b"still here"));
    match silent.next() {
        Received::Close { code, reason } => {
            assert_eq!((code, reason.as_str()), (1008, "no message came in time"));
        }
        other => panic!("expected a close, got {other:?}"),
    }
    silent.end();
    assert!(begun.elapsed() >= SHORT, "it was given its time");

    // After the first message there is no hurry.
    let mut client = Websocket::connect(inside.address);
    client.hello();
    std::thread::sleep(2 * SHORT);
    client.ask(&request(1, "model/list", json!({})));
}

#[test]
fn a_client_that_takes_no_answers_is_let_go() {
    let limits = Limits {
        write: SHORT,
        outgoing_bytes_max: 64 << 10,
        ..Limits::default()
    };
    let mut inside = Inside::start(limits, PATIENCE);
    let mut silent = Websocket::connect(inside.address);
    silent.hello();
    let question = frame(
        FIN | TEXT,
        &request("x".repeat(1000), "model/list", json!({})),
    );
    let questions = question.repeat(1000);
    // It keeps asking, which does not help it.
    while silent.push(&questions, SHORT / 2) == questions.len() {}
    inside.one_ended();
    eventually("the connection to be cut", || {
        (silent.push(&question, SHORT / 20) == 0).then_some(())
    });
}

#[test]
fn a_full_house_lets_nobody_in_until_someone_leaves() {
    let limits = Limits {
        connections_max: 2,
        ..Limits::default()
    };
    let mut inside = Inside::start(limits, PATIENCE);
    let mut first = Websocket::connect(inside.address);
    let mut second = Websocket::connect(inside.address);
    first.hello();
    second.hello();
    let mut third = connect(inside.address);
    let _ = third.write_all(b"GET /readyz HTTP/1.1\r\n\r\n");
    ends(&mut third);
    // Those inside notice nothing.
    second.ask(&request(1, "model/list", json!({})));
    first.leave();
    inside.one_ended();
    eventually("a place to be free", || {
        let mut stream = connect(inside.address);
        let head = format!("GET /readyz HTTP/1.1\r\nHost: {}\r\n\r\n", inside.address);
        stream.write_all(head.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        answer.starts_with("HTTP/1.1 200").then_some(())
    });
}
