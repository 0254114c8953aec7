//! The hash of a plugin's folder: of every file and link below it.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use rustix::fs::OFlags;
use sha2::{Digest, Sha256};

/// Limit: files, links and folders below the folder of a plugin; beyond it, the plugin is rejected.
const ENTRIES_MAX: usize = 5_000;

/// Limit: size of all files below the folder of a plugin; beyond it, the plugin is rejected.
const BYTES_MAX: u64 = 128 << 20;

/// Limit: folders inside each other below the folder of a plugin; beyond it, the plugin is rejected.
const DEPTH_MAX: usize = 32;

/// First part of the hashed bytes. It changes with their form.
const FORM: &[u8] = b"raddle plugin 1\n";

/// Size of a read from a file.
const READ_BYTES: usize = 64 << 10;

/// The hash of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderHash {
    /// Text of the hash, `sha256:` and hexadecimal digits.
    pub text: String,
    /// Number of files and links that it covers.
    pub files: usize,
    /// Stamp of the folder, before and after it was read.
    pub(crate) stamp: FolderStamp,
}

/// Stamp of a folder. It differs once a file below it was changed, added or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FolderStamp(pub(super) [u8; 32]);

/// Reason why a folder has no hash.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A file or a folder cannot be read.
    #[error("{} cannot be read: {error}", path.display())]
    Read {
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
    /// A link leads to another folder, or to nothing.
    #[error("the link {} leads out of the folder; replace it by a file", path.display())]
    Link {
        /// Path of the link.
        path: PathBuf,
    },
    /// An entry is no file, folder or link.
    #[error("{} is no ordinary file; remove it", path.display())]
    Special {
        /// Path of the entry.
        path: PathBuf,
    },
    /// There are too many entries.
    #[error(
        "it contains more than {ENTRIES_MAX} files and folders; move what the plugin does not need \
         out of its folder"
    )]
    TooMany,
    /// The files are too large.
    #[error(
        "its files have more than {BYTES_MAX} bytes; move what the plugin does not need out of its \
         folder"
    )]
    TooLarge,
    /// There are too many folders inside each other.
    #[error("it has more than {DEPTH_MAX} folders inside each other; use fewer")]
    TooDeep,
    /// The files changed while they were read.
    #[error("its files change while they are read; try again when nothing writes them")]
    Changing,
}

/// An entry of a folder that counts.
struct FolderEntry {
    /// Path below the folder.
    path: PathBuf,
    metadata: Metadata,
    /// Target, if it is a link.
    target: Option<PathBuf>,
}

/// Returns the hash of a folder. It covers the path, the executable bit and the content of every
/// file, and the path and the target of every link. It may block on the disk.
pub(crate) fn hash(folder: &Path) -> Result<FolderHash, FolderError> {
    let entries = entries(folder)?;
    let before = stamp_of(&entries);
    let mut hasher = Sha256::new();
    hasher.update(FORM);
    let mut bytes_left = BYTES_MAX;
    for entry in &entries {
        let (kind, content) = match &entry.target {
            Some(target) => (b'l', Sha256::digest(target.as_os_str().as_bytes())),
            None => {
                let kind = match entry.metadata.mode() & 0o111 {
                    0 => b'f',
                    _ => b'x',
                };
                (kind, content(&folder.join(&entry.path), &mut bytes_left)?)
            }
        };
        hasher.update([kind]);
        update_bytes(&mut hasher, entry.path.as_os_str());
        hasher.update(content);
    }
    if stamp(folder)? != before {
        return Err(FolderError::Changing);
    }
    Ok(FolderHash {
        text: format!("sha256:{}", HEXLOWER.encode(&hasher.finalize())),
        files: entries.len(),
        stamp: before,
    })
}

/// Returns the stamp of a folder. It may block on the disk.
pub(crate) fn stamp(folder: &Path) -> Result<FolderStamp, FolderError> {
    Ok(stamp_of(&entries(folder)?))
}

fn stamp_of(entries: &[FolderEntry]) -> FolderStamp {
    let mut hasher = Sha256::new();
    for FolderEntry { path, metadata, .. } in entries {
        update_bytes(&mut hasher, path.as_os_str());
        for number in [metadata.dev(), metadata.ino(), metadata.size()] {
            hasher.update(number.to_be_bytes());
        }
        hasher.update(metadata.mode().to_be_bytes());
        let modified = [metadata.mtime(), metadata.mtime_nsec()];
        for time in [modified, [metadata.ctime(), metadata.ctime_nsec()]].concat() {
            hasher.update(time.to_be_bytes());
        }
    }
    FolderStamp(hasher.finalize().into())
}

/// Adds a text with its length, so that no two lists of texts give the same bytes.
fn update_bytes(hasher: &mut Sha256, text: &OsStr) {
    hasher.update((text.len() as u64).to_be_bytes());
    hasher.update(text.as_bytes());
}

/// Returns the files and links below a folder, in the order of their paths.
fn entries(folder: &Path) -> Result<Vec<FolderEntry>, FolderError> {
    let root = fs::canonicalize(folder).map_err(|error| read_error(folder, error))?;
    let mut entries = Vec::new();
    let mut pending = vec![(PathBuf::new(), 0)];
    let mut count = 0;
    while let Some((below, depth)) = pending.pop() {
        if depth > DEPTH_MAX {
            return Err(FolderError::TooDeep);
        }
        let path = root.join(&below);
        for entry in fs::read_dir(&path).map_err(|error| read_error(&path, error))? {
            let entry = entry.map_err(|error| read_error(&path, error))?;
            count += 1;
            if count > ENTRIES_MAX {
                return Err(FolderError::TooMany);
            }
            let (path, below) = (entry.path(), below.join(entry.file_name()));
            // Of a link, this is the metadata of the link itself.
            let metadata = entry.metadata().map_err(|error| read_error(&path, error))?;
            let kind = metadata.file_type();
            if kind.is_dir() {
                pending.push((below, depth + 1));
                continue;
            }
            let target = match kind.is_symlink() {
                true => Some(link_target(&root, &path)?),
                false if kind.is_file() => None,
                false => return Err(FolderError::Special { path }),
            };
            entries.push(FolderEntry {
                path: below,
                metadata,
                target,
            });
        }
    }
    entries.sort_by(|first, second| first.path.cmp(&second.path));
    Ok(entries)
}

