//! Requests of the agent: answered on the terminal, denied, or left to other clients.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use raddle_client::{OpenQuestion, ServerQuestion, ThreadView};
use raddle_protocol::*;
use serde_json::{Value, json};

use super::elicitation::{self, FormProgress};
use super::explanations;
use super::hunk_choice::{self, CommentRule, HunkChoice};
use super::keyboard::Keyboard;
use super::permissions;
use super::quote::Quote;

/// A user's answer to an approval request.
#[derive(Clone, Debug, PartialEq)]
enum TypedAnswer {
    Yes,
    /// Approved for the session.
    Always,
    /// Approved, with a rule that allows commands that begin with these words.
    Rule(Vec<String>),
    No,
    /// Declined, with a reason.
    Text(String),
}

impl TypedAnswer {
    fn read(line: &str) -> Self {
        match line.to_lowercase().as_str() {
            "y" | "yes" => Self::Yes,
            "a" | "always" => Self::Always,
            "n" | "no" => Self::No,
            _ => Self::Text(line.to_owned()),
        }
    }
}

/// An answer, with an optional message for the agent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct QuestionReply {
    pub(crate) id: RequestId,
    pub(crate) answer: Value,
    pub(crate) reason: Option<String>,
}

/// Summarises a request in a line.
pub(crate) fn about(question: &ServerQuestion) -> String {
    match question {
        ServerQuestion::Command(it) => {
            let command = it.command.as_deref().unwrap_or("a command");
            match it.kind {
                CommandExecutionApprovalKind::WriteStdin => {
                    format!("input for a running command: {command}")
                }
                _ => command.to_owned(),
            }
        }
        ServerQuestion::FileChange(it) => match &it.grant_root {
            Some(root) => format!("changes below {root}"),
            None => "changes of files".to_owned(),
        },
        ServerQuestion::Permissions(it) => {
            let rights = permissions::lines(&it.permissions).join(", ");
            let reason = it.reason.as_ref();
            let reason = reason.map(|it| format!("; because: {it}"));
            format!("permissions: {rights}{}", reason.unwrap_or_default())
        }
        ServerQuestion::Question(it) => {
            let first = it.questions.first();
            first.map_or_else(String::new, |it| it.question.clone())
        }
        ServerQuestion::Tool(it) => format!("the tool {}", it.tool),
        ServerQuestion::Elicitation(it) => elicitation::about(it),
    }
}

/// Returns the question to the user: words of ours, and then text of the agent.
fn approval_question(question: &ServerQuestion) -> Quote {
    let words = match question {
        ServerQuestion::Command(it) => match (&it.command, &it.kind) {
            (Some(command), CommandExecutionApprovalKind::WriteStdin) => {
                return Quote::new("Type into this running command? ", command);
            }
            (Some(command), _) => return Quote::new("Run this command? ", command),
            (None, _) => "Run a command?",
        },
        ServerQuestion::FileChange(it) => match &it.grant_root {
            Some(root) => return Quote::new("Change files below this folder? ", root),
            None => "Change these files?",
        },
        ServerQuestion::Permissions(_) => "Grant these permissions?",
        ServerQuestion::Question(_) | ServerQuestion::Tool(_) | ServerQuestion::Elicitation(_) => {
            return Quote::new("Allow this? ", about(question));
        }
    };
    Quote::new(words, "")
}

/// Whether a user should answer the request. The client itself rejects requests for programs.
pub(crate) fn is_for_people(question: &ServerQuestion) -> bool {
    !matches!(question, ServerQuestion::Tool(_))
}

/// The answer without a user: denied.
pub(crate) fn denied(open_question: &OpenQuestion) -> QuestionReply {
    let answer = match &open_question.question {
        ServerQuestion::Question(_) => json!({ "answers": {} }),
        ServerQuestion::Elicitation(_) => elicitation::declined(),
        question => answer(question, &TypedAnswer::No),
    };
    QuestionReply {
        id: open_question.id.clone(),
        answer,
        reason: None,
    }
}

