//! `raddle gc`: remove old copies of workspace files.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use raddle_console::print_lines;
use raddle_core::ThreadId;
use raddle_tools::{CopyFolders, PruneSummary, RetentionLimits, prune_checkpoints};

use crate::cli::Gc;
use crate::doctor::size;
use crate::home::Home;
use crate::threads::{checkpoints_folder, copy_folders};
use crate::{log, postgres, thread};

const DAY: Duration = Duration::from_secs(24 * 3600);

pub(crate) fn run(args: &Gc) -> Result<ExitCode> {
    let folder = checkpoints_folder(&Home::find()?.state);
    let limits = RetentionLimits {
        age_max: DAY * args.older_than,
        bytes_max: u64::from(args.max_size) << 20,
    };
    let summary = prune_checkpoints(&folder, &limits);
    let summary = summary.with_context(|| format!("cannot list {}", folder.display()))?;
    let PruneSummary {
        pruned,
        busy,
        failed,
        bytes_before,
        bytes_now,
        ..
    } = summary;
    let removed = bytes_before.saturating_sub(bytes_now);
    log::print_line(&format!(
        "removed {} of copies; {} of {} remain",
        size(removed),
        size(bytes_now),
        workspaces(pruned)
    ));
    if busy > 0 {
        log::print_line(&format!(
            "raddle: warning: the copies of {} are in use, and were left as they are",
            workspaces(busy)
        ));
    }
    let home = Home::find()?;
    // Only a server knows the threads of a database.
    let left = match postgres::is_local(&home) {
        false => Vec::new(),
        true => left_copies(&copy_folders(&home.state))
            .context("cannot find out which copies of workspaces are left")?,
    };
    if !left.is_empty() {
        log::print_line(
            "no thread uses these copies of workspaces; remove those that you do not need:",
        );
        print_lines(left.iter().map(|it| format!("  {}", it.display())))?;
    }
    for (store, error) in &failed {
        log::print_line(&format!("raddle: error: {}: {error}", store.display()));
    }
    Ok(match failed.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Returns the copies of which no thread is stored, neither that for which it was made nor a fork.
fn left_copies(folders: &CopyFolders) -> Result<Vec<PathBuf>> {
    let copies = folders.all()?;
    let stored = thread::stored(copies.values().flatten().copied().collect())?;
    let is_used = |threads: &[ThreadId]| threads.iter().any(|it| stored.contains(it));
    let left = copies.into_iter().filter(|(_, it)| !is_used(it));
    Ok(left.map(|(copy, _)| copy).collect())
}

fn workspaces(count: usize) -> String {
    match count {
        1 => "1 workspace".to_owned(),
        count => format!("{count} workspaces"),
    }
}
