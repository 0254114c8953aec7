//! File holds: a readers-writer lock on paths, for every process on one Raddle home.
//!
//! A user approves a command outside the sandbox together with the content of the files that it
//! names. While it runs it keeps a [`FileHold`] on them. A sandboxed command keeps a [`WriteClaim`]
//! on the folders that it may write, and a file tool one on the files that it writes. A claim and a
//! hold on the same path exclude each other; claims do not exclude claims, nor holds holds.
//!
//! Each of them is a file in a folder that no sandboxed command can write, locked by its process.
//! Each side adds its own entry first and then looks for entries of the other side, so at least one
//! of two that conflict sees the other. A claim that conflicts with a hold is withdrawn; a hold
//! waits until the claims are released.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};
use tokio::time::sleep;

use crate::confinement::{PolicyPath, is_around_home};
use crate::policy::scratch_folders;
use crate::{ReadScope, SandboxRules, WrittenFolders};

/// The folder of the entries, below the home.
const FOLDER: &str = "holds";

/// Limit: time an approved command waits for sandboxed commands that may write its files; beyond
/// it, the command does not run, and the model is notified.
const HOLD_WAIT: Duration = Duration::from_secs(30);

/// Timeout of a claim that waits for conflicting holds. It is longer than [`HOLD_WAIT`]: a hold
/// that times out costs no claim anything.
pub(crate) const CLAIM_WAIT: Duration = Duration::from_secs(45);

/// The time between two checks.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// How often a sandbox is compared with the same holds again.
const RECHECK_INTERVAL: Duration = Duration::from_secs(5);

/// How long an entry counts after its process has died. Keepers end the commands of a dead server
/// sooner.
const DEAD_GRACE: Duration = Duration::from_secs(5);

/// Suffix of the name of an entry whose process has died.
const DEAD_SUFFIX: &str = ".dead";

/// Limit: entries of a writable folder that are searched for hard links to held files; beyond it,
/// the folder counts as having one, so the commands wait for each other.
const ENTRIES_MAX: usize = 1_000_000;

/// Longest description of an entry.
const ABOUT_BYTES_MAX: usize = 200;

/// The holds and claims of one Raddle home.
#[derive(Clone, Debug)]
pub struct FileHolds {
    folder: PathBuf,
    written: WrittenFolders,
}

/// A hold on files. Dropping it releases them.
#[derive(Debug)]
pub struct FileHold {
    /// The held paths, and every link on the path to them, sorted.
    paths: Vec<PathBuf>,
    _entry: EntryGuard,
}

/// A claim to write below folders, or to write files. Dropping it releases it.
#[derive(Debug)]
pub struct WriteClaim {
    claimed: HoldEntry,
    _entry: EntryGuard,
}

/// The entries of holds that a sandbox fitted, and when that was checked. A check may walk folders.
#[derive(Debug, Default)]
pub(crate) struct CheckedHolds(Mutex<Option<(Vec<OsString>, Instant)>>);

impl CheckedHolds {
    /// Whether these entries were checked, and not long ago: an entry stays when its process dies.
    fn is_current(&self, names: &[OsString]) -> bool {
        let checked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = |at: &Instant| names.is_empty() || at.elapsed() < RECHECK_INTERVAL;
        let is_same = |(last, at): &(Vec<OsString>, Instant)| last == names && is_recent(at);
        checked.as_ref().is_some_and(is_same)
    }

    fn set(&self, names: Vec<OsString>) {
        let mut checked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *checked = Some((names, Instant::now()));
    }
}

/// Reason why there is no hold or no claim.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// Another command has a conflicting entry.
    #[error("{} is held by another command: {}", .0.path.display(), .0.about)]
    Busy(HoldConflict),
    /// The entry cannot be written, or the other entries cannot be read.
    #[error("the file holds of this Raddle home cannot be used: {0}")]
    Io(#[from] io::Error),
}

