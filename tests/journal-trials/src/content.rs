//! Random content of records.

use support::Rng;

/// Ids, bytes and text from a sequence of random numbers.
pub trait RandomContent {
    /// Returns a unique id.
    fn id(&mut self, letter: char) -> String;

    /// Returns incompressible bytes.
    fn bytes(&mut self, count: usize) -> Vec<u8>;

    /// Returns text of about this many bytes: words of a small vocabulary, as a tool might print
    /// them.
    fn text(&mut self, count: usize) -> String;
}

impl RandomContent for Rng {
    fn id(&mut self, letter: char) -> String {
        format!("{letter}-{:016x}", self.bits())
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count + 8);
        while bytes.len() < count {
            bytes.extend_from_slice(&self.bits().to_le_bytes());
        }
        bytes.truncate(count);
        bytes
    }

    fn text(&mut self, count: usize) -> String {
        const WORDS: [&str; 16] = [
            "the", "file", "error", "warning", "in", "line", "of", "function", "returns", "value",
            "test", "passed", "failed", "with", "expected", "found",
        ];
        let mut text = String::with_capacity(count + 24);
        while text.len() < count {
            let bits = self.bits();
            text.push_str(WORDS[(bits & 15) as usize]);
            text.push(' ');
            text.push_str(WORDS[(bits >> 4 & 15) as usize]);
            text.push_str(&format!(" {:x}\n", bits >> 40));
        }
        text.truncate(count);
        text
    }
}
