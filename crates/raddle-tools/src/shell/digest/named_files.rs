//! Files and folders that a command names, and their contents.
//!
//! The role of a file is unknown here: a script, a list of steps, an output. So every name of a
//! file counts, even at the price of needless approvals. Only for files that the line merely
//! writes, the contents do not matter.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use super::expansion::{Spelling, spelling, unquoted};
use super::file_name::{NAME_BYTES_MAX, is_end, path};
use super::folder::identity;
use super::{DigestInput, code, folder, repository};
use crate::files::visited_paths;

/// Limit: a file whose content is part of an approval; beyond it, its length, inode and
/// modification time are used instead.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Limit: files of one command whose content is part of an approval; beyond it, the length, inode
/// and modification time of the others are used instead.
const FILES_MAX: usize = 64;

/// Maximum number of folders in which names are looked up.
const FOLDERS_MAX: usize = 16;

/// Limit: file names of one command that are looked up for an approval, in at most 16 folders;
/// beyond it, the approval covers one call only.
const NAMES_MAX: usize = 4096;

/// Maximum number of short options in one word after which a name may follow.
const OPTIONS_MAX: usize = 8;

/// Files that a command names.
#[derive(Default)]
pub(super) struct NamedFiles {
    /// State of each file and folder.
    pub(super) files: BTreeMap<PathBuf, Vec<u8>>,
    /// Repositories that git finds. They need no hold: sandboxed commands cannot write in one, nor
    /// create a nearer one while the folders of the line are held.
    pub(super) repositories: Vec<(PathBuf, Vec<u8>)>,
    /// Whether the list is complete.
    pub(super) is_all: bool,
    /// Reason why some files that it could run do not count.
    pub(super) unseen: Option<String>,
    /// Missing paths where the line would look for code, and names that lock folders.
    pub(super) missing: Vec<PathBuf>,
}

/// Looks up every name in the words, in the working folder and in the folders that they name,
/// because the command may change to these first.
pub(super) fn look(it: DigestInput<'_>) -> NamedFiles {
    let code = code::names(it);
    let is_quoted = |it: &&String| it.contains(['\'', '"', '\\']);
    let bare: Vec<String> = it
        .words
        .iter()
        .filter(is_quoted)
        .map(|it| unquoted(it))
        .collect();
    let (names, mut is_all) = names(it, &code, &bare);
    is_all &= !code::loads(it);
    // In the sandbox an approval covers the line, and the sandbox confines the files that it runs.
    let mut spelling = match it.folders {
        [] => Spelling::Literal,
        _ => spelling(it),
    };
    let mut files_found = BTreeMap::new();
    let mut folders = vec![PathBuf::from(it.cwd)];
    for name in &names {
        for at in 0..folders.len() {
            let path = path(&folders[at], name);
            if folders.contains(&path) || !path.is_dir() {
                continue;
            }
            if folders.len() > FOLDERS_MAX {
                is_all = false;
                break;
            }
            files_found.insert(path.clone(), identity(&path).unwrap_or_default());
            folders.push(path);
        }
    }
    // Without a sandbox, git runs programs that a repository configures.
    let mut repositories = Vec::new();
    if !it.folders.is_empty() {
        repositories = repository::discovered(it, &folders);
        if repository::names_bare(it, &folders) {
            spelling = Spelling::Open;
        }
    }
    let written = written(it);
    let mut files = 0;
    for folder in &folders {
        for name in &names {
            let path = path(folder, name);
            if !it.folders.is_empty() && spelling == Spelling::Literal && is_procfs(&path) {
                spelling = Spelling::Open;
            }
            if written.contains(name) || files_found.contains_key(&path) || !path.is_file() {
                continue;
            }
            let bytes_max = if files < FILES_MAX { FILE_BYTES_MAX } else { 0 };
            // Only the existence of an unreadable file is part of the digest.
            let file_content = content(&path, bytes_max).unwrap_or_default();
            is_all &= !file_content.loads;
            files_found.insert(path, file_content.sum);
            files += 1;
        }
    }
    // The location of a written file is part of the digest, even before it exists.
    for folder in &folders {
        for name in &written {
            let path = path(folder, name);
            if let Some(location) = location(&path) {
                files_found.entry(path).or_insert(location);
            }
        }
    }
    let (mut missing, mut unseen) = (Vec::new(), None);
    for folder in &folders {
        let paths = code.iter().map(|name| path(folder, name));
        missing.extend(paths.filter(|it| !files_found.contains_key(it)));
    }
    if spelling == Spelling::Open {
        // Files that are only written need no check.
        let read: Vec<&str> = names
            .iter()
            .copied()
            .filter(|it| !written.contains(it))
            .collect();
        let state = folder::look(it, &read);
        files_found.insert(Path::new(it.cwd).join("*"), state.sum);
        missing.extend(state.holds);
        unseen = state.unseen;
    }
    is_all &= spelling == Spelling::Literal;
    NamedFiles {
        files: files_found,
        repositories,
        is_all,
        unseen,
        missing,
    }
}

/// Returns the names whose files the line only writes: by `>`, `>>` or `tee`.
fn written<'a>(it: DigestInput<'a>) -> BTreeSet<&'a str> {
    let is_tee = |words: &&Vec<String>| words.first().is_some_and(|it| it == "tee");
    let teed = it.commands.iter().filter(is_tee).flatten();
    let targets = it.words.iter().flat_map(|line| targets(line));
    let named: BTreeSet<&str> = teed.map(String::as_str).chain(targets).collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for piece in it.words.iter().flat_map(|line| line.split(is_end)) {
        *counts.entry(piece.trim_start_matches("./")).or_default() += 1;
    }
    let is_once = |name: &&str| counts.get(name.trim_start_matches("./")) == Some(&1);
    named.into_iter().filter(is_once).collect()
}

