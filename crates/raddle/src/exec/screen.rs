//! What a person sees on stderr while the agent works.

use std::collections::VecDeque;
use std::io::{self, IsTerminal, Write};
use std::time::Instant;

use raddle_protocol::Notification;
use rustix::termios::tcgetwinsize;

use super::events::{Event, ExecItem, ExecItemBody};
use super::questions::PromptView;
use super::quote::{self, GUTTER, Quote};
use crate::cli::Color;
use crate::print::{one_line, sanitize};

/// How much of a text that is under way is kept, to show its end.
const TAIL_BYTES: usize = 256;

/// How long a command or a thought may be on one line.
const LINE_LETTERS: usize = 200;

/// How long a line of our own may be.
const OWN_LINE_LETTERS: usize = 1000;

/// How many lines wait for the answer to a question; of more, the last.
const DEFERRED_LINES_MAX: usize = 500;

/// How wide a terminal is that does not say so.
const COLUMNS: usize = 80;

/// Of a terminal that does not tell its height.
const ROWS: usize = 24;

const DIM: &str = "2";
const BOLD: &str = "1";
const RED: &str = "31";
const YELLOW: &str = "33";

/// The way to stderr.
#[derive(Debug)]
pub(super) struct Screen {
    /// Nothing but what went wrong.
    is_quiet: bool,
    /// A last line that changes.
    is_live: bool,
    has_colours: bool,
    begun: Instant,
    /// That line, while it is there.
    shown: Option<String>,
    /// The end of what the agent is saying.
    tail: String,
    /// What the agent said last. It may be the answer, which goes to stdout, so it is shown when more comes.
    pending_message: Option<String>,
    /// The question that is open, as it was drawn. Nothing is written behind it but its answer: whoever reads the last
    /// line must not take another command for the one that is asked about.
    question: Option<String>,
    /// What else there is to show when it is answered.
    deferred: VecDeque<String>,
}

impl Screen {
    pub(super) fn new(is_quiet: bool, color: Color) -> Self {
        let is_terminal = io::stderr().is_terminal();
        Self {
            is_quiet,
            is_live: is_terminal && !is_quiet,
            has_colours: match color {
                Color::Auto => is_terminal && std::env::var_os("NO_COLOR").is_none(),
                Color::Always => true,
                Color::Never => false,
            },
            begun: Instant::now(),
            shown: None,
            tail: String::new(),
            pending_message: None,
            question: None,
            deferred: VecDeque::new(),
        }
    }

    pub(super) fn is_live(&self) -> bool {
        self.is_live
    }

    /// What is told before it is a whole event: the words of a message as they come.
    pub(super) fn on_notification(&mut self, told: &Notification) {
        let delta = match told {
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

    /// A line or more for what happened.
    pub(super) fn event(&mut self, event: &Event) {
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
            } => self.line(YELLOW, &format!("trying again: {message}")),
            // These are told at the end.
            Event::TurnStarted {}
            | Event::TurnCompleted { .. }
            | Event::TurnFailed { .. }
            | Event::Error { .. } => {}
        }
    }

    /// A line of our own, also for those who want it quiet. A question is then drawn anew below it.
    pub(super) fn say(&mut self, text: &str) {
        let line = format!("raddle: {}", one_line(text, OWN_LINE_LETTERS));
        match &self.question {
            Some(asked) => put(&format!("\n{line}\n{asked}")),
            None => self.write(&line),
        }
    }

    /// A question, and room for the answer behind it.
    pub(super) fn ask(&mut self, shown: &PromptView) {
        self.clear();
        let mut text = String::new();
        let lines = match shown.page {
            None => quote::laid_out(&shown.things, columns()),
            Some(number) => quote::page(&shown.things, columns(), rows(), number),
        };
        for line in lines {
            text.push_str(&self.painted(BOLD, &line));
            text.push('\n');
        }
        text.push_str(shown.prompt);
        put(&text);
        self.question = Some(text);
    }

    /// The question that was shown has its answer, with which a line ended.
    pub(super) fn answered(&mut self) {
        self.question = None;
        for text in std::mem::take(&mut self.deferred) {
            self.write(&text);
        }
    }

    /// The question that was shown needs no answer any more.
    pub(super) fn settled(&mut self, is_answered: bool) {
        put(match is_answered {
            true => "\nanswered elsewhere\n",
            false => "\nno longer asked\n",
        });
        self.answered();
    }

    /// Leaves the rest to others: nothing changes below what was written, and nothing waits any more.
    pub(super) fn finish(&mut self) {
        self.clear();
        if self.question.is_some() {
            put("\n");
        }
        self.answered();
    }

    /// The line that changes, as it is now.
    pub(super) fn tick(&mut self) {
        if !self.is_live {
            return;
        }
        let seconds = self.begun.elapsed().as_secs();
        let lead = format!("{seconds:>4} s  ");
        let words = one_line(&self.tail, usize::MAX);
        // One that the terminal wraps could not be taken away again.
        let room = columns().saturating_sub(lead.len() + 1);
        let line = self.painted(DIM, &format!("{lead}{}", quote::end(&words, room)));
        // Drawn anew at each word it would flicker.
        if self.shown.as_ref() != Some(&line) {
            put(&format!("\r\u{1b}[2K{line}"));
            self.shown = Some(line);
        }
    }

    /// Takes that line away.
    pub(super) fn clear(&mut self) {
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

    fn completed(&mut self, item: &ExecItem) {
        self.tail.clear();
        match &item.body {
            ExecItemBody::AgentMessage { text } => {
                self.show_held();
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
            ExecItemBody::Error { message } => self.line(YELLOW, &format!("warning: {message}")),
            _ => {}
        }
    }

    fn line(&mut self, colour: &str, text: &str) {
        let text = one_line(text, LINE_LETTERS + 20);
        self.lines(colour, &Quote::new("", text));
    }

    fn lines(&mut self, colour: &str, quote: &Quote) {
        self.show_held();
        let text = self.painted(colour, &self.quoted(quote));
        self.write(&text);
    }

    fn show_held(&mut self) {
        if let Some(text) = self.pending_message.take() {
            let lead = if self.is_live { GUTTER } else { "" };
            let text = self.quoted(&Quote::new(lead, text));
            self.write(text.trim_end());
        }
    }

    /// Where questions may be asked, nothing that the agent says may look like one. A file has it as it is.
    fn quoted(&self, quote: &Quote) -> String {
        match self.is_live {
            true => quote.lines(columns()).join("\n"),
            false => format!("{}{}", quote.lead, sanitize(&quote.text)),
        }
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

/// How wide the terminal is now.
fn columns() -> usize {
    let size = tcgetwinsize(rustix::stdio::stderr());
    let columns = size.map_or(0, |it| usize::from(it.ws_col));
    if columns == 0 { COLUMNS } else { columns }
}

/// How high the terminal is now.
fn rows() -> usize {
    let size = tcgetwinsize(rustix::stdio::stderr());
    let rows = size.map_or(0, |it| usize::from(it.ws_row));
    if rows == 0 { ROWS } else { rows }
}

/// Nobody may be reading; that is no reason to fail.
fn put(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes());
    let _ = stderr.flush();
}
