//! Commands that a sed script runs: by its command `e`, and by the flag `e` of `s`.

use super::programs::ProgramInvocations;

/// Returns the commands of a script. An invalid script may run any command.
pub(super) fn run_by(script: &str) -> ProgramInvocations {
    let mut run = ProgramInvocations::default();
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', ';', '{', '}', '\r']);
        let Some(after_address) = address(rest) else {
            run.any = true;
            return run;
        };
        let Some(sed_command) = after_address.chars().next() else {
            // Addresses without a command are invalid or unknown.
            run.any |= !rest.is_empty();
            return run;
        };
        rest = after_address;
        rest = &rest[sed_command.len_utf8()..];
        let line_end = rest.find('\n').unwrap_or(rest.len());
        match sed_command {
            '{' | '}' | ';' | '\n' => {}
            '#' | 'r' | 'R' | 'w' | 'W' => rest = &rest[line_end..],
            ':' | 'b' | 't' | 'T' | 'v' => {
                rest = &rest[rest.find(['\n', ';', '}']).unwrap_or(rest.len())..];
            }
            'a' | 'i' | 'c' => {
                let mut end = line_end;
                while rest[..end].ends_with('\\') && end < rest.len() {
                    let next = &rest[end + 1..];
                    end += 1 + next.find('\n').unwrap_or(next.len());
                }
                rest = &rest[end..];
            }
            'e' => {
                match rest[..line_end].trim() {
                    "" => run.any = true,
                    line => run.scripts.push(line.to_owned()),
                }
                rest = &rest[line_end..];
            }
            's' | 'y' => {
                let Some(flags) = two_parts(rest) else {
                    run.any = true;
                    return run;
                };
                let end = flags
                    .find(['\n', ';', '}', '#', 'w'])
                    .unwrap_or(flags.len());
                run.any |= sed_command == 's' && flags[..end].contains('e');
                rest = match flags[end..].starts_with('w') {
                    true => &flags[flags.find('\n').unwrap_or(flags.len())..],
                    false => &flags[end..],
                };
            }
            'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'l' | 'L' | 'n' | 'N' | 'p' | 'P' | 'q' | 'Q'
            | 'x' | 'z' | 'F' | '=' => {
                rest = rest.trim_start_matches(|it: char| it == ' ' || it.is_ascii_digit());
            }
            _ => {
                run.any = true;
                return run;
            }
        }
    }
}

/// Returns the text after the addresses of a command.
fn address(script: &str) -> Option<&str> {
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',', '!', '~', '+', '$']);
        let is_number = |it: char| it.is_ascii_digit() || it == raddle_core::policy::UNKNOWN;
        let after_number = rest.trim_start_matches(is_number);
        if after_number.len() < rest.len() {
            rest = after_number;
            continue;
        }
        let (delimiter, inner) = match rest.chars().next() {
            Some('/') => ('/', &rest[1..]),
            Some('\\') => {
                let delimiter = rest[1..].chars().next()?;
                (delimiter, &rest[1 + delimiter.len_utf8()..])
            }
            _ => return Some(rest),
        };
        rest = part(inner, delimiter)?.trim_start_matches(['I', 'M']);
    }
}

/// Returns the text after `/…/…/`.
fn two_parts(rest: &str) -> Option<&str> {
    let delimiter = rest.chars().next()?;
    let replacement = part(&rest[delimiter.len_utf8()..], delimiter)?;
    let mut is_escaped = false;
    for (at, letter) in replacement.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            letter if letter == delimiter => return Some(&replacement[at + letter.len_utf8()..]),
            letter => is_escaped = letter == '\\',
        }
    }
    None
}

/// Returns the text after the end of a pattern. A delimiter in brackets does not count.
fn part(text: &str, delimiter: char) -> Option<&str> {
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            letter if letter == delimiter => return Some(&text[at + letter.len_utf8()..]),
            '\\' => drop(letters.next()),
            '[' => {
                let length = brackets(&text[at + 1..])?;
                return part(&text[at + 1 + length..], delimiter);
            }
            _ => {}
        }
    }
    None
}

/// Returns the length of the text after `[`, including the `]` that closes it.
fn brackets(text: &str) -> Option<usize> {
    let mut at = usize::from(text.starts_with('^'));
    at += usize::from(text[at..].starts_with(']'));
    loop {
        let rest = &text[at..];
        let class = ["[:", "[.", "[="]
            .into_iter()
            .find(|it| rest.starts_with(it));
        match class {
            Some(open) => {
                let close = format!("{}]", &open[1..]);
                at += 2 + rest[2..].find(&close)? + 2;
            }
            None if rest.starts_with(']') => return Some(at + 1),
            None => at += rest.chars().next()?.len_utf8(),
        }
    }
}
