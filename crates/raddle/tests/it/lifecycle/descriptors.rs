//! File descriptors are limited, and unauthenticated peers must not exhaust them.

use std::io::Write;
use std::net::TcpStream;

use serde_json::json;

use crate::support::server::TestServer;
use crate::support::{code, eventually, http, request};

/// Returns the soft and the hard limit of a server.
fn limits(server: &TestServer) -> (u64, u64) {
    let path = format!("/proc/{}/limits", server.pid());
    let limits = std::fs::read_to_string(path).expect("the process is there");
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))
        .expect("the line");
    let mut figures = line.split_whitespace().map(|figure| figure.parse());
    let mut next = || figures.next().expect("a figure").expect("a figure");
    (next(), next())
}

#[test]
fn as_many_as_the_system_allows() {
    let server = TestServer::start_under(
        "ulimit -Sn 64; ulimit -Hn 512",
        &["--listen", "ws://127.0.0.1:0", "--insecure-loopback"],
    );
    server.client().disconnect();
    assert_eq!(limits(&server), (512, 512));
    server.stop();
}

#[test]
fn unauthenticated_peers_cannot_exhaust_descriptors() {
    let server = TestServer::start_under(
        "ulimit -n 128",
        &["--listen", "ws://127.0.0.1:0", "--insecure-loopback"],
    );
    let address = server.address();
    let mut client = server.client();
    // Not in the home, which is closed to clients.
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "hello").expect("a file");
    let sockets: Vec<TcpStream> = (0..300)
        .map(|_| {
            let mut socket = TcpStream::connect(address).expect("the listener is open");
            // The server may have closed it already.
            let _ = socket.write_all(b"G");
            socket
        })
        .collect();
    for id in 0..50 {
        let answer = client.ask(&request(id, "fs/readFile", json!({ "path": file })));
        assert_eq!(code(&answer), None, "{answer}");
    }
    drop(sockets);
    let health = format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\n\r\n");
    eventually("a free connection", || {
        (http::status(address, &health)? == 200).then_some(())
    });
    client.disconnect();
    let ended = server.stop();
    let failed: Vec<_> = ended
        .log
        .iter()
        .filter(|line| line.contains("cannot accept a connection"))
        .collect();
    assert!(failed.is_empty(), "{failed:?}");
}
