//! The files and folders that a command names, and what is in them.
//!
//! What a file means to a program is not known here: a script, a list of steps, a place to write. So every
//! name that leads to a file counts, and somebody is rather asked once too often. Only of what the line does
//! nothing but write, it is known that what is in it does not matter.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use super::expansion::{Spelling, spelling, unquoted};
use super::{DigestInput, code, folder, repository};
use crate::files::passed;

/// The longest file that counts with all it holds; of a longer one its length, when it was changed and which
/// it is do.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The most files that count with all they hold; of the others the same as of long ones.
const FILES_MAX: usize = 64;

/// The most folders in which they are looked for.
const FOLDERS_MAX: usize = 16;

/// The most names that are looked up.
const NAMES_MAX: usize = 4096;

/// The most letters of short options in one word behind which a name is looked for.
const OPTIONS_MAX: usize = 8;

/// The longest path that the system takes.
pub(super) const NAME_BYTES_MAX: usize = 4096;

/// What a command names.
#[derive(Default)]
pub(super) struct NamedFiles {
    /// What is known of each file and folder.
    pub(super) files: BTreeMap<PathBuf, Vec<u8>>,
    /// The repositories that git finds. No hold is needed for them: sandboxed commands cannot write in one, nor make a
    /// nearer one while the folders of the line are held.
    pub(super) repositories: Vec<(PathBuf, Vec<u8>)>,
    /// Whether that is all.
    pub(super) is_all: bool,
    /// The reason why files that it could run do not count.
    pub(super) unseen: Option<String>,
    /// Where the line would look for code that is not there, and names that keep folders as they are.
    pub(super) missing: Vec<PathBuf>,
}

/// Looks for everything that the words could name, in the folder of the command and in the folders that they
/// name, because the command may go there first.
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
    // In the sandbox a yes is about the line, and the sandbox holds what it runs.
    let mut spelling = match it.folders {
        [] => Spelling::Literal,
        _ => spelling(it),
    };
    let mut found = BTreeMap::new();
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
            found.insert(path.clone(), identity(&path).unwrap_or_default());
            folders.push(path);
        }
    }
    // Without a sandbox around it, git runs what a repository says.
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
            if !it.folders.is_empty() && spelling == Spelling::Literal && is_of_processes(&path) {
                spelling = Spelling::Open;
            }
            if written.contains(name) || found.contains_key(&path) || !path.is_file() {
                continue;
            }
            let bytes_max = if files < FILES_MAX { FILE_BYTES_MAX } else { 0 };
            // One that cannot be read counts by being there.
            let what = content(&path, bytes_max).unwrap_or_default();
            is_all &= !what.loads;
            found.insert(path, what.sum);
            files += 1;
        }
    }
    // One that is written counts by where it is, also before it is there.
    for folder in &folders {
        for name in &written {
            let path = path(folder, name);
            if let Some(place) = place(&path) {
                found.entry(path).or_insert(place);
            }
        }
    }
    let (mut missing, mut unseen) = (Vec::new(), None);
    for folder in &folders {
        let paths = code.iter().map(|name| path(folder, name));
        missing.extend(paths.filter(|it| !found.contains_key(it)));
    }
    if spelling == Spelling::Open {
        // Of what is only written, it does not matter what it is.
        let read: Vec<&str> = names
            .iter()
            .copied()
            .filter(|it| !written.contains(it))
            .collect();
        let state = folder::look(it, &read);
        found.insert(Path::new(it.cwd).join("*"), state.sum);
        missing.extend(state.holds);
        unseen = state.unseen;
    }
    is_all &= spelling == Spelling::Literal;
    NamedFiles {
        files: found,
        repositories,
        is_all,
        unseen,
        missing,
    }
}

/// The names of which the line says nothing but that their files are written: by `>`, `>>` or `tee`.
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

/// The names behind `>` and `>>`. Each is looked for once, from the first `>` of a run.
fn targets(line: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    let mut looked = 0;
    for (at, _) in line.match_indices('>') {
        if at < looked || line[..at].ends_with('<') {
            continue;
        }
        let target = line[at + 1..].trim_start_matches(['>', ' ']);
        looked = line.len() - target.len();
        targets.extend(target.split(is_end).next());
    }
    targets
}

/// Every text in the words that could be the name of a file, in the order in which they stand, and whether
/// that is all. Quotes and operators are read as the ends of names, whatever they mean where they stand.
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
            // An option may hold a name without anything between, also behind others: `-sKname`.
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

pub(super) fn is_end(letter: char) -> bool {
    letter.is_whitespace() || "'\"`;&|<>(){}$=,:@!\0".contains(letter)
}

pub(super) fn path(folder: &Path, name: &str) -> PathBuf {
    let home = name.strip_prefix("~/").zip(std::env::var_os("HOME"));
    match home {
        Some((rest, home)) => PathBuf::from(home).join(rest),
        None => folder.join(name),
    }
}

/// Whether a path leads through what the kernel shows of processes: it leads elsewhere for each of them.
fn is_of_processes(path: &Path) -> bool {
    let is_shown = |it: &PathBuf| it.starts_with("/proc");
    match passed(path) {
        Ok(places) => places.iter().any(is_shown),
        Err(error) => error == Errno::LOOP,
    }
}

/// Which folder this is, whatever it is called.
pub(super) fn identity(path: &Path) -> Option<Vec<u8>> {
    let about = std::fs::metadata(path).ok()?;
    Some(format!("{} {}", about.dev(), about.ino()).into_bytes())
}

/// Where a file is, or would be.
fn place(path: &Path) -> Option<Vec<u8>> {
    let place = path.canonicalize().or_else(|error| {
        let (folder, name) = path.parent().zip(path.file_name()).ok_or(error)?;
        folder.canonicalize().map(|it| it.join(name))
    });
    Some(place.ok()?.into_os_string().into_encoded_bytes())
}

/// What is known of a file.
#[derive(Default)]
struct FileContent {
    /// Where it is, and the sum of what it holds; of one that is too long, what changes with it.
    sum: Vec<u8>,
    /// Whether it is run by a program that loads code which cannot be listed.
    loads: bool,
}

fn content(path: &Path, bytes_max: u64) -> Option<FileContent> {
    let about = std::fs::metadata(path).ok()?;
    let path = path.canonicalize().ok()?;
    let mut sum = path.as_os_str().as_encoded_bytes().to_vec();
    // What the system says of itself is never twice the same, and nobody can exchange it.
    if path.starts_with("/proc") || path.starts_with("/sys") {
        return Some(FileContent { sum, loads: false });
    }
    if about.len() > bytes_max {
        let (changed, nanoseconds) = (about.ctime(), about.ctime_nsec());
        let text = format!("\0{} {changed} {nanoseconds} {}", about.len(), about.ino());
        sum.extend(text.as_bytes());
        return Some(FileContent { sum, loads: false });
    }
    // It may have become a pipe by now, for which nobody waits.
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

/// Whether the first line of a script names a program that loads code which cannot be listed.
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

    /// A run is looked at once, however long it is.
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
