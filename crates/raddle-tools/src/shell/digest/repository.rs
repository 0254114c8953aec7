//! The repositories that git obeys because of where a line runs, or because the line names them.
//!
//! Git looks for a repository in its folder and in those around it, and runs programs that the repository's
//! configuration names. A sandboxed command can make a repository between a yes and the next call, nearer than
//! the one that the user meant.

use std::path::{Path, PathBuf};

use raddle_sandbox::is_git_dir;

use super::code::{base, is_one_of};
use super::expansion::git;
use super::named_files::{identity, path};
use super::{DigestInput, folder};

/// Programs that look for a repository around them.
const PROGRAMS: &str = "gh git glab hub";

/// Commands of git that take a repository by its path, and run its hooks or obey its configuration.
const TAKES_PATHS: &str =
    "archive clone fetch fetch-pack ls-remote pull push remote send-pack submodule";

/// The repositories that programs of this line find from these folders: where each is, and which.
pub(super) fn discovered(it: DigestInput<'_>, folders: &[PathBuf]) -> Vec<(PathBuf, Vec<u8>)> {
    let mut words = it.commands.iter().flatten();
    if !words.any(|it| is_one_of(PROGRAMS, base(it))) {
        return Vec::new();
    }
    let mut found: Vec<(PathBuf, Vec<u8>)> = folders.iter().filter_map(|it| around(it)).collect();
    found.sort();
    found.dedup();
    found
}

/// The repository that git finds from a folder.
fn around(folder: &Path) -> Option<(PathBuf, Vec<u8>)> {
    let folder = folder.canonicalize().ok()?;
    folder.ancestors().find_map(|at| {
        let dot_git = at.join(".git");
        // One that leads to the repository.
        if dot_git.is_file() {
            let text = std::fs::read(&dot_git).unwrap_or_default();
            return Some((dot_git, text));
        }
        let mut places = [dot_git, at.to_owned()].into_iter();
        let place = places.find(|it| is_git_dir(it))?;
        let which = identity(&place).unwrap_or_default();
        Some((place, which))
    })
}

/// Whether a line names a repository without a work tree that sandboxed commands can write. Git runs its hooks, and
/// no sandbox protects those.
pub(super) fn names_bare(it: DigestInput<'_>, folders: &[PathBuf]) -> bool {
    let taken = it.commands.iter().filter_map(|words| {
        let (program, rest) = words.split_first()?;
        let command = (base(program) == "git").then(|| git(rest).1)?;
        let (name, words) = command.split_first()?;
        is_one_of(TAKES_PATHS, name).then_some(words)
    });
    let taken: Vec<&String> = taken.flatten().collect();
    if taken.is_empty() {
        return false;
    }
    // Where those folders cannot be listed, any may be one.
    let writable = folder::writable(it).unwrap_or_else(|_| vec![PathBuf::from("/")]);
    let is_bare = |place: &Path| {
        let real = place.canonicalize().ok().filter(|it| is_git_dir(it));
        real.is_some_and(|real| writable.iter().any(|it| real.starts_with(it)))
    };
    taken.into_iter().any(|word| {
        let value = word.split_once('=').map_or(word.as_str(), |(_, it)| it);
        let value = value.strip_prefix("file://").unwrap_or(value);
        let spelled = [value.to_owned(), format!("{value}.git")];
        let mut places = spelled
            .iter()
            .flat_map(|it| folders.iter().map(move |at| path(at, it)));
        places.any(|it| is_bare(&it))
    })
}
