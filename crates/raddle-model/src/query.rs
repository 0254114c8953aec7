//! Questions to a model, for every vendor.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::CallForm;

/// Question to a model. The vendor decides what is not set.
#[derive(Clone, Debug, Default)]
pub struct ModelQuery<'a> {
    /// The vendor's id of the model.
    pub model: &'a str,
    /// Instructions that precede the history.
    pub instructions: Cow<'a, str>,
    /// The history. Every call has one output, before the next entry.
    pub history: Vec<HistoryEntry<'a>>,
    /// The tools that the model may call.
    pub tools: Vec<ToolDef<'a>>,
    /// Whether the model may not call the tools.
    pub calls_nothing: bool,
    /// The effort of the thinking.
    pub effort: Option<&'a str>,
    /// The style of the summary of its thinking.
    pub summary: Option<&'a str>,
    /// A schema that the answer must match.
    pub output_schema: Option<&'a Value>,
    /// The vendor's service tier.
    pub service_tier: Option<&'a str>,
    /// Maximum number of tokens in the answer.
    pub output_tokens_max: Option<u32>,
}

/// An entry of the history.
#[derive(Clone, Debug, PartialEq)]
pub enum HistoryEntry<'a> {
    /// A message of the user.
    User(Vec<InputPart<'a>>),
    /// A message of any model.
    Assistant {
        /// The text of the message.
        text: &'a str,
        /// Opaque data that this vendor, and no other, sealed with it on this wire.
        sealed: Option<&'a Value>,
    },
    /// Thinking that this vendor, and no other, sealed on this wire.
    Sealed(&'a Value),
    /// The model called a tool.
    Call {
        /// The id of the call.
        id: &'a str,
        /// The name of the tool.
        name: &'a str,
        /// The arguments, as the model wrote them.
        arguments: &'a str,
        /// The form of the arguments.
        form: CallForm,
    },
    /// The output of a call.
    Output {
        /// The id of the call.
        call: &'a str,
        /// The text of the output.
        text: &'a str,
        /// Images, by their addresses.
        images: Vec<&'a str>,
        /// Whether the call failed.
        failed: bool,
    },
}

/// A part of a message to a model.
#[derive(Clone, Debug, PartialEq)]
pub enum InputPart<'a> {
    /// Text of the message.
    Text(Cow<'a, str>),
    /// An image by its address.
    Image {
        /// Its address, often a `data:` URL that contains it.
        url: &'a str,
        /// The resolution at which the model reads it.
        detail: Option<&'a str>,
    },
}

/// A tool definition for a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDef<'a> {
    /// The name of the tool.
    pub name: &'a str,
    /// The purpose of the tool.
    pub description: &'a str,
    /// JSON Schema of its arguments.
    pub schema: &'a Value,
}

impl ModelQuery<'_> {
    /// Whether the model must think and report it. A model that cannot think rejects such a
    /// request.
    pub(crate) fn thinks(&self) -> bool {
        self.effort.is_some_and(|it| it != "none") || self.summary.is_some_and(|it| it != "none")
    }
}

/// Returns the arguments of a call as an object, for wires that accept nothing else. Other
/// arguments, such as a patch or a truncated call, are wrapped in one: the history must stay valid
/// for the next model.
pub(crate) fn object(arguments: &str, form: CallForm) -> Cow<'_, RawValue> {
    let text = match arguments.trim() {
        "" => "{}",
        text => text,
    };
    let is_object = form == CallForm::Function && text.starts_with('{');
    if is_object && let Ok(raw) = serde_json::from_str::<&RawValue>(text) {
        return Cow::Borrowed(raw);
    }
    let wrapped = serde_json::value::to_raw_value(&json!({ "input": arguments }));
    // An object with a text in it can always be encoded.
    wrapped.map_or(Cow::Borrowed(RawValue::NULL), Cow::Owned)
}

/// Returns the media type and the data of a `data:` URL.
pub(crate) fn data_url(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

/// The calls of a history, under ids that every vendor accepts: other vendors use other characters,
/// and engines that number their calls restart with every answer.
#[derive(Debug, Default)]
pub(crate) struct CallIds<'a> {
    /// Calls without an output, by their original ids.
    open: HashMap<&'a str, VecDeque<PastCall<'a>>>,
    used_ids: HashSet<String>,
}

/// A call of the history.
#[derive(Clone, Debug, Default)]
pub(crate) struct PastCall<'a> {
    /// Its id in this request.
    pub(crate) id: String,
    /// The name of the tool.
    pub(crate) name: &'a str,
    /// Number of calls before it.
    pub(crate) index: usize,
}

impl<'a> CallIds<'a> {
    /// Adds a call and returns its id.
    pub(crate) fn add_call(&mut self, id: &'a str, name: &'a str) -> String {
        let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
        let base_id = id.chars().map(|it| if is_plain(it) { it } else { '_' });
        let base_id: String = base_id.collect();
        let mut unique_id = base_id.clone();
        while unique_id.is_empty() || self.used_ids.contains(&unique_id) {
            unique_id = format!("{base_id}_{}", self.used_ids.len());
        }
        let at = self.used_ids.len();
        self.used_ids.insert(unique_id.clone());
        let call = PastCall {
            id: unique_id.clone(),
            name,
            index: at,
        };
        self.open.entry(id).or_default().push_back(call);
        unique_id
    }

    /// Takes the call of an output.
    pub(crate) fn take_call(&mut self, id: &str) -> PastCall<'a> {
        let call = self.open.get_mut(id).and_then(VecDeque::pop_front);
        call.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_get_unique_ids_and_outputs_match_them() {
        let mut calls = CallIds::default();
        for (id, expected) in [
            ("call_1", "call_1"),
            ("functions.look:0", "functions_look_0"),
            ("call_1", "call_1_2"),
            ("", "_3"),
            ("é", "_"),
        ] {
            assert_eq!(calls.add_call(id, "look"), expected, "{id}");
        }
        for (id, expected) in [
            ("call_1", "call_1"),
            ("functions.look:0", "functions_look_0"),
            ("call_1", "call_1_2"),
            ("nobody's", ""),
        ] {
            assert_eq!(calls.take_call(id).id, expected, "{id}");
        }
    }

    #[test]
    fn arguments_are_an_object() {
        let (function, freeform) = (CallForm::Function, CallForm::Freeform);
        for (arguments, form, expected) in [
            (" {\"a\": 1} ", function, "{\"a\": 1}"),
            ("", function, "{}"),
            ("{\"a\":", function, r#"{"input":"{\"a\":"}"#),
            ("[1]", function, r#"{"input":"[1]"}"#),
            ("{}", freeform, r#"{"input":"{}"}"#),
        ] {
            assert_eq!(object(arguments, form).get(), expected, "{arguments}");
        }
    }

    #[test]
    fn images_are_taken_out_of_their_addresses() {
        for (url, expected) in [
            ("data:image/png;base64,AA==", Some(("image/png", "AA=="))),
            ("data:text/plain,hi", None),
            ("https://a.example/b.png", None),
        ] {
            assert_eq!(data_url(url), expected, "{url}");
        }
    }
}
