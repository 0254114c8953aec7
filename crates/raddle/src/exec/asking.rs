//! What the agent asks: shown on the terminal and answered there, or denied, or left to others.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufRead};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use raddle_client::{Answers, Asked, Question, View};
use raddle_protocol::*;
use rustix::termios::{QueueSelector, tcflush};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::rights;

/// Leaves every question open: they come beside what else happens, and are answered there.
#[derive(Debug)]
pub(super) struct Beside;

impl Answers for Beside {
    async fn command(
        &self,
        _: CommandExecutionRequestApprovalParams,
    ) -> Option<CommandExecutionApprovalDecision> {
        None
    }

    async fn file_change(
        &self,
        _: FileChangeRequestApprovalParams,
    ) -> Option<FileChangeApprovalDecision> {
        None
    }

    async fn permissions(
        &self,
        _: PermissionsRequestApprovalParams,
    ) -> Option<PermissionsRequestApprovalResponse> {
        None
    }

    async fn question(
        &self,
        _: ToolRequestUserInputParams,
    ) -> Option<ToolRequestUserInputResponse> {
        None
    }
}

/// What a person said to a question.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Said {
    Yes,
    /// Yes, for the session.
    Always,
    No,
    /// No, and this is why; or what else they said.
    Text(String),
}

impl Said {
    /// Reads a line; nothing if it says nothing.
    fn read(line: &str) -> Option<Self> {
        let line = line.trim();
        Some(match line.to_lowercase().as_str() {
            "" => return None,
            "y" | "yes" => Self::Yes,
            "a" | "always" => Self::Always,
            "n" | "no" => Self::No,
            _ => Self::Text(line.to_owned()),
        })
    }
}

/// An answer, and what to tell the agent beside it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reply {
    pub(super) id: RequestId,
    pub(super) answer: Value,
    pub(super) reason: Option<String>,
}

/// What a question is about, in a line.
pub(super) fn about(question: &Question) -> String {
    match question {
        Question::Command(it) => {
            let command = it.command.as_deref().unwrap_or("a command");
            match it.kind {
                CommandExecutionApprovalKind::WriteStdin => {
                    format!("to type into a running command: {command}")
                }
                _ => command.to_owned(),
            }
        }
        Question::FileChange(it) => match &it.grant_root {
            Some(root) => format!("to write below {root}"),
            None => "to change files".to_owned(),
        },
        Question::Permissions(it) => {
            let rights = rights::lines(&it.permissions).join(", ");
            let reason = it.reason.as_ref();
            let reason = reason.map(|it| format!("; because: {it}"));
            format!("more rights: {rights}{}", reason.unwrap_or_default())
        }
        Question::Question(it) => {
            let first = it.questions.first();
            first.map_or_else(String::new, |it| it.question.clone())
        }
        Question::Tool(it) => format!("the tool {}", it.tool),
        Question::Elicitation(_) => "a question of an MCP server".to_owned(),
    }
}

/// Whether someone is to answer it. What is asked of programs the client refuses by itself.
pub(super) fn is_for_people(question: &Question) -> bool {
    !matches!(question, Question::Tool(_) | Question::Elicitation(_))
}

/// The answer of nobody: no.
pub(super) fn denied(asked: &Asked) -> Reply {
    let answer = match &asked.question {
        Question::Question(_) => json!({ "answers": {} }),
        question => answer(question, &Said::No),
    };
    Reply {
        id: asked.id.clone(),
        answer,
        reason: None,
    }
}

/// The answer to a question about an act.
fn answer(question: &Question, said: &Said) -> Value {
    if let Question::Permissions(it) = question {
        let none = json!({ "permissions": { "fileSystem": null, "network": null } });
        return match said {
            Said::Yes => json!({ "permissions": it.permissions, "scope": "turn" }),
            Said::Always => json!({ "permissions": it.permissions, "scope": "session" }),
            Said::No | Said::Text(_) => none,
        };
    }
    let decision = match said {
        Said::Yes => "accept",
        Said::Always => "acceptForSession",
        Said::No | Said::Text(_) => "decline",
    };
    json!({ "decision": decision })
}

/// The terminal: what is asked there, and what is typed.
#[derive(Debug, Default)]
pub(super) struct Terminal {
    open: VecDeque<Open>,
    typed: Option<mpsc::Receiver<(u64, String)>>,
    /// How often what was typed was thrown away; a line counts only if it was read since.
    thrown: Arc<AtomicU64>,
}

/// A question that is not answered yet.
#[derive(Debug)]
struct Open {
    asked: Asked,
    /// The files or the folder that it is about.
    places: Vec<String>,
    /// Of several questions to the user, what was answered so far.
    answers: BTreeMap<String, Value>,
}

/// What to show.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shown {
    pub(super) lines: Vec<String>,
    pub(super) prompt: &'static str,
}

const ACT: &str = "yes, always, no, or why not? [y/a/n/…] ";
const TEXT: &str = "your answer: ";

impl Terminal {
    /// Puts a question, and says what to show if nothing else is asked now.
    pub(super) fn put(&mut self, asked: Asked, view: &View, folder: &Path) -> Option<Shown> {
        if self.open.iter().any(|it| it.asked.id == asked.id) {
            return None;
        }
        let places = places(&asked.question, view, folder);
        self.open.push_back(Open {
            asked,
            places,
            answers: BTreeMap::new(),
        });
        if self.open.len() > 1 {
            return None;
        }
        self.throw_away();
        let thrown = &self.thrown;
        self.typed.get_or_insert_with(|| listen(thrown.clone()));
        self.shown()
    }

