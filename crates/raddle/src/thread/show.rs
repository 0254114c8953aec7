//! `raddle thread show`.

mod item;
mod usage;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use raddle_console::{Printer, one_line, sanitize};
use raddle_core::ports::{ItemEntry, Page, PageQuery, ReadError, Summary, TurnEntry};
use raddle_core::{Base, Cause, Record, Seq, ThreadId, TurnEnd, TurnId};
use raddle_store::Archive;
use serde_json::{Value, json};

use super::time::utc;
use super::{damaged, find, list, open_existing};
use crate::cli::ThreadShow;

/// How many turns, and items of a turn, are read at a time. An item may be megabytes.
const TURNS: usize = 100;
const ITEMS: usize = 8;

/// How much of a journal is read at a time.
pub(super) const PAGE_BYTES: usize = 1 << 20;

/// Thread that is shown.
pub(super) trait ThreadView {
    /// Returns the thread as a list shows it, or `None` for a thread that no list shows.
    fn summary(&self) -> Result<Option<Summary>, ReadError>;

    /// Returns the newest base.
    fn base(&self) -> Result<Option<Base>, ReadError>;

    /// Returns the records after a number, about a megabyte of them.
    fn records(&self, after: Seq) -> Result<Vec<Record>, ReadError>;

    fn turns(&self, query: &PageQuery) -> Result<Page<TurnEntry>, ReadError>;

    fn items(&self, turn: &TurnId, query: &PageQuery) -> Result<Page<ItemEntry>, ReadError>;
}

/// Thread of the home.
struct ArchivedThread {
    archive: Archive,
    thread: ThreadId,
}

impl ThreadView for ArchivedThread {
    fn summary(&self) -> Result<Option<Summary>, ReadError> {
        self.archive.summary(self.thread)
    }

    fn base(&self) -> Result<Option<Base>, ReadError> {
        self.archive.base(self.thread, None)
    }

    fn records(&self, after: Seq) -> Result<Vec<Record>, ReadError> {
        self.archive.records(self.thread, after, PAGE_BYTES)
    }

    fn turns(&self, query: &PageQuery) -> Result<Page<TurnEntry>, ReadError> {
        self.archive.turns(self.thread, query)
    }

    fn items(&self, turn: &TurnId, query: &PageQuery) -> Result<Page<ItemEntry>, ReadError> {
        self.archive.items(self.thread, Some(turn), query)
    }
}

pub(super) fn run(folder: &Path, args: &ThreadShow) -> Result<ExitCode> {
    let archive = open_existing(folder)?;
    let thread = find(&archive, &args.id)?;
    print(&ArchivedThread { archive, thread }, thread, args)
}

/// Prints a thread.
pub(super) fn print(
    view: &dyn ThreadView,
    thread: ThreadId,
    args: &ThreadShow,
) -> Result<ExitCode> {
    let mut show = ThreadPrinter {
        view,
        thread,
        printer: Printer::new(),
        json: args.json,
    };
    let shown = show.all();
    // The readable part is shown, even if the thread is damaged further on.
    show.printer.flush()?;
    shown?;
    Ok(ExitCode::SUCCESS)
}

struct ThreadPrinter<'a> {
    view: &'a dyn ThreadView,
    thread: ThreadId,
    printer: Printer,
    json: bool,
}

