//! The submodules that a git index names: its entries of mode 160000.
//!
//! Versions 2 to 4, as `gitformat-index` describes them. The author of a commit chooses the paths
//! of an index, so the parser trusts none of it: truncated or invalid data ends the parsing.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use data_encoding::HEXLOWER;

/// Limit: submodules of one git index; beyond it, the others are protected only if they are checked
/// out.
pub(super) const GITLINKS_MAX: usize = 10_000;

const GITLINK: u32 = 0o160_000;
/// Flag of an entry: more flags follow.
const EXTENDED: u16 = 0x4000;
/// Longest path in git.
const PATH_BYTES_MAX: usize = 4_096;

/// The parts of an index that the sandbox uses.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct GitIndex {
    /// Paths of submodules, relative to the work tree.
    pub gitlinks: Vec<PathBuf>,
    /// The id of the index that holds the other entries of a split index.
    pub shared: Option<String>,
}

/// Parses an index whose object ids have `oid_bytes` bytes; `None` if it is not an index. Returns
/// the entries before the first invalid one.
pub(super) fn parse(bytes: &[u8], oid_bytes: usize) -> Option<GitIndex> {
    let mut rest = ByteCursor(bytes);
    if rest.take(4)? != b"DIRC" {
        return None;
    }
    let version = rest.number()?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let count = rest.number()?;
    let mut index = GitIndex::default();
    let mut name: Vec<u8> = Vec::new();
    for _ in 0..count {
        let Some(mode) = entry(&mut rest, version, oid_bytes, &mut name) else {
            return Some(index);
        };
        if mode == GITLINK && index.gitlinks.len() < GITLINKS_MAX {
            index.gitlinks.extend(plain(&name));
        }
    }
    index.shared = shared(&mut rest, oid_bytes);
    Some(index)
}

/// Reads one entry, whose name builds on the previous one; returns its mode.
fn entry(
    rest: &mut ByteCursor<'_>,
    version: u32,
    oid_bytes: usize,
    name: &mut Vec<u8>,
) -> Option<u32> {
    let before = rest.0.len();
    rest.take(24)?;
    let mode = rest.number()?;
    rest.take(12)?;
    rest.take(oid_bytes)?;
    let flags = rest.take(2)?;
    if version > 2 && u16::from_be_bytes([flags[0], flags[1]]) & EXTENDED != 0 {
        rest.take(2)?;
    }
    if version == 4 {
        let cut = rest.varint()?;
        name.truncate(name.len().checked_sub(cut)?);
    } else {
        name.clear();
    }
    let end = rest.0.iter().take(PATH_BYTES_MAX).position(|it| *it == 0)?;
    name.extend(rest.take(end)?);
    if name.len() > PATH_BYTES_MAX {
        return None;
    }
    if version == 4 {
        rest.take(1)?;
    } else {
        // One to eight zeros, so that the next entry begins at a multiple of eight.
        let length = before - rest.0.len();
        rest.take(8 - length % 8)?;
    }
    Some(mode)
}

/// Returns the shared index that the extension `link` names, if present.
fn shared(rest: &mut ByteCursor<'_>, oid_bytes: usize) -> Option<String> {
    // The rest ends with a checksum of everything before it.
    while rest.0.len() > oid_bytes {
        let signature = rest.take(4)?;
        let length = usize::try_from(rest.number()?).ok()?;
        let body = rest.take(length)?;
        if signature == b"link" {
            let oid = body.get(..oid_bytes)?;
            return Some(HEXLOWER.encode(oid));
        }
    }
    None
}

/// Returns the path if it stays below the work tree and outside of `.git`, as git itself requires.
fn plain(name: &[u8]) -> Option<PathBuf> {
    let path = Path::new(OsStr::from_bytes(name));
    let is_plain = |it: Component<'_>| match it {
        Component::Normal(name) => !name.eq_ignore_ascii_case(".git"),
        _ => false,
    };
    let is_path = !name.is_empty() && path.components().all(is_plain);
    is_path.then(|| path.components().collect())
}

