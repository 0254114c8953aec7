//! Progress of the run on stderr, for the user.

use std::collections::VecDeque;
use std::io::{self, IsTerminal, Write};
use std::time::Instant;

use raddle_console::{allows_colours, one_line, sanitize};
use raddle_protocol::Notification;
use rustix::termios::tcgetwinsize;

use super::events::{Event, ExecItem, ExecItemBody};
use super::options::Color;
use super::questions::PromptView;
use super::quote::{self, GUTTER, LineKind, Quote};

/// How much of a streaming text is kept, to show its end.
const TAIL_BYTES: usize = 256;

/// The maximum length of a command or a reasoning summary on one line.
const LINE_LETTERS: usize = 200;

/// The maximum length of a line of Raddle's own.
const OWN_LINE_LETTERS: usize = 1000;

/// How many lines are deferred while a question is open; of more, the last ones are kept.
const DEFERRED_LINES_MAX: usize = 500;

/// The assumed width of a terminal of unknown size.
const COLUMNS: usize = 80;

/// The assumed height of a terminal of unknown size.
const ROWS: usize = 24;

const DIM: &str = "2";
const BOLD: &str = "1";
const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";

/// The writer of stderr.
#[derive(Debug)]
pub(crate) struct Screen {
    /// Print only errors and questions.
    is_quiet: bool,
    /// Whether there is a status line at the bottom.
    is_live: bool,
    has_colours: bool,
    started_at: Instant,
    /// The status line, while it is visible.
    shown: Option<String>,
    /// The end of the text that the agent is streaming.
    tail: String,
    /// The agent's last message. It may be the answer, which goes to stdout, so it is shown only
    /// when more follows.
    pending_message: Option<String>,
    /// The reason of the last retry. The same reason is shown once until an item completes.
    retry_reason: Option<String>,
    /// The open question, as it was drawn. Only its answer is written after it: the user who reads
    /// the last line must not take another command for the one in the question.
    question: Option<String>,
    /// Lines to write when it is answered.
    deferred: VecDeque<String>,
}

impl Screen {
    pub(crate) fn new(is_quiet: bool, color: Color) -> Self {
        let is_terminal = io::stderr().is_terminal();
        Self {
            is_quiet,
            is_live: is_terminal && !is_quiet,
            has_colours: match color {
                Color::Auto => is_terminal && allows_colours(),
                Color::Always => true,
                Color::Never => false,
            },
            started_at: Instant::now(),
            shown: None,
            tail: String::new(),
            pending_message: None,
            retry_reason: None,
            question: None,
            deferred: VecDeque::new(),
        }
    }

    pub(crate) fn is_live(&self) -> bool {
        self.is_live
    }

    /// Takes up text deltas, which are not events yet, for the status line.
    pub(crate) fn on_notification(&mut self, notification: &Notification) {
        let delta = match notification {
            Notification::AgentMessageDelta(it) => &it.delta,
            Notification::ReasoningSummaryTextDelta(it) => &it.delta,
            Notification::CommandExecutionOutputDelta(it) => &it.delta,
            _ => return,
        };
        if !self.is_live {
            return;
        }
        self.tail.push_str(delta);
        let surplus = self.tail.len().saturating_sub(TAIL_BYTES);
        let cut = (surplus..=self.tail.len()).find(|it| self.tail.is_char_boundary(*it));
        self.tail.drain(..cut.unwrap_or_default());
    }

    /// Writes the lines for an event.
    pub(crate) fn event(&mut self, event: &Event) {
        if self.is_quiet {
            return;
        }
        match event {
            Event::ThreadStarted { thread_id } => self.line(DIM, &format!("thread {thread_id}")),
            Event::ItemStarted { item } => self.started(item),
            Event::ItemUpdated { item } => self.planned(item),
            Event::ItemCompleted { item } => self.completed(item),
            Event::Error {
                message,
                will_retry: true,
            } => self.retried(message),
            // The end of the run reports these.
            Event::TurnStarted {}
            | Event::TurnCompleted { .. }
            | Event::TurnFailed { .. }
            | Event::Error { .. } => {}
        }
    }

