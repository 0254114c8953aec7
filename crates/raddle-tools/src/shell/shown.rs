//! A command line as people may read it before they say yes: nothing in it hides or moves anything.

/// The most that is shown of a line.
const SHOWN_BYTES_MAX: usize = 16 * 1024;

/// The line with everything made visible that a terminal or a page would act on instead of showing it.
pub fn shown(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for (at, letter) in line.char_indices() {
        if out.len() >= SHOWN_BYTES_MAX {
            out.push_str(&format!("… ({} more bytes)", line.len() - at));
            break;
        }
        match letter {
            '\n' | '\t' => out.push(letter),
            it if is_hidden(it) => out.push_str(&format!("\\u{{{:x}}}", it as u32)),
            it => out.push(it),
        }
    }
    out
}

/// Control letters, letters without width, those that turn the direction of writing, and spaces that look
/// like the usual one or like none.
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
