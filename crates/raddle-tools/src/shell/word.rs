//! Expands a word of a script as a shell does. Parts that are not known before it runs become
//! [`UNKNOWN`].

use raddle_core::policy::UNKNOWN;
use tree_sitter::Node;

use super::tree::children;

/// Returns the word of a node, with [`UNKNOWN`] for the parts that depend on the execution.
pub(super) fn word(node: Node<'_>, text: &str) -> String {
    let mut out = String::new();
    add(node, text, &mut out);
    out
}

fn add(node: Node<'_>, text: &str, out: &mut String) {
    let raw = &text[node.byte_range()];
    match node.kind() {
        // The one common word with braces that a shell leaves as it is.
        _ if raw == "{}" => out.push_str(raw),
        "word" => unquoted(raw, out),
        "raw_string" => out.push_str(raw.trim_matches('\'')),
        "ansi_c_string" => match raw.strip_prefix("$'").and_then(|it| it.strip_suffix('\'')) {
            Some(inner) => ansi(inner, out),
            None => out.push(UNKNOWN),
        },
        "string" => string(node, text, out),
        "translated_string" | "command_name" => {
            for child in children(node).into_iter().filter(Node::is_named) {
                add(child, text, out);
            }
        }
        "concatenation" => match literal(raw) {
            Some(literal) => out.push_str(&literal),
            None => parts(node, text, out, unquoted),
        },
        "process_substitution" => out.extend(["/dev/fd/", &UNKNOWN.to_string()]),
        "number" if node.named_child_count() == 0 => out.push_str(raw),
        _ if !node.is_named() => out.push_str(raw),
        _ => out.push(UNKNOWN),
    }
}

/// Expands a text without the parser; returns `None` if it depends on the execution.
pub(super) fn literal(raw: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = raw;
    let mut is_quoted = false;
    while let Some(letter) = rest.chars().next() {
        let after = &rest[letter.len_utf8()..];
        let next = after.chars().next();
        rest = after;
        match letter {
            '\\' => {
                let next = next?;
                rest = &after[next.len_utf8()..];
                match next {
                    '\n' => {}
                    next if is_quoted && !"\"\\$`".contains(next) => out.extend(['\\', next]),
                    next => out.push(next),
                }
            }
            '"' => is_quoted = !is_quoted,
            '\'' if !is_quoted => {
                let (inner, after_quote) = after.split_once('\'')?;
                out.push_str(inner);
                rest = after_quote;
            }
            '$' if next == Some('\'') && !is_quoted => {
                let length = ansi_length(&after[1..])?;
                ansi(&after[1..=length], &mut out);
                rest = &after[length + 2..];
            }
            // Followed by a name, or by its beginning; before a quote, versions of shells differ.
            '$' if next.is_some_and(|it| {
                it.is_alphanumeric() || "_*@#?-$!{([".contains(it) || it == '"' && !is_quoted
            }) =>
            {
                return None;
            }
            '`' => return None,
            '{' if next == Some('}') && !is_quoted => {
                out.push_str("{}");
                rest = &after[1..];
            }
            '*' | '?' | '[' | '{' | '}' | '(' | ')' if !is_quoted => return None,
            '~' if rest.len() + 1 == raw.len() => return None,
            letter => out.push(letter),
        }
    }
    (!is_quoted && !out.contains(UNKNOWN)).then_some(out)
}

/// Returns the number of bytes before the quote that ends `$'…'`.
fn ansi_length(rest: &str) -> Option<usize> {
    let mut is_escaped = false;
    rest.find(|it: char| {
        let is_end = it == '\'' && !is_escaped;
        is_escaped = it == '\\' && !is_escaped;
        is_end
    })
}

/// Expands the text between double quotes.
fn string(node: Node<'_>, text: &str, out: &mut String) {
    let range = node.byte_range();
    let inner = text[range.clone()].trim_matches('"');
    if node.named_child_count() == 0 {
        return double_quoted(inner, out);
    }
    let mut at = range.start + 1;
    for child in children(node).into_iter().filter(Node::is_named) {
        // The parser omits some text between its parts.
        double_quoted(gap(text, at, child.start_byte()), out);
        match child.kind() {
            "string_content" => double_quoted(&text[child.byte_range()], out),
            _ => out.push(UNKNOWN),
        }
        at = child.end_byte();
    }
    double_quoted(gap(text, at, range.end.saturating_sub(1)), out);
}

/// Expands adjacent parts, and the text between them that the parser omits.
fn parts(node: Node<'_>, text: &str, out: &mut String, between: fn(&str, &mut String)) {
    let mut at = node.start_byte();
    for child in children(node) {
        between(gap(text, at, child.start_byte()), out);
        add(child, text, out);
        at = child.end_byte();
    }
    between(gap(text, at, node.end_byte()), out);
}

fn gap(text: &str, from: usize, to: usize) -> &str {
    text.get(from..to).unwrap_or_default()
}

fn unquoted(raw: &str, out: &mut String) {
    let mut letters = raw.chars();
    let mut is_first = true;
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('\n') | None => {}
                Some(next) => out.push(next),
            },
            // Patterns, expansions, or the user's home.
            '*' | '?' | '[' | '{' | '}' | '$' | '`' | '(' | ')' => out.push(UNKNOWN),
            '~' if is_first => out.push(UNKNOWN),
            letter => out.push(letter),
        }
        is_first = false;
    }
}

fn double_quoted(raw: &str, out: &mut String) {
    let mut letters = raw.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            out.push(letter);
            continue;
        }
        match letters.next() {
            Some(next @ ('"' | '\\' | '$' | '`')) => out.push(next),
            Some('\n') | None => {}
            Some(next) => out.extend(['\\', next]),
        }
    }
}

/// Expands the text in `$'…'`.
fn ansi(raw: &str, out: &mut String) {
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let mut letters = rest[at + 1..].chars();
        let Some(letter) = letters.next() else {
            return;
        };
        rest = letters.as_str();
        let plain = match letter {
            'a' => '\x07',
            'b' => '\x08',
            'e' | 'E' => '\x1b',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            '\\' | '\'' | '"' | '?' => letter,
            'x' => number(&mut rest, 2, 16),
            'u' => number(&mut rest, 4, 16),
            'U' => number(&mut rest, 8, 16),
            '0'..='7' => {
                rest = &raw[raw.len() - rest.len() - 1..];
                number(&mut rest, 3, 8)
            }
            _ => UNKNOWN,
        };
        out.push(plain);
    }
    out.push_str(rest);
}

/// Returns the character with the number that comes next, or [`UNKNOWN`] if the number is not a
/// complete ASCII character.
fn number(rest: &mut &str, digits_max: usize, radix: u32) -> char {
    let is_digit = |it: &char| it.is_digit(radix);
    let digits: String = rest.chars().take(digits_max).take_while(is_digit).collect();
    *rest = &rest[digits.len()..];
    let value = u32::from_str_radix(&digits, radix).ok();
    let letter = value.and_then(char::from_u32);
    letter.filter(char::is_ascii).unwrap_or(UNKNOWN)
}