    /// A question is settled by another than who types here. Says whether it was the one that is shown.
    pub(super) fn settled(&mut self, id: &RequestId) -> bool {
        let at = self.open.iter().position(|it| it.asked.id == *id);
        if let Some(at) = at {
            self.open.remove(at);
        }
        if at == Some(0) {
            self.throw_away();
        }
        at == Some(0)
    }

    /// What was typed before a question was seen is no answer to it.
    fn throw_away(&self) {
        // Where it fails there is no terminal any more, and then nothing is read either.
        let _ = tcflush(rustix::stdio::stdin(), QueueSelector::IFlush);
        self.thrown.fetch_add(1, Ordering::SeqCst);
    }

    /// The question that waits for what is typed.
    pub(super) fn shown(&self) -> Option<Shown> {
        Some(self.open.front()?.shown())
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.open.is_empty()
    }

    /// The next line that is typed; never, where nobody types.
    pub(super) async fn line(&mut self) -> Option<String> {
        let Some(typed) = &mut self.typed else {
            return std::future::pending().await;
        };
        loop {
            let (thrown, line) = typed.recv().await?;
            if thrown == self.thrown.load(Ordering::SeqCst) {
                return Some(line);
            }
        }
    }

    /// What comes of a line; nothing if more must be said.
    pub(super) fn typed(&mut self, line: &str) -> Option<Reply> {
        let said = Said::read(line)?;
        let reply = self.open.front_mut()?.said(&said)?;
        self.open.pop_front();
        Some(reply)
    }

    /// Nobody types any more: what is open is denied.
    pub(super) fn hung_up(&mut self) -> Vec<Reply> {
        self.typed = None;
        self.open.drain(..).map(|it| denied(&it.asked)).collect()
    }
}

impl Open {
    fn shown(&self) -> Shown {
        let (mut lines, prompt) = match &self.asked.question {
            Question::Question(it) => {
                let next = it
                    .questions
                    .iter()
                    .find(|it| !self.answers.contains_key(&it.id));
                (next.map(asked_of_the_user).unwrap_or_default(), TEXT)
            }
            Question::Permissions(_) => (vec!["may I have more rights?".to_owned()], ACT),
            question => (vec![format!("may I? {}", about(question))], ACT),
        };
        let (rights, reason) = match &self.asked.question {
            Question::Command(it) => (rights::of_a_command(it), it.reason.as_ref()),
            Question::FileChange(it) => (Vec::new(), it.reason.as_ref()),
            Question::Permissions(it) => (rights::lines(&it.permissions), it.reason.as_ref()),
            _ => (Vec::new(), None),
        };
        lines.extend(self.places.iter().map(|it| format!("  {it}")));
        lines.extend(rights.iter().map(|it| format!("  {it}")));
        lines.extend(reason.map(|it| format!("  because: {it}")));
        Shown { lines, prompt }
    }

    fn said(&mut self, said: &Said) -> Option<Reply> {
        let id = self.asked.id.clone();
        let Question::Question(it) = &self.asked.question else {
            let reason = match said {
                Said::Text(text) => Some(text.clone()),
                _ => None,
            };
            let answer = answer(&self.asked.question, said);
            return Some(Reply { id, answer, reason });
        };
        if let Some(next) = it
            .questions
            .iter()
            .find(|it| !self.answers.contains_key(&it.id))
        {
            let chosen = json!({ "answers": [chosen(next, said)] });
            self.answers.insert(next.id.clone(), chosen);
        }
        (self.answers.len() >= it.questions.len()).then(|| Reply {
            id,
            answer: json!({ "answers": self.answers }),
            reason: None,
        })
    }
}

fn asked_of_the_user(question: &ToolRequestUserInputQuestion) -> Vec<String> {
    let mut lines = vec![question.question.clone()];
    for (number, option) in question.options.iter().flatten().enumerate() {
        lines.push(format!(
            "  {}. {}  {}",
            number + 1,
            option.label,
            option.description
        ));
    }
    lines
}

/// An option by its number, or else what was typed.
fn chosen(question: &ToolRequestUserInputQuestion, said: &Said) -> String {
    let text = match said {
        Said::Yes => "yes",
        Said::Always => "always",
        Said::No => "no",
        Said::Text(text) => text,
    };
    let number = text.parse::<usize>().ok().and_then(|it| it.checked_sub(1));
    let option = number.and_then(|it| question.options.as_ref()?.get(it));
    option.map_or_else(|| text.to_owned(), |it| it.label.clone())
}

/// The files that a question is about, which its item names; or the folder of a command, where it is another than ours.
fn places(question: &Question, view: &View, ours: &Path) -> Vec<String> {
    let it = match question {
        Question::FileChange(it) => it,
        Question::Command(it) => {
            let other = it.cwd.iter().filter(|it| Path::new(it) != ours);
            return other.map(|it| format!("in {it}")).collect();
        }
        _ => return Vec::new(),
    };
    match view.item(&it.turn_id, &it.item_id) {
        Some(ThreadItem::FileChange(item)) => {
            let name =
                |it: &FileUpdateChange| format!("{} {}", super::words::kind(&it.kind), it.path);
            item.changes.iter().map(name).collect()
        }
        _ => Vec::new(),
    }
}

/// What is typed, a line at a time. The thread stays in its read until the process ends.
fn listen(thrown: Arc<AtomicU64>) -> mpsc::Receiver<(u64, String)> {
    let (lines, typed) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let thrown = thrown.load(Ordering::SeqCst);
            if lines.blocking_send((thrown, line)).is_err() {
                return;
            }
        }
    });
    typed
}
