//! The events of a response: decoded as they arrive, each with a limit, and at a limited pace.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use raddle_model::ResponseBody;
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::Sse;

use super::error::HttpError;
use super::stream_pacer::StreamPacer;
use crate::mcp::message_values::check_values;

/// Byte order mark, which may begin a stream.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Returns the events of a body.
pub(super) fn events(
    body: ResponseBody,
    bytes_max: usize,
    pacer: Arc<StreamPacer>,
) -> BoxStream<'static, Result<Sse, SseError>> {
    let state = (body, EventDecoder::new(bytes_max), pacer);
    let events = stream::try_unfold(state, |(mut body, mut decoder, pacer)| async move {
        loop {
            pacer.wait_to_read().await;
            let event = decoder.next_event().inspect_err(|_| pacer.refuse())?;
            if let Some(mut event) = event {
                let data = event.data.as_deref().unwrap_or_default();
                pacer.spend_message(data.as_bytes());
                if let Err(error) = check_values(data.as_bytes()) {
                    tracing::warn!(%error, "an event of an MCP server is not read");
                    event.data = error.replacement;
                }
                return Ok(Some((event, (body, decoder, pacer))));
            }
            match body.next_chunk().await {
                Ok(Some(chunk)) => {
                    pacer.spend_read(chunk.len());
                    decoder.push(&chunk);
                }
                Ok(None) => return Ok(None),
                Err(error) => return Err(SseError::Body(Box::new(HttpError::from(error)))),
            }
        }
    });
    events.boxed()
}

/// Splits bytes into events. It examines no byte twice, however the stream is split.
#[derive(Debug)]
struct EventDecoder {
    bytes_max: usize,
    buffer: Vec<u8>,
    /// Start of the incomplete line.
    line: usize,
    /// End of the bytes that were searched for the end of that line.
    scanned: usize,
    /// Whether the last line ended with a carriage return, which a line feed may follow.
    is_after_return: bool,
    is_first_line: bool,
    event: Sse,
    /// Length of the complete lines of the event.
    event_bytes: usize,
}

impl EventDecoder {
    fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            buffer: Vec::new(),
            line: 0,
            scanned: 0,
            is_after_return: false,
            is_first_line: true,
            event: Sse::default(),
            event_bytes: 0,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.line);
        self.scanned -= self.line;
        self.line = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next complete event, or `None` until more bytes have come.
    fn next_event(&mut self) -> Result<Option<Sse>, SseError> {
        loop {
            self.skip_line_feed();
            let rest = &self.buffer[self.scanned..];
            let end = rest.iter().position(|it| matches!(it, b'\n' | b'\r'));
            let Some(end) = end.map(|it| self.scanned + it) else {
                self.scanned = self.buffer.len();
                self.check_length(self.buffer.len() - self.line)?;
                return Ok(None);
            };
            let mut line = &self.buffer[self.line..end];
            self.is_after_return = self.buffer[end] == b'\r';
            (self.line, self.scanned) = (end + 1, end + 1);
            if std::mem::take(&mut self.is_first_line) {
                line = line.strip_prefix(MARK).unwrap_or(line);
            }
            if line.is_empty() {
                self.event_bytes = 0;
                let event = std::mem::take(&mut self.event);
                if event != Sse::default() {
                    return Ok(Some(event));
                }
                continue;
            }
            if !line.starts_with(b":") {
                let line_bytes = line.len() + 1;
                add_line(&mut self.event, line)?;
                self.event_bytes += line_bytes;
            }
            self.check_length(0)?;
        }
    }

    fn skip_line_feed(&mut self) {
        let Some(next) = self.buffer.get(self.line).filter(|_| self.is_after_return) else {
            return;
        };
        if *next == b'\n' {
            self.line += 1;
            self.scanned = self.scanned.max(self.line);
        }
        self.is_after_return = false;
    }

    /// Checks the length of an event with an incomplete line.
    fn check_length(&self, line_bytes: usize) -> Result<(), SseError> {
        let bytes_max = self.bytes_max;
        match self.event_bytes.saturating_add(line_bytes) > bytes_max {
            true => Err(SseError::Body(Box::new(HttpError::EventTooLong {
                bytes_max,
            }))),
            false => Ok(()),
        }
    }
}

/// Adds a line to an event. Unknown fields are ignored, as the standard says.
fn add_line(event: &mut Sse, line: &[u8]) -> Result<(), SseError> {
    let colon = line.iter().position(|it| *it == b':');
    let (name, value) = match colon {
        Some(at) => (&line[..at], &line[at + 1..]),
        None => (line, &b""[..]),
    };
    let value = value.strip_prefix(b" ").unwrap_or(value);
    let text = || str::from_utf8(value).map_err(SseError::Utf8Parse);
    match name {
        b"data" => match &mut event.data {
            Some(data) => {
                data.push('\n');
                data.push_str(text()?);
            }
            None => event.data = Some(text()?.to_owned()),
        },
        b"event" => event.event = Some(text()?.to_owned()),
        b"id" if !value.contains(&0) => event.id = Some(text()?.to_owned()),
        b"retry" => event.retry = text()?.trim().parse().ok().or(event.retry),
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(pieces: &[&[u8]], bytes_max: usize) -> Result<Vec<Sse>, String> {
        let mut decoder = EventDecoder::new(bytes_max);
        let mut events = Vec::new();
        for piece in pieces {
            decoder.push(piece);
            while let Some(event) = decoder.next_event().map_err(|it| it.to_string())? {
                events.push(event);
            }
        }
        Ok(events)
    }

    #[test]
    fn events_are_the_same_wherever_the_bytes_are_split() {
        let stream = "\u{feff}data: first\n\nid: 7\r\nretry: 50\r\ndata:\r\n\r\n: comment\n\nevent: message\rdata: ä\rdata: \
                      b\rnoise\rmore: noise\r\rretry: soon\n\ndata: half"
            .as_bytes();
        let whole = decode(&[stream], 1024).expect("events");
        let expected = [
            Sse::default().data("first"),
            Sse::default().id("7").retry(50).data(""),
            Sse::default().event("message").data("ä\nb"),
        ];
        assert_eq!(whole, expected);
        for size in 1..stream.len() {
            let pieces: Vec<&[u8]> = stream.chunks(size).collect();
            let events = decode(&pieces, 1024).expect("events");
            assert_eq!(events, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn an_event_has_a_limit_and_a_stream_has_none() {
        for (stream, is_accepted) in [
            ("data: 1234567890\n\n".repeat(9), true),
            (": comment\n".repeat(9), true),
            ("data: 1234567890123".to_owned(), false),
            ("data: 1\n".repeat(9), false),
            ("x: 1\n".repeat(9), false),
            ("data: 1234567890123\n\n".to_owned(), false),
        ] {
            let events = decode(&[stream.as_bytes()], 18);
            assert_eq!(events.is_ok(), is_accepted, "{stream}");
        }
        assert!(decode(&[b"data: \xff\n\n"], 99).is_err());
    }
}
