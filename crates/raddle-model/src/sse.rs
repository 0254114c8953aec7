//! Server-sent events: cutting a stream of bytes into events.

use bytes::{Buf, BytesMut};

/// An event longer than this is no event.
const EVENT_BYTES_MAX: usize = 16 << 20;

/// Takes bytes as they come and gives out the data of whole events.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: BytesMut,
    data: Vec<u8>,
    has_data: bool,
}

impl Decoder {
    /// Nothing has come yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes more bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The data of the next whole event, or nothing until more bytes have come. An error when an event
    /// is too long to be one, or is not UTF-8.
    pub fn next_event(&mut self) -> Result<Option<String>, &'static str> {
        loop {
            let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') else {
                if self.buffer.len() + self.data.len() > EVENT_BYTES_MAX {
                    return Err("an event is too long");
                }
                return Ok(None);
            };
            let line = self.buffer.split_to(end);
            self.buffer.advance(1);
            let line = line.strip_suffix(b"\r").unwrap_or(&line);
            if line.is_empty() {
                if std::mem::take(&mut self.has_data) {
                    let data = std::mem::take(&mut self.data);
                    return String::from_utf8(data)
                        .map(Some)
                        .map_err(|_| "an event is not UTF-8");
                }
            } else if let Some(data) = line.strip_prefix(b"data:") {
                // Comments, names and ids of events say nothing that the data does not.
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data
                    .extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
                if self.data.len() > EVENT_BYTES_MAX {
                    return Err("an event is too long");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(pieces: &[&[u8]]) -> Vec<String> {
        let mut decoder = Decoder::new();
        let mut events = Vec::new();
        for piece in pieces {
            decoder.push(piece);
            while let Some(event) = decoder.next_event().expect("an event") {
                events.push(event);
            }
        }
        events
    }

    #[test]
    fn events_are_cut_wherever_the_bytes_are_cut() {
        let stream =
            "event: a\ndata: {\"x\":1}\n\n: keep-alive\n\ndata:ä\r\ndata: b\r\n\r\ndata: half"
                .as_bytes();
        let whole = cut(&[stream]);
        assert_eq!(whole, ["{\"x\":1}", "ä\nb"]);
        for at in 0..stream.len() {
            assert_eq!(cut(&[&stream[..at], &stream[at..]]), whole, "cut at {at}");
        }
    }

    #[test]
    fn what_cannot_be_an_event_is_refused() {
        let mut decoder = Decoder::new();
        decoder.push(b"data: \xff\n\n");
        assert!(decoder.next_event().is_err());
        let mut decoder = Decoder::new();
        decoder.push(&vec![b'x'; EVENT_BYTES_MAX + 1]);
        assert!(decoder.next_event().is_err());
    }
}
