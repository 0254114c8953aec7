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

/// How many entries are looked at before a search settles for what it has.
const ENTRIES_MAX: usize = 500_000;

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

impl Search {
    /// The best matches under the roots, best first. A search that was called off has none.
    pub(crate) fn run(&self, query: &str, roots: &[String]) -> Vec<FuzzyFileSearchResult> {
        if query.is_empty() {
            return Vec::new();
        }
        let pattern = Pattern::new(
            query,
            CaseMatching::Smart,
            Normalization::Smart,
            AtomKind::Fuzzy,
        );
        let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
        let mut found = Vec::new();
        for root in roots {
            self.search_root(Path::new(root), root, &pattern, &mut matcher, &mut found);
        }
        if self.cancelled.load(Ordering::Relaxed) {
            return Vec::new();
        }
        best_first(&mut found);
        found
    }

    fn search_root(
        &self,
        folder: &Path,
        root: &str,
        pattern: &Pattern,
        matcher: &mut Matcher,
        found: &mut Vec<FuzzyFileSearchResult>,
    ) {
        // Hidden files count, ignored ones do not; ignore files apply only inside a repository.
        let walk = WalkBuilder::new(folder)
            .hidden(false)
            .follow_links(false)
            .require_git(true)
            .build();
        let mut buffer = Vec::new();
        for entry in walk.flatten().take(ENTRIES_MAX) {
            if self.cancelled.load(Ordering::Relaxed) {
                return;
            }
            let Ok(relative) = entry.path().strip_prefix(folder) else {
                continue;
            };
            let path = relative.to_string_lossy();
            if path.is_empty() {
                continue;
            }
            let mut indices = Vec::new();
            let text = Utf32Str::new(&path, &mut buffer);
            let Some(score) = pattern.indices(text, matcher, &mut indices) else {
                continue;
            };
            indices.sort_unstable();
            indices.dedup();
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            found.push(FuzzyFileSearchResult {
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
            if found.len() > 20 * MATCHES_MAX {
                best_first(found);
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
