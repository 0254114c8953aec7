//! Decides whether a folder's ignore files may be read. The walker opens any file with the right
//! name and reads it to its end. So a link to a device, a pipe or a huge file would block its
//! thread or exhaust the memory.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::services::files;

/// The longest ignore file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The longest line in one. The walker compiles each into a pattern, by recursion over its braces.
const LINE_BYTES_MAX: usize = 1000;

/// Limit: patterns of ignore files that one file search reads; beyond it, further folders are
/// listed without them.
///
/// The cost of ignore files that one search may read: their bytes, and more for each line. Each
/// line is compiled into a pattern, at some microseconds a byte, so that all of it takes a second
/// or two.
const SEARCH_COST_MAX: u64 = 512 << 10;

/// The cost of a line beside its bytes.
const LINE_COST: u64 = 16;

/// The remaining cost of ignore files that a search may read.
#[derive(Debug)]
pub(super) struct Budget(AtomicU64);

impl Default for Budget {
    fn default() -> Self {
        Self(AtomicU64::new(SEARCH_COST_MAX))
    }
}

impl Budget {
    fn spend(&self, cost: u64) -> bool {
        let subtract = |remaining: u64| remaining.checked_sub(cost);
        self.0.fetch_update(Relaxed, Relaxed, subtract).is_ok()
    }
}

/// Whether everything the walker reads when it enters the folder is a regular file of a sane
/// length.
pub(super) fn are_plain(folder: &Path, budget: &Budget) -> bool {
    is_plain(&folder.join(".ignore"), budget)
        && is_plain(&folder.join(".gitignore"), budget)
        && is_repository_plain(&folder.join(".git"), budget)
}

/// The same check for all folders above, whose files the walker reads too.
pub(super) fn are_plain_above(folder: &Path, budget: &Budget) -> bool {
    // The walker goes up from the real path. Where there is none, it does not go up.
    let Ok(folder) = fs::canonicalize(folder) else {
        return true;
    };
    let mut above = folder.ancestors().skip(1);
    above.all(|it| are_plain(it, budget))
}

/// Whether a file is plain. One that is missing, or not accessible, is not read either.
fn is_plain(file: &Path, budget: &Budget) -> bool {
    let Ok(metadata) = fs::symlink_metadata(file) else {
        return true;
    };
    if !metadata.is_file() || metadata.len() > FILE_BYTES_MAX {
        return false;
    }
    let Ok((opened, _)) = files::open(file, &files::PathAdmission::default()) else {
        return true;
    };
    let mut text = Vec::new();
    let read = opened.take(FILE_BYTES_MAX + 1).read_to_end(&mut text);
    let read = read.map_or(u64::MAX, |it| it as u64);
    let mut lines = text.split(|byte| *byte == b'\n');
    let is_sane = read <= FILE_BYTES_MAX && lines.clone().all(|it| it.len() <= LINE_BYTES_MAX);
    let patterns = lines
        .by_ref()
        .filter(|it| !it.is_empty() && !it.starts_with(b"#"));
    is_sane && budget.spend(read + LINE_COST * patterns.count() as u64)
}

/// Mirrors how the walker finds `info/exclude`: in a linked work tree `.git` is a file that names a
/// folder, in which `commondir` names another.
fn is_repository_plain(git: &Path, budget: &Budget) -> bool {
    if !fs::metadata(git).is_ok_and(|it| it.is_file()) {
        return is_plain(&git.join("info/exclude"), budget);
    }
    if !is_plain(git, budget) {
        return false;
    }
    let Some(line) = first_line(git) else {
        return true;
    };
    let Some(folder) = line.strip_prefix("gitdir: ").map(PathBuf::from) else {
        return true;
    };
    let common = folder.join("commondir");
    if !is_plain(&common, budget) {
        return false;
    }
    let Some(line) = first_line(&common) else {
        return true;
    };
    let common = if line.starts_with('.') {
        folder.join(line)
    } else {
        line.into()
    };
    is_plain(&common.join("info/exclude"), budget)
}

fn first_line(file: &Path) -> Option<String> {
    let (file, _) = files::open(file, &files::PathAdmission::default()).ok()?;
    let mut lines = BufReader::new(file.take(FILE_BYTES_MAX)).lines();
    lines.next()?.ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn are_plain(folder: &Path) -> bool {
        super::are_plain(folder, &Budget::default())
    }

    fn are_plain_above(folder: &Path) -> bool {
        super::are_plain_above(folder, &Budget::default())
    }

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a folder")
    }

    #[test]
    fn only_short_regular_files_are_plain() {
        for name in [".ignore", ".gitignore", ".git/info/exclude"] {
            let folder = folder();
            let file = folder.path().join(name);
            fs::create_dir_all(file.parent().expect("a parent")).expect("a folder");
            assert!(are_plain(folder.path()), "no {name}");
            fs::write(&file, "*.log").expect("a file");
            assert!(are_plain(folder.path()), "{name}");
            let nested = format!("{}a{}", "{".repeat(500), "}".repeat(500));
            fs::write(&file, &nested).expect("a file");
            assert!(!are_plain(folder.path()), "a long line in {name}");
            let grown = fs::File::create(&file).expect("a file");
            grown.set_len(FILE_BYTES_MAX + 1).expect("a length");
            assert!(!are_plain(folder.path()), "long {name}");
            fs::remove_file(&file).expect("removed");
            symlink("/dev/zero", &file).expect("a link");
            assert!(!are_plain(folder.path()), "linked {name}");
            let below = folder.path().join("a/b");
            fs::create_dir_all(&below).expect("a folder");
            assert!(are_plain(&below) && !are_plain_above(&below), "{name}");
        }
    }

    #[test]
    fn the_target_of_a_linked_work_tree_is_checked_too() {
        let (tree, git) = (folder(), folder());
        let line = format!("gitdir: {}\n", git.path().display());
        fs::write(tree.path().join(".git"), line).expect("a file");
        assert!(are_plain(tree.path()));
        let common = git.path().join("commondir");
        symlink("/dev/zero", &common).expect("a link");
        assert!(!are_plain(tree.path()));
        fs::remove_file(&common).expect("removed");
        fs::write(&common, "./common\n").expect("a file");
        fs::create_dir_all(git.path().join("common/info")).expect("a folder");
        assert!(are_plain(tree.path()));
        symlink("/dev/zero", git.path().join("common/info/exclude")).expect("a link");
        assert!(!are_plain(tree.path()));
    }

    #[test]
    fn one_search_reads_a_bounded_total() {
        let folder = folder();
        fs::write(folder.path().join(".ignore"), "*.log\n").expect("a file");
        let budget = Budget(AtomicU64::new(2 * (6 + LINE_COST) + 1));
        let plain = [(); 3].map(|()| super::are_plain(folder.path(), &budget));
        assert_eq!(plain, [true, true, false]);
    }
}