impl ThreadPrinter<'_> {
    fn all(&mut self) -> Result<()> {
        let thread = self.thread;
        let fail = |error| damaged(thread, error);
        let summary = self.view.summary().map_err(fail)?;
        self.head(summary.as_ref())?;
        let mut query = PageQuery {
            limit: TURNS,
            ..PageQuery::default()
        };
        loop {
            let page = self.view.turns(&query).map_err(fail)?;
            for turn in &page.entries {
                self.turn(turn)?;
                self.items(turn)?;
                if self.printer.is_closed() {
                    return Ok(());
                }
            }
            query.cursor = page.next;
            if query.cursor.is_none() {
                return Ok(());
            }
        }
    }

    fn head(&mut self, summary: Option<&Summary>) -> Result<()> {
        let Some(summary) = summary else {
            // A fork that was cut off before its own first record.
            return Ok(());
        };
        // A damaged thread is shown as far as possible; its usage is then unknown.
        let used = usage::accounts(self.view).unwrap_or_default();
        if self.json {
            let models: Vec<Value> = used.iter().map(usage::json).collect();
            let line = json!({ "thread": list::of(summary), "models": models });
            return Ok(self.printer.line(&line.to_string())?);
        }
        let title = summary.name.as_deref().unwrap_or(&summary.preview);
        let archived = if summary.archived { ", archived" } else { "" };
        for (what, value) in [
            ("thread", summary.thread.to_string()),
            ("title", one_line(title, 100)),
            ("folder", one_line(&summary.cwd, usize::MAX)),
            ("made", utc(summary.created_at)),
            ("turns", format!("{}{archived}", summary.turns)),
            ("head", summary.head.to_string()),
        ] {
            self.printer.line(format!("{what:<8}{value}").trim_end())?;
        }
        for it in &used {
            self.printer.line(&format!("used    {}", usage::line(it)))?;
        }
        Ok(())
    }

    fn turn(&mut self, turn: &TurnEntry) -> Result<()> {
        if self.json {
            let ended = turn.ended.as_ref();
            let line = json!({ "turn": {
                "id": turn.turn,
                "seq": turn.from,
                "startedAt": turn.started_at.seconds(),
                "end": ended.map(|(end, _)| end),
                "endedAt": ended.map(|(_, at)| at.seconds()),
            }});
            return Ok(self.printer.line(&line.to_string())?);
        }
        let end = match &turn.ended {
            None => "has not ended".to_owned(),
            Some((end, _)) => describe_end(end),
        };
        let (id, began) = (one_line(turn.turn.as_str(), 100), utc(turn.started_at));
        self.printer.line("")?;
        Ok(self.printer.line(&format!("turn {id}  {began}  {end}"))?)
    }

    fn items(&mut self, turn: &TurnEntry) -> Result<()> {
        let mut query = PageQuery {
            limit: ITEMS,
            ..PageQuery::default()
        };
        loop {
            let page = self.view.items(&turn.turn, &query);
            let page = page.map_err(|error| damaged(self.thread, error))?;
            for entry in &page.entries {
                let item = &entry.item;
                if self.json {
                    let line: Value = json!({ "item": item, "turn": turn.turn });
                    self.printer.line(&line.to_string())?;
                    continue;
                }
                let shown = item::lines(item);
                self.printer
                    .line(&format!("\n  {}", one_line(&shown.title, 200)))?;
                for line in sanitize(&shown.text).lines() {
                    self.printer.line(format!("    {line}").trim_end())?;
                }
            }
            query.cursor = page.next;
            if query.cursor.is_none() || self.printer.is_closed() {
                return Ok(());
            }
        }
    }
}

/// Describes the end of a turn.
fn describe_end(end: &TurnEnd) -> String {
    match end {
        TurnEnd::Completed { .. } => "completed".to_owned(),
        TurnEnd::Interrupted(cause) => format!("interrupted: {}", describe_cause(cause)),
        TurnEnd::Failed(failure) => format!("failed: {}", one_line(&failure.message, 200)),
    }
}

fn describe_cause(cause: &Cause) -> &'static str {
    match cause {
        Cause::Client { .. } => "requested by a client",
        Cause::Cancelled { .. } => "an approval was cancelled",
        Cause::OwnerLost { .. } => "its process died",
        Cause::Shutdown { .. } => "the server shut down",
        Cause::Forked { .. } => "it was forked in the middle",
        Cause::BudgetSpent { .. } => "its time budget was spent",
        Cause::Deleted { .. } => "the thread was deleted",
    }
}