/// The answer to an approval request.
fn answer(question: &ServerQuestion, typed: &TypedAnswer) -> Value {
    if let ServerQuestion::Permissions(it) = question {
        let none = json!({ "permissions": { "fileSystem": null, "network": null } });
        return match typed {
            TypedAnswer::Yes => json!({ "permissions": it.permissions, "scope": "turn" }),
            TypedAnswer::Always => json!({ "permissions": it.permissions, "scope": "session" }),
            TypedAnswer::No | TypedAnswer::Text(_) | TypedAnswer::Rule(_) => none,
        };
    }
    let decision = match typed {
        TypedAnswer::Yes => json!("accept"),
        TypedAnswer::Always => json!("acceptForSession"),
        TypedAnswer::Rule(words) => {
            json!({ "acceptWithExecpolicyAmendment": { "execpolicy_amendment": words } })
        }
        TypedAnswer::No | TypedAnswer::Text(_) => json!("decline"),
    };
    json!({ "decision": decision })
}

/// The prompt on the terminal: open requests and keyboard input.
#[derive(Debug, Default)]
pub(crate) struct TerminalPrompt {
    open: VecDeque<TerminalQuestion>,
    keyboard: Keyboard,
}

/// A request that is not answered yet.
#[derive(Debug)]
struct TerminalQuestion {
    question: OpenQuestion,
    /// The files or the folder of the request, and the changes of the files.
    subjects: Vec<Vec<Quote>>,
    /// The answers so far, if the request has several questions.
    answers: BTreeMap<String, Value>,
    /// The answer so far to the question of an MCP server.
    form: FormProgress,
    /// The choice of hunks, once the user began it.
    choice: Option<HunkChoice>,
    /// The page to show, once the user asked for the full text and the explanations.
    page: Option<usize>,
}

/// The view to draw.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PromptView {
    /// Each section may be truncated if it is long.
    pub(crate) things: Vec<Vec<Quote>>,
    /// The page to show of the full text.
    pub(crate) page: Option<usize>,
    pub(crate) prompt: &'static str,
}

const ACT: &str = "yes, always in this session, no, or why not? [y/a/n/?/…] ";
const ACT_OR_HUNKS: &str =
    "yes, always in this session, hunk by hunk, no, or why not? [y/a/h/n/?/…] ";
const ACT_OR_RULE: &str = "yes, always in this session, rule, no, or why not? [y/a/r/n/?/…] ";
const TEXT: &str = "your answer: ";
const OPTION: &str = "the number of your answer: ";
const OPTION_OR_TEXT: &str = "the number of your answer, or another in words: ";

/// The input that pages through the full text of a request and the explanations of its answers.
const WHOLE: &str = "?";

impl TerminalPrompt {
    /// Enqueues a request. Returns the view to draw if it is the only one.
    pub(crate) fn put(
        &mut self,
        question: OpenQuestion,
        view: &ThreadView,
        folder: &Path,
    ) -> Option<PromptView> {
        if self.open.iter().any(|it| it.question.id == question.id) {
            return None;
        }
        let subjects = subjects(&question.question, view, folder);
        self.open.push_back(TerminalQuestion {
            question,
            subjects,
            answers: BTreeMap::new(),
            form: FormProgress::default(),
            choice: None,
            page: None,
        });
        if self.open.len() > 1 {
            return None;
        }
        self.next()
    }

    /// Removes a request that another client answered. Returns whether it was the one on screen.
    pub(crate) fn settled(&mut self, id: &RequestId) -> bool {
        let at = self.open.iter().position(|it| it.question.id == *id);
        if let Some(at) = at {
            self.open.remove(at);
        }
        at == Some(0)
    }

    /// The request to show now. Discards earlier input, since it cannot be an answer to this
    /// request.
    pub(crate) fn next(&mut self) -> Option<PromptView> {
        let shown = self.open.front()?.shown();
        self.keyboard.discard_input();
        Some(shown)
    }

    pub(crate) fn is_waiting(&self) -> bool {
        !self.open.is_empty()
    }

    /// Waits for the next line while a request is open. Returns `None` at the end of input.
    pub(crate) async fn line(&mut self) -> Option<String> {
        if self.open.is_empty() {
            return std::future::pending().await;
        }
        self.keyboard.line().await
    }

    /// Handles a line. Returns `None` if the answer is not complete.
    pub(crate) fn typed(&mut self, line: &str) -> Option<QuestionReply> {
        let reply = self.open.front_mut()?.handle_line(line.trim())?;
        self.open.pop_front();
        Some(reply)
    }

    /// Denies all open requests at the end of input.
    pub(crate) fn hung_up(&mut self) -> Vec<QuestionReply> {
        self.open.drain(..).map(|it| denied(&it.question)).collect()
    }
}

