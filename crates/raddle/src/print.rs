//! What commands print. No command that prints serves a wire, so here, and only here, stdout is free.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

/// How much is gathered before it is written.
const BUFFER_BYTES: usize = 64 << 10;

/// The way to stdout.
pub(crate) struct Printer {
    out: BufWriter<StdoutLock<'static>>,
    closed: bool,
}

impl Printer {
    pub(crate) fn new() -> Self {
        Self {
            out: BufWriter::with_capacity(BUFFER_BYTES, io::stdout().lock()),
            closed: false,
        }
    }

    /// Whether a person reads it.
    pub(crate) fn is_terminal(&self) -> bool {
        self.out.get_ref().is_terminal()
    }

    /// Whether the reader has gone, as `head` does when it has seen enough.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Prints a line. That nobody reads it any more is no failure.
    pub(crate) fn line(&mut self, line: &str) -> io::Result<()> {
        let written = self
            .out
            .write_all(line.as_bytes())
            .and_then(|()| self.out.write_all(b"\n"));
        self.settle(written)
    }

    /// Prints what is gathered.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.settle(flushed)
    }

    /// Stdout as a file, where every byte counts and a reader that leaves early is a failure.
    pub(crate) fn file(&mut self) -> &mut dyn Write {
        &mut self.out
    }

    fn settle(&mut self, written: io::Result<()>) -> io::Result<()> {
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            written => written,
        }
    }
}

/// Text as a terminal may have it: what a model or a file said must not move the cursor, change the
/// colours or turn the direction of what else is printed.
pub(crate) fn sanitize(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\t' => clean.push(letter),
            _ if letter.is_control() || turns_text(letter) || ends_line(letter) => {
                clean.extend(letter.escape_unicode());
            }
            _ => clean.push(letter),
        }
    }
    clean
}

fn turns_text(letter: char) -> bool {
    matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// What some take for the end of a line.
fn ends_line(letter: char) -> bool {
    matches!(letter, '\u{2028}' | '\u{2029}')
}

/// The beginning of a text on one line.
pub(crate) fn one_line(text: &str, letters_max: usize) -> String {
    let clean = sanitize(text);
    let words = clean.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.chars().count() <= letters_max {
        return words;
    }
    let cut: String = words.chars().take(letters_max.saturating_sub(1)).collect();
    format!("{cut}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_move_a_terminal_is_spelled_out() {
        for (text, clean) in [
            ("plain\n\ttext ä 漢", "plain\n\ttext ä 漢"),
            ("\u{1b}[2J", "\\u{1b}[2J"),
            ("a\rb\u{7}", "a\\u{d}b\\u{7}"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("\u{202e}txt.exe", "\\u{202e}txt.exe"),
        ] {
            assert_eq!(sanitize(text), clean);
        }
    }

    #[test]
    fn a_line_is_one_line() {
        assert_eq!(one_line(" a\n b\tc ", 10), "a b c");
        assert_eq!(one_line("abcdef", 4), "abc…");
        assert_eq!(one_line("abcd", 4), "abcd");
    }
}
