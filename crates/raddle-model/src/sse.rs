//! Server-sent events: cutting a stream of bytes into events.

use std::ops::Range;

use memchr::memchr;

/// An event longer than this is no event.
const EVENT_BYTES_MAX: usize = 16 << 20;

/// Takes bytes as they come and lends out the data of whole events. No byte is looked at twice, however
/// the stream is cut.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    /// Everything before is done with.
    begin: usize,
    /// Where the line begins that is not whole yet.
    line: usize,
    /// Up to here there is no end of that line.
    scanned: usize,
    /// The event's only line of data so far.
    data: Option<Range<usize>>,
    /// Its lines of data when there are several.
    joined: Option<Vec<u8>>,
}

impl Decoder {
    /// Nothing has come yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes more bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        let done = std::mem::take(&mut self.begin);
        if done > 0 {
            self.buffer.drain(..done);
            self.line -= done;
            self.scanned -= done;
            if let Some(data) = &mut self.data {
                *data = data.start - done..data.end - done;
            }
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The data of the next whole event, or nothing until more bytes have come. An error when an event
    /// is too long to be one, or is not UTF-8.
    pub fn next_event(&mut self) -> Result<Option<&str>, &'static str> {
        // What was lent out last is done with.
        if self.data.is_none() {
            self.joined = None;
        }
        loop {
            let Some(found) = memchr(b'\n', &self.buffer[self.scanned..]) else {
                self.scanned = self.buffer.len();
                return match self.length() > EVENT_BYTES_MAX {
                    true => Err("an event is too long"),
                    false => Ok(None),
                };
            };
            let end = self.scanned + found;
            let mut line = self.line..end;
            (self.line, self.scanned) = (end + 1, end + 1);
            if self.buffer[line.clone()].ends_with(b"\r") {
                line.end -= 1;
            }
            if !line.is_empty() {
                self.take(line);
                if self.length() > EVENT_BYTES_MAX {
                    return Err("an event is too long");
                }
                continue;
            }
            self.begin = self.line;
            if let Some(data) = self.data.take() {
                let data = match &self.joined {
                    Some(joined) => joined,
                    None => &self.buffer[data],
                };
                let text = str::from_utf8(data).map_err(|_| "an event is not UTF-8")?;
                return Ok(Some(text));
            }
        }
    }

    /// Takes a line of an event. Comments, names and ids of events say nothing that the data does not.
    fn take(&mut self, mut line: Range<usize>) {
        let text = &self.buffer[line.clone()];
        // A byte order mark may begin the stream, and so a line that says nothing else.
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

    /// How long the event is that is not whole yet.
    fn length(&self) -> usize {
        self.buffer.len() - self.begin
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
        let whole = cut(&[stream]);
        assert_eq!(whole, ["first", "{\"x\":1}", "ä\nb", "", "漢字 😀"]);
        for at in 0..stream.len() {
            assert_eq!(cut(&[&stream[..at], &stream[at..]]), whole, "cut at {at}");
        }
        for size in 1..stream.len() {
            let pieces: Vec<&[u8]> = stream.chunks(size).collect();
            assert_eq!(cut(&pieces), whole, "in pieces of {size}");
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
        let mut decoder = Decoder::new();
        let line = "data: y\n".repeat(1000);
        let refused = (0..=EVENT_BYTES_MAX / line.len()).any(|_| {
            decoder.push(line.as_bytes());
            decoder.next_event().is_err()
        });
        assert!(refused, "an event of endless lines was taken");
    }

    #[test]
    fn what_is_done_with_is_not_kept() {
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
