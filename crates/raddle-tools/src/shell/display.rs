//! Makes command lines safe to display for approval: no character hides or moves others.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// Limit: a command, or text for its stdin, as shown in an approval request; beyond it, the call is
/// rejected, and the model is notified.
const SHOWN_BYTES_MAX: usize = 256 * 1024;

/// Length of the beginning and of the end that are shown of a longer line.
const END_BYTES: usize = 4 * 1024;

/// Escapes every character that a terminal or a page would interpret. A line that is too long is
/// shown by its beginning, its end and its SHA-256.
pub fn display_line(line: &str) -> String {
    if is_shown_whole(line) {
        return visible(line);
    }
    let (head, tail) = (
        line.floor_char_boundary(END_BYTES),
        line.ceil_char_boundary(line.len() - END_BYTES),
    );
    format!(
        "{}\n… ({} more bytes; the SHA-256 of all {} is {}) …\n{}",
        visible(&line[..head]),
        tail - head,
        line.len(),
        HEXLOWER.encode(&Sha256::digest(line)),
        visible(&line[tail..])
    )
}

/// Whether [`display_line`] shows the line in full.
pub fn is_shown_whole(line: &str) -> bool {
    let mut capacity = SHOWN_BYTES_MAX;
    line.chars().all(|letter| {
        let bytes = match letter {
            '\n' | '\t' => 1,
            it if is_hidden(it) => escaped(it).len(),
            it => it.len_utf8(),
        };
        let fits = bytes <= capacity;
        capacity = capacity.saturating_sub(bytes);
        fits
    })
}

fn visible(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for letter in line.chars() {
        match letter {
            '\n' | '\t' => out.push(letter),
            it if is_hidden(it) => out.push_str(&escaped(it)),
            it => out.push(it),
        }
    }
    out
}

fn escaped(letter: char) -> String {
    format!("\\u{{{:x}}}", letter as u32)
}

/// Whether it is a control character, has no width, changes the direction of writing, or is an
/// unusual space.
fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || letter.is_whitespace() && letter != ' '
        || matches!(letter,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}
