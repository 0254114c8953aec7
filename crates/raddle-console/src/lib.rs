//! Output of commands: the writer of stdout, lines on stderr, and text made safe for a terminal.
//!
//! Commands that print do not serve the protocol, so only here stdout is free.
//!
//! Below: nothing of Raddle. Above: `raddle-exec` and `raddle`.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

/// The size of the output buffer.
const BUFFER_BYTES: usize = 64 << 10;

/// The writer of stdout.
#[derive(Debug)]
pub struct Printer {
    out: BufWriter<StdoutLock<'static>>,
    closed: bool,
}

impl Default for Printer {
    fn default() -> Self {
        Self::new()
    }
}

impl Printer {
    /// Locks stdout until it is dropped.
    pub fn new() -> Self {
        Self {
            out: BufWriter::with_capacity(BUFFER_BYTES, io::stdout().lock()),
            closed: false,
        }
    }

    /// Whether stdout is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.out.get_ref().is_terminal()
    }

    /// Whether the reader has closed the pipe, as `head` does.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Prints a line. A closed pipe is not an error.
    pub fn line(&mut self, line: &str) -> io::Result<()> {
        let written = self
            .out
            .write_all(line.as_bytes())
            .and_then(|()| self.out.write_all(b"\n"));
        self.settle(written)
    }

    /// Writes the buffered output.
    pub fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.settle(flushed)
    }

    /// Stdout as a file: a closed pipe is an error, since every byte counts.
    pub fn file(&mut self) -> &mut dyn Write {
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

/// Whether text on a terminal may have colours: not if `NO_COLOR` is set and not empty.
pub fn allows_colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty())
}

/// Prints a line for the user on stderr. Sanitized, because it may quote files and vendors.
pub fn print_line(line: &str) {
    // A closed stderr is no reason to fail.
    let _ = writeln!(io::stderr(), "{}", sanitize(line));
}

/// Escapes characters that could move the cursor, change the colours or reverse the text direction
/// of the terminal. Text of a model or a file may contain them.
pub fn sanitize(text: &str) -> String {
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

/// Whether some programs treat the character as the end of a line.
fn ends_line(letter: char) -> bool {
    matches!(letter, '\u{2028}' | '\u{2029}')
}

/// Joins a text into one line and truncates it.
pub fn one_line(text: &str, letters_max: usize) -> String {
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
    fn control_characters_are_escaped() {
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
