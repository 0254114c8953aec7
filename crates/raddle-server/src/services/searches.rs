//! Finding files by a few letters of their path.

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

/// How many matches are told.
const MATCHES_MAX: usize = 50;

/// How many entries one search looks at, in all its roots, before it settles for what it has.
const ENTRIES_MAX: usize = 1_000_000;

/// How long one search takes before it settles for what it has.
const TIME_MAX: Duration = Duration::from_secs(20);

/// How many folders whose ignore files are not read are kept in mind until they are listed.
const UNIGNORED_MAX: usize = 10_000;

/// Searches that can be called off by a newer one.
#[derive(Debug, Default)]
pub(crate) struct Searches {
    running: Arc<RunningSearches>,
}

/// The newest search of each name, and whether it was called off.
type RunningSearches = Mutex<HashMap<String, Arc<AtomicBool>>>;

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
    running: Arc<RunningSearches>,
    name: Option<String>,
    cancelled: Arc<AtomicBool>,
}

/// What a search looks for, and what it has so far.
struct SearchJob {
    pattern: Pattern,
    matcher: Matcher,
    found: Vec<FuzzyFileSearchResult>,
    /// How many entries it may still look at.
    entries_left: usize,
    /// When it settles for what it has.
    deadline: Instant,
    ignores: Arc<ignores::Budget>,
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
        let is_off = || self.cancelled.load(Ordering::Relaxed) || is_gone();
        let mut hunt = SearchJob {
            pattern: Pattern::new(
                query,
                CaseMatching::Smart,
                Normalization::Smart,
                AtomKind::Fuzzy,
            ),
            matcher: Matcher::new(Config::DEFAULT.match_paths()),
            found: Vec::new(),
            entries_left: entries_max,
            deadline: Instant::now() + time_max,
            ignores: Arc::default(),
        };
        for root in roots {
            // Asked here too: even to begin with a root takes looks at the disk.
            if is_off() || hunt.entries_left == 0 {
                break;
            }
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

/// Folders whose ignore files must not be read. Everything in them is listed, because what they hide is not known.
type UnignoredFolders = Arc<Mutex<Vec<PathBuf>>>;

impl SearchJob {
    fn search(&mut self, root: &str, is_off: impl Fn() -> bool) {
        let folder = Path::new(root);
        if !ignores::are_plain(folder, &self.ignores) {
            return self.look_below(root, walk_bare(folder), &is_off);
        }
        let bare = UnignoredFolders::default();
        self.look_below(root, walk(folder, &bare, &self.ignores), &is_off);
        let passed = std::mem::take(&mut *bare.lock().unwrap_or_else(PoisonError::into_inner));
        for folder in passed {
            self.look_below(root, walk_bare(&folder), &is_off);
        }
    }

    fn look_below(&mut self, root: &str, entries: Walk, is_off: impl Fn() -> bool) {
        for entry in entries {
            if !self.may_look(&is_off) {
                return;
            }
            let Ok(entry) = entry else { continue };
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            let kind = if is_folder {
                FuzzyFileSearchMatchType::Directory
            } else {
                FuzzyFileSearchMatchType::File
            };
            self.look(root, entry.path(), kind);
        }
    }

    /// Whether to go on with one more entry.
    fn may_look(&mut self, is_off: impl Fn() -> bool) -> bool {
        if self.entries_left == 0 || is_off() {
            return false;
        }
        if Instant::now() >= self.deadline {
            self.entries_left = 0;
            return false;
        }
        self.entries_left -= 1;
        true
    }

    /// Keeps the entry if it matches.
    fn look(&mut self, root: &str, path: &Path, match_type: FuzzyFileSearchMatchType) {
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
        self.found.push(FuzzyFileSearchResult {
            root: root.to_owned(),
            file_name: file_name.to_string_lossy().into_owned(),
            path: path.into_owned(),
            match_type,
            score,
            indices: Some(indices),
        });
        if self.found.len() > 20 * MATCHES_MAX {
            best_first(&mut self.found);
        }
    }
}

/// Everything in the folder, whatever is ignored.
fn walk_bare(folder: &Path) -> Walk {
    WalkBuilder::new(folder)
        .standard_filters(false)
        .follow_links(false)
        .build()
}

/// Everything in the folder that is not ignored. Folders whose ignore files must not be read are put
/// with the bare ones instead.
fn walk(folder: &Path, bare: &UnignoredFolders, budget: &Arc<ignores::Budget>) -> Walk {
    // Without git's rules the walker does not look at the folders above.
    let above = ignores::are_plain_above(folder, budget);
    let (bare, budget) = (bare.clone(), budget.clone());
    let enter = move |entry: &DirEntry| {
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        if !is_folder || ignores::are_plain(entry.path(), &budget) {
            return true;
        }
        let mut bare = bare.lock().unwrap_or_else(PoisonError::into_inner);
        if bare.len() < UNIGNORED_MAX {
            bare.push(entry.path().to_owned());
        }
        false
    };
    // Hidden files count, ignored ones do not. What git ignores counts outside a repository; `.ignore`
    // applies everywhere. The user's own rules for all repositories are not the client's.
    WalkBuilder::new(folder)
        .hidden(false)
        .follow_links(false)
        .require_git(true)
        .parents(above)
        .git_ignore(above)
        .git_exclude(above)
        .git_global(false)
        .filter_entry(enter)
        .build()
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
            let bounds = (entries_max, TIME_MAX);
            let found = search.run_within(bounds, "needle", roots, || false);
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
        let late = search.run_within((61, Duration::ZERO), "needle", &roots, || false);
        assert_eq!(late.len(), 0, "its time is over");
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
        // The sixth ended the walk, and the next two the rest.
        assert_eq!(looks.get(), 8);
    }

    #[test]
    fn a_newer_search_calls_off_an_older_one_of_the_same_name_only() {
        let folder = haystack(1);
        let roots = [folder.path().display().to_string()];
        let searches = Searches::default();
        let found_when = |newer: Option<&str>| {
            let older = searches.begin(Some("typing".into()));
            let begin = || {
                drop(searches.begin(newer.map(Into::into)));
                false
            };
            older.run("needle", &roots, begin).len()
        };
        assert_eq!(found_when(Some("typing")), 0);
        assert_eq!(found_when(Some("else")), 1);
        assert_eq!(found_when(None), 1);
    }

    fn paths(root: &Path) -> Vec<String> {
        let roots = [root.display().to_string()];
        let search = Searches::default().begin(None);
        let found = search.run("needle", &roots, || false);
        let mut paths: Vec<String> = found.into_iter().map(|it| it.path).collect();
        paths.sort();
        paths
    }

    /// An ignore file that is not read hides nothing.
    #[test]
    fn a_folder_whose_ignore_file_is_not_read_is_listed_whole() {
        for what in ["a link", "a long line", "a folder"] {
            let folder = haystack(1);
            let inside = folder.path().join("in");
            std::fs::create_dir_all(inside.join("b")).expect("a folder");
            std::fs::write(inside.join("b/needle"), "").expect("a file");
            let ignore = inside.join(".ignore");
            let made = match what {
                "a link" => std::os::unix::fs::symlink("/dev/zero", ignore),
                "a long line" => std::fs::write(ignore, "x".repeat(1001)),
                _ => std::fs::create_dir(ignore),
            };
            made.expect("an ignore file");
            assert_eq!(paths(folder.path()), ["in/b/needle", "needle0"], "{what}");
            assert_eq!(paths(&inside), ["b/needle"], "{what}");
        }
    }

    /// However many patterns a workspace has, only so many are read.
    #[test]
    fn past_so_many_patterns_nothing_is_ignored() {
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
        let found = Searches::default()
            .begin(None)
            .run("needle", &roots, || false);
        assert_eq!(found.len(), 1);
    }
}
