//! A minimal websocket: it reads large chunks, and messages are parsed in place.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};

/// Read timeout. Only a failing trial waits this long.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

const READ_BYTES: usize = 64 << 10;

const TEXT: u8 = 0x81;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;

/// A client's websocket over TCP or a unix socket. Dropping it closes the connection without a
/// close frame.
pub struct Websocket {
    stream: Box<dyn ByteStream>,
    /// Received bytes, followed by space for more.
    buffer: Vec<u8>,
    /// Number of parsed bytes in the buffer.
    consumed: usize,
    /// Number of received bytes in the buffer.
    filled: usize,
    /// Time at which the last bytes were received, in microseconds since 1970.
    received_at: u64,
    pings: usize,
}

/// A received message, or the end of the connection.
#[derive(Debug, PartialEq)]
pub enum WebsocketEvent<'a> {
    /// A message, and when its last bytes were received, in microseconds since 1970.
    Text(&'a [u8], u64),
    /// The server closes the connection, with a code and a reason.
    Close(u16, String),
    /// The connection ended without a close frame.
    End,
}

impl WebsocketEvent<'_> {
    /// Returns the error of a client that expects a message.
    pub fn unexpected(&self) -> anyhow::Error {
        match self {
            Self::Text(text, _) => {
                anyhow::anyhow!("unexpected: {}", String::from_utf8_lossy(text))
            }
            Self::Close(code, reason) => anyhow::anyhow!("closed with {code}: {reason}"),
            Self::End => anyhow::anyhow!("the connection ended without a word"),
        }
    }
}

/// A complete frame in the buffer.
enum BufferedEvent {
    /// Range of the payload.
    Text(Range<usize>),
    Close(u16, String),
}

impl Websocket {
    /// Connects over TCP.
    pub fn tcp(address: SocketAddr) -> Result<Self> {
        Self::over(TcpStream::connect(address)?, address)
    }

    /// Upgrades an existing TCP connection.
    pub fn over(stream: TcpStream, address: SocketAddr) -> Result<Self> {
        stream.set_nodelay(true)?;
        Self::upgraded(Box::new(stream), &address.to_string())
    }

    /// Connects over a unix socket.
    pub fn unix(path: &Path) -> Result<Self> {
        let stream = UnixStream::connect(path);
        let stream = stream.with_context(|| format!("cannot connect to {}", path.display()))?;
        Self::upgraded(Box::new(stream), "localhost")
    }

    fn upgraded(mut stream: Box<dyn ByteStream>, host: &str) -> Result<Self> {
        stream.set_timeout(READ_TIMEOUT)?;
        stream.write_all(upgrade(host).as_bytes())?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream
                .read_exact(&mut byte)
                .context("no answer to an upgrade")?;
            head.extend(byte);
        }
        ensure!(
            head.starts_with(b"HTTP/1.1 101"),
            "no upgrade: {}",
            String::from_utf8_lossy(&head)
        );
        Ok(Self::new(stream))
    }

    fn new(stream: Box<dyn ByteStream>) -> Self {
        Self {
            stream,
            buffer: Vec::new(),
            consumed: 0,
            filled: 0,
            received_at: 0,
            pings: 0,
        }
    }

    /// Sends a message.
    pub fn send(&mut self, text: &str) -> Result<()> {
        self.send_raw(&frame(TEXT, text.as_bytes()))
    }

    /// Sends bytes without framing.
    pub fn send_raw(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.stream.write_all(bytes)?)
    }

    /// Waits for the next message.
    pub fn receive(&mut self) -> Result<&[u8]> {
        match self.next_event()? {
            WebsocketEvent::Text(text, _) => Ok(text),
            other => Err(other.unexpected()),
        }
    }

    /// Waits for the next message or the end. Pings are answered.
    pub fn next_event(&mut self) -> Result<WebsocketEvent<'_>> {
        loop {
            match self.buffered()? {
                Some(BufferedEvent::Text(payload)) => {
                    let text = &self.buffer[payload];
                    return Ok(WebsocketEvent::Text(text, self.received_at));
                }
                Some(BufferedEvent::Close(code, reason)) => {
                    return Ok(WebsocketEvent::Close(code, reason));
                }
                None => {
                    if self.read(READ_BYTES)? == 0 {
                        return Ok(WebsocketEvent::End);
                    }
                }
            }
        }
    }

    /// Returns the next message, if it comes before this time.
    pub fn receive_before(&mut self, end: Instant) -> Result<Option<&[u8]>> {
        loop {
            match self.buffered()? {
                Some(BufferedEvent::Text(payload)) => return Ok(Some(&self.buffer[payload])),
                Some(BufferedEvent::Close(code, reason)) => {
                    return Err(WebsocketEvent::Close(code, reason).unexpected());
                }
                None => {}
            }
            let remaining = end.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return Ok(None);
            }
            self.stream.set_timeout(remaining)?;
            let read = self.fill(READ_BYTES);
            self.stream.set_timeout(READ_TIMEOUT)?;
            match read {
                Ok(0) => return Err(WebsocketEvent::End.unexpected()),
                Ok(_) => {}
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    return Ok(None);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reads at most this many bytes, without parsing them. Returns zero at the end of the
    /// connection.
    pub fn read(&mut self, bytes_max: usize) -> Result<usize> {
        match self.fill(bytes_max) {
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(0),
            read => read.context("nothing came"),
        }
    }

    /// Returns the number of received pings.
    pub fn pings(&self) -> usize {
        self.pings
    }

    fn fill(&mut self, bytes_max: usize) -> io::Result<usize> {
        if self.consumed > 0 {
            self.buffer.copy_within(self.consumed..self.filled, 0);
            self.filled -= self.consumed;
            self.consumed = 0;
        }
        let end = self.filled + bytes_max;
        if self.buffer.len() < end {
            self.buffer.resize(end, 0);
        }
        let read = self.stream.read(&mut self.buffer[self.filled..end]);
        self.received_at = now_us();
        self.filled += *read.as_ref().unwrap_or(&0);
        read
    }

    /// Returns the next event in the buffer, if it is complete.
    fn buffered(&mut self) -> Result<Option<BufferedEvent>> {
        while let Some((kind, payload)) = self.next_frame() {
            self.consumed = payload.end;
            match kind {
                TEXT => return Ok(Some(BufferedEvent::Text(payload))),
                CLOSE => {
                    let payload = &self.buffer[payload];
                    let (code, reason) = payload
                        .split_at_checked(2)
                        .unwrap_or(([0; 2].as_slice(), b""));
                    let code = u16::from_be_bytes([code[0], code[1]]);
                    let reason = String::from_utf8_lossy(reason).into_owned();
                    return Ok(Some(BufferedEvent::Close(code, reason)));
                }
                PING => {
                    self.pings += 1;
                    let pong = frame(PONG, &self.buffer[payload]);
                    self.send_raw(&pong)?;
                }
                PONG => {}
                other => bail!("a frame that nobody sends: {other:#x}"),
            }
        }
        Ok(None)
    }

    /// Returns the next complete frame in the buffer: its kind and the range of its payload.
    fn next_frame(&self) -> Option<(u8, Range<usize>)> {
        let rest = &self.buffer[self.consumed..self.filled];
        let (kind, short) = (*rest.first()?, *rest.get(1)?);
        let (length, head) = match short {
            126 => (u64::from(u16::from_be_bytes(*rest[2..].first_chunk()?)), 4),
            127 => (u64::from_be_bytes(*rest[2..].first_chunk()?), 10),
            short => (u64::from(short), 2),
        };
        let from = self.consumed + head;
        let to = from.checked_add(usize::try_from(length).ok()?)?;
        (to <= self.filled).then_some((kind, from..to))
    }
}

/// A connection that can be read and written, with a read timeout.
trait ByteStream: Read + Write + Send {
    fn set_timeout(&self, timeout: Duration) -> io::Result<()>;
}

impl ByteStream for TcpStream {
    fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(timeout))
    }
}

