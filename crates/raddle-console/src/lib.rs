//! Output of commands: the writer of stdout, lines on stderr, and text made safe for a terminal.
//!
//! Commands that print do not serve the protocol, so only here stdout is free.
//!
//! Below: nothing of Raddle. Above: `raddle-plugin`, `raddle-exec` and `raddle`.

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

/// Prints lines on stdout. Sanitized, because they may quote files and foreign programs.
pub fn print_lines(lines: impl IntoIterator<Item = String>) -> io::Result<()> {
    let mut printer = Printer::new();
    for line in lines {
        printer.line(&sanitize(&line))?;
    }
    printer.flush()
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
        match is_safe(letter) {
            true => clean.push(letter),
            false => clean.extend(letter.escape_unicode()),
        }
    }
    clean
}

/// Whether a terminal shows a character as it is. Control characters, marks of direction and the
/// line ends of Unicode are not safe; a tab and a line feed are.
fn is_safe(letter: char) -> bool {
    match letter {
        '\n' | '\t' => true,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' => false,
        '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}' => false,
        _ => !letter.is_control(),
    }
}

/// Whether a character may be shown in a text of a foreign program, such as an MCP server: a
/// terminal shows it as it is, and it is not invisible. Emoji and some scripts need invisible
/// characters, so other texts may contain them.
pub fn is_plain(letter: char) -> bool {
    let is_invisible = matches!(
        letter,
        '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}'
    );
    is_safe(letter) && !is_invisible
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
            ("a\u{2028}b", "a\\u{2028}b"),
            // One symbol of two.
            ("👩\u{200d}🔬", "👩\u{200d}🔬"),
        ] {
            assert_eq!(sanitize(text), clean);
        }
    }

    #[test]
    fn plain_characters_are_visible_and_safe() {
        for letter in ['a', ' ', '\n', '\t', 'ä', '漢', '👩'] {
            assert!(is_plain(letter), "{letter:?}");
        }
        let unsafe_letters = "\u{1b}\r\u{7}\u{9b}\u{61c}\u{200e}\u{202e}\u{2028}\u{2066}";
        let invisible_letters = "\u{200b}\u{200c}\u{200d}\u{2060}\u{feff}\u{e0000}\u{e007f}";
        for letter in unsafe_letters.chars().chain(invisible_letters.chars()) {
            assert!(!is_plain(letter), "{letter:?}");
        }
    }

    #[test]
    fn a_line_is_one_line() {
        assert_eq!(one_line(" a\n b\tc ", 10), "a b c");
        assert_eq!(one_line("abcdef", 4), "abc…");
        assert_eq!(one_line("abcd", 4), "abcd");
    }
}
