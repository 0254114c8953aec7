//! `raddle thread list`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use raddle_core::ports::{ListQuery, Page, ReadError, Summary};
use serde_json::{Value, json};

use super::time::utc;
use super::{open, unreadable, usage};
use crate::cli::ThreadList;
use crate::log;
use crate::print::{Printer, one_line};

/// How many letters of a folder and of a title are shown.
const FOLDER_LETTERS_MAX: usize = 40;
const TITLE_LETTERS_MAX: usize = 60;

/// With fewer letters than this there is nothing to search by.
const LETTERS_MIN: usize = 3;

pub(super) fn run(folder: &Path, args: &ThreadList) -> Result<ExitCode> {
    let cwd = args.cwd.as_ref().map(|cwd| {
        let cwd = std::path::absolute(cwd).context("--cwd")?;
        Ok::<_, anyhow::Error>(cwd.to_string_lossy().into_owned())
    });
    let query = ListQuery {
        archived: args.archived,
        cwds: cwd.transpose()?.into_iter().collect(),
        cursor: args.cursor.clone(),
        limit: args.limit.into(),
        ..ListQuery::default()
    };
    let search = args.search.as_deref();
    if search.is_some_and(|text| text.chars().count() < LETTERS_MIN) {
        return Ok(usage("--search needs at least 3 letters"));
    }
    let page = match (open(folder)?, search) {
        (None, _) => Ok(Page::empty()),
        (Some(archive), None) => archive.list(&query),
        (Some(archive), Some(text)) => archive.search(text, &query),
    };
    let page = match page {
        Err(ReadError::BadCursor) => {
            return Ok(usage(
                "--cursor is none that a page gave; leave it out to begin anew",
            ));
        }
        page => page.map_err(|error| unreadable(folder, error))?,
    };
    let mut printer = Printer::new();
    if args.json {
        let data: Vec<Value> = page.entries.iter().map(of).collect();
        let page = json!({ "data": data, "nextCursor": page.next });
        printer.line(&page.to_string())?;
    } else {
        table(&mut printer, &page.entries)?;
    }
    printer.flush()?;
    if let Some(next) = page.next.filter(|_| !args.json) {
        log::say(&format!("there are more: --cursor {next}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn table(printer: &mut Printer, threads: &[Summary]) -> std::io::Result<()> {
    let folders: Vec<String> = threads.iter().map(|it| folder(&it.cwd)).collect();
    let widest = folders.iter().map(|it| it.chars().count()).max();
    let width = widest.unwrap_or(0);
    for (thread, folder) in threads.iter().zip(folders) {
        let title = thread.name.as_deref().unwrap_or(&thread.preview);
        let line = format!(
            "{}  {}  {:>5}  {folder:<width$}  {}",
            thread.thread,
            utc(thread.recency_at),
            thread.turns,
            one_line(title, TITLE_LETTERS_MAX)
        );
        printer.line(line.trim_end())?;
    }
    Ok(())
}

/// A folder, whose end says more than its beginning.
fn folder(cwd: &str) -> String {
    let cwd = one_line(cwd, usize::MAX);
    let letters = cwd.chars().count();
    if letters <= FOLDER_LETTERS_MAX {
        return cwd;
    }
    let end: String = cwd.chars().skip(letters + 1 - FOLDER_LETTERS_MAX).collect();
    format!("…{end}")
}

/// A thread for programs.
pub(super) fn of(thread: &Summary) -> Value {
    json!({
        "id": thread.thread,
        "name": thread.name,
        "preview": thread.preview,
        "cwd": thread.cwd,
        "archived": thread.archived,
        "turns": thread.turns,
        "createdAt": thread.created_at.seconds(),
        "recencyAt": thread.recency_at.seconds(),
        "head": thread.head,
    })
}
