//! Parses a call, and selects its answer.

use serde_json::Value;

use super::script::{ModelScript, ScriptError, ScriptStep, ScriptedAnswer, TextStep};
use super::{instance, marker};
use crate::WireFormat;

/// Characters of the input that the default answer repeats.
const ECHO_CHARS_MAX: usize = 200;

/// The parts of a call that select its answer.
#[derive(Debug, Default, PartialEq)]
pub(super) struct CallInput {
    pub(super) model: String,
    /// The last input of the model: from the user, or from a tool.
    pub(super) last: LastInput,
    /// The last text in it. Wires join consecutive messages of the user, and additions of a client
    /// come before.
    words: String,
    /// The schema that the answer must match.
    pub(super) schema: Option<Value>,
    pub(super) is_streamed: bool,
}

#[derive(Debug, PartialEq)]
pub(super) enum LastInput {
    User(String),
    Tool(String),
}

impl Default for LastInput {
    fn default() -> Self {
        Self::User(String::new())
    }
}

impl CallInput {
    pub(super) fn read(wire: WireFormat, body: &Value) -> Self {
        let (schema, last_input): (_, fn(&Value) -> Option<LastInput>) = match wire {
            WireFormat::Responses => ("/text/format/schema", of_responses),
            WireFormat::Chat => ("/response_format/json_schema/schema", of_chat),
            WireFormat::Messages => ("/output_config/format/schema", of_messages),
            WireFormat::Gemini => ("/generationConfig/responseJsonSchema", of_gemini),
        };
        let history = match wire {
            WireFormat::Responses => &body["input"],
            WireFormat::Chat | WireFormat::Messages => &body["messages"],
            WireFormat::Gemini => &body["contents"],
        };
        let last_entry = match history {
            Value::String(text) => Some((LastInput::User(text.clone()), history)),
            Value::Array(items) => {
                let mut items = items.iter().rev();
                items.find_map(|it| Some((last_input(it)?, it)))
            }
            _ => None,
        };
        let (last, item) = last_entry.unwrap_or((LastInput::default(), history));
        Self {
            model: body["model"].as_str().unwrap_or("mock").to_owned(),
            words: words(wire, &last, item),
            last,
            schema: body.pointer(schema).cloned(),
            // On that wire the address requests a stream.
            is_streamed: wire == WireFormat::Gemini || body["stream"] == true,
        }
    }
}

fn of_responses(item: &Value) -> Option<LastInput> {
    match item["type"].as_str() {
        Some("function_call_output" | "custom_tool_call_output") => {
            Some(LastInput::Tool(text(&item["output"])))
        }
        Some("message") | None if item["role"] == "user" => {
            Some(LastInput::User(text(&item["content"])))
        }
        _ => None,
    }
}

fn of_chat(message: &Value) -> Option<LastInput> {
    match message["role"].as_str() {
        Some("tool") => Some(LastInput::Tool(text(&message["content"]))),
        Some("user") => Some(LastInput::User(text(&message["content"]))),
        _ => None,
    }
}

fn of_messages(message: &Value) -> Option<LastInput> {
    let content = &message["content"];
    let last = content.as_array().and_then(|it| it.last());
    let tool_result = last.filter(|it| it["type"] == "tool_result");
    match (message["role"].as_str(), tool_result) {
        (Some("user"), Some(tool_result)) => Some(LastInput::Tool(text(&tool_result["content"]))),
        (Some("user"), None) => Some(LastInput::User(text(content))),
        _ => None,
    }
}

fn of_gemini(content: &Value) -> Option<LastInput> {
    let parts = &content["parts"];
    let last = parts.as_array().and_then(|it| it.last());
    let response = last.map(|it| &it["functionResponse"]["response"]);
    match (content["role"].as_str(), response) {
        (Some("model"), _) => None,
        (_, Some(Value::Object(response))) => {
            response.values().next().map(text).map(LastInput::Tool)
        }
        _ => Some(LastInput::User(text(parts))),
    }
}

