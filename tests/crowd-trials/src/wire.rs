//! A minimal websocket: it reads large chunks, and messages are parsed in place.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};

/// Read timeout. Only a failing trial waits this long.
pub const WIRE_TIMEOUT: Duration = Duration::from_secs(60);

const READ_BYTES: usize = 64 << 10;

const TEXT: u8 = 0x81;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;

/// A connection that can be read and written.
pub trait WireStream: Read + Write + Send {}

impl<T: Read + Write + Send> WireStream for T {}

/// Received frame.
pub enum WireEvent<'a> {
    /// A message, and when its last bytes were received, in microseconds since 1970.
    Text(&'a [u8], u64),
    /// The server closes the connection, with a code and a reason.
    Close(u16, String),
    /// The connection ended without a close frame.
    End,
}

pub struct TestWire {
    stream: Box<dyn WireStream>,
    buffer: Vec<u8>,
    /// Number of parsed bytes in the buffer.
    consumed: usize,
    /// Time at which the last bytes were received, in microseconds since 1970.
    received_at: u64,
    /// Number of received pings. They are answered.
    pub pings: usize,
}

impl TestWire {
    /// Connects over TCP.
    pub fn tcp(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        Self::over(stream, address)
    }

    /// Upgrades an existing TCP connection.
    pub fn over(stream: TcpStream, address: SocketAddr) -> Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(WIRE_TIMEOUT))?;
        Self::upgraded(Box::new(stream), &address.to_string())
    }

    /// Connects over a unix socket.
    pub fn unix(path: &Path) -> Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(WIRE_TIMEOUT))?;
        Self::upgraded(Box::new(stream), "localhost")
    }

    fn upgraded(mut stream: Box<dyn WireStream>, host: &str) -> Result<Self> {
        write!(stream, "{}", upgrade(host))?;
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
        Ok(Self {
            stream,
            buffer: Vec::new(),
            consumed: 0,
            received_at: 0,
            pings: 0,
        })
    }

    pub fn send(&mut self, text: &str) -> Result<()> {
        Ok(self.stream.write_all(&frame(TEXT, text.as_bytes())?)?)
    }

    /// Sends the beginning of a message of the maximum length.
    pub fn begin_message(&mut self) -> Result<()> {
        let mut head = vec![TEXT, 0x80 | 127];
        head.extend((16_u64 << 20).to_be_bytes());
        head.extend([0; 4]);
        Ok(self.stream.write_all(&head)?)
    }

    /// Sends another byte of that message.
    pub fn drip(&mut self) -> Result<()> {
        Ok(self.stream.write_all(b" ")?)
    }

    /// Returns the next message.
    pub fn next(&mut self) -> Result<WireEvent<'_>> {
        loop {
            let Some((kind, from, to)) = self.next_frame() else {
                if self.read(READ_BYTES)? == 0 {
                    return Ok(WireEvent::End);
                }
                continue;
            };
            self.consumed = to;
            match kind {
                TEXT => return Ok(WireEvent::Text(&self.buffer[from..to], self.received_at)),
                CLOSE => {
                    let payload = &self.buffer[from..to];
                    let (code, reason) = payload
                        .split_at_checked(2)
                        .unwrap_or(([0; 2].as_slice(), b""));
                    let code = u16::from_be_bytes([code[0], code[1]]);
                    return Ok(WireEvent::Close(
                        code,
                        String::from_utf8_lossy(reason).into_owned(),
                    ));
                }
                PING => {
                    self.pings += 1;
                    let pong = frame(PONG, &self.buffer[from..to])?;
                    self.stream.write_all(&pong)?;
                }
                PONG => {}
                other => bail!("a frame that nobody sends: {other:#x}"),
            }
        }
    }

    /// Reads at most this many bytes, without parsing them. Returns zero at the end of the
    /// connection.
    pub fn read(&mut self, bytes_max: usize) -> Result<usize> {
        if self.consumed > 0 {
            self.buffer.drain(..self.consumed);
            self.consumed = 0;
        }
        let length = self.buffer.len();
        self.buffer.resize(length + bytes_max, 0);
        let read = self.stream.read(&mut self.buffer[length..]);
        self.received_at = now_us();
        self.buffer.truncate(length + *read.as_ref().unwrap_or(&0));
        match read {
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(0),
            read => read.context("nothing came"),
        }
    }

    /// Returns the next complete frame in the buffer: its kind and the range of its payload.
    fn next_frame(&self) -> Option<(u8, usize, usize)> {
        let rest = &self.buffer[self.consumed..];
        let (kind, short) = (*rest.first()?, *rest.get(1)?);
        let (length, head) = match short {
            126 => (u64::from(u16::from_be_bytes(*rest[2..].first_chunk()?)), 4),
            127 => (u64::from_be_bytes(*rest[2..].first_chunk()?), 10),
            short => (u64::from(short), 2),
        };
        let from = self.consumed + head;
        let to = from + usize::try_from(length).ok()?;
        (to <= self.buffer.len()).then_some((kind, from, to))
    }
}

/// Returns the request that upgrades to a websocket.
pub fn upgrade(host: &str) -> String {
    format!(
        "GET / HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
}

/// Encodes a frame of a client. Its mask is zero.
fn frame(kind: u8, payload: &[u8]) -> Result<Vec<u8>> {
    let mut frame = vec![kind];
    match payload.len() {
        length @ 0..126 => frame.push(0x80 | length as u8),
        length => {
            let length = u16::try_from(length).context("a short message")?;
            frame.push(0x80 | 126);
            frame.extend(length.to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend_from_slice(payload);
    Ok(frame)
}

/// Returns the time in microseconds since 1970.
pub fn now_us() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |it| it.as_micros() as u64)
}
