//! The whole comparison of our schema with the reference: first the structure, then instances.

use std::collections::{BTreeSet, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;

use crate::bundle::Bundle;
use crate::check::{Check, InstanceCounts};
use crate::exceptions::Exceptions;
use crate::findings::Findings;
use crate::parts::{ContractPart, ContractRow, Sources};
use crate::shape::Graph;
use crate::structure::Structure;

/// Schemas to compare, and how.
pub struct Comparison<'a> {
    pub reference: &'a Bundle,
    /// Schema of the reference without its experimental part.
    pub stable_reference: &'a Bundle,
    pub our_bundle: &'a Bundle,
    pub exceptions: &'a Exceptions,
    /// Minimum number of times that each option of each choice is taken.
    pub rounds: u32,
}

/// Result of the check of a row.
pub struct RowOutcome {
    pub row: ContractRow,
    pub counts: InstanceCounts,
    /// Exceptions that apply to the row, by index.
    pub exceptions: BTreeSet<usize>,
}

impl Comparison<'_> {
    /// Looks up every row of our tables in the reference, and compares the types of the selected
    /// rows.
    pub fn run(
        &self,
        selects: impl Fn(&ContractRow) -> bool,
        findings: &mut Findings,
    ) -> Result<Vec<RowOutcome>> {
        let exceptions = self.exceptions;
        let mut theirs = Graph::new(self.reference.definitions.clone());
        let mut stable = Graph::new(self.stable_reference.definitions.clone());
        let mut ours = Graph::new(self.our_bundle.definitions.clone());
        let mut rows = Sources {
            reference: self.reference,
            stable_reference: self.stable_reference,
            our_bundle: self.our_bundle,
            theirs: &mut theirs,
            stable: &mut stable,
            ours: &mut ours,
            exceptions,
            findings,
        }
        .rows()?;
        rows.retain(selects);

        let mut structure = Structure::new(&ours, &theirs, &stable, exceptions, findings);
        for part in rows.iter().flat_map(|row| &row.parts) {
            structure.compare(part.ours, part.theirs);
        }
        let (free, met, added) = (structure.free, structure.met, structure.added);
        let free: HashMap<_, _> = free
            .into_iter()
            .map(|(ours, (theirs, _))| (ours, theirs))
            .collect();

        let check = Check::new(self.reference, &theirs, &ours, (free, added), self.rounds);
        let row_counts = check_all(&check, &rows, findings)?;

        let mut outcomes = Vec::new();
        for (row, counts) in rows.into_iter().zip(row_counts) {
            let mut used = BTreeSet::new();
            for part in &row.parts {
                for node in theirs.reach(part.theirs) {
                    used.extend(theirs.nodes[node].exception);
                }
                for node in ours.reach(part.ours) {
                    used.extend(met.get(&node).into_iter().flatten());
                }
            }
            outcomes.push(RowOutcome {
                row,
                counts,
                exceptions: used,
            });
        }
        Ok(outcomes)
    }
}

/// Checks every part of every row, on as many threads as there are cores.
fn check_all(
    check: &Check<'_>,
    rows: &[ContractRow],
    findings: &mut Findings,
) -> Result<Vec<InstanceCounts>> {
    let jobs: Vec<(usize, String, &ContractPart)> = rows
        .iter()
        .enumerate()
        .flat_map(|(index, row)| {
            row.parts
                .iter()
                .map(move |part| (index, format!("{} {}", row.name, part.side), part))
        })
        .collect();
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((index, name, part)) = jobs.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let result = check.part(name, part);
                    results
                        .lock()
                        .unwrap_or_else(|poison| poison.into_inner())
                        .push((*index, result));
                }
            });
        }
    });
    let mut row_counts = vec![InstanceCounts::default(); rows.len()];
    for (index, result) in results
        .into_inner()
        .unwrap_or_else(|poison| poison.into_inner())
    {
        let (counts, part_findings) = result?;
        row_counts[index].add(counts);
        findings.merge(part_findings);
    }
    Ok(row_counts)
}
