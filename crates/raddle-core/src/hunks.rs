//! The hunks of a proposed change of files, and the user's decisions on them.
//!
//! The hunks are read from the diffs of the item that shows the change. So a user chooses among
//! exactly what the item shows, and the journal has no second copy of it. The id of a hunk is the
//! one that `raddle-workspace` gives to it in the diff of a turn.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::Range;

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use crate::{ChangeKind, FileChange, HunkDecision};

/// Limit: hunks of one change that the user may choose among; beyond it, the further files can be
/// accepted as a whole only.
const HUNKS_MAX: usize = 1000;

/// Limit: the report on the user's decisions to the model; beyond it, the report says how many hunks
/// it leaves out.
const REPORT_BYTES_MAX: usize = 64 << 10;

/// Limit: bytes of one hunk in that report; beyond it, the report cuts the lines of the hunk.
const REPORTED_BYTES_MAX: usize = 4 << 10;

/// The smallest part of a change that a user may accept or drop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProposedHunk {
    /// Name of the hunk. It depends on the path, the lines and their neighbours.
    pub id: String,
    /// Index of its file in the changes.
    pub file: usize,
    /// The replaced lines, counted from zero.
    pub before: Range<u32>,
    /// The new lines if all hunks are applied, counted from zero.
    pub after: Range<u32>,
    /// The replaced lines, with their line ends.
    pub old: String,
    /// The new lines, with their line ends.
    pub new: String,
    /// Whether the user may replace the new lines.
    pub is_replaceable: bool,
}

/// Returns the hunks of a change in a folder, in the order of its files and lines. Each has another
/// id. A change without lines to choose from, such as that of a binary file, is one hunk without
/// lines.
pub fn proposed_hunks(cwd: &str, changes: &[FileChange]) -> Vec<ProposedHunk> {
    let mut names = HunkNames::default();
    let mut hunks = Vec::new();
    for (file, change) in changes.iter().enumerate() {
        let max = HUNKS_MAX.saturating_sub(hunks.len());
        hunks.extend(hunks_of_file(cwd, file, change, max, &mut names));
    }
    hunks
}

/// Returns the path of a change for the names of its hunks: relative to the folder if it is in it.
pub fn hunk_path<'a>(cwd: &str, change: &'a FileChange) -> &'a str {
    let path = match &change.kind {
        ChangeKind::Update { moved_to: Some(to) } => to,
        _ => &change.path,
    };
    let inside = path.strip_prefix(cwd).and_then(|it| it.strip_prefix('/'));
    inside.unwrap_or(path).trim_start_matches('/')
}

fn hunks_of_file(
    cwd: &str,
    file: usize,
    change: &FileChange,
    hunks_max: usize,
    names: &mut HunkNames,
) -> Vec<ProposedHunk> {
    let path = hunk_path(cwd, change);
    let sections = match &change.kind {
        _ if change.is_cut() => None,
        ChangeKind::Add {} => DiffSection::whole("", &change.diff),
        ChangeKind::Delete {} => DiffSection::whole(&change.diff, ""),
        ChangeKind::Update { .. } => sections(&change.diff),
    };
    let Some(sections) = sections.filter(|it| (1..=hunks_max).contains(&it.len())) else {
        let kind = format!("{:?}", change.kind);
        let parts = [
            b"whole",
            path.as_bytes(),
            kind.as_bytes(),
            change.diff.as_bytes(),
        ];
        return vec![ProposedHunk {
            id: names.next(digest(parts)),
            file,
            before: 0..0,
            after: 0..0,
            old: String::new(),
            new: String::new(),
            is_replaceable: false,
        }];
    };
    let is_replaceable = !matches!(change.kind, ChangeKind::Delete {});
    let hunks = sections.into_iter().map(|it| {
        let parts = [path, &it.lead, &it.old, &it.new, &it.trail].map(str::as_bytes);
        ProposedHunk {
            id: names.next(digest(parts)),
            file,
            before: it.before,
            after: it.after,
            old: it.old,
            new: it.new,
            is_replaceable,
        }
    });
    hunks.collect()
}

/// The ids of the hunks of one change.
#[derive(Default)]
struct HunkNames {
    occurrences: BTreeMap<[u8; 32], u32>,
    taken: BTreeSet<String>,
}

