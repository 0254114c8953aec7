//! Scripts: the answers, and their steps.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::access::AccessRules;
use super::fault::ScriptedFault;
use crate::{CallForm, Tokens};

/// Longest text of one step, and longest list of steps.
const TEXT_BYTES_MAX: usize = 8 << 20;
const STEPS_MAX: usize = 1000;

/// The answers of a server, and when it gives them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelScript {
    pub(super) answers: Vec<ScriptedAnswer>,
    /// Whether the answers without a match begin again when all were given.
    pub(super) repeat: bool,
    /// Access rules; `None` answers every call.
    pub(super) access: Option<AccessRules>,
}

/// One answer of a script.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ScriptedAnswer {
    /// Text that the last input must contain; without it, answers are given in order.
    pub(super) when: Option<String>,
    /// Number of times that it is given.
    pub(super) times: Option<u64>,
    pub(super) steps: Vec<ScriptStep>,
}

/// One step of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ScriptStep {
    Text(TextStep),
    Reasoning(TextStep),
    /// The model refuses with this text.
    Refusal(String),
    Call {
        name: String,
        arguments: String,
        form: CallForm,
    },
    /// A pause of this length.
    Silence(Duration),
    /// A pause until a test releases it.
    Hold,
    /// The usage that the answer reports.
    Usage(Tokens),
    /// A fault ends the answer.
    Fault {
        fault: ScriptedFault,
        retry_after: Option<String>,
    },
}

/// A text that is sent in pieces.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TextStep {
    pub(super) text: String,
    /// Characters of a piece.
    pub(super) size: usize,
    /// Delay between two pieces.
    pub(super) gap: Duration,
    /// Whether each piece begins with its time.
    pub(super) stamped: bool,
    /// Whether it stays open after its last piece until it is released.
    pub(super) held: bool,
}

impl TextStep {
    pub(super) fn of(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            size: 16,
            ..Self::default()
        }
    }
}

/// Error in a script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ScriptError(pub(super) String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptFile {
    #[serde(default)]
    repeat: bool,
    access: Option<AccessRules>,
    #[serde(default)]
    answer: Vec<FileAnswer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileAnswer {
    #[serde(rename = "match")]
    when: Option<String>,
    times: Option<u64>,
    steps: Vec<BTreeMap<String, toml::Value>>,
}

impl ModelScript {
    /// Parses a script in TOML.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let file: ScriptFile =
            toml::from_str(text).map_err(|error| ScriptError(error.to_string()))?;
        let answers = file.answer.into_iter().enumerate().map(|(at, answer)| {
            let steps = answer.steps.into_iter().enumerate().map(|(step, members)| {
                let members = members.into_iter().map(|(name, value)| (name, json(value)));
                ScriptStep::read(members.collect()).map_err(|what| {
                    ScriptError(format!("step {} of answer {}: {what}", step + 1, at + 1))
                })
            });
            let steps: Vec<ScriptStep> = steps.collect::<Result<_, _>>()?;
            check(&steps).map_err(|what| ScriptError(format!("answer {}: {what}", at + 1)))?;
            let is_once = answer.when.is_none() && !file.repeat;
            Ok(ScriptedAnswer {
                when: answer.when,
                times: answer.times.or(is_once.then_some(1)),
                steps,
            })
        });
        Ok(Self {
            answers: answers.collect::<Result<_, ScriptError>>()?,
            repeat: file.repeat,
            access: file.access,
        })
    }
}

/// Checks the order and number of steps.
pub(super) fn check(steps: &[ScriptStep]) -> Result<(), ScriptError> {
    if steps.len() > STEPS_MAX {
        return Err(ScriptError(format!("more than {STEPS_MAX} steps")));
    }
    for (at, step) in steps.iter().enumerate() {
        if let ScriptStep::Fault { fault, .. } = step {
            if fault.is_first() && at > 0 {
                let what = format!("`{}` must be the first step", fault.name());
                return Err(ScriptError(what));
            }
            if at + 1 < steps.len() {
                let what = format!("nothing can come after `{}`", fault.name());
                return Err(ScriptError(what));
            }
        }
    }
    Ok(())
}

