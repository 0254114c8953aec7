//! Repositories that git uses because of the working folder, or because the line names them.
//!
//! Git searches its folder and the parents for a repository, and runs programs from its
//! configuration. A sandboxed command can create a nearer repository between an approval and the
//! next call.

use std::path::{Path, PathBuf};

use raddle_sandbox::is_git_dir;

use super::code::{base, is_one_of};
use super::expansion::git;
use super::file_name::path;
use super::folder::identity;
use super::{DigestInput, folder};

/// Programs that search for a repository around them.
const PROGRAMS: &str = "gh git glab hub";

/// Commands of git that take a repository by path, and run its hooks or use its configuration.
const TAKES_PATHS: &str =
    "archive clone fetch fetch-pack ls-remote pull push remote send-pack submodule";

/// Returns the repositories that programs of this line find from these folders: path and identity.
pub(super) fn discovered(it: DigestInput<'_>, folders: &[PathBuf]) -> Vec<(PathBuf, Vec<u8>)> {
    let mut words = it.commands.iter().flatten();
    if !words.any(|it| is_one_of(PROGRAMS, base(it))) {
        return Vec::new();
    }
    let mut repositories: Vec<(PathBuf, Vec<u8>)> =
        folders.iter().filter_map(|it| around(it)).collect();
    repositories.sort();
    repositories.dedup();
    repositories
}

/// Returns the repository that git finds from a folder.
fn around(folder: &Path) -> Option<(PathBuf, Vec<u8>)> {
    let folder = folder.canonicalize().ok()?;
    folder.ancestors().find_map(|at| {
        let dot_git = at.join(".git");
        // A file that names the repository.
        if dot_git.is_file() {
            let text = std::fs::read(&dot_git).unwrap_or_default();
            return Some((dot_git, text));
        }
        let mut candidates = [dot_git, at.to_owned()].into_iter();
        let git_dir = candidates.find(|it| is_git_dir(it))?;
        let id = identity(&git_dir).unwrap_or_default();
        Some((git_dir, id))
    })
}

/// Whether a line names a bare repository that sandboxed commands can write. Git runs its hooks,
/// and no sandbox protects those.
pub(super) fn names_bare(it: DigestInput<'_>, folders: &[PathBuf]) -> bool {
    let path_args = it.commands.iter().filter_map(|words| {
        let (program, rest) = words.split_first()?;
        let command = (base(program) == "git").then(|| git(rest).1)?;
        let (name, words) = command.split_first()?;
        is_one_of(TAKES_PATHS, name).then_some(words)
    });
    let path_args: Vec<&String> = path_args.flatten().collect();
    if path_args.is_empty() {
        return false;
    }
    // If those folders cannot be listed, any folder may be one.
    let writable = folder::writable(it).unwrap_or_else(|_| vec![PathBuf::from("/")]);
    let is_bare = |path: &Path| {
        let real = path.canonicalize().ok().filter(|it| is_git_dir(it));
        real.is_some_and(|real| writable.iter().any(|it| real.starts_with(it)))
    };
    path_args.into_iter().any(|word| {
        let value = word.split_once('=').map_or(word.as_str(), |(_, it)| it);
        let value = value.strip_prefix("file://").unwrap_or(value);
        let spelled = [value.to_owned(), format!("{value}.git")];
        let mut candidates = spelled
            .iter()
            .flat_map(|it| folders.iter().map(move |at| path(at, it)));
        candidates.any(|it| is_bare(&it))
    })
}
