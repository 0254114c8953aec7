//! The part of a plan that the user accepted, hunk by hunk.

use std::collections::{BTreeMap, BTreeSet};

use raddle_core::{
    ChangeKind, FileChange, HunkDecision, ProposedHunk, proposed_hunks, report_of_decisions,
};
use raddle_workspace::{DiffLimits, HunkChoice, ProposedFile, WorkspacePath, apply_hunks};

use super::change::{ChangePlan, PlannedFile, changed_files};
use super::open::{Contents, FILE_BYTES_MAX};

/// Reason why a part of a plan cannot be applied. Nothing is written then.
#[derive(Debug, thiserror::Error)]
pub enum SelectionError {
    /// The plan does not have a hunk.
    #[error("the hunks of the change are no longer those that were shown; call again")]
    OtherHunks,
    /// The hunks of a file cannot be applied one by one.
    #[error(
        "{0} can only be changed as a whole; accept all of its hunks without a replacement, or none"
    )]
    Indivisible(String),
    /// A file would be too large.
    #[error("{0} would have more than {FILE_BYTES_MAX} bytes")]
    TooLarge(String),
}

/// A part of a plan.
#[derive(Clone, Debug)]
pub struct AcceptedPlan {
    /// The accepted changes.
    pub plan: ChangePlan,
    /// Report on the user's decisions, for the model.
    pub report: String,
}

impl ChangePlan {
    /// Returns the part that the user accepted. `shown`: the changes of this plan as the user saw
    /// them, in the working directory `cwd`. A file may have another name now, because names depend on
    /// the settings.
    pub fn accepted(
        &self,
        cwd: &str,
        shown: &[FileChange],
        decisions: &[HunkDecision],
    ) -> Result<AcceptedPlan, SelectionError> {
        let (indexes, changes): (Vec<usize>, Vec<FileChange>) = self.indexed_changes().unzip();
        if changes.len() != shown.len() || !changes.iter().zip(shown).all(is_same) {
            return Err(SelectionError::OtherHunks);
        }
        let hunks = proposed_hunks(cwd, shown);
        let ids: BTreeSet<&str> = hunks.iter().map(|it| &*it.id).collect();
        if !decisions.iter().all(|it| ids.contains(&*it.id)) {
            return Err(SelectionError::OtherHunks);
        }
        let accepting = decisions.iter().filter(|it| it.accept);
        let accepting: BTreeMap<&str, &HunkDecision> = accepting.map(|it| (&*it.id, it)).collect();
        let mut files = self.files.clone();
        // Every change has at least one hunk.
        let of_files = hunks.chunk_by(|a, b| a.file == b.file);
        for ((index, change), of_file) in indexes.into_iter().zip(shown).zip(of_files) {
            let accepted = of_file.iter();
            let accepted = accepted.filter_map(|it| Some((it, *accepting.get(&*it.id)?)));
            let accepted: Vec<(&ProposedHunk, &HunkDecision)> = accepted.collect();
            let target = files[index].moved_to.unwrap_or(index);
            let is_whole = accepted.len() == of_file.len()
                && accepted.iter().all(|(_, it)| it.replacement.is_none());
            if is_whole {
                continue;
            }
            if accepted.is_empty() {
                for index in [index, target] {
                    files[index].now = files[index].base.clone();
                    (files[index].moved_to, files[index].moved_from) = (None, None);
                }
                continue;
            }
            let base = files[index].base.clone();
            let now = files[target].now.as_ref();
            let bytes = now.and_then(|now| part(base.as_ref(), now, &accepted));
            let Some(bytes) = bytes else {
                return Err(SelectionError::Indivisible(change.path.clone()));
            };
            if bytes.len() as u64 > FILE_BYTES_MAX {
                return Err(SelectionError::TooLarge(change.path.clone()));
            }
            if let PlannedFile { now: Some(now), .. } = &mut files[target] {
                now.bytes = bytes;
            }
        }
        Ok(AcceptedPlan {
            plan: ChangePlan {
                files: changed_files(&files),
            },
            report: report_of_decisions(shown, &hunks, decisions),
        })
    }
}

/// Whether both are the same change, but for the names of the file.
fn is_same((a, b): (&FileChange, &FileChange)) -> bool {
    let is_same_kind = match (&a.kind, &b.kind) {
        (ChangeKind::Update { moved_to: a }, ChangeKind::Update { moved_to: b }) => {
            a.is_some() == b.is_some()
        }
        (a, b) => a == b,
    };
    is_same_kind && a.diff == b.diff
}

/// Returns the content with these hunks alone; `None` if they are not hunks of its text.
fn part(
    base: Option<&Contents>,
    now: &Contents,
    accepted: &[(&ProposedHunk, &HunkDecision)],
) -> Option<Vec<u8>> {
    // The names of the hunks come from the item, so the path does not matter here.
    let path = WorkspacePath::new("file")?;
    let before = base.map(|it| side(&path, it));
    let after = Some(side(&path, now));
    let change = raddle_workspace::FileChange::proposed(before, after, &DiffLimits::default())?;
    // No two hunks begin at the same line of either side.
    let by_place = change.hunks().iter();
    let by_place: BTreeMap<(u32, u32), _> = by_place
        .map(|it| ((it.before.start, it.after.start), it))
        .collect();
    let choices = accepted.iter().map(|(hunk, decision)| {
        let found = by_place.get(&(hunk.before.start, hunk.after.start))?;
        // The user saw these lines.
        let is_shown = found.old == hunk.old.as_bytes() && found.new == hunk.new.as_bytes();
        is_shown.then(|| HunkChoice {
            id: found.id.clone(),
            replacement: decision.replacement.clone().map(String::into_bytes),
        })
    });
    let choices: Vec<HunkChoice> = choices.collect::<Option<_>>()?;
    let base = base.map_or(&[][..], |it| &it.bytes);
    apply_hunks(base, &change, &choices).ok()
}

fn side<'a>(path: &'a WorkspacePath, contents: &'a Contents) -> ProposedFile<'a> {
    ProposedFile {
        path,
        mode: contents.mode,
        bytes: &contents.bytes,
    }
}
