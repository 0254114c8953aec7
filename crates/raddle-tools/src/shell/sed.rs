//! Commands that a script for sed runs: its command `e`, and the flag `e` of `s`.

use super::programs::ProgramInvocations;

/// The commands of a script. A script that cannot be read may run anything.
pub(super) fn run_by(script: &str) -> ProgramInvocations {
    let mut run = ProgramInvocations::default();
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', ';', '{', '}', '\r']);
        let Some(behind) = address(rest) else {
            run.any = true;
            return run;
        };
        let Some(order) = behind.chars().next() else {
            // Lines without a command are none, or are not known.
            run.any |= !rest.is_empty();
            return run;
        };
        rest = behind;
        rest = &rest[order.len_utf8()..];
        let line_end = rest.find('\n').unwrap_or(rest.len());
        match order {
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
                let Some(behind) = two_parts(rest) else {
                    run.any = true;
                    return run;
                };
                let end = behind
                    .find(['\n', ';', '}', '#', 'w'])
                    .unwrap_or(behind.len());
                run.any |= order == 's' && behind[..end].contains('e');
                rest = match behind[end..].starts_with('w') {
                    true => &behind[behind.find('\n').unwrap_or(behind.len())..],
                    false => &behind[end..],
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

/// The text behind the addresses of a command.
fn address(script: &str) -> Option<&str> {
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',', '!', '~', '+', '$']);
        let is_number = |it: char| it.is_ascii_digit() || it == raddle_core::policy::UNKNOWN;
        let behind = rest.trim_start_matches(is_number);
        if behind.len() < rest.len() {
            rest = behind;
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

/// The text behind `/…/…/`.
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

/// The text behind the end of a pattern. A delimiter in brackets is none.
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

/// The length of what stands behind `[` up to and with the `]` that closes it.
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