    /// Writes a line of Raddle's own, even if quiet. An open question is drawn again below it.
    pub(crate) fn say(&mut self, text: &str) {
        let line = format!("raddle: {}", one_line(text, OWN_LINE_LETTERS));
        match &self.question {
            Some(question) => put(&format!("\n{line}\n{question}")),
            None => self.write(&line),
        }
    }

    /// Draws a question, with the cursor behind the prompt.
    pub(crate) fn ask(&mut self, shown: &PromptView) {
        self.clear();
        let mut text = String::new();
        let lines = match shown.page {
            None => quote::laid_out(&shown.things, columns()),
            Some(number) => quote::page(&shown.things, columns(), rows(), number),
        };
        for line in lines {
            let colour = match line.kind {
                LineKind::Plain => BOLD,
                LineKind::Added => GREEN,
                LineKind::Removed => RED,
            };
            text.push_str(&self.painted(colour, &line.text));
            text.push('\n');
        }
        text.push_str(shown.prompt);
        put(&text);
        self.question = Some(text);
    }

    /// Ends the question after its answer, which ended a line.
    pub(crate) fn answered(&mut self) {
        self.question = None;
        for text in std::mem::take(&mut self.deferred) {
            self.write(&text);
        }
    }

    /// Ends a question that needs no answer any more.
    pub(crate) fn settled(&mut self, is_answered: bool) {
        put(match is_answered {
            true => "\nanswered elsewhere\n",
            false => "\nno longer asked\n",
        });
        self.answered();
    }

    /// Ends the output: removes the status line and writes the deferred lines.
    pub(crate) fn finish(&mut self) {
        self.clear();
        if self.question.is_some() {
            put("\n");
        }
        self.answered();
    }

    /// Updates the status line.
    pub(crate) fn tick(&mut self) {
        if !self.is_live {
            return;
        }
        let seconds = self.started_at.elapsed().as_secs();
        let lead = format!("{seconds:>4} s  ");
        let words = one_line(&self.tail, usize::MAX);
        // A wrapped line could not be cleared again.
        let width = columns().saturating_sub(lead.len() + 1);
        let line = self.painted(DIM, &format!("{lead}{}", quote::end(&words, width)));
        // Redrawing the same line would flicker.
        if self.shown.as_ref() != Some(&line) {
            put(&format!("\r\u{1b}[2K{line}"));
            self.shown = Some(line);
        }
    }

    /// Removes the status line.
    pub(crate) fn clear(&mut self) {
        if self.shown.take().is_some() {
            put("\r\u{1b}[2K");
        }
    }

    fn started(&mut self, item: &ExecItem) {
        match &item.body {
            ExecItemBody::CommandExecution { command, .. } => {
                self.line(BOLD, &format!("$ {}", one_line(command, LINE_LETTERS)));
            }
            ExecItemBody::McpToolCall { server, tool, .. } => {
                self.line(BOLD, &format!("tool {server}.{tool}"));
            }
            ExecItemBody::WebSearch { query, .. } => self.line(BOLD, &format!("search {query}")),
            ExecItemBody::TodoList { .. } => self.planned(item),
            _ => {}
        }
    }

    fn planned(&mut self, item: &ExecItem) {
        let ExecItemBody::TodoList { items } = &item.body else {
            return;
        };
        for it in items {
            let mark = if it.completed { 'x' } else { ' ' };
            self.line(
                DIM,
                &format!("[{mark}] {}", one_line(&it.text, LINE_LETTERS)),
            );
        }
    }

    fn retried(&mut self, reason: &str) {
        if self.retry_reason.as_deref() != Some(reason) {
            self.retry_reason = Some(reason.to_owned());
            self.notice(&format!("trying again: {reason}"));
        }
    }