/// Returns a text, or the joined texts of a list of parts.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|it| it["text"].as_str()).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

/// Returns the last text in one message of the wire.
fn words(wire: WireFormat, last: &LastInput, item: &Value) -> String {
    let content = match wire {
        WireFormat::Responses => &Value::Null,
        WireFormat::Chat | WireFormat::Messages => &item["content"],
        WireFormat::Gemini => &item["parts"],
    };
    match (last, content) {
        (LastInput::User(_), Value::Array(parts)) => {
            let mut texts = parts.iter().rev().filter_map(|it| it["text"].as_str());
            texts.next().unwrap_or_default().to_owned()
        }
        // A text that ends its line is followed by two empty lines when it is joined to the next.
        (LastInput::User(_), Value::String(text)) => {
            let mut texts = text.rsplit("\n\n\n");
            texts.next().unwrap_or_default().to_owned()
        }
        (LastInput::User(text) | LastInput::Tool(text), _) => text.clone(),
    }
}

/// A script and its progress.
#[derive(Debug)]
pub(super) struct ScriptProgress {
    script: ModelScript,
    /// Number of times that each answer was given.
    play_counts: Vec<u64>,
}

impl ScriptProgress {
    pub(super) fn new(script: ModelScript) -> Self {
        let play_counts = vec![0; script.answers.len()];
        Self {
            script,
            play_counts,
        }
    }

    /// Returns the steps of the answer to a call: those of a marker, of the first answer whose
    /// match fits, of the next answer in order, or the default.
    pub(super) fn steps(&mut self, input: &CallInput) -> Result<Vec<ScriptStep>, ScriptError> {
        let (LastInput::User(text) | LastInput::Tool(text)) = &input.last;
        // A call with a schema repeats the input of the user, and a marker in it is not meant for
        // it.
        if let LastInput::User(text) = &input.last
            && input.schema.is_none()
            && let Some(steps) = marker::read(text)
        {
            return steps;
        }
        match self.next_answer(text) {
            Some(at) => {
                self.play_counts[at] += 1;
                Ok(self.script.answers[at].steps.clone())
            }
            None => Ok(vec![ScriptStep::Text(TextStep::of(&default_answer(input)))]),
        }
    }

    fn next_answer(&self, text: &str) -> Option<usize> {
        let is_left = |at: usize, answer: &ScriptedAnswer| {
            answer
                .times
                .is_none_or(|times| self.play_counts[at] < times)
        };
        let answers = || self.script.answers.iter().enumerate();
        let matching = answers().find(|(at, answer)| {
            let when = answer.when.as_deref();
            when.is_some_and(|when| text.contains(when)) && is_left(*at, answer)
        });
        // The first of the answers that were given least often: so a list that repeats begins
        // again.
        let in_turn = || {
            let unmatched = answers().filter(|(at, it)| it.when.is_none() && is_left(*at, it));
            unmatched.min_by_key(|(at, _)| self.play_counts[*at])
        };
        matching.or_else(in_turn).map(|(at, _)| at)
    }
}