impl HunkNames {
    /// Returns an id that no other hunk has. For the hunks of one file it is that of
    /// `raddle-workspace`.
    fn next(&mut self, digest: [u8; 32]) -> String {
        let nth = self.occurrences.entry(digest).or_insert(0);
        loop {
            let id = Sha256::new()
                .chain_update(digest)
                .chain_update(nth.to_le_bytes());
            *nth += 1;
            let id = HEXLOWER.encode(&id.finalize()[..8]);
            if self.taken.insert(id.clone()) {
                return id;
            }
        }
    }
}

/// Returns the SHA-256 of the parts, each with its length.
fn digest<const N: usize>(parts: [&[u8]; N]) -> [u8; 32] {
    let mut sum = Sha256::new();
    for part in parts {
        sum.update((part.len() as u64).to_le_bytes());
        sum.update(part);
    }
    sum.finalize().into()
}

/// A section of a unified diff, with the lines around its changes apart.
#[derive(Debug, Default)]
struct DiffSection {
    before: Range<u32>,
    after: Range<u32>,
    lead: String,
    old: String,
    new: String,
    trail: String,
}

impl DiffSection {
    /// Returns the section that replaces a whole text.
    fn whole(old: &str, new: &str) -> Option<Vec<Self>> {
        let lines = |text: &str| text.split_inclusive('\n').count() as u32;
        // A binary content is shown as a remark instead of its lines.
        let is_remark = |text: &str| {
            let bytes = text.strip_prefix("(binary, ");
            let bytes = bytes.and_then(|it| it.strip_suffix(" bytes)\n"));
            bytes.is_some_and(|it| it.bytes().all(|it| it.is_ascii_digit()))
        };
        let is_empty = old.is_empty() && new.is_empty();
        (!is_empty && !is_remark(old)).then(|| {
            vec![Self {
                before: 0..lines(old),
                after: 0..lines(new),
                old: old.to_owned(),
                new: new.to_owned(),
                ..Self::default()
            }]
        })
    }

    fn add(&mut self, mark: char, line: &str) {
        match mark {
            ' ' => self.trail.push_str(line),
            mark => {
                // Unchanged lines between two changes belong to both sides.
                let between = std::mem::take(&mut self.trail);
                if self.old.is_empty() && self.new.is_empty() {
                    self.lead = between;
                } else {
                    self.old.push_str(&between);
                    self.new.push_str(&between);
                }
                match mark {
                    '-' => self.old.push_str(line),
                    _ => self.new.push_str(line),
                }
            }
        }
    }

    /// Removes the line end of the last line with this mark, which the file does not have.
    fn end_without_newline(&mut self, mark: char) {
        match mark {
            ' ' => self.trail.pop(),
            '-' => self.old.pop(),
            _ => self.new.pop(),
        };
    }
}

/// Parses the sections of a unified diff. `None` if the text is anything else.
fn sections(diff: &str) -> Option<Vec<DiffSection>> {
    let mut lines = diff.split_inclusive('\n').peekable();
    let mut sections = Vec::new();
    while let Some(header) = lines.next() {
        let (before, after) = ranges(header)?;
        let (mut old_left, mut new_left) = (before.len(), after.len());
        let mut section = DiffSection::default();
        while old_left > 0 || new_left > 0 {
            let line = lines.next()?;
            let mark = line.chars().next()?;
            match mark {
                ' ' => (old_left, new_left) = (old_left.checked_sub(1)?, new_left.checked_sub(1)?),
                '-' => old_left = old_left.checked_sub(1)?,
                '+' => new_left = new_left.checked_sub(1)?,
                _ => return None,
            }
            section.add(mark, &line[1..]);
            if lines.next_if(|it| it.starts_with('\\')).is_some() {
                section.end_without_newline(mark);
            }
        }
        let count = |text: &str| text.split_inclusive('\n').count() as u32;
        let (lead, trail) = (count(&section.lead), count(&section.trail));
        section.before = before.start + lead..before.end.checked_sub(trail)?;
        section.after = after.start + lead..after.end.checked_sub(trail)?;
        sections.push(section);
    }
    Some(sections)
}

/// Parses `@@ -1,2 +3,4 @@`. Returns the ranges of lines, counted from zero.
fn ranges(header: &str) -> Option<(Range<u32>, Range<u32>)> {
    let ranges = header.strip_prefix("@@ -")?.strip_suffix(" @@\n")?;
    let (before, after) = ranges.split_once(" +")?;
    let range = |text: &str| {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        let (start, count): (u32, u32) = (start.parse().ok()?, count.parse().ok()?);
        // An empty range names the line before it.
        let start = if count == 0 {
            start
        } else {
            start.checked_sub(1)?
        };
        Some(start..start.checked_add(count)?)
    };
    Some((range(before)?, range(after)?))
}