impl ByteStream for UnixStream {
    fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(timeout))
    }
}

/// Returns the request that upgrades a connection to a websocket.
pub fn upgrade(host: &str) -> String {
    format!(
        "GET / HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
}

/// Encodes a frame of a client. Its mask is zero, which is valid.
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![kind];
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
    frame.extend([0; 4]);
    frame.extend_from_slice(payload);
    frame
}

/// Returns the time in microseconds since 1970.
pub fn now_us() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |it| it.as_micros() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a websocket, and the server's end of its connection.
    fn pair() -> (Websocket, UnixStream) {
        let (near, far) = UnixStream::pair().expect("two sockets");
        near.set_timeout(READ_TIMEOUT).expect("an option");
        (Websocket::new(Box::new(near)), far)
    }

    /// Encodes a frame of a server, which has no mask.
    fn server_frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![kind];
        match payload.len() {
            length @ 0..126 => frame.push(length as u8),
            length => {
                frame.push(126);
                frame.extend((length as u16).to_be_bytes());
            }
        }
        frame.extend_from_slice(payload);
        frame
    }

    #[test]
    fn frames_are_read_in_pieces_of_any_size() {
        let long = [b'x'; 300];
        let frames = [
            server_frame(TEXT, b"one"),
            server_frame(PING, b"there?"),
            server_frame(TEXT, &long),
            server_frame(CLOSE, b"\x03\xe8bye"),
        ]
        .concat();
        for bytes in [1, 7, frames.len()] {
            let (mut websocket, mut far) = pair();
            far.write_all(&frames).expect("a reader");
            while websocket.filled < frames.len() {
                assert!(websocket.read(bytes).expect("more") > 0);
            }
            assert_eq!(websocket.receive().expect("a message"), b"one");
            assert_eq!(websocket.receive().expect("a message"), long);
            let closed = websocket.next_event().expect("a close frame");
            assert_eq!(closed, WebsocketEvent::Close(1000, "bye".to_owned()));
            assert_eq!(websocket.pings(), 1);
            drop(websocket);
            let mut pong = Vec::new();
            far.read_to_end(&mut pong).expect("the end");
            assert_eq!(pong, frame(PONG, b"there?"));
        }
    }

    #[test]
    fn a_message_that_does_not_come_in_time_is_none() {
        let (mut websocket, mut far) = pair();
        let soon = || Instant::now() + Duration::from_millis(10);
        assert_eq!(websocket.receive_before(soon()).expect("open"), None);
        far.write_all(&server_frame(TEXT, b"late"))
            .expect("a reader");
        let later = Instant::now() + READ_TIMEOUT;
        let message = websocket.receive_before(later).expect("open");
        assert_eq!(message, Some(&b"late"[..]));
        drop(far);
        assert!(websocket.receive_before(later).is_err());
        assert_eq!(websocket.next_event().expect("open"), WebsocketEvent::End);
    }
}
