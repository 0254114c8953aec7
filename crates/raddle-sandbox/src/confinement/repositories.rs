//! The repositories below a writable folder, and the submodules that their indexes name.
//!
//! The walk visits the nearest folders first and is bounded. A small folder is walked for every
//! command. The result for a large one is reused for twenty times as long as its walk took, so that
//! walks take at most a twentieth of the time. A repository that appears in between is protected
//! from the next walk on.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::budget::SurveyBudget;
use super::folders::{can_be_entered, is_folder};
use super::{git_index, safe_open};

/// Limit: folders below a writable path that are searched for repositories; beyond it, a notice is
/// logged; further repositories are protected only if an index names them.
pub(super) const FOLDERS_MAX: usize = 100_000;
/// Limit: entries read in the search for repositories; beyond it, a notice is logged; further
/// repositories are protected only if an index names them.
const ENTRIES_MAX: usize = 1_000_000;
/// Limit: folders up to which the search for repositories runs for every command; beyond it, the
/// result is cached for a while.
const FOLDERS_CHEAP: usize = 500;
/// A walk is repeated when so many times its own duration has passed, or after a minute.
const AGE_PER_WALK: u32 = 20;
const AGE_MAX: Duration = Duration::from_secs(60);
/// Roots, and indexes, in the cache.
const ROOTS_MAX: usize = 64;
const INDEXES_MAX: usize = 1_024;
/// Bytes of submodule paths in the cache.
const GITLINK_BYTES_MAX: usize = 64 << 20;
/// Limit: a git index; beyond it, the rest is not read.
const INDEX_BYTES_MAX: u64 = 256 << 20;

/// The result of a walk.
#[derive(Clone, Debug, Default)]
pub(super) struct FolderSurvey {
    /// Folders with an entry named `.git`, nearest first; without the root itself.
    pub repositories: Vec<PathBuf>,
    /// Folders that a command cannot enter as they are, or that cannot be listed; also the root.
    pub closed: Vec<PathBuf>,
    /// Whether a bound ended the walk.
    pub is_cut: bool,
    folders: usize,
}

/// Cached walks and indexes of one sandbox.
#[derive(Debug, Default)]
pub(super) struct RepositoryCache {
    walks: Mutex<HashMap<PathBuf, CachedWalk>>,
    indexes: Mutex<HashMap<PathBuf, CachedIndex>>,
}

#[derive(Debug)]
struct CachedWalk {
    survey: Arc<FolderSurvey>,
    ended: Instant,
    took: Duration,
}

#[derive(Debug)]
struct CachedIndex {
    stamp: FileStamp,
    gitlinks: Arc<Vec<PathBuf>>,
}

/// Distinguishes one state of a file from another.
type FileStamp = (u64, u64, u64, i64, i64, i64, i64);

impl RepositoryCache {
    /// Returns the repositories below `root`.
    pub fn find(&self, root: &Path) -> Arc<FolderSurvey> {
        let earlier = {
            let walks = lock(&self.walks);
            let earlier = walks.get(root);
            if let Some(it) = earlier.filter(|it| it.is_fresh()) {
                return it.survey.clone();
            }
            earlier.map(|it| it.survey.clone())
        };
        let began = Instant::now();
        let mut survey = walk(root, FOLDERS_MAX);
        if let Some(earlier) = earlier.filter(|_| survey.is_cut) {
            // Earlier results still count, although new folders now come before them.
            let known: HashSet<&PathBuf> = survey.repositories.iter().collect();
            let is_new = |it: &&PathBuf| !known.contains(it);
            let more: Vec<PathBuf> = earlier
                .repositories
                .iter()
                .filter(is_new)
                .cloned()
                .collect();
            survey.repositories.extend(more);
        }
        let survey = Arc::new(survey);
        if survey.folders > FOLDERS_CHEAP {
            let ended = Instant::now();
            let mut walks = lock(&self.walks);
            if walks.len() >= ROOTS_MAX && !walks.contains_key(root) {
                walks.retain(|_, it| it.is_fresh());
                if walks.len() >= ROOTS_MAX {
                    walks.clear();
                }
            }
            let walk = CachedWalk {
                survey: survey.clone(),
                ended,
                took: ended - began,
            };
            walks.insert(root.to_owned(), walk);
        }
        survey
    }

