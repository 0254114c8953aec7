//! Situations that only the oracle recognises: records about to be stored, and the state before
//! them.

use std::rc::Rc;

use raddle_core::{Event, ItemStatus, ModelEnd, RecordBody, Seq};

use super::{Check, Oracle, broken};
use crate::coverage::Coverage;
use crate::store::LogRow;

impl Oracle {
    /// Counts the remarkable situations of records, before they are applied.
    pub fn count(&self, rows: &[Rc<LogRow>], coverage: &mut Coverage) {
        let events = || {
            rows.iter().filter_map(|row| match &row.record.body {
                RecordBody::Event(event) => Some(&**event),
                RecordBody::Delta(_) => None,
            })
        };
        let forks = events().any(|event| matches!(event, Event::Forked(_)));
        for event in events() {
            match event {
                Event::Owned(_) if !forks && self.open_turn.is_some() => {
                    let died = self.fold.owner().is_some();
                    if died && self.fold.settings().recovery.is_none() {
                        coverage.hit("recovery by the node's default");
                    }
                }
                Event::Forked(_) if self.open_turn.is_some() => coverage.hit("fork mid-turn"),
                Event::ModelEnded(it) if self.compacted && it.end == (ModelEnd::OwnerLost {}) => {
                    coverage.hit("owner lost between a summary and the end of its call");
                }
                Event::ItemCompleted(it) if it.item.status == ItemStatus::Completed => {
                    let message = self.items.get(&it.item.id).is_some_and(|item| item.message);
                    if message && self.items.values().any(|item| item.tool && item.open) {
                        coverage.hit("message whole after a call");
                    }
                }
                Event::RequestResolved(it) => {
                    let item = self.requests.get(&it.request);
                    let item = item.and_then(|it| self.items.get(it));
                    if item.is_some_and(|item| !item.open) {
                        coverage.hit("question outlived its call");
                    }
                }
                _ => {}
            }
        }
    }

    /// Whether the record of this number was reverted.
    pub fn is_cut(&self, at: Seq) -> bool {
        self.cuts.iter().any(|cut| cut.holds(at))
    }

    /// No revert goes to a turn that was reverted before.
    pub(super) fn reverts_only_what_counts(&self, event: &Event) -> Check {
        match event {
            Event::Reverted(it) if self.is_cut(it.at) => broken(
                "a turn that was taken back stays so",
                format!("{} was taken back before, and is gone back to", it.turn),
            ),
            _ => Ok(()),
        }
    }
}
