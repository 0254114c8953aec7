//! A client over the server's unix socket, so that it can leave and come back.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

const UPGRADE: &str = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n\
    Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// A whole text message.
const TEXT: u8 = 0x81;
const PING: u8 = 0x89;

/// How long an answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// Leaves when it is dropped.
pub struct SocketClient {
    stream: UnixStream,
    /// Read and not yet used.
    buffer: Vec<u8>,
    next_id: u64,
    /// Questions of the server that came while something else was waited for.
    pub asked: Vec<Value>,
}

impl SocketClient {
    /// Connects, and introduces itself.
    pub fn connect(socket: &Path) -> Result<Self> {
        let mut stream = UnixStream::connect(socket).context("the door is not open")?;
        stream.write_all(UPGRADE.as_bytes())?;
        let mut client = Self {
            stream,
            buffer: Vec::new(),
            next_id: 0,
            asked: Vec::new(),
        };
        let end = Instant::now() + ANSWER_TIMEOUT;
        let head = loop {
            let found = client.buffer.windows(4).position(|it| it == b"\r\n\r\n");
            if let Some(at) = found {
                break client.buffer.drain(..at + 4).collect::<Vec<u8>>();
            }
            ensure!(client.read(end)?, "no answer to the upgrade");
        };
        ensure!(head.starts_with(b"HTTP/1.1 101"), "the upgrade was refused");
        let me = json!({"name": "adversary", "version": env!("CARGO_PKG_VERSION")});
        let able = json!({"experimentalApi": true});
        client.call(
            "initialize",
            &json!({"clientInfo": me, "capabilities": able}),
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
                    self.asked.push(message);
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

    /// The next question of the server.
    pub fn question(&mut self) -> Result<Value> {
        let end = Instant::now() + ANSWER_TIMEOUT;
        while self.asked.is_empty() {
            let message = self.next(end)?.context("nobody was asked")?;
            if message.get("id").is_some() && message.get("method").is_some() {
                self.asked.push(message);
            }
        }
        Ok(self.asked.remove(0))
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
        // Zeros are a mask too.
        frame.extend([0; 4]);
        frame.extend(text);
        Ok(self.stream.write_all(&frame)?)
    }

    /// The next message, if one comes in time.
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

    /// A whole frame of the buffer.
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

    /// Whether something came in time.
    fn read(&mut self, end: Instant) -> Result<bool> {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        self.stream.set_read_timeout(Some(left))?;
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
