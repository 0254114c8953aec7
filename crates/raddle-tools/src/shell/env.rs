//! Splits the value of `env -S`.

use raddle_core::policy::UNKNOWN;

/// Returns the words of a value; `None` if versions of env do not agree on them.
pub(super) fn split(value: &str) -> Option<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = value.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\t' | '\n' | '\u{b}' | '\u{c}' | '\r' if quote.is_none() => {
                words.extend(word.take());
            }
            '#' if quote.is_none() && word.is_none() => break,
            '\'' | '"' if quote == Some(letter) => quote = None,
            '\'' | '"' if quote.is_none() => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            '$' if quote != Some('\'') => {
                // The value of a variable, in one word.
                letters.by_ref().find(|it| *it == '}');
                word.get_or_insert_default().push(UNKNOWN);
            }
            '\\' => match letters.next()? {
                it @ ('\\' | '\'') if quote == Some('\'') => word.get_or_insert_default().push(it),
                it if quote == Some('\'') => word.get_or_insert_default().extend(['\\', it]),
                '_' if quote.is_none() => words.extend(word.take()),
                '_' => word.get_or_insert_default().push(' '),
                'c' => break,
                it @ ('"' | '#' | '$' | '\'' | '\\') => word.get_or_insert_default().push(it),
                _ => return None,
            },
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    Some(words)
}
