//! What a model is asked, whoever the vendor is.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::CallForm;

/// What a model is asked. What is not said is left to the vendor.
#[derive(Clone, Debug, Default)]
pub struct ModelQuery<'a> {
    /// The model.
    pub model: &'a str,
    /// What it should know before everything else.
    pub instructions: Cow<'a, str>,
    /// What was said so far. Every call has one output, before anything else is said.
    pub history: Vec<HistoryEntry<'a>>,
    /// What it may call.
    pub tools: Vec<ToolDef<'a>>,
    /// Whether it is only told of the tools.
    pub calls_nothing: bool,
    /// How hard it should think.
    pub effort: Option<&'a str>,
    /// How its thinking is summed up.
    pub summary: Option<&'a str>,
    /// A schema that its answer must fit.
    pub output_schema: Option<&'a Value>,
    /// The vendor's tier.
    pub service_tier: Option<&'a str>,
    /// The most tokens that its answer may have.
    pub output_tokens_max: Option<u32>,
}

/// Something that was said, called or given.
#[derive(Clone, Debug, PartialEq)]
pub enum HistoryEntry<'a> {
    /// To the model.
    User(Vec<InputPart<'a>>),
    /// By the model, whichever it was.
    Assistant {
        /// The words.
        text: &'a str,
        /// What this vendor sealed with them on this wire, and no other.
        sealed: Option<&'a Value>,
    },
    /// Thinking that this vendor sealed on this wire, and no other.
    Sealed(&'a Value),
    /// The model called a tool.
    Call {
        /// The call's id.
        id: &'a str,
        /// The tool.
        name: &'a str,
        /// What it was called with, as written.
        arguments: &'a str,
        /// In what form.
        form: CallForm,
    },
    /// What came of a call.
    Output {
        /// Whose.
        call: &'a str,
        /// In words.
        text: &'a str,
        /// In images, by their addresses.
        images: Vec<&'a str>,
        /// Whether it went wrong.
        failed: bool,
    },
}

/// A part of what is said to a model.
#[derive(Clone, Debug, PartialEq)]
pub enum InputPart<'a> {
    /// Words.
    Text(Cow<'a, str>),
    /// An image.
    Image {
        /// Where it is, which is often a `data:` address that holds it.
        url: &'a str,
        /// How closely it should be looked at.
        detail: Option<&'a str>,
    },
}

/// A tool, as a model is told of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDef<'a> {
    /// What it is called.
    pub name: &'a str,
    /// What it is for.
    pub description: &'a str,
    /// JSON Schema of its arguments.
    pub schema: &'a Value,
}

impl ModelQuery<'_> {
    /// Whether the model is to think, and to say so. One that cannot refuses to be asked for it.
    pub(crate) fn thinks(&self) -> bool {
        self.effort.is_some_and(|it| it != "none") || self.summary.is_some_and(|it| it != "none")
    }
}

/// The arguments of a call as an object, for wires that have no other. What is none, such as a patch or
/// half a call, is put into one: the history must stay readable for whoever comes next.
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
    // An object with a text in it can always be written.
    wrapped.map_or(Cow::Borrowed(RawValue::NULL), Cow::Owned)
}

/// The media type and the data of an address that holds an image.
pub(crate) fn data_url(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

/// The calls of a history, under ids that no vendor refuses: other vendors have other letters in theirs, and
/// engines that number their calls begin again with every answer.
#[derive(Debug, Default)]
pub(crate) struct CallIds<'a> {
    /// Those without an output, by the ids they had.
    open: HashMap<&'a str, VecDeque<PastCall<'a>>>,
    taken: HashSet<String>,
}

/// A call.
#[derive(Clone, Debug, Default)]
pub(crate) struct PastCall<'a> {
    /// Its id here.
    pub(crate) id: String,
    /// The tool.
    pub(crate) name: &'a str,
    /// How many calls were made before it.
    pub(crate) at: usize,
}

impl<'a> CallIds<'a> {
    /// A call was made. Gives its id.
    pub(crate) fn add_call(&mut self, id: &'a str, name: &'a str) -> String {
        let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
        let plain = id.chars().map(|it| if is_plain(it) { it } else { '_' });
        let plain: String = plain.collect();
        let mut id_here = plain.clone();
        while id_here.is_empty() || self.taken.contains(&id_here) {
            id_here = format!("{plain}_{}", self.taken.len());
        }
        let at = self.taken.len();
        self.taken.insert(id_here.clone());
        let call = PastCall {
            id: id_here.clone(),
            name,
            at,
        };
        self.open.entry(id).or_default().push_back(call);
        id_here
    }

    /// It was answered.
    pub(crate) fn take_call(&mut self, id: &str) -> PastCall<'a> {
        let call = self.open.get_mut(id).and_then(VecDeque::pop_front);
        call.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_ids_of_their_own_and_each_is_answered() {
        let mut calls = CallIds::default();
        for (id, wanted) in [
            ("call_1", "call_1"),
            ("functions.look:0", "functions_look_0"),
            ("call_1", "call_1_2"),
            ("", "_3"),
            ("é", "_"),
        ] {
            assert_eq!(calls.add_call(id, "look"), wanted, "{id}");
        }
        for (id, wanted) in [
            ("call_1", "call_1"),
            ("functions.look:0", "functions_look_0"),
            ("call_1", "call_1_2"),
            ("nobody's", ""),
        ] {
            assert_eq!(calls.take_call(id).id, wanted, "{id}");
        }
    }

    #[test]
    fn arguments_are_an_object() {
        let (function, freeform) = (CallForm::Function, CallForm::Freeform);
        for (arguments, form, wanted) in [
            (" {\"a\": 1} ", function, "{\"a\": 1}"),
            ("", function, "{}"),
            ("{\"a\":", function, r#"{"input":"{\"a\":"}"#),
            ("[1]", function, r#"{"input":"[1]"}"#),
            ("{}", freeform, r#"{"input":"{}"}"#),
        ] {
            assert_eq!(object(arguments, form).get(), wanted, "{arguments}");
        }
    }

    #[test]
    fn images_are_taken_out_of_their_addresses() {
        for (url, wanted) in [
            ("data:image/png;base64,AA==", Some(("image/png", "AA=="))),
            ("data:text/plain,hi", None),
            ("https://a.example/b.png", None),
        ] {
            assert_eq!(data_url(url), wanted, "{url}");
        }
    }
}
