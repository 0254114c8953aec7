//! The part of a history that shows a violation.

use std::collections::HashSet;

use crate::checker::HistoryViolation;
use crate::history::{HistoryEntry, HistoryLine, RecordNote};

/// Maximum number of lines.
const LINES_MAX: usize = 30;

/// Returns the lines about the record of a violation, and about faults.
pub fn excerpt(lines: &[HistoryLine], violation: &HistoryViolation) -> Vec<String> {
    let mut ops: HashSet<(&str, u64)> = HashSet::new();
    let start = lines.first().map_or(0, |line| line.at);
    let has = |records: &[RecordNote]| records.iter().any(|it| it.seq == violation.seq);
    let mut texts = Vec::new();
    for line in lines {
        let text = match &line.entry {
            HistoryEntry::Append {
                thread,
                life,
                op,
                durable,
                records,
            } if *thread == violation.thread && (has(records) || has_barrier(records)) => {
                ops.insert((&line.node, *op));
                format!("life {life} append {op} {durable:?} {}", brief(records))
            }
            HistoryEntry::Appended { op, outcome } if ops.contains(&(line.node.as_str(), *op)) => {
                format!("append {op}: {outcome:?}")
            }
            HistoryEntry::Settled { op, stored } if ops.contains(&(line.node.as_str(), *op)) => {
                format!("append {op} settled, stored: {stored}")
            }
            HistoryEntry::Taken {
                thread,
                life,
                records,
            } if *thread == violation.thread => {
                let last = records.last().map_or(0, |it| it.seq);
                let found = if has(records) { "with" } else { "without" };
                format!(
                    "life {life} took it up to {last}, {found} {}",
                    violation.seq
                )
            }
            HistoryEntry::Fault { what } => what.clone(),
            _ => continue,
        };
        let ms = (line.at - start) / 1000;
        texts.push(format!("{ms:>7} ms {:<8} {text}", line.node));
    }
    // The lines nearest to the record are the last ones that can matter.
    let about = format!("with {}", violation.seq);
    let first = texts.iter().position(|it| it.contains(&about));
    let from = first.map_or(0, |at| at.saturating_sub(LINES_MAX / 2));
    texts.into_iter().skip(from).take(LINES_MAX).collect()
}

fn has_barrier(records: &[RecordNote]) -> bool {
    use crate::history::NoteKind;
    let is_barrier = |it: &RecordNote| matches!(it.kind, NoteKind::Barrier { .. });
    records.iter().any(is_barrier)
}

fn brief(records: &[RecordNote]) -> String {
    let texts = records.iter().map(|it| format!("{} {:?}", it.seq, it.kind));
    texts.collect::<Vec<String>>().join(", ")
}
