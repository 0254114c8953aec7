//! The transports to the server, as text messages.

use std::time::{Duration, Instant};

use anyhow::Result;
use support::{StdioClient, Websocket};

/// Read timeout. Only a failing trial waits this long.
const WIRE_TIMEOUT: Duration = Duration::from_secs(60);

/// Transport of text messages.
pub trait MessageWire {
    fn send(&mut self, text: &str) -> Result<()>;

    /// Returns the next message.
    fn receive(&mut self) -> Result<Vec<u8>>;
}

impl MessageWire for Websocket {
    fn send(&mut self, text: &str) -> Result<()> {
        Websocket::send(self, text)
    }

    fn receive(&mut self) -> Result<Vec<u8>> {
        Ok(Websocket::receive(self)?.to_vec())
    }
}

impl MessageWire for StdioClient {
    fn send(&mut self, text: &str) -> Result<()> {
        StdioClient::send(self, text)
    }

    fn receive(&mut self) -> Result<Vec<u8>> {
        let (_, line) = StdioClient::receive(self, Instant::now() + WIRE_TIMEOUT)?;
        Ok(line)
    }
}