fn json(value: toml::Value) -> Value {
    match value {
        // JSON has no dates, so they become texts.
        toml::Value::Datetime(it) => Value::String(it.to_string()),
        toml::Value::Array(items) => Value::Array(items.into_iter().map(json).collect()),
        toml::Value::Table(table) => {
            let members = table.into_iter().map(|(name, value)| (name, json(value)));
            Value::Object(members.collect())
        }
        toml::Value::String(it) => Value::String(it),
        toml::Value::Integer(it) => Value::from(it),
        toml::Value::Float(it) => Value::from(it),
        toml::Value::Boolean(it) => Value::Bool(it),
    }
}

/// The members of a step. Reading removes them; those that remain are unknown.
pub(super) struct StepMembers(pub(super) BTreeMap<String, Value>);

impl FromIterator<(String, Value)> for StepMembers {
    fn from_iter<T: IntoIterator<Item = (String, Value)>>(members: T) -> Self {
        Self(members.into_iter().collect())
    }
}

impl StepMembers {
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, ScriptError> {
        match self.0.remove(name) {
            None => Ok(None),
            Some(Value::String(it)) => Ok(Some(it)),
            Some(Value::Number(it)) => Ok(Some(it.to_string())),
            Some(_) => Err(ScriptError(format!("`{name}` must be a text"))),
        }
    }

    pub(super) fn number(&mut self, name: &str) -> Result<Option<u64>, ScriptError> {
        let Some(value) = self.0.remove(name) else {
            return Ok(None);
        };
        let number = value
            .as_u64()
            .or_else(|| value.as_str().and_then(|it| it.parse().ok()));
        let what = || format!("`{name}` must be a whole number that is not negative");
        number.map(Some).ok_or_else(|| ScriptError(what()))
    }

    fn time(&mut self, ms: &str, us: &str) -> Result<Duration, ScriptError> {
        let ms = self.number(ms)?.unwrap_or_default();
        let us = self.number(us)?.unwrap_or_default();
        Ok(Duration::from_millis(ms).saturating_add(Duration::from_micros(us)))
    }

    fn text_step(&mut self, text: Option<String>) -> Result<TextStep, ScriptError> {
        let pieces = self.number("n")?;
        let size = self.number("size")?;
        let stamped = self.number("stamp")?.unwrap_or_default() > 0;
        let held = self.number("hold")?.unwrap_or_default() > 0;
        let gap = self.time("gap_ms", "gap_us")?;
        let size = usize::try_from(size.unwrap_or(if pieces.is_some() { 8 } else { 16 }));
        let size = size
            .ok()
            .filter(|it| *it > 0)
            .ok_or_else(|| ScriptError("`size` must be at least 1".to_owned()))?;
        let text = match (text.filter(|it| !it.is_empty()), pieces) {
            (Some(text), None) => text,
            (None, Some(pieces)) => {
                let pieces = usize::try_from(pieces).unwrap_or(usize::MAX);
                let length = pieces.saturating_mul(size);
                if length > TEXT_BYTES_MAX {
                    return Err(too_long());
                }
                filler(length)
            }
            (None, None) => {
                let what = "says nothing; give it a text, or `n`";
                return Err(ScriptError(what.to_owned()));
            }
            (Some(_), Some(_)) => {
                let what = "has both a text and `n`; choose one";
                return Err(ScriptError(what.to_owned()));
            }
        };
        if text.len() > TEXT_BYTES_MAX {
            return Err(too_long());
        }
        Ok(TextStep {
            text,
            size,
            gap,
            stamped,
            held,
        })
    }
}

fn too_long() -> ScriptError {
    ScriptError(format!("more than {TEXT_BYTES_MAX} letters"))
}

fn filler(length: usize) -> String {
    "woven thread, ".chars().cycle().take(length).collect()
}

impl ScriptStep {
    /// Parses a step: one member names its kind, the others are its settings.
    pub(super) fn read(mut members: StepMembers) -> Result<Self, ScriptError> {
        let step = Self::of_kind(&mut members)?;
        match members.0.keys().next() {
            None => Ok(step),
            Some(name) => Err(ScriptError(format!("`{name}` is not known here"))),
        }
    }

