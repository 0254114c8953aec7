//! Doors that are full, and doors that are closing.

use raddle_rpc::Connection;

use super::*;
use crate::support::http::{self, HttpResponse};

fn health(address: SocketAddr) -> HttpResponse {
    http::send(
        address,
        &format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\n\r\n"),
    )
}

fn upgrade(address: SocketAddr) -> HttpResponse {
    http::send(address, &http::upgrade(&address.to_string(), ""))
}

#[test]
fn a_full_house_lets_nobody_in_until_someone_leaves() {
    let limits = ConnectionLimits {
        connections_max: 2,
        ..ConnectionLimits::default()
    };
    let mut inside = InProcessServer::start(limits, TEST_TIMEOUT);
    let mut first = Websocket::connect(inside.address);
    let mut second = Websocket::connect(inside.address);
    first.hello();
    second.hello();
    let answer = upgrade(inside.address);
    assert_eq!(answer.status, 503, "{answer:?}");
    assert_eq!(answer.body, "too many connections; try again");
    // The server is well, and says so.
    assert_eq!(health(inside.address).status, 200);
    // Those inside notice nothing.
    second.ask(&request(1, "account/read", json!({})));
    first.leave();
    inside.one_ended();
    let again = http::upgrade(&inside.address.to_string(), "");
    eventually("a place to be free", || {
        (http::status(inside.address, &again)? == 101).then_some(())
    });
}

/// Whether the server has hung up on a socket that has nothing to read.
fn is_let_go(stranger: &mut TcpStream) -> bool {
    stranger.set_nonblocking(true).expect("an option");
    let read = stranger.read(&mut [0]);
    !read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

#[test]
fn strangers_take_no_place_from_those_inside_nor_from_those_who_ask() {
    let limits = ConnectionLimits {
        handshakes_max: 8,
        ..ConnectionLimits::default()
    };
    let inside = InProcessServer::start(limits, TEST_TIMEOUT);
    let mut client = Websocket::connect(inside.address);
    client.hello();
    let strange = |beginning: &str| {
        let mut stranger = connect(inside.address);
        stranger
            .write_all(beginning.as_bytes())
            .expect("a few bytes");
        stranger
    };
    // Some say nothing, some have begun to ask.
    let mut strangers: Vec<TcpStream> = ["", "G", "GET / HTTP/1.1\r\nHost: "]
        .iter()
        .cycle()
        .take(8)
        .map(|beginning| strange(beginning))
        .collect();
    // Whoever asks is answered, though all places are taken.
    assert_eq!(health(inside.address).status, 200);
    assert_eq!(upgrade(inside.address).status, 101);
    // The oldest has made place for the first, and the next one perhaps for the second, if the first
    // was still there.
    ends(&mut strangers[0]);
    let mut late = strangers.split_off(2);
    assert!(!late.iter_mut().any(is_let_go), "the others may stay");

    // However many come, and whatever they begin to say.
    let more: Vec<TcpStream> = (0..100).map(|_| strange("GET /")).collect();
    assert_eq!(upgrade(inside.address).status, 101);
    let mut newcomer = Websocket::connect(inside.address);
    newcomer.hello();
    client.ask(&request(1, "account/read", json!({})));
    late.iter_mut().for_each(|stranger| {
        stranger.set_nonblocking(false).expect("an option");
        ends(stranger);
    });
    drop(more);
}

/// Doors without a server behind them.
fn doors(runtime: &Runtime) -> (Listeners, SocketAddr) {
    let mut doors = Listeners::new();
    runtime
        .block_on(doors.open(door(ConnectionLimits::default())))
        .expect("a door");
    let banner = doors.banners()[0].lines().next().expect("a line");
    let (_, address) = banner.split_once("ws://").expect("an address");
    let address = address.parse().expect("an address");
    (doors, address)
}

#[test]
fn a_door_that_is_closing_sends_everyone_away() {
    let runtime = Runtime::new().expect("a runtime");
    let (mut doors, address) = doors(&runtime);
    // They knock before it closes. The first has shown that the server has it.
    let mut early: Vec<TcpStream> = (0..2).map(|_| connect(address)).collect();
    for stream in &mut early {
        stream.write_all(b"GET /").expect("the door is open");
    }
    let mut let_in = Websocket::connect(address);
    doors.close();

    // Who is still at the door is told to come back later.
    let rests = [
        format!("readyz HTTP/1.1\r\nHost: {address}\r\n\r\n"),
        http::upgrade(&address.to_string(), "").split_off("GET /".len()),
    ];
    for (stream, rest) in early.iter_mut().zip(rests) {
        stream.write_all(rest.as_bytes()).expect("it is still open");
        let answer = http::exchange(stream);
        assert_eq!(answer.status, 503, "{answer:?}");
        assert_eq!(answer.body, "the server is shutting down");
    }

    // Who is inside and was taken over by nobody is told, too.
    let told = std::thread::spawn(move || {
        match let_in.next() {
            WebsocketEvent::Close { code, .. } => assert_eq!(code, 1001),
            other => panic!("expected a close, got {other:?}"),
        }
        let_in.end();
        let_in.leave();
    });
    let farewell = runtime.block_on(async { timeout(TEST_TIMEOUT, doors.shutdown()).await });
    assert!(farewell.is_ok(), "the doors wait for ever");
    told.join().expect("no panic");
    let nobody: Option<Connection> = runtime.block_on(doors.next());
    assert!(nobody.is_none());
}