/// A path on which a hold and a claim conflict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldConflict {
    /// The path that is held.
    pub path: PathBuf,
    /// Description of the owner of the other entry: mostly a command line.
    pub about: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Files that must not change.
    Hold,
    /// Folders in which a sandboxed command writes.
    Folders,
    /// Files that a file tool writes.
    Files,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Hold, Self::Folders, Self::Files];

    fn name(self) -> &'static str {
        match self {
            Self::Hold => "hold",
            Self::Folders => "folders",
            Self::Files => "files",
        }
    }

    fn of(name: &str) -> Option<Self> {
        let (kind, _) = name.split_once('-')?;
        Self::ALL.into_iter().find(|it| it.name() == kind)
    }

    /// Whether a claim of this kind on `claimed` lets its owner change the content of `held`. The
    /// claimed folder itself cannot be moved.
    fn covers(self, claimed: &Path, held: &Path) -> bool {
        match self {
            Self::Hold => false,
            Self::Folders => held != claimed && held.starts_with(claimed),
            Self::Files => held == claimed,
        }
    }
}

/// An entry of this process; dropping it removes the file.
#[derive(Debug)]
struct EntryGuard {
    path: PathBuf,
    _lock: File,
}

impl Drop for EntryGuard {
    fn drop(&mut self) {
        // An entry that cannot be removed is no longer locked, and the next check removes it.
        let _ = fs::remove_file(&self.path);
    }
}

/// An entry of any process.
#[derive(Clone, Debug)]
struct HoldEntry {
    kind: Kind,
    about: String,
    paths: Vec<PathBuf>,
}

impl FileHolds {
    /// Returns the holds and claims of the home in this folder.
    pub fn of(home: &Path) -> Self {
        Self {
            folder: home.join(FOLDER),
            written: WrittenFolders::of(home),
        }
    }

    /// Returns the folders that sandboxed commands have ever been allowed to write.
    pub fn written(&self) -> &WrittenFolders {
        &self.written
    }

    /// Holds these files once no claim covers them. It waits at most half a minute.
    pub async fn hold(&self, about: String, paths: Vec<PathBuf>) -> Result<FileHold, HoldError> {
        let this = self.clone();
        let pending = blocking(move || {
            let paths = with_links(&paths);
            let _entry = this.add(Kind::Hold, &about, &paths)?;
            Ok(FileHold { paths, _entry })
        });
        let mut hold = pending.await?;
        let started = Instant::now();
        loop {
            let this = self.clone();
            let check = blocking(move || {
                let claims = this.list(|kind| kind != Kind::Hold)?;
                let held = HeldFiles::by_path(&hold.paths);
                let conflict = claims.iter().find_map(|it| it.conflict_with(&held));
                // Only now no command can give one of them another name.
                let conflict = conflict.or_else(|| {
                    let held = HeldFiles::by_link(&hold.paths);
                    claims.iter().find_map(|it| it.conflict_with(&held))
                });
                Ok((hold, conflict))
            });
            let conflict;
            (hold, conflict) = check.await?;
            match conflict {
                None => return Ok(hold),
                Some(conflict) if started.elapsed() > HOLD_WAIT => {
                    return Err(HoldError::Busy(conflict));
                }
                Some(_) => sleep(POLL_INTERVAL).await,
            }
        }
    }

    /// Claims to write these files once they are not held. It blocks for at most `wait`.
    pub fn claim_files(
        &self,
        about: &str,
        files: &[PathBuf],
        wait: Duration,
    ) -> Result<WriteClaim, HoldError> {
        let started = Instant::now();
        loop {
            match self.try_claim(Kind::Files, about, files)? {
                Ok(claim) => return Ok(claim),
                Err(conflict) if started.elapsed() >= wait => {
                    return Err(HoldError::Busy(conflict));
                }
                Err(_) => std::thread::sleep(POLL_INTERVAL),
            }
        }
    }

