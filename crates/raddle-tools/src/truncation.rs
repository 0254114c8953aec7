//! Truncates output for the model: the beginning and the end, with a note on the gap.

/// Approximate number of bytes per token.
const BYTES_PER_TOKEN: usize = 4;

/// Maximum bytes of the full output that are kept in addition to the truncated one.
const ALL_BYTES_MAX: usize = 4 << 20;

/// Output as it grows, of which only a limited part is kept.
#[derive(Clone, Debug)]
pub(crate) struct TruncatedOutput {
    head: String,
    tail: String,
    half: usize,
    bytes: usize,
    /// The full output, up to its limit.
    all: String,
}

impl TruncatedOutput {
    /// Keeps about so many tokens.
    pub(crate) fn new(tokens: usize) -> Self {
        Self {
            head: String::new(),
            tail: String::new(),
            half: tokens.saturating_mul(BYTES_PER_TOKEN) / 2,
            bytes: 0,
            all: String::new(),
        }
    }

    pub(crate) fn add(&mut self, text: &str) {
        self.bytes += text.len();
        let capacity = ALL_BYTES_MAX - self.all.len();
        self.all
            .push_str(&text[..text.floor_char_boundary(capacity)]);
        let capacity = self.half - self.head.len();
        let (head, tail) = match self.tail.is_empty() {
            true => text.split_at(text.floor_char_boundary(capacity)),
            false => ("", text),
        };
        self.head.push_str(head);
        self.tail.push_str(tail);
        // Trimmed only now and then, so that each byte is moved a few times at most.
        if self.tail.len() > 2 * self.half {
            self.trim();
        }
    }

    fn trim(&mut self) {
        let excess = self.tail.len().saturating_sub(self.half);
        let from = self.tail.ceil_char_boundary(excess);
        self.tail.drain(..from);
    }

    /// Returns the approximate number of tokens of the full output.
    pub(crate) fn tokens(&self) -> usize {
        self.bytes.div_ceil(BYTES_PER_TOKEN)
    }

    /// Returns the truncated output with a note on the gap, and the full output up to its limit if
    /// there is a gap.
    pub(crate) fn finish(mut self) -> (String, Option<String>) {
        if self.head.len() + self.tail.len() < self.bytes || self.tail.len() > self.half {
            self.trim();
        }
        let missing = self.bytes - self.head.len() - self.tail.len();
        let Self {
            head, tail, all, ..
        } = self;
        match missing {
            0 => (head + &tail, None),
            _ => {
                let truncated = format!("{head}\n[… {missing} bytes are left out here …]\n{tail}");
                (truncated, Some(all))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_and_the_end_are_kept() {
        let check = |pieces: &[&str], tokens: usize, expected: &str| {
            let mut output = TruncatedOutput::new(tokens);
            pieces.iter().for_each(|piece| output.add(piece));
            let (text, all) = output.finish();
            assert_eq!(text, expected, "{pieces:?}");
            let all_is_there = all.is_none_or(|all| all == pieces.concat());
            assert!(all_is_there, "{pieces:?}");
        };
        check(&[], 2, "");
        check(&["abcdefgh"], 2, "abcdefgh");
        check(&["abc", "def", "gh"], 2, "abcdefgh");
        let mark = |bytes| format!("\n[… {bytes} bytes are left out here …]\n");
        check(&["abcdefghi"], 2, &format!("abcd{}fghi", mark(1)));
        check(
            &["abcdef", "ghijk", "lmnop"],
            2,
            &format!("abcd{}mnop", mark(8)),
        );
        // A character is never split.
        check(&["ääää", "öööö"], 2, &format!("ää{}öö", mark(8)));
        check(&["aää", "ööb"], 2, &format!("aä{}öb", mark(4)));
    }
}
