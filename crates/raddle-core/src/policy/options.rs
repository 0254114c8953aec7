//! The options of programs, as lists of those that are known.

/// Position of an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValuePosition {
    /// In the same word, or absent.
    Here,
    /// In the next word.
    Next,
}

/// Whether a word is in a list separated by spaces.
pub(super) fn has(list: &str, word: &str) -> bool {
    list.split(' ').any(|it| it == word)
}

/// Returns the value position if a word consists of listed options. A trailing colon in the list
/// marks an option with a value, a question mark one with an optional value in the same word.
pub(super) fn option(list: &str, word: &str) -> Option<ValuePosition> {
    let flag = |name: &str| has(list, name);
    let joined = |name: &str| list.split(' ').any(|it| it.strip_suffix('?') == Some(name));
    let valued = |name: &str| list.split(' ').any(|it| it.strip_suffix(':') == Some(name));
    if word.starts_with("--") {
        let (name, has_value) = match word.split_once('=') {
            Some((name, _)) => (name, true),
            None => (word, false),
        };
        return match has_value {
            true => (flag(name) || valued(name)).then_some(ValuePosition::Here),
            false if flag(name) => Some(ValuePosition::Here),
            false => valued(name).then_some(ValuePosition::Next),
        };
    }
    if word == "-" {
        return flag(word).then_some(ValuePosition::Here);
    }
    if is_signed_number(word) {
        return has(list, "-n:").then_some(ValuePosition::Here);
    }
    let letters = &word[1..];
    for (at, letter) in letters.char_indices() {
        let name = format!("-{letter}");
        if valued(&name) {
            let is_last = at + letter.len_utf8() == letters.len();
            return Some(if is_last {
                ValuePosition::Next
            } else {
                ValuePosition::Here
            });
        }
        if joined(&name) {
            return Some(ValuePosition::Here);
        }
        if !flag(&name) {
            return None;
        }
    }
    Some(ValuePosition::Here)
}

/// Matches `-7`, and for `find` also `-10k`.
pub(super) fn is_signed_number(word: &str) -> bool {
    let digits = word[1..].trim_end_matches(|it: char| "ckMGw".contains(it));
    !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit())
}
