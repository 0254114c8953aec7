//! Identifiers of Rust code, without comments and literals.
//!
//! The scanner works on bytes, because `tidy` scans every file and is a debug build.

use std::iter;

/// An identifier or a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identifier<'a> {
    pub text: &'a str,
    /// Position of its first byte in the file.
    pub at: usize,
}

/// Returns the identifiers and keywords of a file, in order.
pub fn identifiers(code: &str) -> Vec<Identifier<'_>> {
    let bytes = code.as_bytes();
    let mut identifiers = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let next = bytes.get(at + 1).copied();
        at = match bytes[at] {
            b'/' if next == Some(b'/') => code[at..].find('\n').map_or(code.len(), |it| at + it),
            b'/' if next == Some(b'*') => after(code, at + 2, "*/"),
            b'"' => end_of_string(bytes, at + 1),
            b'\'' => end_of_quote(code, at + 1),
            b'0'..=b'9' => end_of_word(bytes, at),
            first if is_word(first) => {
                let end = end_of_word(bytes, at);
                end_of_raw_string(code, at, end).unwrap_or_else(|| {
                    let text = &code[at..end];
                    identifiers.push(Identifier { text, at });
                    end
                })
            }
            _ => at + 1,
        };
    }
    identifiers
}

/// Returns the words of an identifier: `open` and `Door` of `open_Door2`.
pub fn parts(identifier: &str) -> impl Iterator<Item = &str> {
    let bytes = identifier.as_bytes();
    let mut at = 0;
    iter::from_fn(move || {
        while at < bytes.len() && !bytes[at].is_ascii_alphabetic() {
            at += 1;
        }
        let start = at;
        while at < bytes.len() && (at == start || !is_boundary(bytes, at)) {
            at += 1;
        }
        (at > start).then(|| &identifier[start..at])
    })
}

/// Returns whether a word of an identifier ends before this byte.
fn is_boundary(bytes: &[u8], at: usize) -> bool {
    let (before, this) = (bytes[at - 1], bytes[at]);
    let is_before_lower = bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase);
    !this.is_ascii_alphabetic()
        || this.is_ascii_uppercase() && (before.is_ascii_lowercase() || is_before_lower)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn end_of_word(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    while at < bytes.len() && is_word(bytes[at]) {
        at += 1;
    }
    at
}

/// Returns the position after the next `end`.
fn after(code: &str, start: usize, end: &str) -> usize {
    code[start..]
        .find(end)
        .map_or(code.len(), |it| start + it + end.len())
}

fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Returns the end of a character, or of the name of a lifetime.
fn end_of_quote(code: &str, start: usize) -> usize {
    let content = &code[start..];
    if content.starts_with('\\') {
        // The character after the backslash may be a quote.
        let rest = content.get(2..).unwrap_or_default();
        return rest.find('\'').map_or(code.len(), |it| start + 2 + it + 1);
    }
    let length = content.chars().next().map_or(0, char::len_utf8);
    if content[length..].starts_with('\'') {
        return start + length + 1;
    }
    end_of_word(code.as_bytes(), start)
}

/// Returns the end of a raw string whose prefix is the word between `start` and `end`.
fn end_of_raw_string(code: &str, start: usize, end: usize) -> Option<usize> {
    if !matches!(&code[start..end], "r" | "br" | "cr") {
        return None;
    }
    let quoted = code[end..].trim_start_matches('#');
    quoted.strip_prefix('"')?;
    let hashes = code.len() - end - quoted.len();
    let close = format!("\"{}", "#".repeat(hashes));
    Some(after(code, end + hashes + 1, &close))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_have_no_identifiers() {
        for (code, expected) in [
            ("let x = 0x1f + a.b;", "let x a b"),
            ("// one\ntwo", "two"),
            ("/* one\n */ two /* three", "two"),
            ("f(\"one\\\"two\", b\"three\")", "f b"),
            ("r\"one\\\" two r#\"\"three\"\"# four", "two four"),
            ("one(r##\"\"#two\"##) three", "one three"),
            ("'a' 'é' '\\'' '\\u{e9}' b'x' two", "b two"),
            ("fn f<'one>(x: &'static str)", "fn f x str"),
            ("r#type", "r type"),
            ("// ä\nö two \"", "two"),
            ("'", ""),
            ("'\\", ""),
        ] {
            let texts: Vec<&str> = identifiers(code).iter().map(|it| it.text).collect();
            assert_eq!(texts.join(" "), expected, "{code}");
        }
        assert_eq!(identifiers("// one\n two")[0].at, 8);
    }

    #[test]
    fn identifiers_are_split_at_humps_and_underscores() {
        for (identifier, expected) in [
            ("open_door", "open door"),
            ("DOOR_TIMEOUT", "DOOR TIMEOUT"),
            ("FrontDoors2", "Front Doors"),
            ("HTTPDoor", "HTTP Door"),
            ("_x9y__", "x y"),
            ("__", ""),
        ] {
            let words: Vec<&str> = parts(identifier).collect();
            assert_eq!(words.join(" "), expected, "{identifier}");
        }
    }
}