    /// Claims the folders that these rules make writable, unless a file in one is held. The last
    /// try narrows the rules instead: folders with held files become read-only, and it returns the
    /// conflicts.
    pub fn claim_folders(
        &self,
        about: &str,
        rules: &mut SandboxRules,
        is_last: bool,
    ) -> Result<(Option<WriteClaim>, Vec<HoldConflict>), HoldError> {
        let mut conflicts = Vec::new();
        if !rules.protected.is_empty() {
            self.written.add_workspaces(&rules.write)?;
            self.protect_workspaces(rules, &scratch_folders().0)?;
        }
        loop {
            let roots: Vec<PathBuf> = rules.write.iter().chain(&rules.scratch).cloned().collect();
            if roots.is_empty() {
                return Ok((None, conflicts));
            }
            self.written.add(&roots)?;
            let conflict = match self.try_claim(Kind::Folders, about, &with_links(&roots))? {
                Ok(claim) => return Ok((Some(claim), conflicts)),
                Err(conflict) if is_last => conflict,
                Err(conflict) => return Err(HoldError::Busy(conflict)),
            };
            let held = std::slice::from_ref(&conflict.path);
            let held = [HeldFiles::by_path(held), HeldFiles::by_link(held)];
            let is_free = |root: &PathBuf| {
                let roots = with_links(std::slice::from_ref(root));
                let mut pairs = roots
                    .iter()
                    .flat_map(|it| held.iter().map(move |held| (it, held)));
                !pairs.any(|(it, held)| held.conflict_with(Kind::Folders, it).is_some())
            };
            if let ReadScope::Listed(read) = &mut rules.read {
                read.extend(roots.into_iter().filter(|it| !is_free(it)));
            }
            rules.write.retain(is_free);
            rules.scratch.retain(is_free);
            conflicts.push(conflict);
        }
    }

    /// Gives scratch folders the protected names of a workspace if they are one, contain one or lie
    /// in one, of any thread on this home. `/tmp` and its contents stay as they are, because every
    /// program uses them.
    fn protect_workspaces(&self, rules: &mut SandboxRules, tmp: &Path) -> io::Result<()> {
        if rules.scratch.iter().all(|it| it.starts_with(tmp)) {
            return Ok(());
        }
        let workspaces = self.written.workspaces()?;
        let is_workspace = |scratch: &PathBuf| {
            let overlaps = |it: &PathBuf| {
                // A home in which a thread worked does not make everything in it a workspace.
                it.starts_with(scratch) || scratch.starts_with(it) && !is_around_home(it)
            };
            !scratch.starts_with(tmp) && workspaces.iter().any(overlaps)
        };
        for folder in std::mem::take(&mut rules.scratch) {
            match is_workspace(&folder) {
                true if rules.write.contains(&folder) => {}
                true => rules.write.push(folder),
                false => rules.scratch.push(folder),
            }
        }
        Ok(())
    }

    fn try_claim(
        &self,
        kind: Kind,
        about: &str,
        paths: &[PathBuf],
    ) -> Result<Result<WriteClaim, HoldConflict>, HoldError> {
        let _entry = self.add(kind, about, paths)?;
        let claim = HoldEntry {
            kind,
            about: String::new(),
            paths: paths.to_vec(),
        };
        let holds = self.list(|kind| kind == Kind::Hold)?;
        Ok(match claim.conflict_with_holds(&holds) {
            Some(conflict) => Err(conflict),
            None => Ok(WriteClaim {
                claimed: claim,
                _entry,
            }),
        })
    }

    /// Whether the sandbox of a process that keeps this claim still fits the holds: none of them
    /// conflicts with the claim, and those that narrowed its rules still exist. If the entries
    /// cannot be read, it counts as fitting.
    pub(crate) async fn fit(
        &self,
        checked: &CheckedHolds,
        claim: Option<&WriteClaim>,
        narrowed_by: &[HoldConflict],
    ) -> bool {
        let names = match self.hold_names() {
            Ok(names) if checked.is_current(&names) => return true,
            Ok(names) => names,
            Err(_) => return true,
        };
        let (this, claimed) = (self.clone(), claim.map(|it| it.claimed.clone()));
        let narrowed_by = narrowed_by.to_vec();
        let fit = blocking(move || {
            let holds = this.list(|kind| kind == Kind::Hold)?;
            let exists = |conflict: &HoldConflict| {
                let mut holds = holds.iter();
                holds.any(|it| it.about == conflict.about && it.paths.contains(&conflict.path))
            };
            let is_contested = claimed
                .and_then(|it| it.conflict_with_holds(&holds))
                .is_some();
            Ok(!is_contested && narrowed_by.iter().all(exists))
        });
        let fits = fit.await.unwrap_or(true);
        if fits {
            checked.set(names);
        }
        fits
    }

