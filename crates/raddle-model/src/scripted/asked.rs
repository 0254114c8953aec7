//! What a call asks, and which answer it gets.

use serde_json::Value;

use super::script::{Answer, Script, Speech, Step};
use super::{instance, marker};
use crate::Wire;

/// How much of what was said is repeated.
const ECHO_LETTERS_MAX: usize = 200;

/// What is looked at of a call.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Asked {
    pub(super) model: String,
    /// The last thing said to the model: by the user, or by a tool.
    pub(super) last: Last,
    /// Of that, what was said last of all. Wires join what the user says in a row, and what a client adds to it comes
    /// before.
    words: String,
    /// What the answer must fit.
    pub(super) schema: Option<Value>,
    pub(super) is_streamed: bool,
}

#[derive(Debug, PartialEq)]
pub(super) enum Last {
    User(String),
    Tool(String),
}

impl Default for Last {
    fn default() -> Self {
        Self::User(String::new())
    }
}

impl Asked {
    pub(super) fn read(wire: Wire, body: &Value) -> Self {
        let (schema, said): (_, fn(&Value) -> Option<Last>) = match wire {
            Wire::Responses => ("/text/format/schema", of_responses),
            Wire::Chat => ("/response_format/json_schema/schema", of_chat),
            Wire::Messages => ("/output_config/format/schema", of_messages),
            Wire::Gemini => ("/generationConfig/responseJsonSchema", of_gemini),
        };
        let history = match wire {
            Wire::Responses => &body["input"],
            Wire::Chat | Wire::Messages => &body["messages"],
            Wire::Gemini => &body["contents"],
        };
        let found = match history {
            Value::String(text) => Some((Last::User(text.clone()), history)),
            Value::Array(items) => {
                let mut items = items.iter().rev();
                items.find_map(|it| Some((said(it)?, it)))
            }
            _ => None,
        };
        let (last, item) = found.unwrap_or((Last::default(), history));
        Self {
            model: body["model"].as_str().unwrap_or("mock").to_owned(),
            words: words(wire, &last, item),
            last,
            schema: body.pointer(schema).cloned(),
            // There the address says it.
            is_streamed: wire == Wire::Gemini || body["stream"] == true,
        }
    }
}

fn of_responses(item: &Value) -> Option<Last> {
    match item["type"].as_str() {
        Some("function_call_output" | "custom_tool_call_output") => {
            Some(Last::Tool(text(&item["output"])))
        }
        Some("message") | None if item["role"] == "user" => {
            Some(Last::User(text(&item["content"])))
        }
        _ => None,
    }
}

fn of_chat(message: &Value) -> Option<Last> {
    match message["role"].as_str() {
        Some("tool") => Some(Last::Tool(text(&message["content"]))),
        Some("user") => Some(Last::User(text(&message["content"]))),
        _ => None,
    }
}

fn of_messages(message: &Value) -> Option<Last> {
    let content = &message["content"];
    let last = content.as_array().and_then(|it| it.last());
    let given = last.filter(|it| it["type"] == "tool_result");
    match (message["role"].as_str(), given) {
        (Some("user"), Some(given)) => Some(Last::Tool(text(&given["content"]))),
        (Some("user"), None) => Some(Last::User(text(content))),
        _ => None,
    }
}

fn of_gemini(content: &Value) -> Option<Last> {
    let parts = &content["parts"];
    let last = parts.as_array().and_then(|it| it.last());
    let given = last.map(|it| &it["functionResponse"]["response"]);
    match (content["role"].as_str(), given) {
        (Some("model"), _) => None,
        (_, Some(Value::Object(given))) => given.values().next().map(text).map(Last::Tool),
        _ => Some(Last::User(text(parts))),
    }
}

/// A text, or the texts of a list of parts.
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

/// What was said last of all in what is one message on its wire.
fn words(wire: Wire, last: &Last, item: &Value) -> String {
    let content = match wire {
        Wire::Responses => &Value::Null,
        Wire::Chat | Wire::Messages => &item["content"],
        Wire::Gemini => &item["parts"],
    };
    match (last, content) {
        (Last::User(_), Value::Array(parts)) => {
            let mut texts = parts.iter().rev().filter_map(|it| it["text"].as_str());
            texts.next().unwrap_or_default().to_owned()
        }
        // A text that ends its line is set apart by two empty ones when it is joined to the next.
        (Last::User(_), Value::String(text)) => {
            let mut texts = text.rsplit("\n\n\n");
            texts.next().unwrap_or_default().to_owned()
        }
        (Last::User(text) | Last::Tool(text), _) => text.clone(),
    }
}

/// A script and how far it has been played.
#[derive(Debug)]
pub(super) struct Playing {
    script: Script,
    /// How often each answer was given.
    given: Vec<u64>,
}

impl Playing {
    pub(super) fn new(script: Script) -> Self {
        let given = vec![0; script.answers.len()];
        Self { script, given }
    }

