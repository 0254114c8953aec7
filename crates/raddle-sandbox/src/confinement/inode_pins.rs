//! The inodes that the paths of a plan named when it was made.
//!
//! Another command that runs at the same time may write the same folders. Between the survey and
//! the last restriction it could replace a folder by a link, and the sandbox would mount, or allow,
//! the target of that link. So each path carries the inode that it named, and the helper checks
//! again when nothing can be replaced any more.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, Stat, fstat, open};

use super::SandboxRefusal;

/// A path inside the sandbox, and the inode that it must name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InodePin {
    pub path: PathBuf,
    device: u64,
    number: u64,
}

impl InodePin {
    /// Pins `path` to the inode that is at `from`.
    pub fn new(path: &Path, from: &Path) -> Result<Self, SandboxRefusal> {
        let metadata = fs::symlink_metadata(from).map_err(|source| SandboxRefusal::Disk {
            path: from.to_owned(),
            source,
        })?;
        if metadata.is_symlink() {
            return Err(became_link(from));
        }
        Ok(Self {
            path: path.to_owned(),
            device: metadata.dev(),
            number: metadata.ino(),
        })
    }

    /// Pins `path` to a file that was opened.
    pub fn of(path: &Path, stat: &Stat) -> Self {
        Self {
            path: path.to_owned(),
            device: stat.st_dev,
            number: stat.st_ino,
        }
    }

    pub fn word(&self) -> OsString {
        let mut word = OsString::from(format!("{}:{}:", self.device, self.number));
        word.push(&self.path);
        word
    }

    pub fn parse(word: &OsStr) -> Option<Self> {
        let mut parts = word.as_bytes().splitn(3, |it| *it == b':');
        let mut number = || std::str::from_utf8(parts.next()?).ok()?.parse().ok();
        Some(Self {
            device: number()?,
            number: number()?,
            path: OsStr::from_bytes(parts.next()?).into(),
        })
    }

    /// Opens the path; fails if it names another inode.
    pub fn open(&self) -> io::Result<OwnedFd> {
        let file = open_path(&self.path, OFlags::NOFOLLOW)?;
        let stat = fstat(&file)?;
        if (stat.st_dev, stat.st_ino) == (self.device, self.number) {
            Ok(file)
        } else {
            Err(replaced_error(&self.path))
        }
    }
}

/// Builds the refusal for a path that a command replaced by a link.
pub(super) fn became_link(path: &Path) -> SandboxRefusal {
    SandboxRefusal::Root {
        path: path.to_owned(),
        why: "a link replaced it just now; try again",
    }
}

/// Opens a path without any access right.
pub(super) fn open_path(path: &Path, more: OFlags) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | more;
    Ok(open(path, flags, Mode::empty())?)
}

/// Checks that every mount is in its place, and that nothing else can be written.
pub(super) fn check(pins: &[InodePin], write: &[PathBuf]) -> io::Result<()> {
    for pin in pins {
        pin.open()?;
    }
    let mounts = fs::read("/proc/self/mountinfo")?;
    match stray_mount(&mounts, write, |it| fs::symlink_metadata(it).is_ok()) {
        None => Ok(()),
        Some(at) => Err(io::Error::other(format!(
            "{} is writable although no rule allows it: a folder was replaced just now (try again), or bubblewrap \
             does not honour its arguments",
            at.display()
        ))),
    }
}

/// Returns a mount that is writable and should not be. Bubblewrap leaves mounts that the user
/// cannot reach as they are, and a mount under another one is not visible.
fn stray_mount(
    mounts: &[u8],
    write: &[PathBuf],
    is_there: impl Fn(&Path) -> bool,
) -> Option<PathBuf> {
    let sandbox_mounts = SANDBOX_MOUNTS.map(PathBuf::from);
    let is_allowed = |at: &Path| {
        sandbox_mounts
            .iter()
            .chain(write)
            .any(|it| at.starts_with(it))
    };
    writable_mounts(mounts).find(|at| !is_allowed(at) && is_there(at))
}

/// Writable paths that no rule lists, because they belong to the sandbox.
const SANDBOX_MOUNTS: [&str; 2] = ["/dev", "/proc"];

fn replaced_error(path: &Path) -> io::Error {
    io::Error::other(format!(
        "{} was replaced while the sandbox was built; try again",
        path.display()
    ))
}

/// Returns the writable mounts of `mountinfo`.
fn writable_mounts(mounts: &[u8]) -> impl Iterator<Item = PathBuf> {
    mounts.split(|it| *it == b'\n').filter_map(|line| {
        // Two numbers, a device, a path on it, the mount point, and its options.
        let mut words = line.split(|it| *it == b' ').skip(4);
        let (at, options) = (words.next()?, words.next()?);
        let is_writable = options.split(|it| *it == b',').any(|it| it == b"rw");
        is_writable.then(|| OsString::from_vec(unescape(at)).into())
    })
}

/// Decodes the three octal digits with which the kernel escapes separators.
fn unescape(word: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        let digits = after.get(..3).and_then(|it| std::str::from_utf8(it).ok());
        let code = digits.and_then(|it| u8::from_str_radix(it, 8).ok());
        match code {
            Some(code) if *first == b'\\' => {
                bytes.push(code);
                rest = &after[3..];
            }
            _ => bytes.push(*first),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inode_pin_is_parsed_whatever_its_path() {
        let folder = tempfile::tempdir().expect("a folder");
        let odd = folder.path().join("a:b \n");
        fs::create_dir(&odd).expect("it is made");
        let pin = InodePin::new(&odd, &odd).expect("a place");
        assert_eq!(InodePin::parse(&pin.word()), Some(pin.clone()));
        for odd in ["", "1", "1:2", "a:2:/", "1:-2:/"] {
            assert_eq!(InodePin::parse(OsStr::new(odd)), None, "{odd}");
        }
        assert!(pin.open().is_ok());
        fs::rename(&odd, folder.path().join("away")).expect("it is moved");
        assert!(pin.open().is_err());
        fs::create_dir(&odd).expect("another is made");
        assert!(pin.open().is_err());
        fs::remove_dir(&odd).expect("it is removed");
        std::os::unix::fs::symlink("away", &odd).expect("it is linked");
        assert!(pin.open().is_err(), "a link to the same is another");
        assert!(InodePin::new(&odd, &odd).is_err());
    }

    #[test]
    fn writable_mounts_are_found() {
        let mounts = b"22 1 8:1 / / ro,nosuid - ext4 /dev/sda rw\n\
            23 22 8:1 /w /w/a\\040b\\134 rw,nosuid,nodev master:1 - ext4 /dev/sda rw\n\
            24 22 0:5 / /proc rw - proc proc rw\n";
        let paths: Vec<PathBuf> = writable_mounts(mounts).collect();
        assert_eq!(paths, [Path::new("/w/a b\\"), Path::new("/proc")]);
        for (write, is_there, expected) in [
            ("/w", true, None),
            ("/", true, None),
            ("/w/a", true, Some("/w/a b\\")),
            // As below a folder that only root can enter.
            ("/w/a", false, None),
        ] {
            let mount = stray_mount(mounts, &[write.into()], |_| is_there);
            assert_eq!(
                mount.as_deref(),
                expected.map(Path::new),
                "{write} {is_there}"
            );
        }
    }
}
