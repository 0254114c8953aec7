//! Messages as text frames of a websocket.
//!
//! Written by hand, because the client of a library writes every frame separately, and would then
//! dominate the measurement. Both servers receive the same bytes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Result, bail, ensure};

use crate::server::MessageChannel;

const READ_BYTES: usize = 256 * 1024;
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// First byte of an unfragmented text frame.
const TEXT: u8 = 0x81;
const PING: u8 = 0x89;
const MASKED: u8 = 0x80;
/// Marker that a length of two bytes follows.
const LONG: u8 = 126;

pub struct Socket {
    stream: TcpStream,
    /// Received bytes that are not yet a complete frame.
    rest: Vec<u8>,
    chunk: Vec<u8>,
}

impl Socket {
    pub fn connect(address: &str) -> Result<Self> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        // Any sixteen bytes are a valid key.
        write!(
            stream,
            "GET / HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )?;
        // The server sends nothing after the head until the first request.
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte)?;
            head.extend_from_slice(&byte);
        }
        let head = String::from_utf8_lossy(&head);
        ensure!(head.starts_with("HTTP/1.1 101"), "no websocket: {head}");
        Ok(Self {
            stream,
            rest: Vec::new(),
            chunk: vec![0; READ_BYTES],
        })
    }
}

impl MessageChannel for Socket {
    fn frame(&self, message: &str, bytes: &mut Vec<u8>) {
        bytes.push(TEXT);
        match u8::try_from(message.len()) {
            Ok(length) if length < LONG => bytes.push(MASKED | length),
            _ => {
                bytes.push(MASKED | LONG);
                let length = u16::try_from(message.len()).expect("requests are short");
                bytes.extend_from_slice(&length.to_be_bytes());
            }
        }
        // A mask of zeros is valid: the server removes it like any other.
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(message.as_bytes());
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.stream.write_all(bytes)?)
    }

    fn read(&mut self, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let count = self.stream.read(&mut self.chunk)?;
        ensure!(count > 0, "the server closed the connection");
        self.rest.extend_from_slice(&self.chunk[..count]);
        let mut begin = 0;
        while let Some((kind, head, length)) = header(&self.rest[begin..])? {
            let from = begin + head;
            let Some(message) = self.rest.get(from..from + length) else {
                break;
            };
            match kind {
                TEXT => each(message)?,
                // Pings are not answered: the run ends before a server would time out.
                PING => {}
                _ => bail!("a frame that begins with {kind:#x}"),
            }
            begin = from + length;
        }
        self.rest.drain(..begin);
        Ok(())
    }
}

/// Returns the first byte of a frame, the length of its header and that of its message, once they
/// have arrived.
fn header(bytes: &[u8]) -> Result<Option<(u8, usize, usize)>> {
    let [kind, short, ..] = *bytes else {
        return Ok(None);
    };
    Ok(match short {
        0..LONG => Some((kind, 2, usize::from(short))),
        LONG => bytes
            .get(2..4)
            .map(|it| (kind, 4, usize::from(u16::from_be_bytes([it[0], it[1]])))),
        _ => bail!("received a frame of 64 KiB or more; responses must be shorter"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_once_it_is_whole() {
        assert_eq!(header(&[TEXT]).expect("nothing yet"), None);
        assert_eq!(header(&[TEXT, 5]).expect("short"), Some((TEXT, 2, 5)));
        assert_eq!(header(&[TEXT, LONG, 1]).expect("nothing yet"), None);
        let long = header(&[TEXT, LONG, 1, 2]).expect("long");
        assert_eq!(long, Some((TEXT, 4, 258)));
        assert!(header(&[TEXT, 127]).is_err());
    }
}
