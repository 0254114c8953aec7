//! Output cut to what a model should read: its beginning and its end, with a word on what is missing.

/// About how many bytes of text make a token.
const BYTES_PER_TOKEN: usize = 4;

/// How much is kept beside what the model reads.
const ALL_BYTES_MAX: usize = 4 << 20;

/// Output as it grows, of which only so much is kept.
#[derive(Debug)]
pub(crate) struct TruncatedOutput {
    head: String,
    tail: String,
    half: usize,
    bytes: usize,
    /// All of it, while there is room for that.
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
        let room = ALL_BYTES_MAX - self.all.len();
        self.all.push_str(&text[..text.floor_char_boundary(room)]);
        let room = self.half - self.head.len();
        let (head, tail) = match self.tail.is_empty() {
            true => text.split_at(text.floor_char_boundary(room)),
            false => ("", text),
        };
        self.head.push_str(head);
        self.tail.push_str(tail);
        // Trimmed now and then, so that each byte is moved a few times at most.
        if self.tail.len() > 2 * self.half {
            self.trim();
        }
    }

    fn trim(&mut self) {
        let over = self.tail.len().saturating_sub(self.half);
        let from = self.tail.ceil_char_boundary(over);
        self.tail.drain(..from);
    }

    /// About how many tokens there were.
    pub(crate) fn tokens(&self) -> usize {
        self.bytes.div_ceil(BYTES_PER_TOKEN)
    }

    /// What is kept, and where something is missing a line that says so; and then all of it, or its beginning.
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
                let cut = format!("{head}\n[… {missing} bytes are left out here …]\n{tail}");
                (cut, Some(all))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_and_the_end_are_kept() {
        let check = |pieces: &[&str], tokens: usize, wanted: &str| {
            let mut cut = TruncatedOutput::new(tokens);
            pieces.iter().for_each(|piece| cut.add(piece));
            let (text, all) = cut.finish();
            assert_eq!(text, wanted, "{pieces:?}");
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
        // A letter is never cut in two.
        check(&["ääää", "öööö"], 2, &format!("ää{}öö", mark(8)));
        check(&["aää", "ööb"], 2, &format!("aä{}öb", mark(4)));
    }
}
