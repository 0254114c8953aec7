//! Finds the commands that an awk program runs.

use raddle_core::policy::UNKNOWN;

use super::programs::ProgramInvocations;

/// Keywords after which a slash begins a pattern instead of a division.
const WORDS: &str = "case do else exit getline in print printf return";

/// Returns the commands of a program. Pipes and `system` in its strings and patterns do not count.
pub(super) fn run_by(program: &str) -> ProgramInvocations {
    let mut run = ProgramInvocations::default();
    let (mut strings, mut runs) = (Vec::new(), program.contains(UNKNOWN));
    let mut rest = program;
    // Whether a slash that comes next begins a pattern.
    let mut may_be_pattern = true;
    while let Some(letter) = rest.chars().next() {
        let mut length = letter.len_utf8();
        match letter {
            '"' => {
                let Some(end) = closed(&rest[1..], '"') else {
                    runs = true;
                    break;
                };
                strings.push(unescaped(&rest[1..=end]));
                length = end + 2;
                may_be_pattern = false;
            }
            '/' if may_be_pattern => match closed(&rest[1..], '/') {
                Some(end) if !rest[1..=end].contains('\n') => {
                    length = end + 2;
                    may_be_pattern = false;
                }
                _ => {}
            },
            '#' => length = rest.find('\n').unwrap_or(rest.len()),
            '|' if rest.starts_with("||") => {
                length = 2;
                may_be_pattern = true;
            }
            '|' | '@' | '\\' if letter != '\\' || !rest.starts_with("\\\n") => runs = true,
            '+' | '-' if rest[1..].starts_with(letter) => {
                // A slash after it may be either.
                length = 2;
                let rest_after = rest[2..].trim_start();
                let is_odd = |it: &str| it.contains(['|', '@']) || it.contains("system");
                runs |= rest_after.starts_with('/') && is_odd(rest_after);
                may_be_pattern = true;
            }
            ' ' | '\t' | '\n' | '\r' => may_be_pattern |= letter == '\n',
            ')' | ']' | '$' => may_be_pattern = false,
            letter if letter.is_ascii_alphanumeric() || letter == '_' => {
                let is_part = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '.';
                length = rest.find(|it| !is_part(it)).unwrap_or(rest.len());
                let word = &rest[..length];
                runs |= word == "system";
                may_be_pattern = WORDS.split(' ').any(|it| it == word);
            }
            _ => may_be_pattern = true,
        }
        rest = &rest[length..];
    }
    run.any = runs;
    if runs {
        run.scripts = strings;
    }
    run
}

/// Returns the length of a string or pattern, up to its end mark.
fn closed(rest: &str, end: char) -> Option<usize> {
    let mut is_escaped = false;
    let mut in_brackets = false;
    for (at, letter) in rest.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '[' if end == '/' => in_brackets = true,
            ']' => in_brackets = false,
            // Versions of awk do not agree on whether a slash in brackets ends a pattern.
            letter if letter == end && in_brackets => return None,
            letter if letter == end => return Some(at),
            _ => {}
        }
    }
    None
}

fn unescaped(raw: &str) -> String {
    let mut out = String::new();
    let mut letters = raw.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some(it @ ('"' | '\\' | '/')) => out.push(it),
                Some('\n') | None => {}
                Some(_) => out.push(UNKNOWN),
            },
            letter => out.push(letter),
        }
    }
    out
}
