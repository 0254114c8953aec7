//! Finds files by a few letters of their path.

mod ignores;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ignore::{DirEntry, Walk, WalkBuilder};
use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use raddle_protocol::{FuzzyFileSearchMatchType, FuzzyFileSearchResult};

/// The maximum number of matches to return.
const MATCHES_MAX: usize = 50;

/// Limit: entries that one file search scans; beyond it, the search returns what it has found, and
/// logs the limit.
const ENTRIES_MAX: usize = 1_000_000;

/// Time limit of one search; then it returns what it has.
const TIME_MAX: Duration = Duration::from_secs(20);

/// The maximum number of folders with unread ignore files that are queued for a listing.
const UNIGNORED_MAX: usize = 10_000;

/// Searches that a newer one can cancel.
#[derive(Debug, Default)]
pub(crate) struct Searches {
    running: Arc<RunningSearches>,
}

/// The newest search of each name, with its cancellation flag.
type RunningSearches = Mutex<HashMap<String, Arc<AtomicBool>>>;

impl Searches {
    /// Begins a search, and cancels one that runs under the same name.
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

#[derive(Debug)]
pub(crate) struct Search {
    running: Arc<RunningSearches>,
    name: Option<String>,
    cancelled: Arc<AtomicBool>,
}

/// Query, limits and matches of a running search.
struct SearchJob {
    pattern: Pattern,
    matcher: Matcher,
    matches: Vec<FuzzyFileSearchResult>,
    /// Number of entries that it may still visit.
    entries_left: usize,
    /// Time at which it returns what it has.
    deadline: Instant,
    ignores: Arc<ignores::Budget>,
}

impl Search {
    /// Ends the search: it returns no matches then.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether it was cancelled, for example by a newer search of the same name.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Returns the best matches under the roots, best first. A cancelled search returns none; it
    /// also ends when `is_gone` says that the client has disconnected.
    pub(crate) fn run(
        &self,
        query: &str,
        roots: &[String],
        is_gone: impl Fn() -> bool,
    ) -> Vec<FuzzyFileSearchResult> {
        let bounds = (ENTRIES_MAX, TIME_MAX);
        self.run_within(bounds, query, roots, is_gone)
    }

    fn run_within(
        &self,
        (entries_max, time_max): (usize, Duration),
        query: &str,
        roots: &[String],
        is_gone: impl Fn() -> bool,
    ) -> Vec<FuzzyFileSearchResult> {
        if query.is_empty() {
            return Vec::new();
        }
        let is_cancelled = || self.is_cancelled() || is_gone();
        let mut job = SearchJob {
            pattern: Pattern::new(
                query,
                CaseMatching::Smart,
                Normalization::Smart,
                AtomKind::Fuzzy,
            ),
            matcher: Matcher::new(Config::DEFAULT.match_paths()),
            matches: Vec::new(),
            entries_left: entries_max,
            deadline: Instant::now() + time_max,
            ignores: Arc::default(),
        };
        for root in roots {
            // Checked here too, because even the start of a root accesses the disk.
            if is_cancelled() || job.entries_left == 0 {
                break;
            }
            job.search(root, is_cancelled);
        }
        if is_cancelled() {
            return Vec::new();
        }
        if job.entries_left == 0 {
            tracing::warn!(
                entries_max,
                "a search reached its limit; its result is partial"
            );
        }
        best_first(&mut job.matches);
        job.matches
    }
}

/// Folders whose ignore files must not be read. All their files are listed, because it is unknown
/// which are ignored.
type UnignoredFolders = Arc<Mutex<Vec<PathBuf>>>;

impl SearchJob {
    fn search(&mut self, root: &str, is_cancelled: impl Fn() -> bool) {
        let folder = Path::new(root);
        if !ignores::are_plain(folder, &self.ignores) {
            return self.search_below(root, walk_unfiltered(folder), &is_cancelled);
        }
        let unignored = UnignoredFolders::default();
        self.search_below(root, walk(folder, &unignored, &self.ignores), &is_cancelled);
        let unignored_folders =
            std::mem::take(&mut *unignored.lock().unwrap_or_else(PoisonError::into_inner));
        for folder in unignored_folders {
            self.search_below(root, walk_unfiltered(&folder), &is_cancelled);
        }
    }