/// Returns the names after `>` and `>>`. Each is searched once, from the first `>` of a run.
fn targets(line: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    let mut scanned = 0;
    for (at, _) in line.match_indices('>') {
        if at < scanned || line[..at].ends_with('<') {
            continue;
        }
        let target = line[at + 1..].trim_start_matches(['>', ' ']);
        scanned = line.len() - target.len();
        targets.extend(target.split(is_end).next());
    }
    targets
}

/// Returns every text in the words that could be a file name, in order, and whether the list is
/// complete. Quotes and operators always end a name, whatever they mean there.
fn names<'a>(it: DigestInput<'a>, code: &'a [String], bare: &'a [String]) -> (Vec<&'a str>, bool) {
    let mut seen = BTreeSet::new();
    let mut names: Vec<&'a str> = Vec::new();
    let mut is_all = true;
    let mut add = |name: &'a str| {
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains('\0') {
            return true;
        }
        if names.len() == NAMES_MAX {
            return seen.contains(name);
        }
        if seen.insert(name) {
            names.push(name);
        }
        true
    };
    is_all &= code.iter().all(|it| add(it));
    let words = it.commands.iter().flatten().chain(it.words).chain(bare);
    for word in words {
        is_all &= add(word);
        for piece in word.split(is_end) {
            is_all &= add(piece);
            // An option may contain a name without a separator, also after others: `-sKname`.
            let bundle = piece.strip_prefix('-').unwrap_or_default();
            let ends = bundle.char_indices().skip(1).take(OPTIONS_MAX);
            is_all &= ends.map(|(at, _)| &bundle[at..]).all(&mut add);
            // As in `file://name`.
            is_all &= piece.strip_prefix("//").is_none_or(&mut add);
            is_all &= code::recipe(piece).iter().all(|it| add(it));
        }
        if !is_all {
            break;
        }
    }
    (names, is_all)
}

/// Whether a path leads through procfs: the target then depends on the process.
fn is_procfs(path: &Path) -> bool {
    let is_shown = |it: &PathBuf| it.starts_with("/proc");
    match visited_paths(path) {
        Ok(visited) => visited.iter().any(is_shown),
        Err(error) => error == Errno::LOOP,
    }
}

/// Returns the real path that a file has, or would have.
fn location(path: &Path) -> Option<Vec<u8>> {
    let real_path = path.canonicalize().or_else(|error| {
        let (folder, name) = path.parent().zip(path.file_name()).ok_or(error)?;
        folder.canonicalize().map(|it| it.join(name))
    });
    Some(real_path.ok()?.into_os_string().into_encoded_bytes())
}

/// State of a file's contents.
#[derive(Default)]
struct FileContent {
    /// The path, and the digest of the contents; for a large file its metadata.
    sum: Vec<u8>,
    /// Whether it is run by a program that loads code that cannot be listed.
    loads: bool,
}

fn content(path: &Path, bytes_max: u64) -> Option<FileContent> {
    let metadata = std::fs::metadata(path).ok()?;
    let path = path.canonicalize().ok()?;
    let mut sum = path.as_os_str().as_encoded_bytes().to_vec();
    // Kernel files always change, and no command can replace them.
    if path.starts_with("/proc") || path.starts_with("/sys") {
        return Some(FileContent { sum, loads: false });
    }
    if metadata.len() > bytes_max {
        let (changed, nanoseconds) = (metadata.ctime(), metadata.ctime_nsec());
        let text = format!(
            "\0{} {changed} {nanoseconds} {}",
            metadata.len(),
            metadata.ino()
        );
        sum.extend(text.as_bytes());
        return Some(FileContent { sum, loads: false });
    }
    // It may have become a pipe by now; opening must not block.
    let mut options = std::fs::OpenOptions::new();
    options
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits() as i32);
    let mut bytes = Vec::new();
    let mut file = options.open(path).ok()?.take(bytes_max + 1);
    file.read_to_end(&mut bytes).ok()?;
    sum.push(0);
    sum.extend(Sha256::digest(&bytes));
    let loads = is_run_by_a_loader(&bytes);
    Some(FileContent { sum, loads })
}

/// Whether the first line of a script names a program that loads code that cannot be listed.
fn is_run_by_a_loader(bytes: &[u8]) -> bool {
    let Some(rest) = bytes.strip_prefix(b"#!") else {
        return false;
    };
    let line = rest.split(|it| *it == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(&line[..line.len().min(NAME_BYTES_MAX)]);
    code::is_loader_line(&line)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run is scanned once, however long it is.
    #[test]
    fn a_run_of_redirections_has_one_target() {
        let (run, spaced) = (">".repeat(1_000), "> ".repeat(1_000));
        for (line, expected) in [
            ("a > x >> y; b >z", &["x", "y", "z"][..]),
            ("a 2>&1 >x", &["", "x"]),
            ("a <> x", &[]),
            ("a <>> x", &["x"]),
            ("a > <> x", &[""]),
            (&format!("a {run}x >y"), &["x", "y"]),
            (&format!("a {spaced}x"), &["x"]),
            (&run, &[""]),
        ] {
            assert_eq!(targets(line), expected, "{line}");
        }
    }
}
