//! Patterns of a conversation's lines: JSON with names to bind and parts to skip.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

/// Matches any value, or the rest of an object or a list.
const REST: &str = "…";

/// The values that the names of a conversation are bound to.
#[derive(Debug, Default)]
pub struct Bindings(BTreeMap<String, Value>);

impl Bindings {
    pub fn set(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    /// Returns the text with every name replaced by its value.
    pub fn fill_text(&self, text: &str) -> Result<String, String> {
        let mut filled = String::new();
        for part in parts(text) {
            match part {
                PatternPart::Text(text) => filled.push_str(text),
                PatternPart::Name(name) => filled.push_str(&plain(self.get(name)?)),
            }
        }
        Ok(filled)
    }

    /// Returns the value with every name in its strings replaced. A string that is one name becomes
    /// the value itself, so that a number stays a number.
    pub fn fill(&self, value: &Value) -> Result<Value, String> {
        Ok(match value {
            Value::String(text) => match whole_name(text) {
                Some(name) => self.get(name)?.clone(),
                None => self.fill_text(text)?.into(),
            },
            Value::Array(values) => values
                .iter()
                .map(|value| self.fill(value))
                .collect::<Result<_, _>>()?,
            Value::Object(members) => members
                .iter()
                .map(|(key, value)| Ok((self.fill_text(key)?, self.fill(value)?)))
                .collect::<Result<_, String>>()?,
            _ => value.clone(),
        })
    }

    fn get(&self, name: &str) -> Result<&Value, String> {
        self.0
            .get(name)
            .ok_or_else(|| format!("${name} stands for nothing yet"))
    }
}

/// Parses JSON in which a bare `…` may stand for a value, or for the rest of an object or a list.
pub fn read(text: &str) -> Result<Value, String> {
    let mut json = String::new();
    let mut open = Vec::new();
    let mut in_text = false;
    let mut escaped = false;
    let mut previous = ' ';
    for letter in text.chars() {
        match letter {
            _ if in_text => {
                in_text = escaped || letter != '"';
                escaped = letter == '\\' && !escaped;
            }
            '"' => in_text = true,
            '{' | '[' => open.push(letter),
            '}' | ']' => drop(open.pop()),
            '…' => {
                let member = previous != ':' && open.last() == Some(&'{');
                let _ = write!(json, "\"{REST}\"{}", if member { ":0" } else { "" });
                previous = letter;
                continue;
            }
            _ => {}
        }
        if !letter.is_whitespace() {
            previous = letter;
        }
        json.push(letter);
    }
    serde_json::from_str(&json).map_err(|error| format!("not a pattern: {error}"))
}

/// Matches a value against a pattern. Names that occur for the first time are bound; the error says
/// where the two differ.
pub fn check(pattern: &Value, actual: &Value, names: &mut Bindings) -> Result<(), String> {
    check_at("", pattern, actual, names)
}

fn check_at(
    path: &str,
    pattern: &Value,
    actual: &Value,
    names: &mut Bindings,
) -> Result<(), String> {
    let differ = || {
        let path = if path.is_empty() { "the message" } else { path };
        Err(format!("{path} must be {pattern} but is {actual}"))
    };
    match (pattern, actual) {
        (Value::String(text), _) if text == REST => Ok(()),
        (Value::String(text), _) if whole_name(text).is_some() => {
            let name = whole_name(text).unwrap_or_default();
            match names.0.get(name) {
                Some(bound) if bound == actual => Ok(()),
                Some(bound) => Err(format!("{path} must be ${name} = {bound} but is {actual}")),
                None => {
                    names.set(name, actual.clone());
                    Ok(())
                }
            }
        }
        (Value::String(text), Value::String(actual)) if text.contains('$') => {
            check_text(text, actual, names).or_else(|_| differ())
        }
        (Value::Array(expected), Value::Array(values)) => {
            let rest = expected.last().is_some_and(|last| last == REST);
            let expected = &expected[..expected.len() - usize::from(rest)];
            if values.len() < expected.len() || (!rest && values.len() > expected.len()) {
                return differ();
            }
            for (index, (pattern, value)) in expected.iter().zip(values).enumerate() {
                check_at(&format!("{path}[{index}]"), pattern, value, names)?;
            }
            Ok(())
        }
        (Value::Object(expected), Value::Object(members)) => {
            let mut matched = 0;
            for (key, pattern) in expected.iter().filter(|(key, _)| *key != REST) {
                // A name in a key must be bound already: there is no value to match it against.
                let key = names.fill_text(key)?;
                let member_path = format!("{path}.{key}");
                let Some(value) = members.get(&key) else {
                    return Err(format!("{member_path} is missing"));
                };
                check_at(&member_path, pattern, value, names)?;
                matched += 1;
            }
            if matched < members.len() && !expected.contains_key(REST) {
                return differ();
            }
            Ok(())
        }
        _ if pattern == actual => Ok(()),
        _ => differ(),
    }
}

/// Matches a text against one with names in it. An unbound name matches as little as possible.
fn check_text(pattern: &str, actual: &str, names: &mut Bindings) -> Result<(), String> {
    let mut rest = actual;
    let mut unbound: Option<&str> = None;
    for part in parts(pattern) {
        let known = match part {
            PatternPart::Text(text) => text.to_owned(),
            PatternPart::Name(name) => match names.get(name) {
                Ok(value) => plain(value),
                Err(_) if unbound.is_none() => {
                    unbound = Some(name);
                    continue;
                }
                Err(error) => return Err(error),
            },
        };
        let position = match unbound {
            Some(_) => rest.find(&known),
            None => rest.starts_with(&known).then_some(0),
        };
        let position = position.ok_or_else(|| format!("no {known:?} in {rest:?}"))?;
        if let Some(name) = unbound.take() {
            names.set(name, rest[..position].into());
        }
        rest = &rest[position + known.len()..];
    }
    match unbound {
        Some(name) => names.set(name, rest.into()),
        None if rest.is_empty() => {}
        None => return Err(format!("{rest:?} is left")),
    }
    Ok(())
}

enum PatternPart<'a> {
    Text(&'a str),
    Name(&'a str),
}

/// Splits a text at its names. A name is `$` and lower-case letters, digits or `_`.
fn parts(text: &str) -> Vec<PatternPart<'_>> {
    let mut parts = Vec::new();
    for (index, piece) in text.split('$').enumerate() {
        let end = piece
            .find(|letter: char| !matches!(letter, 'a'..='z' | '0'..='9' | '_'))
            .unwrap_or(piece.len());
        let (name, after) = piece.split_at(if index == 0 { 0 } else { end });
        if !name.is_empty() {
            parts.push(PatternPart::Name(name));
        } else if index > 0 {
            parts.push(PatternPart::Text("$"));
        }
        if !after.is_empty() {
            parts.push(PatternPart::Text(after));
        }
    }
    parts
}

fn whole_name(text: &str) -> Option<&str> {
    match parts(text).as_slice() {
        [PatternPart::Name(name)] => Some(name),
        _ => None,
    }
}

/// Renders a value inside a longer text.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches_pattern(pattern: &str, actual: &str) -> bool {
        let mut names = Bindings::default();
        names.set("known", "k".into());
        names.set("seven", 7.into());
        let pattern = read(pattern).expect(pattern);
        check(
            &pattern,
            &serde_json::from_str(actual).expect(actual),
            &mut names,
        )
        .is_ok()
    }

    #[test]
    fn patterns_match_as_documented() {
        for (pattern, fits, does_not) in [
            ("1", vec!["1"], vec!["2", "\"1\"", "1.5"]),
            ("…", vec!["1", "null", "{}"], vec![]),
            (
                r#"{"a": 1}"#,
                vec![r#"{"a":1}"#],
                vec![r#"{}"#, r#"{"a":1,"b":2}"#, "[]"],
            ),
            (
                r#"{"a": 1, …}"#,
                vec![r#"{"a":1}"#, r#"{"b":2,"a":1}"#],
                vec![r#"{"b":2}"#],
            ),
            ("{…}", vec!["{}", r#"{"a":1}"#], vec!["[]", "1"]),
            (
                r#"{"a": …}"#,
                vec![r#"{"a":[]}"#],
                vec![r#"{}"#, r#"{"a":1,"b":2}"#],
            ),
            (
                r#"{"a": [1, …], …}"#,
                vec![r#"{"a":[1,2]}"#, r#"{"a":[1]}"#],
                vec![r#"{"a":[]}"#, r#"{"a":[2]}"#],
            ),
            ("[…, 2]", vec!["[1,2]"], vec!["[2]", "[1,3]", "[1,2,3]"]),
            ("[1]", vec!["[1]"], vec!["[]", "[1,2]"]),
            (r#""$known""#, vec![r#""k""#], vec![r#""x""#, "7"]),
            (r#""$seven""#, vec!["7"], vec![r#""7""#, "8"]),
            (r#""a $seven""#, vec![r#""a 7""#], vec![r#""a 8""#]),
            (
                r#"["$x", "$x"]"#,
                vec!["[1,1]", r#"["a","a"]"#],
                vec!["[1,2]"],
            ),
            (
                r#"["a/$x/c", "$x"]"#,
                vec![r#"["a/b/c","b"]"#],
                vec![r#"["a/b/c","c"]"#, r#"["a/b/d","b"]"#, r#"["b","b"]"#],
            ),
            (
                r#""$known/$y""#,
                vec![r#""k/y""#, r#""k/""#],
                vec![r#""x/y""#],
            ),
            (
                r#"{"$known": 1}"#,
                vec![r#"{"k":1}"#],
                vec![r#"{"$known":1}"#],
            ),
            (r#""costs $""#, vec![r#""costs $""#], vec![r#""costs""#]),
            (r#""… { \" …""#, vec![r#""… { \" …""#], vec![r#""a""#]),
        ] {
            for actual in fits {
                assert!(
                    matches_pattern(pattern, actual),
                    "{pattern} must fit {actual}"
                );
            }
            for actual in does_not {
                assert!(
                    !matches_pattern(pattern, actual),
                    "{pattern} must not fit {actual}"
                );
            }
        }
    }

    #[test]
    fn names_are_filled_in() {
        let mut names = Bindings::default();
        names.set("n", 7.into());
        names.set("folder", "/a".into());
        let filled =
            names.fill(&serde_json::json!({"x": "$n", "y": ["$folder/b"], "$folder": null}));
        assert_eq!(
            filled,
            Ok(serde_json::json!({"x": 7, "y": ["/a/b"], "/a": null}))
        );
        assert!(names.fill(&"$nobody".into()).is_err());
    }
}
