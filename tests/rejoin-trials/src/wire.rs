//! The three transports to the server, as text messages.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

/// Read timeout. Only a failing trial waits this long.
pub const WIRE_TIMEOUT: Duration = Duration::from_secs(60);

/// Transport of text messages.
pub trait MessageWire {
    fn send(&mut self, text: &str) -> Result<()>;

    /// Returns the next message.
    fn receive(&mut self) -> Result<Vec<u8>>;
}

/// A connection that can be read and written.
pub trait ByteStream: Read + Write {}

impl<T: Read + Write> ByteStream for T {}

/// Connects over TCP.
pub fn websocket(address: SocketAddr) -> Result<Box<dyn MessageWire>> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(WIRE_TIMEOUT))?;
    upgraded(Box::new(stream), &address.to_string())
}

/// Connects over a unix socket.
pub fn unix(path: &Path) -> Result<Box<dyn MessageWire>> {
    let stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(WIRE_TIMEOUT))?;
    upgraded(Box::new(stream), "localhost")
}

fn upgraded(mut stream: Box<dyn ByteStream>, host: &str) -> Result<Box<dyn MessageWire>> {
    write!(
        stream,
        "GET / HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )?;
    let mut stream = BufReader::with_capacity(64 << 10, stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        ensure!(stream.read_line(&mut head)? > 0, "no answer to an upgrade");
    }
    ensure!(head.starts_with("HTTP/1.1 101"), "no upgrade: {head}");
    Ok(Box::new(Websocket(stream)))
}

struct Websocket(BufReader<Box<dyn ByteStream>>);

impl MessageWire for Websocket {
    fn send(&mut self, text: &str) -> Result<()> {
        let mut frame = vec![0x81];
        match text.len() {
            length @ 0..126 => frame.push(0x80 | length as u8),
            length => {
                let length = u16::try_from(length).context("a short message")?;
                frame.push(0x80 | 126);
                frame.extend(length.to_be_bytes());
            }
        }
        // The mask is zero.
        frame.extend([0; 4]);
        frame.extend_from_slice(text.as_bytes());
        Ok(self.0.get_mut().write_all(&frame)?)
    }

    fn receive(&mut self) -> Result<Vec<u8>> {
        loop {
            let [first, second] = self.bytes()?;
            let length = match second {
                126 => u64::from(u16::from_be_bytes(self.bytes()?)),
                127 => u64::from_be_bytes(self.bytes()?),
                short => u64::from(short),
            };
            let mut payload = vec![0; usize::try_from(length)?];
            self.0.read_exact(&mut payload)?;
            match first {
                0x81 => return Ok(payload),
                0x88 => bail!("closed: {}", String::from_utf8_lossy(&payload)),
                _ => {}
            }
        }
    }
}

impl Websocket {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.0.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

/// Transport over the pipes of a child.
pub struct Pipes {
    stdin: ChildStdin,
    lines: Receiver<Vec<u8>>,
}

impl Pipes {
    pub fn of(stdin: ChildStdin, stdout: ChildStdout) -> Self {
        let (sender, lines) = mpsc::channel();
        // The thread ends with the child.
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { stdin, lines }
    }
}

impl MessageWire for Pipes {
    fn send(&mut self, text: &str) -> Result<()> {
        Ok(writeln!(self.stdin, "{text}")?)
    }

    fn receive(&mut self) -> Result<Vec<u8>> {
        Ok(self.lines.recv_timeout(WIRE_TIMEOUT)?)
    }
}
