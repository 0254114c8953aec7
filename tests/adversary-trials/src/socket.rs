//! A client over the server's unix socket, which can disconnect and reconnect.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

const UPGRADE: &str = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n\
    Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// Opcodes of an unfragmented text message and of a ping.
const TEXT: u8 = 0x81;
const PING: u8 = 0x89;

/// Timeout for a response.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// A client that disconnects when it is dropped.
pub struct SocketClient {
    stream: UnixStream,
    /// Bytes that were read and not yet used.
    buffer: Vec<u8>,
    next_id: u64,
    /// Requests of the server that came while the client waited for something else.
    pub requests: Vec<Value>,
}

impl SocketClient {
    /// Connects, and initializes the connection.
    pub fn connect(socket: &Path) -> Result<Self> {
        let mut stream =
            UnixStream::connect(socket).context("cannot connect to the server's socket")?;
        stream.write_all(UPGRADE.as_bytes())?;
        let mut client = Self {
            stream,
            buffer: Vec::new(),
            next_id: 0,
            requests: Vec::new(),
        };
        let end = Instant::now() + ANSWER_TIMEOUT;
        let head = loop {
            let position = client.buffer.windows(4).position(|it| it == b"\r\n\r\n");
            if let Some(at) = position {
                break client.buffer.drain(..at + 4).collect::<Vec<u8>>();
            }
            ensure!(client.read(end)?, "no answer to the upgrade");
        };
        ensure!(head.starts_with(b"HTTP/1.1 101"), "the upgrade was refused");
        let client_info = json!({"name": "adversary", "version": env!("CARGO_PKG_VERSION")});
        let capabilities = json!({"experimentalApi": true});
        client.call(
            "initialize",
            &json!({"clientInfo": client_info, "capabilities": capabilities}),
        )?;
        client.send(&json!({"method": "initialized"}))?;
        Ok(client)
    }

    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"id": id, "method": method, "params": params}))?;
        let end = Instant::now() + ANSWER_TIMEOUT;
        loop {
            let message = self.next(end)?;
            let mut message = message.with_context(|| format!("no answer to {method}"))?;
            if message.get("method").is_some() {
                if message.get("id").is_some() {
                    self.requests.push(message);
                }
                continue;
            }
            if message["id"] == id {
                ensure!(
                    message.get("error").is_none(),
                    "{method} was refused: {message}"
                );
                return Ok(message["result"].take());
            }
        }
    }

    /// Returns the next request of the server.
    pub fn next_request(&mut self) -> Result<Value> {
        let end = Instant::now() + ANSWER_TIMEOUT;
        while self.requests.is_empty() {
            let message = self.next(end)?.context("no request was sent")?;
            if message.get("id").is_some() && message.get("method").is_some() {
                self.requests.push(message);
            }
        }
        Ok(self.requests.remove(0))
    }

    pub fn send(&mut self, message: &Value) -> Result<()> {
        let text = message.to_string().into_bytes();
        let mut frame = vec![TEXT];
        match u16::try_from(text.len()) {
            Ok(length) if length < 126 => frame.push(0x80 | text.len().to_le_bytes()[0]),
            Ok(length) => {
                frame.push(0x80 | 126);
                frame.extend(length.to_be_bytes());
            }
            Err(_) => bail!("it is too long"),
        }
        // A mask of zeros is valid too.
        frame.extend([0; 4]);
        frame.extend(text);
        Ok(self.stream.write_all(&frame)?)
    }

    /// Returns the next message, if it comes in time.
    pub fn next(&mut self, end: Instant) -> Result<Option<Value>> {
        loop {
            if let Some((kind, payload)) = self.frame() {
                match kind {
                    TEXT => return Ok(Some(serde_json::from_slice(&payload)?)),
                    PING => continue,
                    other => bail!("the server closed: {other:#x}"),
                }
            }
            if !self.read(end)? {
                return Ok(None);
            }
        }
    }

    /// Returns a complete frame from the buffer.
    fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let (kind, short) = (*self.buffer.first()?, *self.buffer.get(1)?);
        let (length, head) = match short {
            126 => {
                let bytes = self.buffer.get(2..4)?;
                (usize::from(u16::from_be_bytes(bytes.try_into().ok()?)), 4)
            }
            127 => {
                let bytes = self.buffer.get(2..10)?;
                let length = u64::from_be_bytes(bytes.try_into().ok()?);
                (usize::try_from(length).ok()?, 10)
            }
            short => (usize::from(short), 2),
        };
        if self.buffer.len() < head + length {
            return None;
        }
        let mut frame: Vec<u8> = self.buffer.drain(..head + length).collect();
        Some((kind, frame.split_off(head)))
    }

    /// Reads more bytes; returns whether some came in time.
    fn read(&mut self, end: Instant) -> Result<bool> {
        let remaining = end.saturating_duration_since(Instant::now());
        if remaining.is_zero() {
            return Ok(false);
        }
        self.stream.set_read_timeout(Some(remaining))?;
        let mut chunk = [0; 1 << 16];
        match self.stream.read(&mut chunk) {
            Ok(0) => bail!("the server hung up"),
            Ok(count) => {
                self.buffer.extend_from_slice(&chunk[..count]);
                Ok(true)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }
}