    fn of_kind(members: &mut StepMembers) -> Result<Self, ScriptError> {
        if let Some(text) = members.text("text")? {
            return members.text_step(Some(text)).map(Self::Text);
        }
        if let Some(text) = members.text("reasoning")? {
            return members.text_step(Some(text)).map(Self::Reasoning);
        }
        if let Some(text) = members.text("refusal")? {
            return Ok(Self::Refusal(text));
        }
        if let Some(name) = members.text("call")? {
            let arguments = match members.0.remove("arguments") {
                None => "{}".to_owned(),
                Some(Value::String(it)) => it,
                Some(value) => value.to_string(),
            };
            let input = members.text("input")?;
            let form = match input {
                Some(_) => CallForm::Freeform,
                None => CallForm::Function,
            };
            return Ok(Self::Call {
                name,
                arguments: input.unwrap_or(arguments),
                form,
            });
        }
        if members.0.contains_key("silence_ms") {
            return members.time("silence_ms", "").map(Self::Silence);
        }
        if members.0.remove("held").is_some() {
            return Ok(Self::Hold);
        }
        if let Some(value) = members.0.remove("usage") {
            let count = |name: &str| value[name].as_u64().unwrap_or_default();
            return Ok(Self::Usage(Tokens {
                input: count("input"),
                cached: count("cached"),
                output: count("output"),
                reasoning: count("reasoning"),
                cache_written: count("cache_written"),
            }));
        }
        if let Some(name) = members.text("fault")? {
            let fault = ScriptedFault::named(&name).ok_or_else(|| {
                let names: Vec<&str> = ScriptedFault::all().map(ScriptedFault::name).collect();
                let names = names.join(", ");
                ScriptError(format!("there is no fault `{name}`; there are {names}"))
            })?;
            return Ok(Self::Fault {
                fault,
                retry_after: members.text("retry_after")?,
            });
        }
        let what =
            "must have one of text, reasoning, refusal, call, silence_ms, held, usage, fault";
        Err(ScriptError(what.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_read() {
        let script = ModelScript::parse(
            r#"
            [[answer]]
            match = "rain"
            steps = [
                { reasoning = "Let me see." },
                { text = "It rains.", size = 4, gap_ms = 5 },
                { call = "shell", arguments = { command = ["ls"] } },
                { call = "apply_patch", input = "*** Begin" },
                { silence_ms = 3 },
                { held = true },
                { usage = { input = 3, output = 4 } },
            ]

            [[answer]]
            steps = [{ text = "hm" }, { fault = "429", retry_after = 2 }]
            "#,
        )
        .expect("a script");
        let [matched, plain] = &script.answers[..] else {
            panic!("{script:?}");
        };
        assert_eq!(
            (matched.when.as_deref(), matched.times),
            (Some("rain"), None)
        );
        assert_eq!(matched.steps.len(), 7);
        let ScriptStep::Text(text_step) = &matched.steps[1] else {
            panic!("{matched:?}");
        };
        assert_eq!((text_step.size, text_step.gap.as_millis()), (4, 5));
        assert_eq!((plain.when.as_deref(), plain.times), (None, Some(1)));
        let ScriptStep::Fault { retry_after, .. } = &plain.steps[1] else {
            panic!("{plain:?}");
        };
        assert_eq!(retry_after.as_deref(), Some("2"));
    }

    #[test]
    fn errors_name_the_problem() {
        for (steps, expected) in [
            ("{ say = 'x' }", "must have one of"),
            ("{ text = 'x', speed = 3 }", "`speed` is not known"),
            ("{ text = 'x', size = 0 }", "at least 1"),
            ("{ text = 'x', gap_ms = -1 }", "not negative"),
            ("{ text = '', n = 9000000 }", "letters"),
            ("{ text = '' }", "says nothing"),
            ("{ fault = 'flood' }", "there are stall, cut"),
            (
                "{ fault = 'cut' }, { text = 'x' }",
                "nothing can come after",
            ),
            ("{ text = 'x' }, { fault = 'empty' }", "must be the first"),
        ] {
            let text = format!("[[answer]]\nsteps = [{steps}]");
            let ScriptError(error) = ModelScript::parse(&text).expect_err(steps);
            assert!(error.contains(expected), "{steps}: {error}");
        }
        assert!(ModelScript::parse("[[answers]]").is_err());
    }
}