impl TerminalQuestion {
    fn shown(&self) -> PromptView {
        if let Some(choice) = &self.choice {
            let mut things = vec![choice.shown()];
            if self.page.is_some() {
                things.push(explanations::of_hunks());
            }
            return PromptView {
                things,
                page: self.page,
                prompt: hunk_choice::PROMPT,
            };
        }
        let (first, prompt) = match &self.question.question {
            ServerQuestion::Question(it) => {
                let next = it.questions.iter().find(|it| self.is_open(it));
                next.map_or((Vec::new(), TEXT), user_question_view)
            }
            ServerQuestion::Elicitation(it) => self.form.view(it),
            question => {
                let prompt = match (self.rule(), self.new_choice()) {
                    (Some(_), _) => ACT_OR_RULE,
                    (None, Some(_)) => ACT_OR_HUNKS,
                    (None, None) => ACT,
                };
                (vec![approval_question(question)], prompt)
            }
        };
        let (rights, reason) = match &self.question.question {
            ServerQuestion::Command(it) => (permissions::of_a_command(it), it.reason.as_ref()),
            ServerQuestion::FileChange(it) => (Vec::new(), it.reason.as_ref()),
            ServerQuestion::Permissions(it) => {
                (permissions::lines(&it.permissions), it.reason.as_ref())
            }
            _ => (Vec::new(), None),
        };
        let rights = rights.into_iter().map(|it| Quote::new("  ", it));
        let reason = reason.map(|it| Quote::new("  because: ", it));
        let mut things = vec![first];
        things.extend(self.subjects.iter().cloned());
        things.extend([rights.collect(), reason.into_iter().collect()]);
        if let Some(words) = self.rule() {
            things.push(vec![explanations::rule(words)]);
        }
        if self.page.is_some() {
            things.push(explanations::of(&self.question.question));
        }
        PromptView {
            things,
            page: self.page,
            prompt,
        }
    }

    fn handle_line(&mut self, line: &str) -> Option<QuestionReply> {
        match line {
            "" => return None,
            WHOLE => {
                self.page = Some(self.page.map_or(0, |it| it + 1));
                return None;
            }
            _ => {}
        }
        let id = self.question.id.clone();
        if let Some(choice) = &mut self.choice {
            // Each hunk is shown in short first.
            self.page = None;
            let hunks = choice.handle_line(line)?;
            let answer = json!({ "decision": { "acceptHunks": { "hunks": hunks } } });
            let reason = None;
            return Some(QuestionReply { id, answer, reason });
        }
        if let ServerQuestion::Elicitation(it) = &self.question.question {
            let answer = self.form.handle_line(it, line)?;
            let reason = None;
            return Some(QuestionReply { id, answer, reason });
        }
        let ServerQuestion::Question(it) = &self.question.question else {
            let typed = match (line.to_lowercase().as_str(), self.rule()) {
                ("r" | "rule", Some(words)) => TypedAnswer::Rule(words.to_vec()),
                // No rule is offered, so it is no answer.
                ("r" | "rule", None) => return None,
                ("h" | "hunks" | "hunk by hunk", _) => {
                    self.choice = self.new_choice();
                    self.page = None;
                    return None;
                }
                _ => TypedAnswer::read(line),
            };
            let answer = answer(&self.question.question, &typed);
            let reason = match typed {
                TypedAnswer::Text(text) => Some(text),
                _ => None,
            };
            return Some(QuestionReply { id, answer, reason });
        };
        if let Some(next) = it.questions.iter().find(|it| self.is_open(it)) {
            let chosen = json!({ "answers": [chosen(next, line)?] });
            self.answers.insert(next.id.clone(), chosen);
        }
        let is_over = !it.questions.iter().any(|it| self.is_open(it));
        is_over.then(|| QuestionReply {
            id,
            answer: json!({ "answers": self.answers }),
            reason: None,
        })
    }

    /// The words of the rule that the server offers to store, if it offers one.
    fn rule(&self) -> Option<&[String]> {
        match &self.question.question {
            ServerQuestion::Command(it) => {
                let words = it.proposed_execpolicy_amendment.as_deref();
                words.filter(|it| !it.is_empty())
            }
            _ => None,
        }
    }

