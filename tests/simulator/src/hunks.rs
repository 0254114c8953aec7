//! The simulated tool that changes files.

use raddle_core::{HunkDecision, ItemBody, proposed_hunks, report_of_decisions};

/// The part of a change that a tool writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenHunks {
    /// The new lines of each hunk that it writes; `None` if the decisions are about other hunks.
    pub lines: Option<Vec<String>>,
    /// Output for the model.
    pub report: String,
}

impl WrittenHunks {
    /// Returns the part of a change that these decisions leave. Without decisions it is all of it.
    pub fn of(cwd: &str, body: &ItemBody, decisions: &[HunkDecision]) -> Self {
        let ItemBody::Patch(patch) = body else {
            return Self {
                lines: Some(Vec::new()),
                report: "done".to_owned(),
            };
        };
        let hunks = proposed_hunks(cwd, &patch.changes);
        if decisions.is_empty() {
            return Self {
                lines: Some(hunks.into_iter().map(|it| it.new).collect()),
                report: "done".to_owned(),
            };
        }
        let is_known = |it: &HunkDecision| hunks.iter().any(|hunk| hunk.id == it.id);
        let lines = hunks.iter().filter_map(|hunk| {
            let decision = decisions.iter().find(|it| it.id == hunk.id && it.accept)?;
            let replacement = decision.replacement.as_ref();
            Some(replacement.unwrap_or(&hunk.new).clone())
        });
        Self {
            lines: decisions.iter().all(is_known).then(|| lines.collect()),
            report: report_of_decisions(&patch.changes, &hunks, decisions),
        }
    }
}