    /// Returns the names of the entries of holds, sorted.
    fn hold_names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            if name.to_str().and_then(Kind::of) == Some(Kind::Hold) {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn add(&self, kind: Kind, about: &str, paths: &[PathBuf]) -> io::Result<EntryGuard> {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_nanos();
        let process = std::process::id();
        let name = format!("{}-{process}-{number}-{now}", kind.name());
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        // No process looks at it before it is locked and complete.
        let unfinished = self.folder.join(format!(".{name}"));
        let mut options = File::options();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&unfinished)?;
        let entry = EntryGuard {
            path: self.folder.join(name),
            _lock: file.try_clone()?,
        };
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let about = &about[..about.floor_char_boundary(ABOUT_BYTES_MAX)];
        let mut bytes = about.replace('\0', " ").into_bytes();
        for path in paths {
            bytes.push(0);
            bytes.extend(path.as_os_str().as_bytes());
        }
        let result = file
            .write_all(&bytes)
            .and_then(|()| fs::rename(&unfinished, &entry.path));
        if let Err(error) = result {
            let _ = fs::remove_file(&unfinished);
            return Err(error);
        }
        Ok(entry)
    }

    /// Returns every entry of these kinds that counts now.
    fn list(&self, is_listed: impl Fn(Kind) -> bool) -> io::Result<Vec<HoldEntry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let name = path.file_name().and_then(OsStr::to_str);
            let Some((name, kind)) = name.and_then(|it| Some((it, Kind::of(it)?))) else {
                continue;
            };
            if !is_listed(kind) {
                continue;
            }
            match read_entry(&path, name, kind) {
                Ok(hold_entry) => entries.extend(hold_entry),
                // It has been removed; or it belongs to another user, against whom a hold cannot
                // protect.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                Err(error) => return Err(error),
            }
        }
        Ok(entries)
    }
}

impl FileHold {
    /// Returns whether all of these files are held.
    pub fn covers(&self, paths: &[PathBuf]) -> bool {
        let is_held = |it: &PathBuf| self.paths.binary_search(it).is_ok();
        with_links(paths).iter().all(is_held)
    }
}

impl HoldEntry {
    /// Returns the conflict of this claim with one of these holds.
    fn conflict_with_holds(&self, holds: &[Self]) -> Option<HoldConflict> {
        let find = |held: fn(&[PathBuf]) -> HeldFiles<'_>| {
            holds.iter().find_map(|hold| {
                let conflict = self.conflict_with(&held(&hold.paths))?;
                let about = hold.about.clone();
                Some(HoldConflict { about, ..conflict })
            })
        };
        find(HeldFiles::by_path).or_else(|| find(HeldFiles::by_link))
    }

    /// Returns the conflict of this claim with a hold on these files.
    fn conflict_with(&self, held: &HeldFiles<'_>) -> Option<HoldConflict> {
        let path = self
            .paths
            .iter()
            .find_map(|it| held.conflict_with(self.kind, it))?;
        let about = self.about.clone();
        Some(HoldConflict { path, about })
    }
}

/// Held files, as a claim can conflict with them.
enum HeldFiles<'a> {
    /// The paths of the files.
    Paths(&'a [PathBuf]),
    /// The files with several names, by device and inode.
    Links(HashMap<(u64, u64), &'a PathBuf>),
}

impl HeldFiles<'_> {
    fn by_path(paths: &[PathBuf]) -> HeldFiles<'_> {
        HeldFiles::Paths(paths)
    }

    fn by_link(paths: &[PathBuf]) -> HeldFiles<'_> {
        let owner = rustix::process::geteuid().as_raw();
        let linked = paths.iter().filter_map(|path| {
            let metadata = fs::symlink_metadata(path).ok()?;
            // Files of the system have several names too, and no command can write them.
            let can_be_written = metadata.uid() == owner || metadata.mode() & 0o022 != 0;
            let has_more = metadata.is_file() && metadata.nlink() > 1;
            (has_more && can_be_written).then(|| ((metadata.dev(), metadata.ino()), path))
        });
        HeldFiles::Links(linked.collect())
    }

    /// Returns the held path whose file a claim of this kind lets its owner change. For links it
    /// may walk the claimed folder.
    fn conflict_with(&self, kind: Kind, claimed: &Path) -> Option<PathBuf> {
        match (self, kind) {
            (Self::Paths(paths), _) => {
                let mut held = paths.iter();
                held.find(|it| kind.covers(claimed, it)).cloned()
            }
            (_, Kind::Hold) => None,
            (Self::Links(links), _) if links.is_empty() => None,
            (Self::Links(links), Kind::Files) => {
                let metadata = fs::symlink_metadata(claimed).ok()?;
                let path = links.get(&(metadata.dev(), metadata.ino()))?;
                Some((*path).clone())
            }
            (Self::Links(links), Kind::Folders) => {
                let began = Instant::now();
                let path = linked_below(claimed, links)?.clone();
                // A waiting claim checks repeatedly: it pauses for at least half of the time.
                std::thread::sleep(began.elapsed());
                Some(path)
            }
        }
    }
}