    fn completed(&mut self, item: &ExecItem) {
        self.tail.clear();
        if !matches!(item.body, ExecItemBody::Error { .. }) {
            self.retry_reason = None;
        }
        match &item.body {
            ExecItemBody::AgentMessage { text } => {
                self.show_pending_message();
                self.pending_message = Some(text.clone());
            }
            ExecItemBody::Reasoning { text } => {
                let text = one_line(text, LINE_LETTERS);
                match self.is_live {
                    true => self.lines(DIM, &Quote::new(GUTTER, text)),
                    false => self.line(DIM, &text),
                }
            }
            ExecItemBody::CommandExecution {
                exit_code, status, ..
            } if *status != "completed" => match exit_code {
                Some(code) => self.lines(RED, &Quote::new("  ", format!("exit status {code}"))),
                None => self.lines(RED, &Quote::new("  ", one_line(status, LINE_LETTERS))),
            },
            ExecItemBody::FileChange {
                changes,
                status,
                is_declined,
            } => {
                let (colour, end) = match (*status, *is_declined) {
                    ("completed", _) => (BOLD, ""),
                    (_, true) => (RED, ": declined"),
                    (_, false) => (RED, ": failed"),
                };
                for it in changes {
                    self.line(colour, &format!("{} {}{end}", it.kind, it.path));
                }
            }
            ExecItemBody::McpToolCall {
                error: Some(error), ..
            } => {
                let why = one_line(&error.message, LINE_LETTERS);
                self.lines(RED, &Quote::new("  failed: ", why));
            }
            ExecItemBody::Error { message } => self.notice(&format!("warning: {message}")),
            _ => {}
        }
    }

    /// Writes a warning. It does not show the pending message, which may still be the answer.
    fn notice(&mut self, text: &str) {
        let text = one_line(text, LINE_LETTERS + 20);
        let text = self.painted(YELLOW, &self.quoted(&Quote::new("", text)));
        self.write(&text);
    }

    fn line(&mut self, colour: &str, text: &str) {
        let text = one_line(text, LINE_LETTERS + 20);
        self.lines(colour, &Quote::new("", text));
    }

    fn lines(&mut self, colour: &str, quote: &Quote) {
        self.show_pending_message();
        let text = self.painted(colour, &self.quoted(quote));
        self.write(&text);
    }

    fn show_pending_message(&mut self) {
        if let Some(text) = self.pending_message.take() {
            let lead = if self.is_live { GUTTER } else { "" };
            let text = self.quoted(&Quote::new(lead, text));
            self.write(text.trim_end());
        }
    }

    /// Formats text of the agent. On a terminal, where questions may be asked, it must not look
    /// like one; a file has it unchanged.
    fn quoted(&self, quote: &Quote) -> String {
        if !self.is_live {
            return format!("{}{}", quote.lead, sanitize(&quote.text));
        }
        let lines = quote.lines(columns()).into_iter();
        let lines: Vec<String> = lines.map(|it| it.text).collect();
        lines.join("\n")
    }

    fn write(&mut self, text: &str) {
        self.tail.clear();
        if self.question.is_none() {
            self.clear();
            return put(&format!("{text}\n"));
        }
        if self.deferred.len() == DEFERRED_LINES_MAX {
            self.deferred.pop_front();
        }
        self.deferred.push_back(text.to_owned());
    }

    fn painted(&self, colour: &str, text: &str) -> String {
        match self.has_colours {
            true => format!("\u{1b}[{colour}m{text}\u{1b}[0m"),
            false => text.to_owned(),
        }
    }
}

/// Returns the current width of the terminal.
fn columns() -> usize {
    let size = tcgetwinsize(rustix::stdio::stderr());
    let columns = size.map_or(0, |it| usize::from(it.ws_col));
    if columns == 0 { COLUMNS } else { columns }
}

/// Returns the current height of the terminal.
fn rows() -> usize {
    let size = tcgetwinsize(rustix::stdio::stderr());
    let rows = size.map_or(0, |it| usize::from(it.ws_row));
    if rows == 0 { ROWS } else { rows }
}

/// Writes to stderr. A closed stderr is no reason to fail.
fn put(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes());
    let _ = stderr.flush();
}
