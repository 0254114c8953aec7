//! Listeners at capacity, and listeners that are closing.

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
fn a_full_listener_rejects_clients_until_one_disconnects() {
    let limits = ConnectionLimits {
        connections_max: 2,
        ..ConnectionLimits::default()
    };
    let mut server = InProcessServer::start(limits, TEST_TIMEOUT);
    let mut first = Websocket::connect(server.address);
    let mut second = Websocket::connect(server.address);
    first.hello();
    second.hello();
    let answer = upgrade(server.address);
    assert_eq!(answer.status, 503, "{answer:?}");
    assert_eq!(answer.body, "too many connections; try again");
    // The server is healthy, and reports it.
    assert_eq!(health(server.address).status, 200);
    // Existing connections are not affected.
    second.ask(&request(1, "account/read", json!({})));
    first.disconnect();
    server.wait_for_end();
    let again = http::upgrade(&server.address.to_string(), "");
    eventually("a place to be free", || {
        (http::status(server.address, &again)? == 101).then_some(())
    });
}

/// Whether the server has closed a socket that has nothing to read.
fn is_disconnected(socket: &mut TcpStream) -> bool {
    socket.set_nonblocking(true).expect("an option");
    let read = socket.read(&mut [0]);
    !read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

#[test]
fn incomplete_handshakes_block_neither_clients_nor_requests() {
    let limits = ConnectionLimits {
        handshakes_max: 8,
        ..ConnectionLimits::default()
    };
    let server = InProcessServer::start(limits, TEST_TIMEOUT);
    let mut client = Websocket::connect(server.address);
    client.hello();
    let connect_with = |beginning: &str| {
        let mut socket = connect(server.address);
        socket.write_all(beginning.as_bytes()).expect("a few bytes");
        socket
    };
    // Some send nothing, some an incomplete request.
    let mut sockets: Vec<TcpStream> = ["", "G", "GET / HTTP/1.1\r\nHost: "]
        .iter()
        .cycle()
        .take(8)
        .map(|beginning| connect_with(beginning))
        .collect();
    // Complete requests are answered, although all handshake slots are taken.
    assert_eq!(health(server.address).status, 200);
    assert_eq!(upgrade(server.address).status, 101);
    // The oldest was evicted for the first request, and the next one perhaps for the second, if the
    // first was still open.
    ends(&mut sockets[0]);
    let mut late = sockets.split_off(2);
    assert!(!late.iter_mut().any(is_disconnected), "the others may stay");

    // However many connect, and whatever they send.
    let more: Vec<TcpStream> = (0..100).map(|_| connect_with("GET /")).collect();
    assert_eq!(upgrade(server.address).status, 101);
    let mut new_client = Websocket::connect(server.address);
    new_client.hello();
    client.ask(&request(1, "account/read", json!({})));
    late.iter_mut().for_each(|socket| {
        socket.set_nonblocking(false).expect("an option");
        ends(socket);
    });
    drop(more);
}

/// Listeners without a server behind them.
fn bare_listeners(runtime: &Runtime) -> (Listeners, SocketAddr) {
    let mut listeners = Listeners::new();
    runtime
        .block_on(listeners.open(listener(ConnectionLimits::default())))
        .expect("a listener");
    let banner = listeners.banners()[0].lines().next().expect("a line");
    let (_, address) = banner.split_once("ws://").expect("an address");
    let address = address.parse().expect("an address");
    (listeners, address)
}

#[test]
fn a_closing_listener_rejects_all_connections() {
    let runtime = Runtime::new().expect("a runtime");
    let (mut listeners, address) = bare_listeners(&runtime);
    // Two connect before it closes. The websocket after them shows that the server has accepted
    // them.
    let mut early: Vec<TcpStream> = (0..2).map(|_| connect(address)).collect();
    for stream in &mut early {
        stream.write_all(b"GET /").expect("the listener is open");
    }
    let mut accepted = Websocket::connect(address);
    listeners.close();

    // Pending handshakes are rejected with 503.
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

    // Accepted connections that no server has taken over are closed, too.
    let closed = std::thread::spawn(move || {
        match accepted.next() {
            WebsocketEvent::Close { code, .. } => assert_eq!(code, 1001),
            other => panic!("expected a close, got {other:?}"),
        }
        accepted.end();
        accepted.disconnect();
    });
    let shutdown = runtime.block_on(async { timeout(TEST_TIMEOUT, listeners.shutdown()).await });
    assert!(shutdown.is_ok(), "the doors wait for ever");
    closed.join().expect("no panic");
    let connection: Option<Connection> = runtime.block_on(listeners.next());
    assert!(connection.is_none());
}
