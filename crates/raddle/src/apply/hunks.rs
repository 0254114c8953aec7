//! The choice of hunks to apply, on the terminal.

use std::io::{self, IsTerminal as _, Write as _};

use anyhow::Result;
use raddle_console::allows_colours;
use raddle_exec::{AS_A_WHOLE, CommentRule, HunkChoice, HunkView};
use raddle_protocol::{DiffHunk, FileDiff, FileToApply, HunkDecision, HunkToApply, ProposedHunk};

use super::whole;
use crate::diff::{self, Part};
use crate::log;
use crate::undo::{answer, one_line};

const PROMPT: &str = "apply this hunk? yes, no, split, all or done? [y/n/s/a/d/?]";

const EXPLANATIONS: &str = "\
y  applies this hunk
n  leaves this hunk out
s  splits this hunk into smaller ones, if lines between its changes stay
a  applies this hunk and all that follow
d  leaves out this hunk and all that follow; q does too";

/// Begins the choice; `None` if there is one hunk only.
pub(super) fn choice(files: &[&FileDiff]) -> Option<HunkChoice> {
    let hunks: Vec<ProposedHunk> = files.iter().flat_map(|it| proposed(it)).collect();
    HunkChoice::new(&hunks, CommentRule::None)
}

/// Asks about each hunk. Returns the chosen changes; `None` if the input ended before.
pub(super) fn chosen(
    files: &[&FileDiff],
    mut choice: HunkChoice,
) -> Result<Option<Vec<FileToApply>>> {
    loop {
        if let Some(view) = choice.view() {
            show(&view);
        }
        let line = answer(PROMPT)?;
        match line.as_str() {
            "" => return Ok(None),
            "?" => log::print_line(EXPLANATIONS),
            line => {
                if let Some(decisions) = choice.handle_line(line) {
                    return Ok(Some(joined(files, decisions)));
                }
            }
        }
    }
}

fn show(view: &HunkView) {
    log::print_line(&format!("{}{}", view.lead, one_line(&view.path)));
    let has_colours = io::stderr().is_terminal() && allows_colours();
    for line in diff::shown(&view.lines, Part::Hunk, has_colours) {
        // A closed stderr is no reason to fail.
        let _ = writeln!(io::stderr(), "{line}");
    }
    if view.lines.is_empty() {
        log::print_line(AS_A_WHOLE);
    }
    if let Some(remark) = view.remark {
        log::print_line(remark);
    }
}

/// Returns the hunks of a file. One without hunks is one hunk without lines.
fn proposed(file: &FileDiff) -> Vec<ProposedHunk> {
    let as_a_whole = || DiffHunk {
        id: String::new(),
        old_start: 1,
        old_lines: 0,
        new_start: 1,
        new_lines: 0,
        old_text: String::new(),
        new_text: String::new(),
    };
    let hunks = match file.hunks.is_empty() {
        true => vec![as_a_whole()],
        false => file.hunks.clone(),
    };
    let hunks = hunks.into_iter().map(|hunk| ProposedHunk {
        path: file.path.clone(),
        hunk,
    });
    hunks.collect()
}

/// Returns the files with the decisions on their hunks, which are in the order of the files.
fn joined(files: &[&FileDiff], decisions: Vec<HunkDecision>) -> Vec<FileToApply> {
    let mut decisions = decisions.into_iter();
    let files = files.iter().filter_map(|file| {
        let of_file: Vec<HunkDecision> = decisions.by_ref().take(file.hunks.len().max(1)).collect();
        let is_whole = |it: &HunkDecision| it.accept && it.replacement.is_none();
        if of_file.iter().all(is_whole) {
            return Some(whole(file));
        }
        let hunks = of_file.into_iter().filter(|it| it.accept);
        let hunks: Vec<HunkToApply> = hunks
            .map(|it| HunkToApply {
                id: it.id,
                replacement: it.replacement,
            })
            .collect();
        (!hunks.is_empty()).then(|| FileToApply {
            hunks: Some(hunks),
            ..whole(file)
        })
    });
    files.collect()
}