    /// Returns the choice of hunks, if the server offers one.
    fn new_choice(&self) -> Option<HunkChoice> {
        match &self.question.question {
            ServerQuestion::FileChange(it) => {
                HunkChoice::new(it.hunks.as_deref()?, CommentRule::Allowed)
            }
            _ => None,
        }
    }

    fn is_open(&self, question: &ToolRequestUserInputQuestion) -> bool {
        !self.answers.contains_key(&question.id)
    }
}

fn user_question_view(question: &ToolRequestUserInputQuestion) -> (Vec<Quote>, &'static str) {
    let mut lines = vec![Quote::new("the agent asks: ", question.question.clone())];
    let options = question.options.as_deref().unwrap_or_default();
    for (number, option) in options.iter().enumerate() {
        let text = format!("{}  {}", option.label, option.description);
        lines.push(Quote::new(format!("  {}. ", number + 1), text));
    }
    let prompt = match (options, question.is_other) {
        ([], _) => TEXT,
        (_, true) => OPTION_OR_TEXT,
        (_, false) => OPTION,
    };
    (lines, prompt)
}

/// Returns the option with this number, name or prefix, or the text itself where free text is
/// allowed. `None` if the input is ambiguous or invalid: `y` selects none of the options unless one
/// starts with it.
fn chosen(question: &ToolRequestUserInputQuestion, line: &str) -> Option<String> {
    let options = question.options.as_deref().unwrap_or_default();
    if options.is_empty() {
        return Some(line.to_owned());
    }
    let number = line.parse::<usize>().ok().and_then(|it| it.checked_sub(1));
    if let Some(option) = number.and_then(|it| options.get(it)) {
        return Some(option.label.clone());
    }
    let typed = line.to_lowercase();
    let labels = || {
        options
            .iter()
            .map(|it| (&it.label, it.label.to_lowercase()))
    };
    if let Some((label, _)) = labels().find(|(_, it)| *it == typed) {
        return Some(label.clone());
    }
    let mut prefixed = labels().filter(|(_, it)| it.starts_with(&typed));
    match (prefixed.next(), prefixed.next(), TypedAnswer::read(line)) {
        (Some((label, _)), None, _) => Some(label.clone()),
        (_, _, TypedAnswer::Text(text)) if question.is_other => Some(text),
        _ => None,
    }
}

/// The files of a request, which its item lists, and their changes; or the folder of a command, if
/// it differs from ours.
fn subjects(question: &ServerQuestion, view: &ThreadView, ours: &Path) -> Vec<Vec<Quote>> {
    let it = match question {
        ServerQuestion::FileChange(it) => it,
        ServerQuestion::Command(it) => {
            let other = it.cwd.iter().filter(|it| Path::new(it) != ours);
            return vec![other.map(|it| Quote::new("  in ", it)).collect()];
        }
        _ => return Vec::new(),
    };
    match view.item(&it.turn_id, &it.item_id) {
        Some(ThreadItem::FileChange(item)) => {
            // All names come first, so that no long diff hides one.
            let names = item.changes.iter().flat_map(names).collect();
            let diffs = item.changes.iter().flat_map(diff).collect();
            vec![names, diffs]
        }
        _ => vec![vec![Quote::new(explanations::NO_CHANGES, "")]],
    }
}

/// A file that would change, and its new path if it would be moved.
fn names(change: &FileUpdateChange) -> Vec<Quote> {
    let lead = format!("  {} ", super::wire_items::kind(&change.kind));
    let mut names = vec![Quote::new(lead, &change.path)];
    if let PatchChangeKind::Update(UpdatePatchChangeKind {
        move_path: Some(target),
        ..
    }) = &change.kind
    {
        names.push(Quote::new("  and move it to ", target));
    }
    names
}

/// The diff of a file. On the wire, a file that is added or deleted has its content instead.
fn diff(change: &FileUpdateChange) -> Vec<Quote> {
    if change.diff.is_empty() {
        return Vec::new();
    }
    let text = match change.kind {
        PatchChangeKind::Add => marked('+', &change.diff),
        PatchChangeKind::Delete => marked('-', &change.diff),
        _ => change.diff.clone(),
    };
    vec![Quote::new("  in ", &change.path), Quote::diff(text)]
}

fn marked(mark: char, content: &str) -> String {
    let lines = content.split_inclusive('\n');
    lines.map(|line| format!("{mark}{line}")).collect()
}

#[cfg(test)]
mod tests;
