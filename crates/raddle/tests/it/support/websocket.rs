//! A websocket client that can also violate the protocol, which libraries prevent.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::{TEST_TIMEOUT, http, initialize};

pub const CONTINUATION: u8 = 0x0;
pub const TEXT: u8 = 0x1;
pub const BINARY: u8 = 0x2;
pub const CLOSE: u8 = 0x8;
pub const PING: u8 = 0x9;
pub const FIN: u8 = 0x80;

/// Payloads longer than this are masked with zeros, which is valid and costs nothing.
const MASKED_BYTES_MAX: usize = 1 << 18;

const MASK: [u8; 4] = [0x5a, 0x17, 0xe3, 0x88];

/// One websocket, over TCP or a Unix socket.
pub struct Websocket {
    stream: TestStream,
    /// Read, but not consumed yet.
    buffer: Vec<u8>,
}

/// An event from a server.
#[derive(Debug)]
pub enum WebsocketEvent {
    Message(Value),
    /// A close frame.
    Close {
        code: u16,
        reason: String,
    },
    /// The end of the stream without a close frame.
    End,
}

impl Websocket {
    pub fn connect(address: SocketAddr) -> Self {
        Self::connect_with(address, "")
    }

    /// With more header lines, each ended by CR LF.
    pub fn connect_with(address: SocketAddr, headers: &str) -> Self {
        let stream = TcpStream::connect(address).expect("the listener is open");
        stream.set_nodelay(true).expect("an option");
        Self::upgrade(TestStream::Tcp(stream), &address.to_string(), headers)
    }

    pub fn connect_unix(path: &Path) -> Self {
        let stream = UnixStream::connect(path).expect("the listener is open");
        Self::upgrade(TestStream::Unix(stream), "localhost", "")
    }

    fn upgrade(mut stream: TestStream, host: &str, headers: &str) -> Self {
        stream.deadline(TEST_TIMEOUT);
        let head = http::upgrade(host, headers);
        stream.write_all(head.as_bytes()).expect("the server reads");
        let (answer, rest) = http::read_head(&mut stream);
        assert_eq!(answer.status, 101, "{answer:?}");
        Self {
            stream,
            buffer: rest,
        }
    }

    /// Sends `initialize`.
    pub fn hello(&mut self) {
        let answer = self.ask(&initialize("hello"));
        assert!(answer["result"].is_object(), "{answer}");
    }

    pub fn ask(&mut self, frame: &[u8]) -> Value {
        self.send(frame);
        self.receive()
    }

    /// Sends one text message.
    pub fn send(&mut self, message: &[u8]) {
        self.raw(&frame(FIN | TEXT, message));
    }

