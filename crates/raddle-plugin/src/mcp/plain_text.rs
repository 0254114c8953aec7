//! Text of servers for people, without escape sequences of terminals.

use std::iter::Peekable;
use std::str::Chars;

use raddle_console::is_plain;

const ESCAPE: char = '\u{1b}';
const BELL: char = '\u{7}';
/// Control sequence introducer, as one character.
const CSI: char = '\u{9b}';
/// Operating system command, as one character.
const OSC: char = '\u{9d}';
/// String terminator, as one character.
const TERMINATOR: char = '\u{9c}';

/// Returns a text on one line and without escape sequences, shortened to this many bytes.
pub(crate) fn plain_text(text: &str, bytes_max: usize) -> String {
    let mut plain = String::new();
    let mut rest = text.chars().peekable();
    while let Some(letter) = rest.next() {
        match letter {
            ESCAPE => skip_escape(&mut rest),
            CSI => skip_control_sequence(&mut rest),
            OSC => skip_string(&mut rest),
            letter if letter.is_whitespace() => {
                if !plain.is_empty() && !plain.ends_with(' ') {
                    plain.push(' ');
                }
            }
            letter if !is_plain(letter) => {}
            letter if plain.len() + letter.len_utf8() > bytes_max => break,
            letter => plain.push(letter),
        }
    }
    plain.truncate(plain.trim_end().len());
    plain
}

/// Skips an escape sequence, after its first character.
fn skip_escape(rest: &mut Peekable<Chars<'_>>) {
    match rest.next() {
        Some('[') => skip_control_sequence(rest),
        Some(']' | 'P' | 'X' | '^' | '_') => skip_string(rest),
        // A sequence of intermediate bytes and a final one.
        Some(' '..='/') => {
            while rest.next_if(|it| matches!(it, ' '..='/')).is_some() {}
            rest.next_if(|it| matches!(it, '0'..='~'));
        }
        _ => {}
    }
}

/// Skips the parameters and the final byte of a control sequence.
fn skip_control_sequence(rest: &mut Peekable<Chars<'_>>) {
    while rest.next_if(|it| matches!(it, ' '..='?')).is_some() {}
    rest.next_if(|it| matches!(it, '@'..='~'));
}

/// Skips a string for the terminal, such as a title or a link, with its end.
fn skip_string(rest: &mut Peekable<Chars<'_>>) {
    while let Some(letter) = rest.next() {
        match letter {
            BELL | TERMINATOR => return,
            ESCAPE => {
                rest.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::plain_text;

    #[test]
    fn escape_sequences_and_controls_are_removed() {
        for (text, expected) in [
            ("half done", "half done"),
            ("\u{1b}[1;31mred\u{1b}[0m", "red"),
            ("\u{9b}2Jclear", "clear"),
            ("\u{1b}]0;title\u{7}a", "a"),
            ("\u{1b}]8;;http://h\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}(Bset", "set"),
            ("\u{1b}ccleared", "cleared"),
            ("a\r\nb\tc\u{8}", "a b c"),
            ("  a  ", "a"),
            ("\u{202e}txt\u{2066}", "txt"),
            ("in\u{200b}vis\u{2060}ible\u{feff}\u{e0041}", "invisible"),
            ("\u{1b}[31", ""),
            ("\u{1b}]never ends", ""),
            ("ends with \u{1b}", "ends with"),
            ("äöü", "äöü"),
        ] {
            assert_eq!(plain_text(text, 100), expected, "{text:?}");
        }
        assert_eq!(plain_text("äöü", 5), "äö");
        assert_eq!(plain_text("a b", 2), "a");
    }
}