/// Returns the answer when the script has none.
fn default_answer(input: &CallInput) -> String {
    let cut = |text: &str| -> String { text.trim().chars().take(ECHO_CHARS_MAX).collect() };
    match (&input.schema, &input.last) {
        (Some(schema), _) => {
            let words: Vec<&str> = input.words.split_whitespace().take(8).collect();
            let words = if words.is_empty() {
                vec!["nothing"]
            } else {
                words
            };
            instance::of(schema, &words.join(" ")).to_string()
        }
        (None, LastInput::Tool(text)) => format!("The tool said: {}", cut(text)),
        (None, LastInput::User(_)) => format!(
            "You said: {}\n\nI am a mock model. I repeat what I hear, unless a script tells me something else.",
            cut(&input.words)
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer_text(progress: &mut ScriptProgress, body: &Value) -> String {
        let steps = progress
            .steps(&CallInput::read(WireFormat::Responses, body))
            .expect("steps");
        let texts = steps.iter().map(|step| match step {
            ScriptStep::Text(text_step) => text_step.text.clone(),
            step => format!("{step:?}"),
        });
        texts.collect()
    }

    fn user(text: &str) -> Value {
        json!({"input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "before"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]},
            {"type": "reasoning", "summary": []},
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "rules"}]},
        ]})
    }

    #[test]
    fn answers_are_chosen_by_match_then_in_turn_then_by_ourselves() {
        let script = "[[answer]]\nsteps = [{ text = 'one' }]\n[[answer]]\nmatch = 'rain'\nsteps = [{ text = 'wet' }]\n\
                      [[answer]]\nmatch = 'once'\ntimes = 1\nsteps = [{ text = 'only' }]\n[[answer]]\nsteps = [{ text = 'two' }]";
        let mut progress = ScriptProgress::new(ModelScript::parse(script).expect("a script"));
        for (text, expected) in [
            ("will it rain", "wet"),
            ("a", "one"),
            ("once", "only"),
            ("once", "two"),
            ("rain?", "wet"),
        ] {
            assert_eq!(answer_text(&mut progress, &user(text)), expected, "{text}");
        }
        assert!(answer_text(&mut progress, &user("hello")).starts_with("You said: hello\n"));
        let mut progress = ScriptProgress::new(
            ModelScript::parse(&format!("repeat = true\n{script}")).expect("a script"),
        );
        let answers: Vec<_> = (0..5)
            .map(|_| answer_text(&mut progress, &user("a")))
            .collect();
        assert_eq!(answers, ["one", "two", "one", "two", "one"]);
    }

    #[test]
    fn only_the_last_text_of_the_user_is_repeated() {
        let before = "# Where you work\n\nfolder: /w\n";
        let hello = "hello\n\nloom";
        let joined = format!("{before}\n\n{hello}");
        let parts = json!([{"type": "text", "text": before}, {"type": "text", "text": hello}]);
        let parts_with_image = json!([{"type": "text", "text": before}, {"type": "text", "text": hello}, {"type": "image_url"}]);
        for (wire, body) in [
            (
                WireFormat::Chat,
                json!({"messages": [{"role": "user", "content": joined}]}),
            ),
            (
                WireFormat::Chat,
                json!({"messages": [{"role": "user", "content": parts_with_image}]}),
            ),
            (
                WireFormat::Messages,
                json!({"messages": [{"role": "user", "content": parts}]}),
            ),
            (
                WireFormat::Gemini,
                json!({"contents": [{"role": "user", "parts": parts}]}),
            ),
            (
                WireFormat::Responses,
                json!({"input": [{"role": "user", "content": before}, {"role": "user", "content": hello}]}),
            ),
        ] {
            let answer = default_answer(&CallInput::read(wire, &body));
            assert!(
                answer.starts_with("You said: hello\n\nloom\n\nI am"),
                "{wire:?}: {answer}"
            );
        }
    }

    #[test]
    fn the_output_of_a_tool_is_the_last_input() {
        let mut body = user("MOCK call name=f");
        let mut progress = ScriptProgress::new(ModelScript::default());
        assert!(answer_text(&mut progress, &body).starts_with("Call"));
        let output = json!({"type": "function_call_output", "call_id": "c", "output": "42"});
        body["input"].as_array_mut().expect("a list").push(output);
        assert_eq!(answer_text(&mut progress, &body), "The tool said: 42");
    }

    #[test]
    fn a_call_with_a_schema_gets_an_object() {
        let mut body = user("MOCK stall and then mend the loom");
        body["text"] = json!({"format": {"type": "json_schema", "schema":
            {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}}});
        let mut progress = ScriptProgress::new(ModelScript::default());
        assert_eq!(
            answer_text(&mut progress, &body),
            r#"{"title":"MOCK stall and then mend the loom"}"#
        );
    }
}
