//! HTTP by hand: a library would correct the requests that matter here.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::TEST_TIMEOUT;

#[derive(Debug)]
pub struct HttpResponse {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: String,
}

/// A valid websocket upgrade, with more header lines, each ended by CR LF.
pub fn upgrade(host: &str, headers: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: {host}\r\n{UPGRADE}{headers}\r\n")
}

/// The header lines that request a websocket.
pub const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// Sends a request as it is, and reads the whole response.
pub fn send(address: SocketAddr, request: &str) -> HttpResponse {
    let mut stream = TcpStream::connect(address).expect("the listener is open");
    stream
        .set_read_timeout(Some(TEST_TIMEOUT))
        .expect("an option");
    stream
        .write_all(request.as_bytes())
        .expect("the server reads");
    exchange(&mut stream)
}

/// The status of the response, if there is one: a server at capacity may just close the connection.
pub fn status(address: SocketAddr, request: &str) -> Option<u16> {
    let mut stream = TcpStream::connect(address).expect("the listener is open");
    stream
        .set_read_timeout(Some(TEST_TIMEOUT))
        .expect("an option");
    stream.write_all(request.as_bytes()).ok()?;
    let mut head = [0; "HTTP/1.1 200".len()];
    stream.read_exact(&mut head).ok()?;
    let head = String::from_utf8(head.to_vec()).expect("text");
    head.split(' ').nth(1)?.parse().ok()
}

/// Reads the whole response, unless it opens a websocket, which has no end.
pub fn exchange(stream: &mut impl Read) -> HttpResponse {
    let (mut answer, rest) = read_head(stream);
    if answer.status == 101 {
        return answer;
    }
    let mut body = rest;
    stream.read_to_end(&mut body).expect("the answer ends");
    answer.body = String::from_utf8(body).expect("text");
    answer
}

/// Reads the head of a response, and the bytes that came with it.
pub fn read_head(stream: &mut impl Read) -> (HttpResponse, Vec<u8>) {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        let count = stream.read(&mut chunk).expect("an answer");
        assert!(count > 0, "the connection ended before an answer");
        bytes.extend_from_slice(&chunk[..count]);
    };
    let rest = bytes.split_off(end + 4);
    let head = String::from_utf8(bytes).expect("a head is text");
    let mut lines = head.trim_end().split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1));
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let answer = HttpResponse {
        status: status.expect("a status").parse().expect("a status"),
        headers,
        body: String::new(),
    };
    (answer, rest)
}
