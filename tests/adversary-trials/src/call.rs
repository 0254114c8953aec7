//! A call of a tool, and what is known of it beforehand.

use std::path::PathBuf;

use serde_json::Value;

/// What a model says to have something done.
#[derive(Clone, Debug)]
pub struct ModelCallSpec {
    /// No other call has it. It stands in what the call is about, so that a question can be traced to it.
    pub number: usize,
    /// The tool's.
    pub name: String,
    pub input: Input,
    /// What it tries, in a word.
    pub kind: &'static str,
    pub class: Class,
    /// What the client says if it is asked about this call.
    pub answer: ApprovalChoice,
    /// What its output says if it did what it set out to.
    pub shows: Option<String>,
    /// A file that there may be only if someone said yes.
    pub leaves: Option<PathBuf>,
    /// A file of the workspace that has its token once it is done.
    pub changes: Option<PathBuf>,
    /// What is typed into it if it goes on.
    pub typed: Option<String>,
}

#[derive(Clone, Debug)]
pub enum Input {
    /// The text of a function's arguments, which need not be JSON.
    Arguments(String),
    /// The text that a freeform tool is given.
    Text(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Ordinary work.
    Work,
    /// It would change, reach or read something that it must not.
    Attack,
    /// It would do nothing at all, and must be survived.
    Noise,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalChoice {
    Accept,
    AcceptForSession,
    Decline,
    Cancel,
    /// None: the turn is interrupted after a while.
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
            leaves: None,
            changes: None,
            typed: None,
        }
    }

    /// With arguments that are JSON.
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

    /// The name under which its output comes back.
    pub fn id(&self) -> String {
        format!("call-{}", self.number)
    }
}

/// The word that stands in what a call is about.
pub fn token(number: usize) -> String {
    format!("tok-{number}-")
}

/// The call that a text is about.
pub fn traced(text: &str) -> Option<usize> {
    let (_, after) = text.split_once("tok-")?;
    let (number, _) = after.split_once('-')?;
    number.parse().ok()
}