/// Returns the first of these files that has a name in a folder or below it. A folder that cannot
/// be searched counts as a match.
fn linked_below<'a>(
    folder: &Path,
    links: &HashMap<(u64, u64), &'a PathBuf>,
) -> Option<&'a PathBuf> {
    let any = || links.values().next().copied();
    let is_gone = |error: &io::Error| {
        let kinds = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
        kinds.contains(&error.kind())
    };
    let find = |metadata: &fs::Metadata| links.get(&(metadata.dev(), metadata.ino())).copied();
    let mut count = 0;
    let mut queue = vec![folder.to_owned()];
    // A writable root may be a file.
    if let Some(path) = fs::symlink_metadata(folder).ok().as_ref().and_then(find) {
        return Some(path);
    }
    while let Some(folder) = queue.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if is_gone(&error) => continue,
            Err(_) => return any(),
        };
        for entry in entries {
            count += 1;
            let Ok(entry) = entry else {
                return any();
            };
            if count > ENTRIES_MAX {
                return any();
            }
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => queue.push(entry.path()),
                Ok(metadata) if metadata.nlink() > 1 => {
                    if let Some(path) = find(&metadata) {
                        return Some(path);
                    }
                }
                Ok(_) => {}
                Err(error) if is_gone(&error) => {}
                Err(_) => return any(),
            }
        }
    }
    None
}

/// Reads an entry; `None` if its process has been dead for longer than [`DEAD_GRACE`].
fn read_entry(path: &Path, name: &str, kind: Kind) -> io::Result<Option<HoldEntry>> {
    let mut file = File::open(path)?;
    let is_dead = flock(&file, FlockOperation::NonBlockingLockShared).is_ok();
    match (is_dead, name.ends_with(DEAD_SUFFIX)) {
        // Renaming the file sets the time from which it counts as dead.
        (true, false) => fs::rename(path, path.with_file_name(format!("{name}{DEAD_SUFFIX}")))?,
        (true, true) => {
            let seconds = Duration::from_secs(file.metadata()?.ctime().unsigned_abs());
            let since = SystemTime::now().duration_since(UNIX_EPOCH + seconds);
            if since.is_err() || since.is_ok_and(|it| it > DEAD_GRACE) {
                fs::remove_file(path)?;
                return Ok(None);
            }
        }
        (false, _) => {}
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let mut parts = bytes.split(|it| *it == 0);
    let about = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let paths = parts.map(|it| PathBuf::from(OsStr::from_bytes(it)));
    Ok(Some(HoldEntry {
        kind,
        about,
        paths: paths.collect(),
    }))
}

/// Runs work that may wait for a disk on a blocking thread.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, HoldError> + Send + 'static,
) -> Result<T, HoldError> {
    let result = tokio::task::spawn_blocking(work).await;
    result.unwrap_or_else(|error| Err(io::Error::other(error).into()))
}

