//! `raddle thread show`.

mod item;
mod usage;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use raddle_console::{Printer, one_line, sanitize};
use raddle_core::ThreadId;
use raddle_core::ports::{PageQuery, Summary, TurnEntry};
use raddle_core::{Cause, TurnEnd};
use raddle_store::Archive;
use serde_json::{Value, json};

use super::time::utc;
use super::{damaged, find, list, open_existing};
use crate::cli::ThreadShow;

/// How many turns, and items of a turn, are read at a time. An item may be megabytes.
const TURNS: usize = 100;
const ITEMS: usize = 8;

pub(super) fn run(folder: &Path, args: &ThreadShow) -> Result<ExitCode> {
    let archive = open_existing(folder)?;
    let thread = find(&archive, &args.id)?;
    let mut show = ThreadPrinter {
        archive,
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

struct ThreadPrinter {
    archive: Archive,
    thread: ThreadId,
    printer: Printer,
    json: bool,
}

impl ThreadPrinter {
    fn all(&mut self) -> Result<()> {
        let thread = self.thread;
        let fail = |error| damaged(thread, error);
        let summary = self.archive.summary(thread).map_err(fail)?;
        self.head(summary.as_ref())?;
        let mut query = PageQuery {
            limit: TURNS,
            ..PageQuery::default()
        };
        loop {
            let page = self.archive.turns(thread, &query).map_err(fail)?;
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
        let used = usage::accounts(&self.archive, self.thread).unwrap_or_default();
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
            let page = self.archive.items(self.thread, Some(&turn.turn), &query);
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
