//! Hunks: a tool writes those that the first answer accepted, and the model reads which it did not.
//! The hunks are those that clients saw when the request was opened.

use std::collections::BTreeMap;

use raddle_core::{
    Event, ItemBody, ItemCompleted, ItemId, ItemStatus, ProposedHunk, Record, RecordBody,
    RequestAnswer, RequestNumber, RequestOpened, RequestResolved, Resolution, Thread,
    proposed_hunks,
};

use super::{Check, Oracle, broken};
use crate::hunks::WrittenHunks;

/// Decision on one hunk of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
struct DecidedHunk {
    new: String,
    /// The lines that the user accepted; `None` if the hunk was dropped.
    accepted: Option<String>,
    comment: Option<String>,
}

/// The hunks of changes that need approval.
#[derive(Debug, Default)]
pub struct DecidedHunks {
    /// The hunks of each request as it was opened.
    shown: BTreeMap<RequestNumber, Vec<ProposedHunk>>,
    /// The changes on whose hunks a client decided, by item.
    decided: BTreeMap<ItemId, Vec<DecidedHunk>>,
}

impl DecidedHunks {
    /// Adds a stored request or answer. `fold`: the thread before it.
    pub fn note(
        &mut self,
        fold: &Thread,
        requests: &BTreeMap<RequestNumber, ItemId>,
        record: &Record,
    ) {
        let RecordBody::Event(event) = &record.body else {
            return;
        };
        if let Event::RequestOpened(RequestOpened { request, item, .. }) = &**event {
            self.shown.insert(*request, proposed(fold, item));
        }
        let Event::RequestResolved(RequestResolved {
            request,
            resolution: Resolution::Answered { answer, .. },
            ..
        }) = &**event
        else {
            return;
        };
        let (RequestAnswer::AcceptHunks { hunks }, Some(item)) = (&**answer, requests.get(request))
        else {
            return;
        };
        let decision = |it: ProposedHunk| {
            let decision = hunks.iter().find(|decision| decision.id == it.id);
            let accepted = decision.filter(|it| it.accept);
            DecidedHunk {
                accepted: accepted
                    .map(|decision| decision.replacement.as_ref().unwrap_or(&it.new).clone()),
                comment: decision.and_then(|it| it.comment.clone()),
                new: it.new,
            }
        };
        let shown = self.shown.remove(request).unwrap_or_default();
        let decided = shown.into_iter().map(decision);
        self.decided.insert(item.clone(), decided.collect());
    }

    /// I3: the model reads of each hunk that was dropped, with its lines and the user's comment, and
    /// of no other.
    pub fn check(&self, it: &ItemCompleted) -> Check {
        let Some(decided) = self.decided.get(&it.item.id) else {
            return Ok(());
        };
        if !matches!(it.item.status, ItemStatus::Completed | ItemStatus::Declined) {
            return Ok(());
        }
        let output = it.item.output.as_ref().map_or("", |it| &it.text);
        for hunk in decided {
            let is_reported = output.contains(&format!("\n+{}", hunk.new));
            let is_other = hunk.accepted.as_ref() != Some(&hunk.new);
            let comment = hunk.comment.as_deref().unwrap_or_default();
            if is_reported != is_other || !output.contains(comment) {
                return broken(
                    I3,
                    format!(
                        "{} tells the model otherwise of {hunk:?}: {output}",
                        it.item.id
                    ),
                );
            }
        }
        Ok(())
    }
}

const I3: &str = "I3 no silent run";

/// Returns the hunks of a change in the present working directory.
fn proposed(fold: &Thread, item: &ItemId) -> Vec<ProposedHunk> {
    let mut items = fold.turn().into_iter().flat_map(|turn| &turn.items);
    match items
        .find(|open| open.item.id == *item)
        .map(|it| &it.item.body)
    {
        Some(ItemBody::Patch(patch)) => proposed_hunks(&fold.settings().cwd, &patch.changes),
        _ => Vec::new(),
    }
}

impl Oracle {
    /// I3: a tool writes the hunks that the stored answer accepted, or none at all.
    pub fn i3_hunks_are_accepted(&self, item: &ItemId, written: &WrittenHunks) -> Check {
        let (Some(decided), Some(lines)) = (self.hunks.decided.get(item), &written.lines) else {
            return Ok(());
        };
        let accepted: Vec<&String> = decided
            .iter()
            .filter_map(|it| it.accepted.as_ref())
            .collect();
        match lines.iter().eq(accepted.iter().copied()) {
            true => Ok(()),
            false => broken(
                I3,
                format!("{item} writes {lines:?}, and accepted are {accepted:?}"),
            ),
        }
    }
}