struct ByteCursor<'a>(&'a [u8]);

impl<'a> ByteCursor<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    fn number(&mut self) -> Option<u32> {
        let bytes = self.take(4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    }

    /// Reads a variable-length number as in packs: seven bits at a time, and each further byte adds
    /// one.
    fn varint(&mut self) -> Option<usize> {
        let mut byte = *self.take(1)?.first()?;
        let mut value = usize::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = *self.take(1)?.first()?;
            value = value.checked_add(1)?.checked_mul(128)? | usize::from(byte & 0x7f);
        }
        Some(value)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::process::Command;

    use super::*;

    /// Builds an index of submodules alone.
    pub(in crate::confinement) fn index(version: u32, oid_bytes: usize, paths: &[&str]) -> Vec<u8> {
        let mut bytes = b"DIRC".to_vec();
        bytes.extend(version.to_be_bytes());
        bytes.extend((paths.len() as u32).to_be_bytes());
        for path in paths {
            let begin = bytes.len();
            bytes.extend([0; 24]);
            bytes.extend(GITLINK.to_be_bytes());
            bytes.extend(vec![0; 12 + oid_bytes]);
            bytes.extend((path.len() as u16).to_be_bytes());
            bytes.extend(path.as_bytes());
            let length = bytes.len() - begin;
            bytes.extend(vec![0; 8 - length % 8]);
        }
        bytes.extend(vec![0; oid_bytes]);
        bytes
    }

    /// Compares with the files that git itself writes, in every version.
    #[test]
    fn submodules_are_found_in_what_git_writes() {
        for (version, split) in [(2, false), (3, false), (4, false), (4, true)] {
            let folder = tempfile::tempdir().expect("a folder");
            let git = |words: &[&str]| {
                let mut git = Command::new("git");
                git.current_dir(folder.path())
                    .args(["-c", "core.fsmonitor=false"]);
                git.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
                let done = git.args(words).output().expect("git runs");
                assert!(done.status.success(), "{words:?}: {done:?}");
            };
            let oid = "1".repeat(40);
            git(&["init", "-q"]);
            for (path, mode) in [("a/b", "160000"), ("a/file", "120000"), ("z", "160000")] {
                git(&[
                    "update-index",
                    "--add",
                    "--cacheinfo",
                    &format!("{mode},{oid},{path}"),
                ]);
            }
            git(&["update-index", "--index-version", &version.to_string()]);
            if version == 3 {
                git(&["update-index", "--skip-worktree", "z"]);
            }
            if split {
                git(&["update-index", "--split-index"]);
            }
            let dot_git = folder.path().join(".git");
            let cache = crate::confinement::repositories::RepositoryCache::default();
            let gitlinks = cache.gitlinks(&dot_git, 20, &mut Default::default());
            assert_eq!(
                *gitlinks,
                [Path::new("a/b"), Path::new("z")],
                "{version} {split}"
            );
        }
    }

    #[test]
    fn invalid_indexes_are_not_trusted() {
        let good = index(2, 20, &["a", "/etc", "../b", "x/.GIT/y", "", "c//d"]);
        let parsed = parse(&good, 20).expect("an index");
        assert_eq!(parsed.gitlinks, [Path::new("a"), Path::new("c/d")]);
        // Truncated at any byte, or with any byte replaced, parsing ends.
        for end in 0..good.len() {
            let _ = parse(&good[..end], 20);
            for byte in [0, 0x7f, 0xff] {
                let mut odd = good.clone();
                odd[end] = byte;
                for version in [2, 3, 4] {
                    odd[7] = version;
                    let _ = parse(&odd, 20);
                }
            }
        }
        assert_eq!(parse(b"DIRC\0\0\0\x05\0\0\0\0", 20), None);
    }
}