    /// Returns the submodules that the index in a git directory names. An unreadable index names
    /// none: git does not work with it either.
    pub fn gitlinks(
        &self,
        git_dir: &Path,
        oid_bytes: usize,
        budget: &mut SurveyBudget,
    ) -> Arc<Vec<PathBuf>> {
        let path = git_dir.join("index");
        let Ok((file, metadata)) = open(&path) else {
            return Arc::default();
        };
        let stamp = stamp(&metadata);
        let earlier = {
            let indexes = lock(&self.indexes);
            let earlier = indexes.get(&path).filter(|it| it.stamp == stamp);
            earlier.map(|it| it.gitlinks.clone())
        };
        if let Some(gitlinks) = earlier {
            budget.spend(bytes(&gitlinks));
            return gitlinks;
        }
        // No lock is held while a file is read: a disk that hangs would block every command.
        let Some(gitlinks) = read_gitlinks(git_dir, file, oid_bytes, budget) else {
            return Arc::default();
        };
        budget.spend(bytes(&gitlinks));
        let index = CachedIndex {
            stamp,
            gitlinks: Arc::new(gitlinks),
        };
        let gitlinks = index.gitlinks.clone();
        let mut indexes = lock(&self.indexes);
        let cached_bytes: usize = indexes.values().map(|it| bytes(&it.gitlinks)).sum();
        if indexes.len() >= INDEXES_MAX || cached_bytes > GITLINK_BYTES_MAX {
            indexes.clear();
        }
        indexes.insert(path, index);
        gitlinks
    }
}