    /// Sends bytes without framing.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server reads");
    }

    /// Sends bytes. Returns how many were written before the server stopped reading for this long.
    pub fn push(&mut self, bytes: &[u8], timeout: Duration) -> usize {
        self.stream.deadline(timeout);
        let mut sent = 0;
        while sent < bytes.len() {
            match self.stream.write(&bytes[sent..]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.stream.deadline(TEST_TIMEOUT);
        sent
    }

    /// The next message.
    pub fn receive(&mut self) -> Value {
        match self.next() {
            WebsocketEvent::Message(message) => message,
            other => panic!("expected a message, got {other:?}"),
        }
    }

    /// The next message, read in chunks of this size with pauses between them.
    pub fn receive_slowly(&mut self, at_once: usize, pause: Duration) -> Value {
        let mut chunk = vec![0; at_once];
        let mut bytes = std::mem::take(&mut self.buffer);
        // The longest header has ten bytes.
        while bytes.len() < 10 || !is_whole(&bytes) {
            // This makes it slow.
            std::thread::sleep(pause);
            let count = self.stream.read(&mut chunk).expect("more of the message");
            assert!(
                count > 0,
                "the connection ended after {} bytes",
                bytes.len()
            );
            bytes.extend_from_slice(&chunk[..count]);
        }
        self.buffer = bytes;
        self.receive()
    }

    /// The next event. Pongs are skipped.
    pub fn next(&mut self) -> WebsocketEvent {
        loop {
            let Some((opcode, payload)) = self.next_frame() else {
                return WebsocketEvent::End;
            };
            match opcode {
                TEXT => {
                    let message: Value = serde_json::from_slice(&payload).expect("JSON");
                    assert!(message.is_object(), "not a message: {message}");
                    return WebsocketEvent::Message(message);
                }
                CLOSE => {
                    let code = payload.get(..2).expect("a close code");
                    return WebsocketEvent::Close {
                        code: u16::from_be_bytes([code[0], code[1]]),
                        reason: String::from_utf8(payload[2..].to_vec()).expect("a reason"),
                    };
                }
                0xa => {}
                other => panic!("unexpected opcode {other:#x}"),
            }
        }
    }

    /// Waits for the end of the stream. No other event may come before it.
    pub fn end(&mut self) {
        match self.next() {
            WebsocketEvent::End => {}
            other => panic!("expected the end, got {other:?}"),
        }
    }

    /// Closes the connection without a close frame.
    pub fn disconnect(self) {
        self.stream.shutdown();
    }

    fn next_frame(&mut self) -> Option<(u8, Vec<u8>)> {
        self.fill(2)?;
        let (first, second) = (self.buffer[0], self.buffer[1]);
        assert_eq!(first & 0xf0, FIN, "servers do not fragment or extend");
        assert_eq!(second & 0x80, 0, "servers do not mask");
        let (length, head) = match second {
            126 => {
                self.fill(4)?;
                let bytes = [self.buffer[2], self.buffer[3]];
                (usize::from(u16::from_be_bytes(bytes)), 4)
            }
            127 => {
                self.fill(10)?;
                let bytes = self.buffer[2..10].try_into().expect("eight bytes");
                let length = usize::try_from(u64::from_be_bytes(bytes)).expect("fits");
                (length, 10)
            }
            short => (usize::from(short), 2),
        };
        self.fill(head + length)?;
        let rest = self.buffer.split_off(head + length);
        let mut frame = std::mem::replace(&mut self.buffer, rest);
        Some((first & 0x0f, frame.split_off(head)))
    }

    /// Reads until the buffer holds this many bytes; `None` at the end of the stream.
    fn fill(&mut self, length: usize) -> Option<()> {
        let mut chunk = vec![0; 64 << 10];
        while self.buffer.len() < length {
            match self.stream.read(&mut chunk) {
                Ok(0) => return None,
                Ok(count) => self.buffer.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The server ended without reading everything we sent.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("nothing came: {error}"),
            }
        }
        Some(())
    }
}

/// Whether these bytes start with a complete long frame.
fn is_whole(bytes: &[u8]) -> bool {
    assert_eq!(bytes[1], 127, "only a long frame is worth it");
    let length = bytes[2..10].try_into().expect("eight bytes");
    bytes.len() as u64 >= 10 + u64::from_be_bytes(length)
}

/// A masked frame, as clients send it. The first byte has its flags and opcode.
pub fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        length @ 0..126 => frame.push(0x80 | length as u8),
        length @ 126..0x1_0000 => {
            frame.push(0x80 | 126);
            frame.extend((length as u16).to_be_bytes());
        }
        length => {
            frame.push(0x80 | 127);
            frame.extend((length as u64).to_be_bytes());
        }
    }
    if payload.len() > MASKED_BYTES_MAX {
        frame.extend([0; 4]);
        frame.extend_from_slice(payload);
        return frame;
    }
    frame.extend(MASK);
    frame.extend(payload.iter().zip(MASK.iter().cycle()).map(|(a, b)| a ^ b));
    frame
}

enum TestStream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl TestStream {
    fn deadline(&self, timeout: Duration) {
        let set = match self {
            Self::Tcp(it) => it
                .set_read_timeout(Some(timeout))
                .and(it.set_write_timeout(Some(timeout))),
            Self::Unix(it) => it
                .set_read_timeout(Some(timeout))
                .and(it.set_write_timeout(Some(timeout))),
        };
        set.expect("an option");
    }

    fn shutdown(&self) {
        let _ = match self {
            Self::Tcp(it) => it.shutdown(Shutdown::Both),
            Self::Unix(it) => it.shutdown(Shutdown::Both),
        };
    }
}

impl Read for TestStream {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Tcp(it) => it.read(buffer),
            Self::Unix(it) => it.read(buffer),
        }
    }
}

impl Write for TestStream {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Tcp(it) => it.write(bytes),
            Self::Unix(it) => it.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
