//! Walks a folder, without the files that the repository ignores.
//!
//! Folders are opened below a descriptor and ignore files are read like any other file here, so a
//! link or a pipe in their place is skipped.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};

use super::list::GLOB_BYTES_MAX;
use super::roots::{ResolvedPath, Roots};
use super::walk::FinalLink;

/// Limit: entries that `list_files` and `search_files` scan; beyond it, the rest is left out, and
/// the model reads how to continue.
const ENTRIES_MAX: usize = 200_000;

/// Larger ignore files are not read.
const IGNORE_BYTES_MAX: usize = 256 << 10;

/// An entry of a folder.
pub(super) struct TreeEntry {
    /// Path below the folder that is walked.
    pub path: PathBuf,
    pub is_folder: bool,
    /// Whether it is a regular file.
    pub is_file: bool,
}

/// Reason why a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WalkEnd {
    Everything,
    /// The callback returned false.
    Enough,
    /// A limit of time or entries was reached.
    Limit,
}

/// Limits of a walk.
pub(super) struct WalkLimits {
    /// Maximum depth; one is the folder alone.
    pub depth: usize,
    pub until: Instant,
}

/// Ignore rules of a folder, and of its parents.
struct Ignores {
    here: Vec<Gitignore>,
    around: Option<Rc<Self>>,
}

impl Ignores {
    fn ignores(&self, path: &Path, is_folder: bool) -> bool {
        for rules in &self.here {
            let matched = rules.matched(path, is_folder);
            if !matched.is_none() {
                return matched.is_ignore();
            }
        }
        let around = self.around.as_ref();
        around.is_some_and(|it| it.ignores(path, is_folder))
    }
}

/// Calls `see` for everything below a folder in order of name, each folder before its entries.
pub(super) fn walk(
    roots: &Roots,
    start: &ResolvedPath,
    limits: &WalkLimits,
    visit: &mut dyn FnMut(&TreeEntry) -> bool,
) -> WalkEnd {
    let mut entry_count = 0;
    let mut pending = vec![(PathBuf::new(), 1, around(roots, &start.plain))];
    while let Some((below, depth, outer)) = pending.pop() {
        let folder = start.plain.join(&below);
        let rules = Rc::new(Ignores {
            here: ignore_files(roots, &folder),
            around: outer,
        });
        let Some(mut entries) = entries(roots, start, &folder, ENTRIES_MAX - entry_count) else {
            continue;
        };
        entry_count += entries.len();
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        let mut inner = Vec::new();
        for mut entry in entries {
            let plain = folder.join(&entry.path);
            let is_git = entry.path.as_os_str() == OsStr::new(".git");
            let is_excluded = is_git || roots.is_closed(&plain);
            if is_excluded || rules.ignores(&plain, entry.is_folder) {
                continue;
            }
            entry.path = below.join(&entry.path);
            if !visit(&entry) {
                return WalkEnd::Enough;
            }
            if entry.is_folder && depth < limits.depth {
                inner.push((entry.path, depth + 1, Some(rules.clone())));
            }
        }
        if entry_count >= ENTRIES_MAX || Instant::now() > limits.until {
            return WalkEnd::Limit;
        }
        pending.extend(inner.into_iter().rev());
    }
    WalkEnd::Everything
}

/// Returns the ignore rules of the parent folders, up to the top of the repository.
fn around(roots: &Roots, start: &Path) -> Option<Rc<Ignores>> {
    let is_top = |it: &Path| {
        roots
            .resolve(&it.join(".git"), FinalLink::Keep)
            .is_ok_and(|it| it.exists())
    };
    let above: Vec<&Path> = start.ancestors().skip(1).collect();
    if is_top(start) {
        return None;
    }
    let top = above.iter().position(|it| is_top(it))?;
    let mut rules = None;
    for folder in above[..=top].iter().rev() {
        rules = Some(Rc::new(Ignores {
            here: ignore_files(roots, folder),
            around: rules,
        }));
    }
    rules
}

fn ignore_files(roots: &Roots, folder: &Path) -> Vec<Gitignore> {
    let read = |name: &str| {
        let resolved = roots.resolve(&folder.join(name), FinalLink::Keep).ok()?;
        let contents = roots.read(&resolved).ok()?;
        if contents.bytes.len() > IGNORE_BYTES_MAX {
            return None;
        }
        let mut rules = GitignoreBuilder::new(folder);
        let lines = contents.text()?.lines();
        // Parsing a pattern takes stack for each brace in it.
        for line in lines.filter(|it| it.len() <= GLOB_BYTES_MAX) {
            // An invalid line ignores nothing.
            let _ = rules.add_line(None, line);
        }
        rules.build().ok()
    };
    [".ignore", ".gitignore"]
        .into_iter()
        .filter_map(read)
        .collect()
}

/// Returns the entries of one folder; `None` if it must not be read.
fn entries(
    roots: &Roots,
    start: &ResolvedPath,
    folder: &Path,
    max: usize,
) -> Option<Vec<TreeEntry>> {
    let resolved = roots.resolve(folder, FinalLink::Keep).ok()?;
    roots.readable(&resolved).ok()?;
    let opened = roots.folder(start, folder).ok()?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = openat(&opened, ".", flags, Mode::empty()).ok()?;
    let mut entries = Vec::new();
    for entry in Dir::new(directory).ok()?.flatten().take(max) {
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == OsStr::new(".") || name == OsStr::new("..") {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => {
                let stat = statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
                FileType::from_raw_mode(stat.st_mode)
            }
            kind => kind,
        };
        entries.push(TreeEntry {
            path: PathBuf::from(name),
            is_folder: kind == FileType::Directory,
            is_file: kind == FileType::RegularFile,
        });
    }
    Some(entries)
}
