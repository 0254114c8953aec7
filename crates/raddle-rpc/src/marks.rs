//! The marks of a JSON text: its brackets, commas and colons, except those inside strings. They
//! give the number of values before anything is parsed.

/// Limit: values in the params of a request, or in a message of a plugin or an MCP server; beyond it,
/// the request is rejected with -32600, and a response of a plugin or an MCP server fails its call.
///
/// A short value takes many times its text once it is parsed: an empty string of three bytes takes
/// eight times as much, a small object a hundred times.
pub const VALUES_MAX: usize = 100_000;

/// Whether a text has at most [`VALUES_MAX`] values, judged by its marks.
pub fn are_few(text: &str) -> bool {
    text.len() <= VALUES_MAX || values(text.as_bytes()).is_some()
}

/// Returns an upper bound of the number of values in a text, judged by its marks; `None` if that is
/// more than [`VALUES_MAX`]. Of an invalid text it counts what a parser may have read before it fails.
pub fn values(text: &[u8]) -> Option<usize> {
    // Each value but the first has a mark before it.
    let opens = |mark: &u8| matches!(mark, b',' | b':' | b'[' | b'{');
    let marks = Marks { rest: text }.filter(opens);
    let count = marks.take(VALUES_MAX + 1).count();
    (count <= VALUES_MAX).then_some(count)
}

/// The marks of a text, in order. The text must be valid JSON.
#[derive(Debug)]
pub struct Marks<'a> {
    rest: &'a [u8],
}

impl<'a> Marks<'a> {
    /// Begins at the start of a text.
    pub fn of(text: &'a str) -> Self {
        let rest = text.as_bytes();
        Self { rest }
    }

    /// Skips to the end of the string whose first quote was just read.
    fn skip_string(&mut self) {
        while let Some(end) = position_of_any(*b"\"", self.rest) {
            let (before, rest) = self.rest.split_at(end);
            self.rest = &rest[1..];
            let escapes = before.iter().rev().take_while(|it| **it == b'\\').count();
            if escapes % 2 == 0 {
                return;
            }
        }
        self.rest = &[];
    }
}

impl Iterator for Marks<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        while let Some((byte, rest)) = self.rest.split_first() {
            self.rest = rest;
            match byte {
                b'"' => self.skip_string(),
                b',' | b':' | b'[' | b']' | b'{' | b'}' => return Some(*byte),
                _ => {}
            }
        }
        None
    }
}

/// Returns the position of the first of these bytes. Strings may be long, so it checks a chunk at a
/// time.
pub fn position_of_any<const N: usize>(bytes: [u8; N], text: &[u8]) -> Option<usize> {
    const STEP: usize = 64;
    let is_one = |it: &u8| bytes.iter().fold(false, |any, byte| any | (it == byte));
    let has_one = |chunk: &[u8]| chunk.iter().fold(false, |any, it| any | is_one(it));
    let chunks = text.chunks_exact(STEP);
    let in_chunks = text.len() - chunks.remainder().len();
    let skipped = match chunks.enumerate().find(|(_, chunk)| has_one(chunk)) {
        Some((number, _)) => number * STEP,
        None => in_chunks,
    };
    let within = text[skipped..].iter().position(is_one)?;
    Some(skipped + within)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(text: &str) -> String {
        Marks::of(text).map(char::from).collect()
    }

    #[test]
    fn strings_have_no_marks() {
        for (text, expected) in [
            (r#"{"a": [1, 2], "b": {}}"#, "{:[,],:{}}"),
            (r#"{"[,:": "]}"}"#, "{:}"),
            (r#"["\"[", "\\", "\\\"[", 1]"#, "[,,,]"),
            (r#""[""#, ""),
            ("7", ""),
        ] {
            assert_eq!(marks(text), expected, "{text}");
        }
        // A quote at any place of a long string.
        for length in 0..200 {
            let long = "x[".repeat(length);
            assert_eq!(marks(&format!(r#"["{long}","{long}\"["]"#)), "[,]");
        }
    }

    #[test]
    fn many_values_are_too_many_and_one_long_one_is_not() {
        let list = |count: usize| format!("[{}\"\"]", "\"\",".repeat(count - 1));
        assert!(are_few(&list(VALUES_MAX)));
        assert!(!are_few(&list(VALUES_MAX + 1)));
        let objects = |count: usize| format!("[{}]", vec![r#"{"":0}"#; count].join(","));
        assert!(are_few(&objects(VALUES_MAX / 3)));
        assert!(!are_few(&objects(VALUES_MAX / 3 + 1)));
        assert!(are_few(&format!("[\"{}\"]", ",".repeat(2 * VALUES_MAX))));
        assert_eq!(values(br#"{"a": [1, 2]}"#), Some(4));
        // A parser reads an invalid text up to the fault.
        assert_eq!(values(b"[[[[\xff\""), Some(4));
    }
}
