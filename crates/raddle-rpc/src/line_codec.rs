//! Line framing: one message per line, each line bounded.

use bytes::{Buf, BytesMut};

use crate::Frame;

/// Length of a line after which the rest of the buffer is copied, so that the line's block is freed
/// with the line.
const LONG_BYTES: usize = 64 << 10;

/// Splits a stream of bytes into lines without copying them.
///
/// A line over the limit is skipped to its end and reported once. Its bytes are not kept.
#[derive(Debug)]
pub struct LineCodec {
    buffer: BytesMut,
    /// Length of the prefix that was searched for a line end.
    searched: usize,
    skipping: bool,
    bytes_max: usize,
}

impl LineCodec {
    /// A codec for lines of at most `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            searched: 0,
            skipping: false,
            bytes_max,
        }
    }

    /// Buffer to append the received bytes to.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Returns the next complete line, if there is one.
    pub fn next_line(&mut self) -> Option<Frame> {
        loop {
            let Some(offset) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
                return self.wait_for_more();
            };
            let end = self.searched + offset;
            self.searched = 0;
            let mut line = self.buffer.split_to(end);
            self.buffer.advance(1);
            if end > LONG_BYTES {
                self.buffer = BytesMut::from(&self.buffer[..]);
            }
            if std::mem::take(&mut self.skipping) || end > self.bytes_max {
                return Some(Frame::TooLong);
            }
            if line.last() == Some(&b'\r') {
                line.truncate(end - 1);
            }
            // Users type blank lines to test the connection.
            if !line.is_empty() {
                return Some(Frame::Message(line.freeze()));
            }
        }
    }

    fn wait_for_more(&mut self) -> Option<Frame> {
        self.searched = self.buffer.len();
        if self.skipping || self.buffer.len() > self.bytes_max {
            self.skipping = true;
            self.searched = 0;
            self.buffer = BytesMut::new();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(chunks: &[&str], bytes_max: usize) -> Vec<String> {
        let mut codec = LineCodec::new(bytes_max);
        let mut lines = Vec::new();
        for chunk in chunks {
            codec.buffer().extend_from_slice(chunk.as_bytes());
            while let Some(frame) = codec.next_line() {
                lines.push(match frame {
                    Frame::Message(line) => String::from_utf8_lossy(&line).into_owned(),
                    other => format!("{other:?}"),
                });
            }
        }
        lines
    }

    #[test]
    fn the_memory_of_a_long_line_goes_with_it() {
        let mut codec = LineCodec::new(1 << 20);
        codec.buffer().extend_from_slice(&[b'x'; 1 << 20]);
        codec.buffer().extend_from_slice(b"\nnext\nrest");
        let Some(Frame::Message(line)) = codec.next_line() else {
            panic!("a line");
        };
        assert_eq!(line.len(), 1 << 20);
        assert!(line.try_into_mut().is_ok(), "its block has no other owner");
        let next = Frame::Message(bytes::Bytes::from_static(b"next"));
        assert_eq!(codec.next_line(), Some(next));
        assert_eq!(&codec.buffer()[..], b"rest");
    }

    #[test]
    fn lines_are_cut_and_bounded() {
        assert_eq!(cut(&["a\nb\r\n\nc"], 8), ["a", "b"]);
        assert_eq!(cut(&["a", "b", "\nc\n"], 8), ["ab", "c"]);
        assert_eq!(cut(&["12345678\n"], 8), ["12345678"]);
        assert_eq!(cut(&["123456789\nok\n"], 8), ["TooLong", "ok"]);
        assert_eq!(
            cut(&["12345", "6789", "more", "\nok\n"], 8),
            ["TooLong", "ok"]
        );
    }
}