impl CachedWalk {
    fn is_fresh(&self) -> bool {
        self.ended.elapsed() < (self.took * AGE_PER_WALK).min(AGE_MAX)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn stamp(of: &fs::Metadata) -> FileStamp {
    (
        of.dev(),
        of.ino(),
        of.len(),
        of.mtime(),
        of.mtime_nsec(),
        of.ctime(),
        of.ctime_nsec(),
    )
}

/// Reads the submodules of an index and of its shared index. Returns `None` when the budget is
/// spent.
fn read_gitlinks(
    git_dir: &Path,
    file: fs::File,
    oid_bytes: usize,
    budget: &mut SurveyBudget,
) -> Option<Vec<PathBuf>> {
    let mut parse = |file: fs::File| {
        let bytes = read_index(file, budget)?;
        Some(git_index::parse(&bytes, oid_bytes).unwrap_or_default())
    };
    let mut index = parse(file)?;
    if let Some(shared) = index.shared.take()
        && let Ok((file, _)) = open(&git_dir.join(format!("sharedindex.{shared}")))
    {
        index.gitlinks.extend(parse(file)?.gitlinks);
    }
    Some(index.gitlinks)
}

fn open(path: &Path) -> io::Result<(fs::File, fs::Metadata)> {
    let file = safe_open::ordinary_file(path)?;
    let metadata = file.metadata()?;
    Ok((file, metadata))
}

/// Reads an index; an unreadable one is empty. Returns `None` when the budget is spent.
fn read_index(file: fs::File, budget: &mut SurveyBudget) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let bytes_max = budget.index_bytes().min(INDEX_BYTES_MAX);
    let read = file.take(bytes_max).read_to_end(&mut bytes);
    budget.spend_index(bytes.len() as u64);
    if budget.is_spent() {
        return None;
    }
    Some(read.map_or_else(|_| Vec::new(), |_| bytes))
}

fn bytes(paths: &[PathBuf]) -> usize {
    paths.iter().map(|it| it.as_os_str().len()).sum()
}

/// Walks the folders below a root. It follows no links and does not look into `.git`.
fn walk(root: &Path, folders_max: usize) -> FolderSurvey {
    let mut survey = FolderSurvey::default();
    let mut entries = 0;
    let mut queue = VecDeque::from([root.to_owned()]);
    while let Some(folder) = queue.pop_front() {
        if survey.folders == folders_max || entries >= ENTRIES_MAX {
            survey.is_cut = true;
            break;
        }
        survey.folders += 1;
        // A root may be a file.
        if is_folder(&folder) && !can_be_entered(&folder) {
            survey.closed.push(folder);
            continue;
        }
        let list = match fs::read_dir(&folder) {
            Ok(list) => list,
            Err(error) => {
                // A folder that has been removed since counts as empty.
                if !is_gone(&error) {
                    survey.closed.push(folder);
                }
                continue;
            }
        };
        let mut is_repository = false;
        for entry in list {
            let Ok(entry) = entry else {
                survey.closed.push(folder.clone());
                break;
            };
            entries += 1;
            if entries >= ENTRIES_MAX {
                break;
            }
            if entry.file_name().eq_ignore_ascii_case(".git") {
                is_repository = true;
            } else if entry.file_type().is_ok_and(|it| it.is_dir()) {
                queue.push_back(entry.path());
            }
        }
        if is_repository && folder != root {
            survey.repositories.push(folder);
        }
    }
    survey
}

/// Whether the error means that there is no such folder.
fn is_gone(error: &io::Error) -> bool {
    let kinds = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
    kinds.contains(&error.kind())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_walk_is_bounded_and_nearest_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        for path in ["z/.git", "a/b/c/.git", "a/.git/modules/x/.git"] {
            fs::create_dir_all(root.join(path)).expect("it is made");
        }
        let survey = walk(root, 100);
        let expected = ["a", "z", "a/b/c"].map(|it| root.join(it));
        let mut repositories: Vec<PathBuf> = survey.repositories.clone();
        repositories[..2].sort();
        assert_eq!(repositories, expected);
        assert!(!survey.is_cut);
        let cut = walk(root, 3);
        assert!(cut.is_cut);
        assert_eq!(cut.repositories.len(), 2, "{cut:?}");
    }

    /// A large root is not walked for every command, a small one is.
    #[test]
    fn only_the_result_for_a_large_root_is_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        let cache = RepositoryCache::default();
        assert!(cache.find(root).repositories.is_empty());
        fs::create_dir_all(root.join("a/.git")).expect("it is made");
        assert_eq!(cache.find(root).repositories.len(), 1);
        assert!(lock(&cache.walks).is_empty());
        for number in 0..=FOLDERS_CHEAP {
            fs::create_dir(root.join(number.to_string())).expect("it is made");
        }
        assert_eq!(cache.find(root).repositories.len(), 1);
        assert_eq!(lock(&cache.walks).len(), 1);
    }

    #[test]
    fn an_index_is_read_again_when_it_changed() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = RepositoryCache::default();
        let write = |paths: &[&str]| {
            let index = git_index::tests::index(2, 20, paths);
            fs::write(folder.path().join("index"), index).expect("it is written");
        };
        write(&["a"]);
        assert_eq!(
            *cache.gitlinks(folder.path(), 20, &mut SurveyBudget::default()),
            [Path::new("a")]
        );
        write(&["a", "b/c"]);
        let both = [Path::new("a"), Path::new("b/c")];
        assert_eq!(
            *cache.gitlinks(folder.path(), 20, &mut SurveyBudget::default()),
            both
        );
    }

    /// No process writes to the pipe: waiting for it would block the commands of every thread.
    #[test]
    fn an_index_that_is_a_pipe_is_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("index");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .expect("a pipe");
        let cache = RepositoryCache::default();
        let gitlinks = cache.gitlinks(folder.path(), 20, &mut SurveyBudget::default());
        assert!(gitlinks.is_empty());
    }
}