    fn search_below(&mut self, root: &str, entries: Walk, is_cancelled: impl Fn() -> bool) {
        for entry in entries {
            if !self.may_continue(&is_cancelled) {
                return;
            }
            let Ok(entry) = entry else { continue };
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            let kind = if is_folder {
                FuzzyFileSearchMatchType::Directory
            } else {
                FuzzyFileSearchMatchType::File
            };
            self.match_entry(root, entry.path(), kind);
        }
    }

    /// Whether to continue with one more entry.
    fn may_continue(&mut self, is_cancelled: impl Fn() -> bool) -> bool {
        if self.entries_left == 0 || is_cancelled() {
            return false;
        }
        if Instant::now() >= self.deadline {
            self.entries_left = 0;
            return false;
        }
        self.entries_left -= 1;
        true
    }

    /// Stores the entry if it matches.
    fn match_entry(&mut self, root: &str, path: &Path, match_type: FuzzyFileSearchMatchType) {
        let (Ok(relative), Some(file_name)) = (path.strip_prefix(root), path.file_name()) else {
            return;
        };
        let path = relative.to_string_lossy();
        if path.is_empty() {
            return;
        }
        let (mut buffer, mut indices) = (Vec::new(), Vec::new());
        let text = Utf32Str::new(&path, &mut buffer);
        let Some(score) = self.pattern.indices(text, &mut self.matcher, &mut indices) else {
            return;
        };
        indices.sort_unstable();
        indices.dedup();
        self.matches.push(FuzzyFileSearchResult {
            root: root.to_owned(),
            file_name: file_name.to_string_lossy().into_owned(),
            path: path.into_owned(),
            match_type,
            score,
            indices: Some(indices),
        });
        if self.matches.len() > 20 * MATCHES_MAX {
            best_first(&mut self.matches);
        }
    }
}

/// Walks all files in the folder, including ignored ones.
fn walk_unfiltered(folder: &Path) -> Walk {
    WalkBuilder::new(folder)
        .standard_filters(false)
        .follow_links(false)
        .build()
}

/// Walks all files in the folder that are not ignored. Folders whose ignore files must not be read
/// are queued in `unignored` instead.
fn walk(folder: &Path, unignored: &UnignoredFolders, budget: &Arc<ignores::Budget>) -> Walk {
    // Without git's rules the walker does not read the folders above.
    let reads_parents = ignores::are_plain_above(folder, budget);
    let (unignored, budget) = (unignored.clone(), budget.clone());
    let enter = move |entry: &DirEntry| {
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        if !is_folder || ignores::are_plain(entry.path(), &budget) {
            return true;
        }
        let mut unignored = unignored.lock().unwrap_or_else(PoisonError::into_inner);
        if unignored.len() < UNIGNORED_MAX {
            unignored.push(entry.path().to_owned());
        }
        false
    };
    // Hidden files count, ignored ones do not. Outside a repository, `.gitignore` has no effect;
    // `.ignore` applies everywhere. The user's global git rules do not apply to the client.
    WalkBuilder::new(folder)
        .hidden(false)
        .follow_links(false)
        .require_git(true)
        .parents(reads_parents)
        .git_ignore(reads_parents)
        .git_exclude(reads_parents)
        .git_global(false)
        .filter_entry(enter)
        .build()
}

/// Sorts by score, then by path, and truncates to the maximum.
fn best_first(matches: &mut Vec<FuzzyFileSearchResult>) {
    matches.sort_by(|a, b| b.score.cmp(&a.score).then_with(|| a.path.cmp(&b.path)));
    matches.truncate(MATCHES_MAX);
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

    /// Returns a folder with files named `needle…`.
    fn haystack(files: usize) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for number in 0..files {
            std::fs::write(folder.path().join(format!("needle{number}")), "").expect("a file");
        }
        folder
    }