/// Returns the target of a link, which must lie below the folder.
fn link_target(root: &Path, path: &Path) -> Result<PathBuf, FolderError> {
    let target = fs::read_link(path).map_err(|error| read_error(path, error))?;
    // An absolute target would lead out of a folder that was moved.
    let is_inside =
        target.is_relative() && fs::canonicalize(path).is_ok_and(|real| real.starts_with(root));
    match is_inside {
        true => Ok(target),
        false => Err(FolderError::Link {
            path: path.to_owned(),
        }),
    }
}

/// Returns the hash of a file's content.
fn content(path: &Path, bytes_left: &mut u64) -> Result<sha2::digest::Output<Sha256>, FolderError> {
    let error_at = |error| read_error(path, error);
    // It could have been replaced by a link or a pipe meanwhile.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::options()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path);
    let file = file.map_err(error_at)?;
    if !file.metadata().map_err(error_at)?.is_file() {
        return Err(FolderError::Changing);
    }
    let mut reader = file.take(*bytes_left + 1);
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let count = reader.read(&mut buffer).map_err(error_at)?;
        if count == 0 {
            return Ok(hasher.finalize());
        }
        let left = bytes_left.checked_sub(count as u64);
        *bytes_left = left.ok_or(FolderError::TooLarge)?;
        hasher.update(&buffer[..count]);
    }
}

fn read_error(path: &Path, error: io::Error) -> FolderError {
    FolderError::Read {
        path: path.to_owned(),
        error,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    use tempfile::TempDir;

    use super::*;

    /// Creates a folder with a manifest and a file in a folder.
    fn folder() -> TempDir {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path();
        fs::create_dir(path.join("lib")).expect("a folder");
        fs::write(path.join("plugin.toml"), "a").expect("a file");
        fs::write(path.join("lib/main.py"), "b").expect("a file");
        folder
    }

    fn hash_text(folder: &TempDir) -> String {
        hash(folder.path()).expect("a hash").text
    }

    #[test]
    fn every_change_of_a_file_changes_the_hash_and_the_stamp() {
        type Change = fn(&Path) -> io::Result<()>;
        let changes: [(&str, Change); 8] = [
            ("content", |it| fs::write(it.join("lib/main.py"), "c")),
            ("new file", |it| fs::write(it.join("lib/.hidden"), "")),
            ("removed", |it| fs::remove_file(it.join("lib/main.py"))),
            ("moved", |it| {
                fs::rename(it.join("lib/main.py"), it.join("main.py"))
            }),
            ("executable", |it| {
                let mode = fs::Permissions::from_mode(0o700);
                fs::set_permissions(it.join("lib/main.py"), mode)
            }),
            ("new link", |it| symlink("lib/main.py", it.join("main.py"))),
            ("link for a file", |it| {
                fs::rename(it.join("lib/main.py"), it.join("lib/other.py"))?;
                symlink("other.py", it.join("lib/main.py"))
            }),
            ("swapped", |it| {
                fs::write(it.join("plugin.toml"), "b")?;
                fs::write(it.join("lib/main.py"), "a")
            }),
        ];
        for (name, change) in changes {
            let folder = folder();
            let path = folder.path();
            let (hash_before, stamp_before) = (hash_text(&folder), stamp(path).expect("a stamp"));
            assert_eq!(hash_text(&folder), hash_before);
            change(path).expect(name);
            assert_ne!(hash_text(&folder), hash_before, "{name}");
            assert_ne!(stamp(path).expect("a stamp"), stamp_before, "{name}");
        }
        // Two folders with the same files have the same hash, also with other times.
        assert_eq!(hash_text(&folder()), hash_text(&folder()));
    }

    #[test]
    fn folders_that_cannot_be_pinned_are_rejected() {
        type Change = fn(&Path) -> io::Result<()>;
        let changes: [(&str, Change); 6] = [
            ("leads out", |it| symlink("../x", it.join("x"))),
            ("leads out", |it| symlink("/etc/hostname", it.join("x"))),
            ("leads out", |it| symlink("missing", it.join("x"))),
            ("no ordinary file", |it| {
                UnixListener::bind(it.join("socket")).map(drop)
            }),
            ("inside each other", |it| {
                fs::create_dir_all(it.join("d/".repeat(DEPTH_MAX + 1)))
            }),
            ("more than 5000 files", |it| {
                (0..ENTRIES_MAX).try_for_each(|name| fs::write(it.join(name.to_string()), ""))
            }),
        ];
        for (expected, change) in changes {
            let folder = folder();
            change(folder.path()).expect("a change");
            let error = hash(folder.path()).expect_err("it is rejected").to_string();
            assert!(error.contains(expected), "{error}");
        }
        let folder = folder();
        let large = File::create(folder.path().join("large")).expect("a file");
        large.set_len(BYTES_MAX + 1).expect("a sparse file");
        let error = hash(folder.path()).expect_err("it is rejected");
        assert!(matches!(error, FolderError::TooLarge), "{error}");
    }
}
