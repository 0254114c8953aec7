//! What is wrong, collected so that one cause is reported once.

use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub struct Findings {
    found: BTreeMap<(String, String), Finding>,
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

    /// Adds with an example, made only for the first of its kind.
    pub fn add_with(
        &mut self,
        kind: &str,
        what: impl Into<String>,
        example: impl FnOnce() -> Option<String>,
    ) {
        let finding = self
            .found
            .entry((kind.to_owned(), what.into()))
            .or_insert_with(|| Finding {
                times: 0,
                example: example(),
            });
        finding.times += 1;
    }

    pub fn merge(&mut self, other: Self) {
        for (key, finding) in other.found {
            match self.found.entry(key) {
                std::collections::btree_map::Entry::Vacant(place) => {
                    place.insert(finding);
                }
                std::collections::btree_map::Entry::Occupied(mut place) => {
                    place.get_mut().times += finding.times
                }
            }
        }
    }

    /// One paragraph per finding.
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
        self.found.iter().map(line).collect()
    }
}
