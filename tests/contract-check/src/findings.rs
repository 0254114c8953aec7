//! Findings of the check, collected so that each cause is reported once.

use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub struct Findings {
    by_cause: BTreeMap<(String, String), Finding>,
}

#[derive(Debug)]
struct Finding {
    times: usize,
    example: Option<String>,
}

impl Findings {
    pub fn add(&mut self, kind: &str, what: impl Into<String>) {
        self.add_with(kind, what, || None);
    }

    /// Adds a finding with an example, which is computed only for the first of its kind.
    pub fn add_with(
        &mut self,
        kind: &str,
        what: impl Into<String>,
        example: impl FnOnce() -> Option<String>,
    ) {
        let finding = self
            .by_cause
            .entry((kind.to_owned(), what.into()))
            .or_insert_with(|| Finding {
                times: 0,
                example: example(),
            });
        finding.times += 1;
    }

    pub fn merge(&mut self, other: Self) {
        for (key, finding) in other.by_cause {
            match self.by_cause.entry(key) {
                std::collections::btree_map::Entry::Vacant(vacant) => {
                    vacant.insert(finding);
                }
                std::collections::btree_map::Entry::Occupied(mut occupied) => {
                    occupied.get_mut().times += finding.times
                }
            }
        }
    }

    /// Returns one paragraph per finding.
    pub fn lines(&self) -> Vec<String> {
        let line = |((kind, what), finding): (&(String, String), &Finding)| {
            let times = if finding.times > 1 {
                format!(" ({} times)", finding.times)
            } else {
                String::new()
            };
            let example = finding
                .example
                .as_ref()
                .map(|it| format!("\n    {it}"))
                .unwrap_or_default();
            format!("{kind}: {what}{times}{example}")
        };
        self.by_cause.iter().map(line).collect()
    }
}