    #[test]
    fn a_search_ends_at_its_limit_over_all_roots() {
        let folder = haystack(10);
        let root = folder.path().display().to_string();
        let search = Searches::default().begin(None);
        let match_count = |entries_max, roots: &[String]| {
            let bounds = (entries_max, TIME_MAX);
            let matches = search.run_within(bounds, "needle", roots, || false);
            matches.len()
        };
        // A root counts as an entry, also when it does not exist.
        assert_eq!(match_count(100, &[root.clone(), root.clone()]), 20);
        assert_eq!(match_count(15, &[root.clone(), root.clone()]), 13);
        let missing = format!("{root}/nowhere");
        let mut roots = vec![missing; 50];
        roots.push(root);
        assert_eq!(match_count(50, &roots), 0);
        assert_eq!(match_count(61, &roots), 10);
        let late = search.run_within((61, Duration::ZERO), "needle", &roots, || false);
        assert_eq!(late.len(), 0, "its time is over");
    }

    #[test]
    fn a_search_ends_when_its_client_disconnects() {
        let folder = haystack(10);
        let roots = vec![folder.path().display().to_string(); 10];
        let search = Searches::default().begin(None);
        let checks = Cell::new(0);
        let is_gone = || {
            checks.set(checks.get() + 1);
            checks.get() > 5
        };
        assert_eq!(search.run("needle", &roots, is_gone).len(), 0);
        // The sixth check ended the walk, and the next two the rest.
        assert_eq!(checks.get(), 8);
    }

    #[test]
    fn a_newer_search_cancels_only_an_older_one_of_the_same_name() {
        let folder = haystack(1);
        let roots = [folder.path().display().to_string()];
        let searches = Searches::default();
        let matches_when = |newer: Option<&str>| {
            let older = searches.begin(Some("typing".into()));
            let begin = || {
                drop(searches.begin(newer.map(Into::into)));
                false
            };
            older.run("needle", &roots, begin).len()
        };
        assert_eq!(matches_when(Some("typing")), 0);
        assert_eq!(matches_when(Some("else")), 1);
        assert_eq!(matches_when(None), 1);
    }

    fn paths(root: &Path) -> Vec<String> {
        let roots = [root.display().to_string()];
        let search = Searches::default().begin(None);
        let matches = search.run("needle", &roots, || false);
        let mut paths: Vec<String> = matches.into_iter().map(|it| it.path).collect();
        paths.sort();
        paths
    }

    /// An unread ignore file hides nothing.
    #[test]
    fn a_folder_whose_ignore_file_is_not_read_is_listed_whole() {
        for what in ["a link", "a long line", "a folder"] {
            let folder = haystack(1);
            let inside = folder.path().join("in");
            std::fs::create_dir_all(inside.join("b")).expect("a folder");
            std::fs::write(inside.join("b/needle"), "").expect("a file");
            let ignore = inside.join(".ignore");
            let created = match what {
                "a link" => std::os::unix::fs::symlink("/dev/zero", ignore),
                "a long line" => std::fs::write(ignore, "x".repeat(1001)),
                _ => std::fs::create_dir(ignore),
            };
            created.expect("an ignore file");
            assert_eq!(paths(folder.path()), ["in/b/needle", "needle0"], "{what}");
            assert_eq!(paths(&inside), ["b/needle"], "{what}");
        }
    }

    /// Only a limited number of patterns is read, however many a workspace has.
    #[test]
    fn patterns_beyond_the_budget_are_not_applied() {
        let folder = haystack(0);
        let patterns = format!("needle\n{}", "x*\n".repeat(8_000));
        for number in 0..40 {
            let inside = folder.path().join(format!("{number:02}"));
            std::fs::create_dir(&inside).expect("a folder");
            std::fs::write(inside.join(".ignore"), &patterns).expect("a file");
            std::fs::write(inside.join("needle"), "").expect("a file");
        }
        let read = 40 - paths(folder.path()).len();
        assert_eq!(read, 3);
    }

    #[test]
    fn an_ignore_file_above_that_is_no_file_is_not_read() {
        let folder = haystack(0);
        let below = folder.path().join("a/b");
        std::fs::create_dir_all(&below).expect("a folder");
        std::fs::write(below.join("needle"), "").expect("a file");
        std::os::unix::fs::symlink("/dev/zero", folder.path().join(".gitignore")).expect("a link");
        let roots = [below.display().to_string()];
        let matches = Searches::default()
            .begin(None)
            .run("needle", &roots, || false);
        assert_eq!(matches.len(), 1);
    }
}
