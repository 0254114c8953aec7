//! Server-sent events: splits a stream of bytes into events.

use std::ops::Range;

use memchr::memchr;

/// Limit: one event of a model's stream; beyond it, the call fails.
const EVENT_BYTES_MAX: usize = 16 << 20;

/// Accepts bytes as they come and lends out the data of complete events. It examines no byte twice,
/// however the stream is split.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    /// Start of the bytes that are still needed.
    begin: usize,
    /// Start of the incomplete line.
    line: usize,
    /// End of the bytes that were searched for the end of that line.
    scanned: usize,
    /// The event's only line of data so far.
    data: Option<Range<usize>>,
    /// Its lines of data when there are several.
    joined: Option<Vec<u8>>,
}

/// Error in a stream of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// An event exceeds the limit.
    #[error("an event is too long")]
    TooLong,
    /// The data of an event is not text.
    #[error("an event is not UTF-8")]
    Utf8(#[source] std::str::Utf8Error),
}

impl Decoder {
    /// Builds an empty decoder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        let consumed = std::mem::take(&mut self.begin);
        if consumed > 0 {
            self.buffer.drain(..consumed);
            self.line -= consumed;
            self.scanned -= consumed;
            if let Some(data) = &mut self.data {
                *data = data.start - consumed..data.end - consumed;
            }
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the data of the next complete event, or `None` until more bytes have come. Fails
    /// when an event is too long or is not UTF-8.
    pub fn next_event(&mut self) -> Result<Option<&str>, DecodeError> {
        // The caller no longer borrows the previous event.
        if self.data.is_none() {
            self.joined = None;
        }
        loop {
            let Some(newline) = memchr(b'\n', &self.buffer[self.scanned..]) else {
                self.scanned = self.buffer.len();
                return match self.length() > EVENT_BYTES_MAX {
                    true => Err(DecodeError::TooLong),
                    false => Ok(None),
                };
            };
            let end = self.scanned + newline;
            let mut line = self.line..end;
            (self.line, self.scanned) = (end + 1, end + 1);
            if self.buffer[line.clone()].ends_with(b"\r") {
                line.end -= 1;
            }
            if !line.is_empty() {
                self.read_line(line);
                if self.length() > EVENT_BYTES_MAX {
                    return Err(DecodeError::TooLong);
                }
                continue;
            }
            self.begin = self.line;
            if let Some(data) = self.data.take() {
                let data = match &self.joined {
                    Some(joined) => joined,
                    None => &self.buffer[data],
                };
                let text = str::from_utf8(data).map_err(DecodeError::Utf8)?;
                return Ok(Some(text));
            }
        }
    }

    /// Reads a line of an event. Comments, names and ids are ignored, because the data repeats
    /// them.
    fn read_line(&mut self, mut line: Range<usize>) {
        let text = &self.buffer[line.clone()];
        // A byte order mark may begin the stream, and so its first line.
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let Some(data) = text.strip_prefix(b"data:") else {
            return;
        };
        let data = data.strip_prefix(b" ").unwrap_or(data);
        line.start = line.end - data.len();
        match &self.data {
            None => self.data = Some(line),
            Some(first) => {
                let first = &self.buffer[first.clone()];
                let joined = self.joined.get_or_insert_with(|| first.to_vec());
                joined.push(b'\n');
                joined.extend_from_slice(&self.buffer[line]);
            }
        }
    }

    /// Returns the length of the incomplete event.
    fn length(&self) -> usize {
        self.buffer.len() - self.begin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(pieces: &[&[u8]]) -> Vec<String> {
        let mut decoder = Decoder::new();
        let mut events = Vec::new();
        for piece in pieces {
            decoder.push(piece);
            while let Some(event) = decoder.next_event().expect("an event") {
                events.push(event.to_owned());
            }
        }
        events
    }

    #[test]
    fn events_are_cut_wherever_the_bytes_are_cut() {
        let stream = "\u{feff}data: first\n\nevent: a\ndata: {\"x\":1}\n\n: keep-alive\n\ndata:ä\r\ndata: b\r\ndata\r\nid: 7\r\n\r\ndata: \
                      \n\ndata: 漢字 😀\n\n\n\ndata: half"
            .as_bytes();
        let whole = decode(&[stream]);
        assert_eq!(whole, ["first", "{\"x\":1}", "ä\nb", "", "漢字 😀"]);
        for at in 0..stream.len() {
            assert_eq!(
                decode(&[&stream[..at], &stream[at..]]),
                whole,
                "cut at {at}"
            );
        }
        for size in 1..stream.len() {
            let pieces: Vec<&[u8]> = stream.chunks(size).collect();
            assert_eq!(decode(&pieces), whole, "in pieces of {size}");
        }
    }

    #[test]
    fn invalid_events_are_rejected() {
        let mut decoder = Decoder::new();
        decoder.push(b"data: \xff\n\n");
        assert!(decoder.next_event().is_err());
        let mut decoder = Decoder::new();
        decoder.push(&vec![b'x'; EVENT_BYTES_MAX + 1]);
        assert!(decoder.next_event().is_err());
        let mut decoder = Decoder::new();
        let line = "data: y\n".repeat(1000);
        let is_rejected = (0..=EVENT_BYTES_MAX / line.len()).any(|_| {
            decoder.push(line.as_bytes());
            decoder.next_event().is_err()
        });
        assert!(is_rejected, "an event of endless lines was taken");
    }

    #[test]
    fn consumed_bytes_are_dropped() {
        let mut decoder = Decoder::new();
        for _ in 0..10_000 {
            decoder.push(b"data: some words\n\ndata: ha");
            while decoder.next_event().expect("an event").is_some() {}
            decoder.push(b"lf\n\n");
            while decoder.next_event().expect("an event").is_some() {}
        }
        assert!(decoder.buffer.capacity() < 1024);
    }
}