    /// The steps of the answer to a call: those of a marker, of the first answer whose match fits, of the
    /// next in turn, or our own.
    pub(super) fn steps(&mut self, asked: &Asked) -> Result<Vec<Step>, String> {
        let (Last::User(text) | Last::Tool(text)) = &asked.last;
        // A call that wants an object repeats what the user said, and a marker in it is not meant for it.
        if let Last::User(text) = &asked.last
            && asked.schema.is_none()
            && let Some(steps) = marker::read(text)
        {
            return steps;
        }
        match self.fitting(text) {
            Some(at) => {
                self.given[at] += 1;
                Ok(self.script.answers[at].steps.clone())
            }
            None => Ok(vec![Step::Text(Speech::of(&own(asked)))]),
        }
    }

    fn fitting(&self, text: &str) -> Option<usize> {
        let is_left =
            |at: usize, answer: &Answer| answer.times.is_none_or(|times| self.given[at] < times);
        let answers = || self.script.answers.iter().enumerate();
        let matching = answers().find(|(at, answer)| {
            let when = answer.when.as_deref();
            when.is_some_and(|when| text.contains(when)) && is_left(*at, answer)
        });
        // Of those in turn, the first that was given least: so a list that repeats begins again.
        let in_turn = || {
            let mine = answers().filter(|(at, it)| it.when.is_none() && is_left(*at, it));
            mine.min_by_key(|(at, _)| self.given[*at])
        };
        matching.or_else(in_turn).map(|(at, _)| at)
    }
}

/// What is answered when no script says anything.
fn own(asked: &Asked) -> String {
    let cut = |text: &str| -> String { text.trim().chars().take(ECHO_LETTERS_MAX).collect() };
    match (&asked.schema, &asked.last) {
        (Some(schema), _) => {
            let words: Vec<&str> = asked.words.split_whitespace().take(8).collect();
            let words = if words.is_empty() {
                vec!["nothing"]
            } else {
                words
            };
            instance::of(schema, &words.join(" ")).to_string()
        }
        (None, Last::Tool(text)) => format!("The tool said: {}", cut(text)),
        (None, Last::User(_)) => format!(
            "You said: {}\n\nI am a mock model. I repeat what I hear, unless a script tells me something else.",
            cut(&asked.words)
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(playing: &mut Playing, body: &Value) -> String {
        let steps = playing
            .steps(&Asked::read(Wire::Responses, body))
            .expect("steps");
        let said = steps.iter().map(|step| match step {
            Step::Text(speech) => speech.text.clone(),
            step => format!("{step:?}"),
        });
        said.collect()
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
        let mut playing = Playing::new(Script::parse(script).expect("a script"));
        for (text, wanted) in [
            ("will it rain", "wet"),
            ("a", "one"),
            ("once", "only"),
            ("once", "two"),
            ("rain?", "wet"),
        ] {
            assert_eq!(said(&mut playing, &user(text)), wanted, "{text}");
        }
        assert!(said(&mut playing, &user("hello")).starts_with("You said: hello\n"));
        let mut playing =
            Playing::new(Script::parse(&format!("repeat = true\n{script}")).expect("a script"));
        let turns: Vec<_> = (0..5).map(|_| said(&mut playing, &user("a"))).collect();
        assert_eq!(turns, ["one", "two", "one", "two", "one"]);
    }

    #[test]
    fn what_is_joined_to_the_users_words_is_not_repeated() {
        let before = "# Where you work\n\nfolder: /w\n";
        let hello = "hello\n\nloom";
        let joined = format!("{before}\n\n{hello}");
        let parts = json!([{"type": "text", "text": before}, {"type": "text", "text": hello}]);
        let seen = json!([{"type": "text", "text": before}, {"type": "text", "text": hello}, {"type": "image_url"}]);
        for (wire, body) in [
            (
                Wire::Chat,
                json!({"messages": [{"role": "user", "content": joined}]}),
            ),
            (
                Wire::Chat,
                json!({"messages": [{"role": "user", "content": seen}]}),
            ),
            (
                Wire::Messages,
                json!({"messages": [{"role": "user", "content": parts}]}),
            ),
            (
                Wire::Gemini,
                json!({"contents": [{"role": "user", "parts": parts}]}),
            ),
            (
                Wire::Responses,
                json!({"input": [{"role": "user", "content": before}, {"role": "user", "content": hello}]}),
            ),
        ] {
            let said = own(&Asked::read(wire, &body));
            assert!(
                said.starts_with("You said: hello\n\nloom\n\nI am"),
                "{wire:?}: {said}"
            );
        }
    }

    #[test]
    fn what_a_tool_said_comes_last() {
        let mut body = user("MOCK call name=f");
        let mut playing = Playing::new(Script::default());
        assert!(said(&mut playing, &body).starts_with("Call"));
        let output = json!({"type": "function_call_output", "call_id": "c", "output": "42"});
        body["input"].as_array_mut().expect("a list").push(output);
        assert_eq!(said(&mut playing, &body), "The tool said: 42");
    }

    #[test]
    fn a_call_with_a_schema_gets_an_object() {
        let mut body = user("MOCK stall and then mend the loom");
        body["text"] = json!({"format": {"type": "json_schema", "schema":
            {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}}});
        let mut playing = Playing::new(Script::default());
        assert_eq!(
            said(&mut playing, &body),
            r#"{"title":"MOCK stall and then mend the loom"}"#
        );
    }
}