/// Reason why decisions do not match the hunks of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DecisionError {
    /// The change does not have a hunk.
    #[error("a decision is about a hunk that the change does not have")]
    UnknownHunk,
    /// A hunk has two decisions.
    #[error("there are two decisions on a hunk")]
    Twice,
    /// A dropped hunk has a replacement.
    #[error("a hunk has a replacement, but was not accepted")]
    DroppedReplacement,
    /// A hunk without new lines has a replacement.
    #[error("a hunk without new lines has a replacement")]
    NothingToReplace,
}

/// Checks that decisions are about these hunks.
pub(crate) fn check_decisions(
    hunks: &[ProposedHunk],
    decisions: &[HunkDecision],
) -> Result<(), DecisionError> {
    let by_id: BTreeMap<&str, &ProposedHunk> = hunks.iter().map(|it| (&*it.id, it)).collect();
    let mut decided = BTreeSet::new();
    for decision in decisions {
        let hunk = by_id.get(&*decision.id).ok_or(DecisionError::UnknownHunk)?;
        if !decided.insert(&decision.id) {
            return Err(DecisionError::Twice);
        }
        match decision.replacement {
            Some(_) if !decision.accept => return Err(DecisionError::DroppedReplacement),
            Some(_) if !hunk.is_replaceable => return Err(DecisionError::NothingToReplace),
            _ => {}
        }
    }
    Ok(())
}

/// Returns the report to the model on what the user decided: every hunk that was dropped or
/// replaced, and every comment.
pub fn report_of_decisions(
    changes: &[FileChange],
    hunks: &[ProposedHunk],
    decisions: &[HunkDecision],
) -> String {
    let by_id: BTreeMap<&str, &HunkDecision> = decisions.iter().map(|it| (&*it.id, it)).collect();
    let accepted = decisions.iter().filter(|it| it.accept).count();
    let mut text = format!("The user accepted {accepted} of {} hunks.\n", hunks.len());
    let parts = hunks.iter().filter_map(|hunk| {
        let path = changes.get(hunk.file).map_or("", |it| it.path.as_str());
        part_of_report(path, hunk, by_id.get(&*hunk.id).copied())
    });
    let mut left_out = 0;
    for part in parts {
        if left_out > 0 || text.len() + part.len() > REPORT_BYTES_MAX {
            left_out += 1;
        } else {
            text.push_str(&part);
        }
    }
    if left_out > 0 {
        let _ = writeln!(
            text,
            "\n… {left_out} more hunks were dropped or replaced; read the files."
        );
    }
    text
}

/// Returns the part of the report about a hunk; `None` if it was applied without a comment.
fn part_of_report(
    path: &str,
    hunk: &ProposedHunk,
    decision: Option<&HunkDecision>,
) -> Option<String> {
    let is_accepted = decision.is_some_and(|it| it.accept);
    let replacement = decision.and_then(|it| it.replacement.as_deref());
    let comment = decision.and_then(|it| it.comment.as_deref());
    let outcome = match (is_accepted, replacement, comment) {
        (true, None, None) => return None,
        (true, None, Some(_)) => "Applied",
        (true, Some(_), _) => "Applied with other lines",
        (false, ..) => "Not applied",
    };
    let mut text = format!("\n{outcome}: {path}{}\n", place(hunk));
    if outcome != "Applied" {
        push_lines(&mut text, '-', &hunk.old, REPORTED_BYTES_MAX);
        push_lines(&mut text, '+', &hunk.new, REPORTED_BYTES_MAX);
    }
    if let Some(replacement) = replacement {
        text.push_str(match replacement {
            "" => "The user removed the new lines.\n",
            _ => "The user's lines in place of the new ones:\n",
        });
        // The model has not seen these lines.
        push_lines(&mut text, '+', replacement, REPORT_BYTES_MAX / 2);
    }
    if let Some(comment) = comment {
        let _ = writeln!(text, "Comment of the user: {comment}");
    }
    Some(text)
}

fn place(hunk: &ProposedHunk) -> String {
    let range = |it: &Range<u32>| match it.len() {
        0 => format!("{},0", it.start),
        1 => format!("{}", it.start + 1),
        count => format!("{},{count}", it.start + 1),
    };
    match hunk.before.is_empty() && hunk.after.is_empty() {
        true => String::new(),
        false => format!(" @@ -{} +{} @@", range(&hunk.before), range(&hunk.after)),
    }
}

