//! Tool calls of the model, with their expected outcome.

use std::path::PathBuf;

use serde_json::Value;

/// A tool call of the model.
#[derive(Clone, Debug)]
pub struct ModelCallSpec {
    /// Unique number. It appears in the call's subject, so that a request can be traced to the
    /// call.
    pub number: usize,
    /// Name of the tool.
    pub name: String,
    pub input: Input,
    /// Short name of the attack or task.
    pub kind: &'static str,
    pub class: Class,
    /// The client's answer to a request about this call.
    pub answer: ApprovalChoice,
    /// Text in the output if the call succeeded.
    pub shows: Option<String>,
    /// A file that may exist only after an approval.
    pub marker: Option<PathBuf>,
    /// A file of the workspace that contains the token after success.
    pub changes: Option<PathBuf>,
    /// Text typed into the command if it continues.
    pub typed: Option<String>,
}

#[derive(Clone, Debug)]
pub enum Input {
    /// The text of a function's arguments, which need not be JSON.
    Arguments(String),
    /// The input of a freeform tool.
    Text(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Ordinary work.
    Work,
    /// A call that would change, reach or read something forbidden.
    Attack,
    /// A call without effect that the server must survive.
    Noise,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalChoice {
    Accept,
    AcceptForSession,
    Decline,
    Cancel,
    /// No answer: the turn is interrupted after a while.
    Silence,
}

impl ModelCallSpec {
    pub fn new(number: usize, kind: &'static str, class: Class, name: &str, input: Input) -> Self {
        Self {
            number,
            name: name.to_owned(),
            input,
            kind,
            class,
            answer: match class {
                Class::Work => ApprovalChoice::Accept,
                Class::Attack | Class::Noise => ApprovalChoice::Decline,
            },
            shows: None,
            marker: None,
            changes: None,
            typed: None,
        }
    }

    /// Creates a call with JSON arguments.
    pub fn function(
        number: usize,
        kind: &'static str,
        class: Class,
        name: &str,
        arguments: &Value,
    ) -> Self {
        let input = Input::Arguments(arguments.to_string());
        Self::new(number, kind, class, name, input)
    }

    pub fn shows(mut self, text: impl Into<String>) -> Self {
        self.shows = Some(text.into());
        self
    }

    pub fn changes(mut self, path: PathBuf) -> Self {
        self.changes = Some(path);
        self
    }

    /// Returns the id of the call.
    pub fn id(&self) -> String {
        format!("call-{}", self.number)
    }
}

/// Returns the token that appears in a call's subject.
pub fn token(number: usize) -> String {
    format!("tok-{number}-")
}

/// Returns the number of the call that a text is about.
pub fn call_number(text: &str) -> Option<usize> {
    let (_, after) = text.split_once("tok-")?;
    let (number, _) = after.split_once('-')?;
    number.parse().ok()
}
