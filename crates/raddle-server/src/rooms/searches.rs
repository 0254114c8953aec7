//! Finding files by a few letters of their path.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ignore::WalkBuilder;
use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use raddle_protocol::{FuzzyFileSearchMatchType, FuzzyFileSearchResult};

/// How many matches are told.
const MATCHES_MAX: usize = 50;

/// How many entries one search looks at, in all its roots, before it settles for what it has.
const ENTRIES_MAX: usize = 1_000_000;

/// Searches that can be called off by a newer one.
#[derive(Debug, Default)]
pub(crate) struct Searches {
    running: Arc<Running>,
}

/// The newest search of each name, and whether it was called off.
type Running = Mutex<HashMap<String, Arc<AtomicBool>>>;

impl Searches {
    /// Begins a search; one that runs under the same name is called off.
    pub(crate) fn begin(&self, name: Option<String>) -> Search {
        let cancelled = Arc::new(AtomicBool::new(false));
        if let Some(name) = &name {
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(older) = running.insert(name.clone(), cancelled.clone()) {
                older.store(true, Ordering::Relaxed);
            }
        }
        Search {
            running: self.running.clone(),
            name,
            cancelled,
        }
    }
}

/// A running search.
#[derive(Debug)]
pub(crate) struct Search {
    running: Arc<Running>,
    name: Option<String>,
    cancelled: Arc<AtomicBool>,
}

/// What a search looks for, and what it has so far.
struct Hunt {
    pattern: Pattern,
    matcher: Matcher,
    found: Vec<FuzzyFileSearchResult>,
    /// How many entries it may still look at.
    entries_left: usize,
}

impl Search {
    /// The best matches under the roots, best first. A search that was called off has none; it is called
    /// off too when `is_gone` says that the client has left.
    pub(crate) fn run(
        &self,
        query: &str,
        roots: &[String],
        is_gone: impl Fn() -> bool,
    ) -> Vec<FuzzyFileSearchResult> {
        self.run_within(ENTRIES_MAX, query, roots, is_gone)
    }

    fn run_within(
        &self,
        entries_max: usize,
        query: &str,
        roots: &[String],
        is_gone: impl Fn() -> bool,
    ) -> Vec<FuzzyFileSearchResult> {
        if query.is_empty() {
            return Vec::new();
        }
        let is_off = || self.cancelled.load(Ordering::Relaxed) || is_gone();
        let mut hunt = Hunt {
            pattern: Pattern::new(
                query,
                CaseMatching::Smart,
                Normalization::Smart,
                AtomKind::Fuzzy,
            ),
            matcher: Matcher::new(Config::DEFAULT.match_paths()),
            found: Vec::new(),
            entries_left: entries_max,
        };
        for root in roots {
            hunt.search(root, is_off);
        }
        if is_off() {
            return Vec::new();
        }
        if hunt.entries_left == 0 {
            tracing::warn!(entries_max, "a search settled for what it had found");
        }
        best_first(&mut hunt.found);
        hunt.found
    }
}

impl Hunt {
    fn search(&mut self, root: &str, is_off: impl Fn() -> bool) {
        let folder = Path::new(root);
        // Hidden files count, ignored ones do not; ignore files apply only inside a repository.
        let walk = WalkBuilder::new(folder)
            .hidden(false)
            .follow_links(false)
            .require_git(true)
            .build();
        let mut buffer = Vec::new();
        for entry in walk {
            if self.entries_left == 0 || is_off() {
                return;
            }
            self.entries_left -= 1;
            let Ok(entry) = entry else { continue };
            let Ok(relative) = entry.path().strip_prefix(folder) else {
                continue;
            };
            let path = relative.to_string_lossy();
            if path.is_empty() {
                continue;
            }
            let mut indices = Vec::new();
            let text = Utf32Str::new(&path, &mut buffer);
            let Some(score) = self.pattern.indices(text, &mut self.matcher, &mut indices) else {
                continue;
            };
            indices.sort_unstable();
            indices.dedup();
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            self.found.push(FuzzyFileSearchResult {
                root: root.to_owned(),
                file_name: entry.file_name().to_string_lossy().into_owned(),
                path: path.into_owned(),
                match_type: if is_folder {
                    FuzzyFileSearchMatchType::Directory
                } else {
                    FuzzyFileSearchMatchType::File
                },
                score,
                indices: Some(indices),
            });
            if self.found.len() > 20 * MATCHES_MAX {
                best_first(&mut self.found);
            }
        }
    }
}

/// Sorts by score, then by path, and keeps as many as are told.
fn best_first(found: &mut Vec<FuzzyFileSearchResult>) {
    found.sort_by(|a, b| b.score.cmp(&a.score).then_with(|| a.path.cmp(&b.path)));
    found.truncate(MATCHES_MAX);
}

impl Drop for Search {
    fn drop(&mut self) {
        let Some(name) = &self.name else { return };
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running
            .get(name)
            .is_some_and(|newest| Arc::ptr_eq(newest, &self.cancelled))
        {
            running.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// A folder with files named `needle…`.
    fn haystack(files: usize) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for number in 0..files {
            std::fs::write(folder.path().join(format!("needle{number}")), "").expect("a file");
        }
        folder
    }

    #[test]
    fn a_search_ends_when_it_has_seen_enough_in_all_its_roots() {
        let folder = haystack(10);
        let root = folder.path().display().to_string();
        let search = Searches::default().begin(None);
        let found = |entries_max, roots: &[String]| {
            let found = search.run_within(entries_max, "needle", roots, || false);
            found.len()
        };
        // A root is an entry too, also when it is not there.
        assert_eq!(found(100, &[root.clone(), root.clone()]), 20);
        assert_eq!(found(15, &[root.clone(), root.clone()]), 13);
        let nowhere = format!("{root}/nowhere");
        let mut roots = vec![nowhere; 50];
        roots.push(root);
        assert_eq!(found(50, &roots), 0);
        assert_eq!(found(61, &roots), 10);
    }

    #[test]
    fn a_search_for_a_client_that_has_left_ends_at_once() {
        let folder = haystack(10);
        let roots = vec![folder.path().display().to_string(); 10];
        let search = Searches::default().begin(None);
        let looks = Cell::new(0);
        let leaves = || {
            looks.set(looks.get() + 1);
            looks.get() > 5
        };
        assert_eq!(search.run("needle", &roots, leaves).len(), 0);
        assert!(looks.get() < 20, "looked {} times", looks.get());
    }
}
