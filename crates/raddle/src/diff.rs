//! `raddle diff`: print the file changes of a turn or of a thread.

mod hints;
mod stat;

use std::io;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};
use raddle_client::Client;
use raddle_console::{Printer, allows_colours, sanitize};
use raddle_core::ThreadId;
use raddle_protocol::{
    Checkpoint, ThreadDiffReadParams, TurnDiffReadParams, TurnId, WorkspaceDiff, methods,
};

use crate::cli::Diff;
use crate::undo::{checkpoints, is_change_of_turn, one_line};
use crate::{log, runtime, thread, thread_server};

/// Gaps that are printed; the rest is counted.
const GAPS_MAX: usize = 10;

pub(crate) fn run(args: &Diff) -> Result<ExitCode> {
    let thread = thread::named_or_newest(args.thread.as_deref())?;
    let diff = runtime::current_thread()?.block_on(async {
        let client = thread_server::connect().await?;
        let diff = read(&client, thread, args).await;
        client.close().await;
        diff
    })?;
    let Some(FolderDiff { diff, folder }) = diff else {
        log::print_line(&format!("no turn of {thread} changed files"));
        return Ok(ExitCode::FAILURE);
    };
    match args.stat {
        true => raddle_console::print_lines(stat::lines(&diff.files))?,
        false => print(&diff.unified)?,
    }
    for line in gaps(&diff) {
        log::print_line(&line);
    }
    if !args.stat {
        // No other program reads a terminal.
        let is_read = !Printer::new().is_terminal();
        let folder = folder.as_deref().map(Path::new).filter(|_| is_read);
        for line in hints::lines(&diff, folder.and_then(hints::folder_in_repository)) {
            log::print_line(&line);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A diff, and the folder to which its paths are relative, if that is known.
struct FolderDiff {
    diff: WorkspaceDiff,
    folder: Option<String>,
}

/// Reads the requested diff; none if no turn changed files.
async fn read(client: &Client, thread: ThreadId, args: &Diff) -> Result<Option<FolderDiff>> {
    let checkpoints = checkpoints(client, thread).await?;
    if args.all {
        let Some(newest) = checkpoints.first() else {
            return Ok(None);
        };
        let params = ThreadDiffReadParams {
            thread_id: thread,
            from: None,
            to: None,
        };
        let read = client.call::<methods::ThreadDiffRead>(params).await?;
        return Ok(Some(FolderDiff {
            diff: read.diff,
            folder: Some(newest.cwd.clone()),
        }));
    }
    let turn = match &args.turn {
        Some(prefix) => Some(turn_of(&checkpoints, prefix)?),
        None => {
            let newest = checkpoints.iter().find(|it| is_change_of_turn(it));
            newest.and_then(|it| it.turn_id.clone())
        }
    };
    let Some(turn) = turn else {
        return Ok(None);
    };
    let of_turn = checkpoints
        .iter()
        .find(|it| it.turn_id.as_ref() == Some(&turn));
    let folder = of_turn.map(|it| it.cwd.clone());
    let params = TurnDiffReadParams {
        thread_id: thread,
        turn_id: turn,
    };
    let read = client.call::<methods::TurnDiffRead>(params).await?;
    Ok(Some(FolderDiff {
        diff: read.diff,
        folder,
    }))
}

/// Returns the turn with this prefix of its id. The server says what is wrong with an id that no
/// checkpoint has.
fn turn_of(checkpoints: &[Checkpoint], prefix: &str) -> Result<TurnId> {
    let turns = checkpoints.iter().filter_map(|it| it.turn_id.as_ref());
    let found: Vec<&TurnId> = turns.filter(|it| it.as_str().starts_with(prefix)).collect();
    match found.as_slice() {
        [] => Ok(prefix.into()),
        [turn] => Ok((*turn).clone()),
        _ => bail!("more than one turn has an id that begins with {prefix}; give more of it"),
    }
}

/// Prints a unified diff: as it is for programs, and safe and in colours on a terminal.
pub(crate) fn print(unified: &str) -> io::Result<()> {
    let mut printer = Printer::new();
    if !printer.is_terminal() {
        let written = printer.file().write_all(unified.as_bytes());
        return written.and_then(|()| printer.flush());
    }
    for line in shown(unified, Part::Heading, allows_colours()) {
        printer.line(&line)?;
    }
    printer.flush()
}

/// Part of a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The lines that name a file.
    Heading,
    /// Lines of a hunk, which may look like those of a heading.
    Hunk,
}

/// Returns the lines of a diff, or of a part of one, for a terminal.
pub(crate) fn shown(
    unified: &str,
    mut part: Part,
    has_colours: bool,
) -> impl Iterator<Item = String> {
    unified.lines().map(move |line| {
        part = match line.as_bytes() {
            [b'@', ..] => Part::Hunk,
            // A line of a hunk begins with a sign or a space.
            [b'd', ..] => Part::Heading,
            _ => part,
        };
        let text = sanitize(line);
        let colour = match (part, line.as_bytes()) {
            (_, [b'@', ..]) => "36",
            (Part::Heading, [b'd' | b'-' | b'+', ..]) if is_heading(line) => "1",
            (Part::Hunk, [b'+', ..]) => "32",
            (Part::Hunk, [b'-', ..]) => "31",
            _ => return text,
        };
        match has_colours {
            true => format!("\u{1b}[{colour}m{text}\u{1b}[0m"),
            false => text,
        }
    })
}

fn is_heading(line: &str) -> bool {
    ["diff --git ", "--- ", "+++ "]
        .iter()
        .any(|it| line.starts_with(it))
}

/// Returns what the diff does not cover, for stderr.
fn gaps(diff: &WorkspaceDiff) -> Vec<String> {
    let shown = diff.gaps.iter().take(GAPS_MAX).map(|it| {
        let path = it.path.as_deref().unwrap_or(".");
        format!("not covered: {}: {}", one_line(path), it.reason)
    });
    let rest = diff.gaps.len().saturating_sub(GAPS_MAX);
    let rest = (rest > 0).then(|| format!("not covered: {rest} more"));
    shown.chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_diff_have_the_colour_of_their_kind() {
        let lines = [
            ("diff --git a/a b/a", Some("1")),
            ("deleted file mode 100644", None),
            ("--- a/a", Some("1")),
            ("+++ b/a", Some("1")),
            ("@@ -1,2 +1,2 @@", Some("36")),
            ("-old", Some("31")),
            ("--- a removed comment", Some("31")),
            ("+new", Some("32")),
            (" same", None),
            ("diff --git a/b b/b", Some("1")),
            ("--- a/b", Some("1")),
        ];
        let unified = lines.map(|(line, _)| line).join("\n");
        let coloured = lines.map(|(line, colour)| match colour {
            Some(colour) => format!("\u{1b}[{colour}m{line}\u{1b}[0m"),
            None => line.to_owned(),
        });
        let shown = |has_colours| {
            let lines = shown(&unified, Part::Heading, has_colours);
            lines.collect::<Vec<_>>()
        };
        assert_eq!(shown(true), coloured);
        assert_eq!(shown(false), lines.map(|(line, _)| line));
    }

    #[test]
    fn a_diff_moves_no_cursor() {
        let lines: Vec<String> = shown("+\u{1b}[2J", Part::Hunk, false).collect();
        assert_eq!(lines, ["+\\u{1b}[2J"]);
    }
}
