//! Markers: an answer that the user's input asks for, so that a test needs no file.
//!
//! `MOCK text n=3 size=8 silence ms=20 cut`: after the word, steps by name, each with its members.

use serde_json::Value;

use super::fault::ScriptedFault;
use super::script::{ScriptError, ScriptStep, StepMembers, check};

const MARKER: &str = "MOCK ";

/// Returns the steps of the last marker in a text. In the middle of a line, a word that is not a
/// step makes it ordinary text; at the start of a line, it is an error.
pub(super) fn read(text: &str) -> Option<Result<Vec<ScriptStep>, ScriptError>> {
    let (before, rest) = text.rsplit_once(MARKER)?;
    let line = rest.lines().next()?;
    let first = line.split_whitespace().next()?;
    let is_at_line_start = before.is_empty() || before.ends_with('\n');
    if !is_at_line_start {
        member_of(first)?;
    }
    let steps = steps(line).and_then(|steps| check(&steps).map(|()| steps));
    Some(steps.map_err(|ScriptError(what)| {
        ScriptError(format!(
            "the marker `{MARKER}{line}` cannot be read: {what}"
        ))
    }))
}

/// Returns the member of a script's step that a name stands for.
fn member_of(name: &str) -> Option<&'static str> {
    match name {
        "text" => Some("text"),
        "reasoning" => Some("reasoning"),
        "refusal" => Some("refusal"),
        "call" => Some("call"),
        "silence" => Some("silence_ms"),
        "held" => Some("held"),
        "usage" => Some("usage"),
        _ => ScriptedFault::named(name).map(|_| "fault"),
    }
}

fn steps(line: &str) -> Result<Vec<ScriptStep>, ScriptError> {
    let mut steps = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        let (name, after) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = after.trim_start();
        let unknown = || {
            ScriptError(format!(
                "there is no step `{name}`; use text, reasoning, refusal, call, silence, held, \
                 usage or a fault such as 429 or cut"
            ))
        };
        let member = member_of(name).ok_or_else(unknown)?;
        let mut members = StepMembers::from_iter([]);
        while let Some((name, after)) = split_member(rest) {
            let (value, after) = value(after)?;
            members.0.insert(name.to_owned(), value);
            rest = after;
        }
        let value = match member {
            "text" | "reasoning" => {
                let value = members.0.remove("say");
                value.unwrap_or_else(|| Value::String(String::new()))
            }
            "refusal" => members.0.remove("say").unwrap_or_else(|| "No.".into()),
            "call" => {
                let missing = || ScriptError("`call` needs a `name`".to_owned());
                members.0.remove("name").ok_or_else(missing)?
            }
            "silence_ms" => {
                let missing = || ScriptError("`silence` needs `ms`".to_owned());
                members.0.remove("ms").ok_or_else(missing)?
            }
            "usage" => Value::Object(std::mem::take(&mut members.0).into_iter().collect()),
            "fault" => Value::String(name.to_owned()),
            _ => Value::Bool(true),
        };
        members.0.insert(member.to_owned(), value);
        let step = ScriptStep::read(members)
            .map_err(|ScriptError(what)| ScriptError(format!("`{name}`: {what}")))?;
        steps.push(step);
    }
    Ok(steps)
}

/// Returns a member's name and the rest of the text, if the next word is a member.
fn split_member(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|it: char| !it.is_ascii_lowercase() && it != '_')?;
    let value = text[end..].strip_prefix('=')?;
    Some((&text[..end], value))
}

/// Parses a value and returns the rest of the text: JSON where it begins like that, else a word.
fn value(text: &str) -> Result<(Value, &str), ScriptError> {
    if text.starts_with(['{', '[', '"']) {
        let mut values = serde_json::Deserializer::from_str(text).into_iter();
        let missing = || ScriptError("a value is missing".to_owned());
        let value = values.next().ok_or_else(missing)?;
        let value = value.map_err(|error: serde_json::Error| ScriptError(error.to_string()))?;
        let (_, rest) = text.split_at(values.byte_offset());
        return Ok((value, rest.trim_start()));
    }
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    let value = match word.parse::<u64>() {
        Ok(number) => Value::from(number),
        Err(_) => Value::from(word),
    };
    Ok((value, rest.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_read() {
        let text = "Please:\nMOCK reasoning say=\"two words\" call name=shell arguments={\"command\": [\"a b\"]} text n=3 size=4 gap_us=10 \
                    silence ms=20 held usage input=3 429 retry_after=2\nand more";
        let steps = read(text).expect("a marker").expect("steps");
        assert_eq!(steps.len(), 7, "{steps:?}");
        let ScriptStep::Reasoning(text_step) = &steps[0] else {
            panic!("{steps:?}");
        };
        assert_eq!(text_step.text, "two words");
        let ScriptStep::Call {
            name, arguments, ..
        } = &steps[1]
        else {
            panic!("{steps:?}");
        };
        assert_eq!(
            (name.as_str(), arguments.as_str()),
            ("shell", r#"{"command":["a b"]}"#)
        );
        let ScriptStep::Text(text_step) = &steps[2] else {
            panic!("{steps:?}");
        };
        assert_eq!(
            (
                text_step.text.len(),
                text_step.size,
                text_step.gap.as_micros()
            ),
            (12, 4, 10)
        );
        let ScriptStep::Fault { fault, retry_after } = &steps[6] else {
            panic!("{steps:?}");
        };
        assert_eq!(
            (*fault, retry_after.as_deref()),
            (ScriptedFault::RateLimit, Some("2"))
        );
    }

    #[test]
    fn the_last_marker_wins_and_other_words_are_ignored() {
        let steps = read("MOCK cut\nMOCK stall")
            .expect("a marker")
            .expect("steps");
        let ScriptStep::Fault { fault, .. } = steps[0] else {
            panic!("{steps:?}");
        };
        assert_eq!(fault, ScriptedFault::Stall);
        for text in ["", "MOCK", "a MOCK server", "mock text n=1", "MOCK "] {
            assert_eq!(read(text), None, "{text}");
        }
        for text in [
            "MOCK text",
            "MOCK text n=x",
            "MOCK text n=1 speed=2",
            "MOCK call",
            "MOCK call name=a arguments={",
            "MOCK text n=1 empty",
            "MOCK silence",
            "MOCK cut text n=1",
            "MOCK text n=1 loudly",
            "MOCK shell",
            "Please:\nMOCK help",
        ] {
            assert!(read(text).expect("a marker").is_err(), "{text}");
        }
    }
}
