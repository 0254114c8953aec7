//! The two ends of a plugin's pipes, as a session uses them.

use std::future::Future;
use std::io;
use std::time::Duration;

use raddle_sandbox::{Input, Output};
use tokio::time::sleep;

/// How often it is checked whether a plugin reads its stdin again.
const FULL_CHECK: Duration = Duration::from_millis(5);

/// Source of a plugin's messages.
pub(crate) trait ByteSource: Send + 'static {
    /// Waits for bytes and reads them; returns 0 at the end.
    fn read_bytes(&mut self, buffer: &mut [u8]) -> impl Future<Output = io::Result<usize>> + Send;
}

/// Destination of the messages to a plugin.
pub(crate) trait FrameSink: Send + 'static {
    /// Sends a whole frame, and waits while the plugin does not read.
    fn send_frame(&mut self, frame: Vec<u8>) -> impl Future<Output = io::Result<()>> + Send;
}

impl ByteSource for Output {
    async fn read_bytes(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.read(buffer).await
    }
}

impl FrameSink for Input {
    async fn send_frame(&mut self, frame: Vec<u8>) -> io::Result<()> {
        // The queue of the pipe is bounded, and does not report when there is room again.
        while !self.accepts(frame.len()) {
            sleep(FULL_CHECK).await;
        }
        self.write(frame).map_err(io::Error::other)
    }
}