/// Returns the real paths of these, and every link on the path there, sorted.
fn with_links(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for path in paths {
        match PolicyPath::of(path) {
            Ok(policy_path) => {
                all.extend(policy_path.links);
                all.push(policy_path.real);
            }
            Err(_) => all.push(path.clone()),
        }
    }
    all.sort();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn setup() -> (tempfile::TempDir, FileHolds, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let top = folder.path().canonicalize().expect("its name");
        fs::create_dir_all(top.join("work/sub")).expect("folders");
        fs::write(top.join("work/run.sh"), "").expect("a file");
        (folder, FileHolds::of(&top.join("home")), top)
    }

    fn rules(top: &Path, roots: &[&str]) -> SandboxRules {
        SandboxRules::workspace_write(roots.iter().map(|it| top.join(it)).collect())
    }

    #[tokio::test]
    async fn a_folder_with_a_held_file_is_only_read() {
        let (_folder, holds, top) = setup();
        symlink(top.join("work"), top.join("way")).expect("a link");
        let files = vec![top.join("way/run.sh")];
        let hold = holds.hold("bash run.sh".to_owned(), files).await;
        let hold = hold.expect("a hold");
        assert!(hold.covers(&[top.join("work/run.sh"), top.join("way/run.sh")]));
        assert!(!hold.covers(&[top.join("work/other")]));
        for (roots, free) in [
            (&["work"][..], &[][..]),
            (&["work/sub"], &["work/sub"]),
            (&["work", "work/sub"], &["work/sub"]),
            // The link on the path to it counts too.
            (&["."], &[]),
            (&["way"], &[]),
        ] {
            let mut rules = rules(&top, roots);
            let result = holds.claim_folders("ls", &mut rules, true);
            let (claim, conflicts) = result.expect("a claim");
            let free: Vec<PathBuf> = free.iter().map(|it| top.join(it)).collect();
            assert_eq!(rules.write, free, "{roots:?}");
            assert_eq!(claim.is_some(), !free.is_empty(), "{roots:?}");
            assert_eq!(conflicts.is_empty(), free.len() == roots.len(), "{roots:?}");
            assert!(conflicts.iter().all(|it| it.about == "bash run.sh"));
        }
        let edit = |name: &str| holds.claim_files("edit", &[top.join(name)], Duration::ZERO);
        assert!(matches!(edit("work/run.sh"), Err(HoldError::Busy(_))));
        edit("work/other").expect("it is not held");
        drop(hold);
        edit("work/run.sh").expect("it is held no longer");
        let entries = fs::read_dir(top.join("home/holds")).expect("a folder");
        assert_eq!(entries.count(), 0, "everything is released");
    }

    /// A second name of a held file is found wherever a claim could write it.
    #[tokio::test]
    async fn a_file_is_held_by_each_of_its_names() {
        let (_folder, holds, top) = setup();
        fs::create_dir_all(top.join("other/deep")).expect("folders");
        fs::create_dir_all(top.join("third")).expect("folders");
        fs::hard_link(top.join("work/run.sh"), top.join("other/deep/link")).expect("a link");
        fs::write(top.join("third/one"), "").expect("a file");
        fs::hard_link(top.join("third/one"), top.join("third/two")).expect("a link");
        // A hold waits for existing claims.
        let result = holds.claim_folders("make", &mut rules(&top, &["other"]), false);
        let (claim, _) = result.expect("a claim");
        let waiting = {
            let (holds, files) = (holds.clone(), vec![top.join("work/run.sh")]);
            tokio::spawn(async move { holds.hold("bash run.sh".to_owned(), files).await })
        };
        let edit = |name: &str| holds.claim_files("edit", &[top.join(name)], Duration::ZERO);
        while edit("work/run.sh").is_ok() {
            tokio::task::yield_now().await;
        }
        assert!(!waiting.is_finished());
        drop(claim);
        let _hold = waiting.await.expect("no panic").expect("a hold");
        assert!(matches!(edit("other/deep/link"), Err(HoldError::Busy(_))));
        edit("third/two").expect("it is another file");
        for (roots, free) in [
            (&["other"][..], &[][..]),
            (&["other/deep", "third"], &["third"]),
            (&["third", "work/sub"], &["third", "work/sub"]),
        ] {
            let mut rules = rules(&top, roots);
            let result = holds.claim_folders("ls", &mut rules, true);
            let (_, conflicts) = result.expect("a claim");
            let free: Vec<PathBuf> = free.iter().map(|it| top.join(it)).collect();
            assert_eq!(rules.write, free, "{roots:?}");
            let is_held = |it: &HoldConflict| it.path == top.join("work/run.sh");
            assert!(conflicts.iter().all(is_held), "{conflicts:?}");
        }
    }

    /// A process that runs for long learns that its sandbox no longer fits.
    #[tokio::test]
    async fn a_hold_that_waits_for_a_claim_and_one_that_ended_are_noticed() {
        let (_folder, holds, top) = setup();
        let claim = |is_last| holds.claim_folders("server", &mut rules(&top, &["work"]), is_last);
        let (first, conflicts) = claim(false).expect("a claim");
        let fits = async |claim: &Option<WriteClaim>, conflicts: &[HoldConflict]| {
            let checked = CheckedHolds::default();
            holds.fit(&checked, claim.as_ref(), conflicts).await
        };
        assert!(fits(&first, &conflicts).await);
        let waiting = {
            let (holds, files) = (holds.clone(), vec![top.join("work/run.sh")]);
            tokio::spawn(async move { holds.hold("bash run.sh".to_owned(), files).await })
        };
        while fits(&first, &conflicts).await {
            tokio::task::yield_now().await;
        }
        drop(first);
        let hold = waiting.await.expect("no panic").expect("a hold");
        let (second, conflicts) = claim(true).expect("no claim is needed");
        assert_eq!((second.is_some(), conflicts.len()), (false, 1));
        assert!(fits(&second, &conflicts).await);
        drop(hold);
        assert!(!fits(&second, &conflicts).await);
    }

    #[test]
    fn claimed_folders_are_known_to_every_process() {
        let (_folder, holds, top) = setup();
        let mut rules = rules(&top, &["work", "work/sub"]);
        holds
            .claim_folders("ls", &mut rules, false)
            .expect("a claim");
        let other = FileHolds::of(&top.join("home"));
        let folders = other.written().all().expect("a list");
        let marks = ["work", "work/.git", "work/sub", "work/sub/.git"];
        assert_eq!(folders, marks.map(|it| top.join(it)).into());
    }

    /// Other threads must not write the `.git` of a workspace because `TMPDIR` names it.
    #[test]
    fn scratch_that_meets_a_workspace_of_any_thread_is_protected() {
        let (_folder, holds, top) = setup();
        for folder in ["tmp/work", "mine", "other"] {
            fs::create_dir_all(top.join(folder)).expect("a folder");
        }
        let mut theirs = rules(&top, &["work", "tmp/work"]);
        theirs.scratch.push(top.join("other"));
        holds
            .claim_folders("ls", &mut theirs, false)
            .expect("a claim");
        for (scratch, is_protected) in [
            ("work", true),
            (".", true),
            ("work/sub", true),
            ("other", false),
            ("tmp", false),
            ("tmp/work", false),
        ] {
            let scratch = top.join(scratch);
            let mut mine = rules(&top, &["mine"]);
            mine.scratch.push(scratch.clone());
            let result = holds.protect_workspaces(&mut mine, &top.join("tmp"));
            result.expect("a list");
            let about = scratch.display();
            assert_eq!(mine.write.contains(&scratch), is_protected, "{about}");
            assert_eq!(mine.scratch.contains(&scratch), !is_protected, "{about}");
        }
    }

    #[tokio::test]
    async fn a_hold_waits_for_existing_claims() {
        let (_folder, holds, top) = setup();
        let mut rules = rules(&top, &["work"]);
        let result = holds.claim_folders("make", &mut rules, false);
        let (claim, _) = result.expect("a claim");
        let files = vec![top.join("work/run.sh")];
        let edit = || holds.claim_files("edit", &files, Duration::ZERO);
        let waiting = {
            let (holds, files) = (holds.clone(), files.clone());
            tokio::spawn(async move { holds.hold("bash run.sh".to_owned(), files).await })
        };
        // The hold is stored at once, and a second claim sees it.
        while edit().is_ok() {
            tokio::task::yield_now().await;
        }
        assert!(!waiting.is_finished());
        drop(claim);
        waiting.await.expect("no panic").expect("a hold");
    }

    #[tokio::test]
    async fn an_entry_counts_for_a_while_after_its_process() {
        let (_folder, holds, top) = setup();
        let files = vec![top.join("work/run.sh")];
        let hold = holds.hold("bash run.sh".to_owned(), files.clone()).await;
        let hold = hold.expect("a hold");
        // As if its process had died: its lock is released.
        flock(&hold._entry._lock, FlockOperation::Unlock).expect("unlocked");
        let edit = || holds.claim_files("edit", &files, Duration::ZERO);
        assert!(matches!(edit(), Err(HoldError::Busy(_))));
        assert!(matches!(edit(), Err(HoldError::Busy(_))));
        let dead = fs::read_dir(top.join("home/holds")).expect("a folder");
        let names = dead.flatten().map(|it| it.file_name());
        let names: Vec<String> = names.filter_map(|it| it.into_string().ok()).collect();
        assert_eq!(names.len(), 1, "{names:?}");
        assert!(names[0].ends_with(DEAD_SUFFIX), "{names:?}");
    }
}
