//! Which files the paths of a plan meant when it was made.
//!
//! A command that runs beside this one may write the same folders. Between the survey and the last lock it
//! could put a link where a folder was, and what is mounted, or allowed, by that path would be what it links to.
//! So each path goes with the number of the file it meant, and the helper looks again when nothing can be
//! exchanged any more.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, Stat, fstat, open};

use super::SandboxRefusal;

/// A path inside, and the file that is to be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InodePin {
    pub path: PathBuf,
    device: u64,
    number: u64,
}

impl InodePin {
    /// What is at `from` is to be at `path`.
    pub fn new(path: &Path, from: &Path) -> Result<Self, SandboxRefusal> {
        let found = fs::symlink_metadata(from).map_err(|source| SandboxRefusal::Disk {
            path: from.to_owned(),
            source,
        })?;
        if found.is_symlink() {
            return Err(became_link(from));
        }
        Ok(Self {
            path: path.to_owned(),
            device: found.dev(),
            number: found.ino(),
        })
    }

    /// A file that was opened is to be at `path`.
    pub fn of(path: &Path, opened: &Stat) -> Self {
        Self {
            path: path.to_owned(),
            device: opened.st_dev,
            number: opened.st_ino,
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

    /// Opens the path, if the file is there that is to be.
    pub fn open(&self) -> io::Result<OwnedFd> {
        let file = open_path(&self.path, OFlags::NOFOLLOW)?;
        let found = fstat(&file)?;
        if (found.st_dev, found.st_ino) == (self.device, self.number) {
            Ok(file)
        } else {
            Err(exchanged(&self.path))
        }
    }
}

/// A command put a link in place of what was to be mounted.
pub(super) fn became_link(path: &Path) -> SandboxRefusal {
    SandboxRefusal::Root {
        path: path.to_owned(),
        why: "it was exchanged for a link just now",
    }
}

/// Opens a path without a right to anything.
pub(super) fn open_path(path: &Path, more: OFlags) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | more;
    Ok(open(path, flags, Mode::empty())?)
}

/// Whether all that is mounted is where it is to be, and nothing else can be written.
pub(super) fn check(places: &[InodePin], write: &[PathBuf]) -> io::Result<()> {
    for place in places {
        place.open()?;
    }
    let mounts = fs::read("/proc/self/mountinfo")?;
    match stray_mount(&mounts, write, |it| fs::symlink_metadata(it).is_ok()) {
        None => Ok(()),
        Some(at) => Err(io::Error::other(format!(
            "{} can be written although no rule says so: a folder was exchanged just now (try again), or bubblewrap \
             does not do what it is told",
            at.display()
        ))),
    }
}

/// A mount that can be written and should not be. What the user cannot come to, bubblewrap leaves as it is; and what
/// lies under another mount is out of sight.
fn stray_mount(
    mounts: &[u8],
    write: &[PathBuf],
    is_there: impl Fn(&Path) -> bool,
) -> Option<PathBuf> {
    let own = OWN.map(PathBuf::from);
    let may = |at: &Path| own.iter().chain(write).any(|it| at.starts_with(it));
    writable(mounts).find(|at| !may(at) && is_there(at))
}

/// What can be written inside although no rule says so: it is the fence's own.
const OWN: [&str; 2] = ["/dev", "/proc"];

fn exchanged(path: &Path) -> io::Error {
    io::Error::other(format!(
        "{} was exchanged while the fence was built; try again",
        path.display()
    ))
}

/// The mounts that can be written, of a list of all.
fn writable(mounts: &[u8]) -> impl Iterator<Item = PathBuf> {
    mounts.split(|it| *it == b'\n').filter_map(|line| {
        // Two numbers, a device, a path on it, where it is mounted, and how.
        let mut words = line.split(|it| *it == b' ').skip(4);
        let (at, how) = (words.next()?, words.next()?);
        let is_writable = how.split(|it| *it == b',').any(|it| it == b"rw");
        is_writable.then(|| OsString::from_vec(plain(at)).into())
    })
}

/// The kernel writes what would end a word as three octal digits.
fn plain(word: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        let digits = after.get(..3).and_then(|it| std::str::from_utf8(it).ok());
        let code = digits.and_then(|it| u8::from_str_radix(it, 8).ok());
        match code {
            Some(code) if *first == b'\\' => {
                plain.push(code);
                rest = &after[3..];
            }
            _ => plain.push(*first),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_comes_through_whatever_its_path() {
        let folder = tempfile::tempdir().expect("a folder");
        let odd = folder.path().join("a:b \n");
        fs::create_dir(&odd).expect("it is made");
        let place = InodePin::new(&odd, &odd).expect("a place");
        assert_eq!(InodePin::parse(&place.word()), Some(place.clone()));
        for odd in ["", "1", "1:2", "a:2:/", "1:-2:/"] {
            assert_eq!(InodePin::parse(OsStr::new(odd)), None, "{odd}");
        }
        assert!(place.open().is_ok());
        fs::rename(&odd, folder.path().join("away")).expect("it is moved");
        assert!(place.open().is_err());
        fs::create_dir(&odd).expect("another is made");
        assert!(place.open().is_err());
        fs::remove_dir(&odd).expect("it is removed");
        std::os::unix::fs::symlink("away", &odd).expect("it is linked");
        assert!(place.open().is_err(), "a link to the same is another");
        assert!(InodePin::new(&odd, &odd).is_err());
    }

    #[test]
    fn of_all_mounts_those_that_can_be_written() {
        let mounts = b"22 1 8:1 / / ro,nosuid - ext4 /dev/sda rw\n\
            23 22 8:1 /w /w/a\\040b\\134 rw,nosuid,nodev master:1 - ext4 /dev/sda rw\n\
            24 22 0:5 / /proc rw - proc proc rw\n";
        let found: Vec<PathBuf> = writable(mounts).collect();
        assert_eq!(found, [Path::new("/w/a b\\"), Path::new("/proc")]);
        for (write, is_there, expected) in [
            ("/w", true, None),
            ("/", true, None),
            ("/w/a", true, Some("/w/a b\\")),
            // As below a folder that only root can enter.
            ("/w/a", false, None),
        ] {
            let found = stray_mount(mounts, &[write.into()], |_| is_there);
            assert_eq!(
                found.as_deref(),
                expected.map(Path::new),
                "{write} {is_there}"
            );
        }
    }
}