fn push_lines(text: &mut String, mark: char, lines: &str, bytes_max: usize) {
    let shown = &lines[..lines.floor_char_boundary(bytes_max)];
    for line in shown.split_inclusive('\n') {
        text.push(mark);
        text.push_str(line);
    }
    if shown.len() < lines.len() {
        let _ = writeln!(text, "\n… {} more bytes", lines.len() - shown.len());
    } else if !shown.is_empty() && !shown.ends_with('\n') {
        text.push_str("\n\\ No newline at end of file\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(diff: &str) -> FileChange {
        FileChange {
            path: "/w/a".to_owned(),
            kind: ChangeKind::Update { moved_to: None },
            diff: diff.to_owned(),
        }
    }

    fn shown(change: FileChange) -> Vec<String> {
        let hunks = proposed_hunks("/w", &[change]).into_iter();
        let hunks = hunks.map(|it| format!("{}|{}|{}", place(&it), it.old, it.new));
        hunks.collect()
    }

    #[test]
    fn hunks_are_read_from_the_diff_of_an_item() {
        for (diff, expected) in [
            // Two sections, the second with unchanged lines between its changes.
            (
                "@@ -1,3 +1,4 @@\n a\n+b\n c\n d\n@@ -10,4 +11,2 @@\n-e\n f\n-g\n+h\n-i\n",
                &[
                    " @@ -1,0 +2 @@||b\n",
                    " @@ -10,4 +11,2 @@|e\nf\ng\ni\n|f\nh\n",
                ][..],
            ),
            // Lines that look like marks, and a file without a last line end.
            (
                "@@ -1,2 +1,2 @@\n-@@ -1 +1 @@\n--- x\n\\ No newline at end of file\n++++ y\n+\\ z\n\\ No newline at end of file\n",
                &[" @@ -1,2 +1,2 @@|@@ -1 +1 @@\n-- x|+++ y\n\\ z"],
            ),
            ("@@ -0,0 +1 @@\n+a\n", &[" @@ -0,0 +1 @@||a\n"]),
            // A change without lines, and texts that are no whole diff: one hunk without lines.
            ("", &["||"]),
            ("@@ -1,2 +1,2 @@\n a\n", &["||"]),
            ("@@ -1 +1 @@\n-a\n+b\nc\n", &["||"]),
            ("@@ -1 +1 @@\n-a\n+b\n… of 9 bytes\n", &["||"]),
        ] {
            assert_eq!(shown(update(diff)), expected, "{diff}");
        }
        let add = FileChange {
            kind: ChangeKind::Add {},
            ..update("a\nb")
        };
        assert_eq!(shown(add), [" @@ -0,0 +1,2 @@||a\nb"]);
        let delete = |diff: &str| FileChange {
            kind: ChangeKind::Delete {},
            ..update(diff)
        };
        assert_eq!(shown(delete("a\n")), [" @@ -1 +0,0 @@|a\n|"]);
        assert_eq!(shown(delete("(binary, 9 bytes)\n")), ["||"]);
        assert_eq!(shown(delete("")), ["||"]);
        let text = "(binary, a\nb bytes)\n";
        assert_eq!(shown(delete(text)), [format!(" @@ -1,2 +0,0 @@|{text}|")]);
    }

    #[test]
    fn equal_hunks_of_a_file_have_different_ids() {
        let same = "@@ -1 +1 @@\n-a\n+b\n@@ -9 +9 @@\n-a\n+b\n";
        let hunks = proposed_hunks("/w", &[update(same), update("")]);
        let ids: BTreeSet<&str> = hunks.iter().map(|it| it.id.as_str()).collect();
        assert_eq!((hunks.len(), ids.len()), (3, 3));
        assert_eq!(hunks[2].file, 1);
    }

    /// A path in the folder and one outside of it may have the same name for a hunk.
    #[test]
    fn hunks_of_two_files_have_different_ids() {
        let change = |path: &str| FileChange {
            path: path.to_owned(),
            kind: ChangeKind::Add {},
            diff: "a\n".to_owned(),
        };
        let changes = [change("/w/opt/a"), change("/opt/a"), change("/opt/a")];
        let hunks = proposed_hunks("/w", &changes);
        let ids: BTreeSet<&str> = hunks.iter().map(|it| it.id.as_str()).collect();
        assert_eq!(ids.len(), 3, "{hunks:?}");
    }

    #[test]
    fn too_many_hunks_make_a_file_one_hunk() {
        let sections = |count: usize| -> String {
            let numbers = (0..count).map(|it| 10 * it + 1);
            numbers
                .map(|it| format!("@@ -{it} +{it} @@\n-a\n+b\n"))
                .collect()
        };
        let few = update(&sections(HUNKS_MAX - 1));
        for (changes, expected) in [
            (vec![update(&sections(HUNKS_MAX))], HUNKS_MAX),
            (vec![update(&sections(HUNKS_MAX + 1))], 1),
            (
                vec![few.clone(), update(&sections(2)), few.clone()],
                HUNKS_MAX + 1,
            ),
        ] {
            assert_eq!(proposed_hunks("/w", &changes).len(), expected);
        }
    }

    #[test]
    fn a_report_has_a_limit() {
        let line = "x".repeat(REPORTED_BYTES_MAX + 7);
        let numbers = (0..40).map(|it| 10 * it + 1);
        let diff: String = numbers
            .map(|it| format!("@@ -{it} +{it} @@\n-{it}\n+{line}\n"))
            .collect();
        let changes = [update(&diff)];
        let hunks = proposed_hunks("/w", &changes);
        let report = report_of_decisions(&changes, &hunks, &[]);
        assert!(report.len() < REPORT_BYTES_MAX + 200, "{}", report.len());
        assert!(report.contains("\n… 8 more bytes\n"), "{report}");
        assert!(report.contains("more hunks were dropped"), "{report}");
    }

    #[test]
    fn decisions_must_be_about_the_hunks() {
        let changes = [update("@@ -1 +1 @@\n-a\n+b\n"), update("")];
        let hunks = proposed_hunks("/w", &changes);
        let decision = |index: usize, accept, replacement: Option<&str>| HunkDecision {
            id: hunks[index].id.clone(),
            accept,
            comment: None,
            replacement: replacement.map(str::to_owned),
        };
        let unknown = HunkDecision {
            id: "x".to_owned(),
            ..decision(0, true, None)
        };
        let (no, yes) = (false, true);
        for (decisions, expected) in [
            (vec![], None),
            (
                vec![decision(0, yes, Some("c\n")), decision(1, no, None)],
                None,
            ),
            (vec![unknown], Some(DecisionError::UnknownHunk)),
            (
                vec![decision(0, yes, None), decision(0, yes, None)],
                Some(DecisionError::Twice),
            ),
            (
                vec![decision(0, no, Some("c"))],
                Some(DecisionError::DroppedReplacement),
            ),
            (
                vec![decision(1, yes, Some("c"))],
                Some(DecisionError::NothingToReplace),
            ),
        ] {
            assert_eq!(check_decisions(&hunks, &decisions).err(), expected);
        }
    }

    #[test]
    fn the_report_names_what_was_dropped_and_replaced() {
        let changes = [
            update("@@ -1 +1 @@\n-a\n+b\n@@ -9 +9 @@\n-c\n+d\n"),
            update(""),
        ];
        let hunks = proposed_hunks("/w", &changes);
        let decision = |index: usize, accept, comment: &str, replacement: &str| HunkDecision {
            id: hunks[index].id.clone(),
            accept,
            comment: (!comment.is_empty()).then(|| comment.to_owned()),
            replacement: (!replacement.is_empty()).then(|| replacement.to_owned()),
        };
        let decisions = [
            decision(0, true, "", "B\n"),
            decision(1, false, "d is wrong", ""),
        ];
        assert_eq!(
            report_of_decisions(&changes, &hunks, &decisions),
            "The user accepted 1 of 3 hunks.\n\n\
             Applied with other lines: /w/a @@ -1 +1 @@\n-a\n+b\n\
             The user's lines in place of the new ones:\n+B\n\n\
             Not applied: /w/a @@ -9 +9 @@\n-c\n+d\nComment of the user: d is wrong\n\n\
             Not applied: /w/a\n"
        );
        let accepted = [decision(0, true, "", ""), decision(1, true, "well", "")];
        assert_eq!(
            report_of_decisions(&changes[..1], &hunks[..2], &accepted),
            "The user accepted 2 of 2 hunks.\n\nApplied: /w/a @@ -9 +9 @@\nComment of the user: well\n"
        );
    }
}
