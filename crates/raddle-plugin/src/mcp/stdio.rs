//! Messages of an MCP server over the pipes of its process: one JSON object per line.

use std::future::{Future, ready};
use std::io;

use raddle_sandbox::{Input, Output};
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::watch;
use tokio::task::coop::consume_budget;
use tokio::task::{JoinHandle, spawn_blocking};

use super::message_values::check_values;
use crate::read_pacer::ReadPacer;

/// Limit: one message of an MCP server; beyond it, the message is dropped, and the loss is logged.
pub(super) const LINE_BYTES_MAX: usize = 16 << 20;

/// Size from which a message is parsed outside the threads of the runtime, since that takes long.
pub(super) const LARGE_MESSAGE_BYTES: usize = 64 << 10;

/// Size of a read from the pipe.
const READ_BYTES: usize = 16 << 10;

/// Pipes of an MCP server's process.
pub(crate) struct StdioTransport {
    server: String,
    input: Option<Input>,
    output: Output,
    lines: LineBuffer,
    pacer: ReadPacer,
    /// The large message that is being parsed. Later lines wait for it.
    parsing: Option<JoinHandle<ParsedLine>>,
    /// Dropped when the output has ended.
    open: Option<watch::Sender<()>>,
}

/// The message of a line.
type ParsedLine = serde_json::Result<RxJsonRpcMessage<RoleClient>>;

impl StdioTransport {
    /// Creates the transport, and returns a channel that is closed when the output has ended.
    pub(crate) fn new(server: String, input: Input, output: Output) -> (Self, watch::Receiver<()>) {
        let (open, receiver) = watch::channel(());
        let transport = Self {
            server,
            input: Some(input),
            output,
            lines: LineBuffer::default(),
            pacer: ReadPacer::new(),
            parsing: None,
            open: Some(open),
        };
        (transport, receiver)
    }

    /// Parses the next line; `None` if it is not complete. Dropping the future loses no line.
    async fn parsed_line(&mut self) -> Option<ParsedLine> {
        if self.parsing.is_none() {
            let line = self.lines.next()?;
            self.pacer.spend_message(&line);
            if let Err(error) = check_values(&line) {
                let server = &self.server;
                tracing::warn!(server, %error, "a message of an MCP server is not read");
                let replacement = error.replacement.as_deref();
                return Some(serde_json::from_str(replacement.unwrap_or_default()));
            }
            if line.len() < LARGE_MESSAGE_BYTES {
                return Some(serde_json::from_slice(&line));
            }
            self.parsing = Some(spawn_blocking(move || serde_json::from_slice(&line)));
        }
        let parsed = self.parsing.as_mut()?.await;
        self.parsing = None;
        // Parsing is not cancelled, and does not panic.
        Some(parsed.unwrap_or_else(|error| Err(serde::de::Error::custom(error))))
    }

    fn write(&self, message: &TxJsonRpcMessage<RoleClient>) -> io::Result<()> {
        let closed = || io::Error::from(io::ErrorKind::NotConnected);
        let input = self.input.as_ref().ok_or_else(closed)?;
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        input.write(line).map_err(io::Error::other)
    }
}

impl Transport<RoleClient> for StdioTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        // Queues the bytes at once, so messages keep their order.
        ready(self.write(&message))
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        // The caller drops this future whenever it has something to send: all state is in `self`.
        loop {
            self.pacer.wait().await;
            while let Some(parsed) = self.parsed_line().await {
                match parsed {
                    Ok(message) => return Some(message),
                    Err(error) => {
                        let server = &self.server;
                        tracing::debug!(server, %error, "a line of an MCP server is no message");
                        // A server that sends no messages must not occupy the thread.
                        consume_budget().await;
                        self.pacer.wait().await;
                    }
                }
            }
            let mut buffer = [0; READ_BYTES];
            match self.output.read(&mut buffer).await {
                Ok(0) => {
                    self.open = None;
                    return None;
                }
                Ok(count) => {
                    self.pacer.spend_read(count);
                    if self.lines.push(&buffer[..count]) {
                        let server = &self.server;
                        tracing::warn!(server, "a message of an MCP server is too long; dropped");
                    }
                }
                Err(error) => {
                    let server = &self.server;
                    tracing::info!(server, %error, "the output of an MCP server cannot be read");
                    self.open = None;
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.input = None;
        Ok(())
    }
}

/// Bytes of a stream, split into lines of limited length.
#[derive(Debug, Default)]
struct LineBuffer {
    bytes: Vec<u8>,
    /// Number of bytes at the start that belong to earlier lines.
    start: usize,
    /// Number of bytes at the start that contain no end of a later line.
    searched: usize,
    /// Whether the current line is too long and is dropped up to its end.
    is_dropping: bool,
}

impl LineBuffer {
    /// Appends bytes. Returns true when a line becomes too long.
    fn push(&mut self, bytes: &[u8]) -> bool {
        let rest = match self.is_dropping {
            false => bytes,
            true => match bytes.iter().position(|it| *it == b'\n') {
                Some(end) => {
                    self.is_dropping = false;
                    &bytes[end + 1..]
                }
                None => return false,
            },
        };
        self.bytes.extend_from_slice(rest);
        let has_line = self.bytes[self.searched..].contains(&b'\n');
        if has_line || self.bytes.len() - self.start <= LINE_BYTES_MAX {
            return false;
        }
        *self = Self {
            is_dropping: true,
            ..Self::default()
        };
        true
    }

    /// Removes the first complete line that is not empty.
    fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let rest = &self.bytes[self.searched..];
            let Some(end) = rest.iter().position(|it| *it == b'\n') else {
                // Once for all lines, so that many short ones cost no more than a long one.
                self.bytes.drain(..self.start);
                self.start = 0;
                self.searched = self.bytes.len();
                return None;
            };
            let end = self.searched + end;
            let line = self.bytes[self.start..end].trim_ascii_end().to_vec();
            self.start = end + 1;
            self.searched = self.start;
            if !line.is_empty() {
                return Some(line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_pacer::is_within_burst;

    #[test]
    fn the_largest_message_is_read_at_once() {
        assert!(is_within_burst(LINE_BYTES_MAX));
    }

    #[test]
    fn lines_are_split_however_they_arrive() {
        let text = b"{\"a\":1}\r\n\n  \n{\"b\":2}\n{\"c\"";
        for size in 1..text.len() {
            let mut lines = LineBuffer::default();
            let mut found = Vec::new();
            for piece in text.chunks(size) {
                assert!(!lines.push(piece));
                while let Some(line) = lines.next() {
                    found.push(String::from_utf8(line).expect("text"));
                }
            }
            assert_eq!(found, ["{\"a\":1}", "{\"b\":2}"], "pieces of {size}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_dropped_and_the_next_one_is_read() {
        let mut lines = LineBuffer::default();
        let piece = vec![b'x'; 1 << 20];
        let dropped = (0..64).filter(|_| lines.push(&piece)).count();
        assert_eq!(dropped, 1);
        assert!(lines.bytes.capacity() <= LINE_BYTES_MAX + piece.len());
        assert_eq!(lines.next(), None);
        assert!(!lines.push(b"end\n{}\n"));
        assert_eq!(lines.next().as_deref(), Some(&b"{}"[..]));
    }
}
