//! The screen of a terminal, of which each letter has the time at which it appears.
//!
//! It knows the sequences that `raddle exec` writes: styles, carriage return and erasing a line.
//! Anything else is an error, so that a new sequence is noticed. The status line, which depends on
//! the speed of the machine, is erased again: only the letters that stay are in the recording.

use anyhow::{Result, bail};

/// Time for a typed letter, and between two lines of output.
const LETTER_MS: u64 = 45;
const LINE_MS: u64 = 90;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Plain,
    Dim,
    Bold,
    Red,
    Green,
    Yellow,
    /// Text of the user.
    Typed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    pub letter: char,
    pub style: Style,
    pub shown_at_ms: u64,
}

pub struct Terminal {
    columns: usize,
    rows: Vec<Vec<Cell>>,
    /// Position of the cursor in the last row.
    column: usize,
    style: Style,
    clock_ms: u64,
}

impl Terminal {
    pub fn new(columns: usize) -> Self {
        Self {
            columns,
            rows: vec![Vec::new()],
            column: 0,
            style: Style::Plain,
            clock_ms: 0,
        }
    }

    /// Returns the rows as they are at the end.
    pub fn rows(&self) -> &[Vec<Cell>] {
        &self.rows
    }

    /// Returns the text of the rows at the end.
    pub fn text(&self) -> String {
        let rows = self.rows.iter();
        let lines: Vec<String> = rows
            .map(|row| row.iter().map(|cell| cell.letter).collect())
            .collect();
        lines.join("\n")
    }

    pub fn wait(&mut self, milliseconds: u64) {
        self.clock_ms += milliseconds;
    }

    /// Shows letters that the user types, one after another.
    pub fn type_text(&mut self, text: &str) {
        for letter in text.chars() {
            self.clock_ms += LETTER_MS;
            self.put(letter, Style::Typed);
        }
    }

    /// Ends the line that the user typed.
    pub fn enter(&mut self) {
        self.rows.push(Vec::new());
        self.column = 0;
    }

    /// Shows output of a program.
    pub fn output(&mut self, text: &str) -> Result<()> {
        let mut rest = text;
        while let Some(letter) = rest.chars().next() {
            rest = &rest[letter.len_utf8()..];
            match letter {
                '\r' => self.column = 0,
                '\n' => {
                    self.enter();
                    self.clock_ms += LINE_MS;
                }
                '\u{1b}' => rest = self.escape(rest)?,
                _ if letter.is_control() => bail!("unknown control character {letter:?}"),
                _ => self.put(letter, self.style),
            }
        }
        Ok(())
    }

    /// Handles an escape sequence, and returns the text after it.
    fn escape<'a>(&mut self, text: &'a str) -> Result<&'a str> {
        let end = text.find(|it: char| it.is_ascii_alphabetic());
        let Some(end) = end else {
            bail!("unfinished escape sequence {text:?}");
        };
        let (sequence, rest) = text.split_at(end + 1);
        self.style = match sequence {
            "[0m" => Style::Plain,
            "[1m" => Style::Bold,
            "[2m" => Style::Dim,
            "[31m" => Style::Red,
            "[32m" => Style::Green,
            "[33m" => Style::Yellow,
            "[2K" => {
                if let Some(row) = self.rows.last_mut() {
                    row.clear();
                }
                self.style
            }
            _ => bail!("unknown escape sequence {sequence:?}"),
        };
        Ok(rest)
    }

    fn put(&mut self, letter: char, style: Style) {
        if self.column == self.columns {
            self.enter();
        }
        let cell = |letter, style| Cell {
            letter,
            style,
            shown_at_ms: self.clock_ms,
        };
        let (space, cell) = (cell(' ', Style::Plain), cell(letter, style));
        if let Some(row) = self.rows.last_mut() {
            if row.len() <= self.column {
                row.resize(self.column + 1, space);
            }
            row[self.column] = cell;
        }
        self.column += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Terminal {
        let mut terminal = Terminal::new(10);
        terminal.output(text).expect("known sequences");
        terminal
    }

    fn check(text: &str, expected: &str) {
        assert_eq!(shown(text).text(), expected, "{text:?}");
    }

    #[test]
    fn bytes_become_rows() {
        check("", "");
        check("one\r\ntwo", "one\ntwo");
        check("a file\nits end\n", "a file\nits end\n");
        check("1234567890ab", "1234567890\nab");
        check("  │ …", "  │ …");
        check("over\rin", "iner");
    }

    #[test]
    fn erased_status_line_leaves_no_trace() {
        let status = "\r\u{1b}[2K\u{1b}[2m   0 s\u{1b}[0m";
        let with = format!("one\r\n{status}{status}\r\u{1b}[2Ktwo\r\n{status}\r\u{1b}[2K");
        let (with, without) = (shown(&with), shown("one\r\ntwo\r\n"));
        assert_eq!(with.rows(), without.rows());
        assert_eq!(with.clock_ms, without.clock_ms);
    }

    #[test]
    fn letters_have_styles() {
        let terminal =
            shown("a\u{1b}[1mb\u{1b}[0m\u{1b}[2mc\u{1b}[31md\u{1b}[32me\u{1b}[33mf\u{1b}[0mg");
        let styles: Vec<Style> = terminal.rows()[0].iter().map(|it| it.style).collect();
        assert_eq!(
            styles,
            [
                Style::Plain,
                Style::Bold,
                Style::Dim,
                Style::Red,
                Style::Green,
                Style::Yellow,
                Style::Plain
            ]
        );
    }

    #[test]
    fn lines_and_typed_letters_take_their_time() {
        let mut terminal = shown("a\nb");
        terminal.wait(1000);
        terminal.type_text("yz");
        terminal.enter();
        terminal.output("c").expect("a letter");
        let times: Vec<(char, u64)> = terminal
            .rows()
            .iter()
            .flatten()
            .map(|it| (it.letter, it.shown_at_ms))
            .collect();
        let typed = LINE_MS + 1000;
        assert_eq!(
            times,
            [
                ('a', 0),
                ('b', LINE_MS),
                ('y', typed + LETTER_MS),
                ('z', typed + 2 * LETTER_MS),
                ('c', typed + 2 * LETTER_MS)
            ]
        );
    }

    #[test]
    fn unknown_sequences_are_errors() {
        for text in ["\u{1b}[2J", "\u{1b}[35m", "\u{1b}[", "\u{7}", "\t"] {
            assert!(Terminal::new(10).output(text).is_err(), "{text:?}");
        }
    }
}
