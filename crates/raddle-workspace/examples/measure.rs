//! The cost of snapshots, beside a bare walk and beside git's plumbing, on the same files.
//!
//! `cargo run --release -p raddle-workspace --example measure -- [FILES] [BYTES_OF_ALL] [FOLDER]`
//!
//! The files are generated in a temporary folder, which is removed. git is run with an index, a
//! repository and a configuration of its own, as a snapshot by git would have to be. Both sides are
//! measured alternately, so that other load affects both alike. A missed limit is an error.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use raddle_workspace::{Snapshot, SnapshotLimits, Workspace, WorkspacePath};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, open, openat, statat, sync};

const FILES_PER_FOLDER: usize = 100;
const CHANGES: usize = 10;
const RUNS: usize = 15;

/// Number of first snapshots, and of first runs of git.
const FIRST_RUNS: usize = 3;

/// Word that makes this program update one path of a store, and do nothing else.
const UPDATE: &str = "update";

/// Most bytes that the store grows by for one changed file: its folder, and those above it.
const GROWTH_BYTES_OF_ONE: f64 = 65_536.0;

/// The same for each of a thousand.
const GROWTH_BYTES_OF_EACH: f64 = 8_192.0;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next();
    if first.as_deref() == Some(UPDATE) {
        let mut path = || arguments.next().map(PathBuf::from).ok_or("a path");
        return update_one(&path()?, &path()?);
    }
    let files: usize = first.map_or(Ok(50_000), |it| it.parse())?;
    let bytes: usize = arguments.next().map_or(Ok(1 << 30), |it| it.parse())?;
    let base = arguments.next().map_or_else(std::env::temp_dir, Into::into);
    let at = tempfile::tempdir_in(base)?;
    let at = at.path().canonicalize()?;
    let folder = at.join("project");
    generate(&folder, files, bytes / files.max(1))?;
    eprintln!("{files} files, {} MB", bytes >> 20);
    let mut limits = Limits::default();

    let mut own_first = Vec::new();
    let mut add_first = Vec::new();
    for _ in 0..FIRST_RUNS {
        for made in ["git", "store"] {
            let _ = fs::remove_dir_all(at.join(made));
        }
        // Pages of the one side are not written while the other is measured.
        sync();
        add_first.push(timed(|| git_tree(&at.join("git"), &folder))?.1);
        sync();
        let (workspace, own) = timed(|| {
            let mut workspace = open_workspace(&folder, &at.join("store"))?;
            workspace.snapshot(&BTreeSet::new())?;
            Ok(workspace)
        })?;
        own_first.push(own);
        drop(workspace);
    }
    let git = at.join("git");
    let mut workspace = open_workspace(&folder, &at.join("store"))?;
    let named = BTreeSet::new();
    let first = workspace.snapshot(&named)?;
    assert!(first.gaps().is_empty(), "{:?}", first.gaps());

    let mut walks = Vec::new();
    let mut unchanged = Vec::new();
    let mut add_unchanged = Vec::new();
    let stored = workspace.stored_bytes();
    // The first round brings the folders into the cache of the system, and counts for nothing.
    for round in 0..=RUNS {
        let (count, walk) = timed(|| bare_walk(&folder))?;
        let (again, own) = timed(|| Ok(workspace.snapshot(&named)?))?;
        assert_eq!(again.id(), first.id());
        let (_, add) = timed(|| git_tree(&git, &folder))?;
        if round > 0 {
            assert!(count >= files as u64);
            assert_eq!(workspace.files_read(), 0);
            walks.push(walk);
            unchanged.push(own);
            add_unchanged.push(add);
        }
    }
    let growth_of_none = workspace.stored_bytes() - stored;
    let mut changed = Vec::new();
    let mut add_changed = Vec::new();
    for round in 0..RUNS {
        change(&folder, files, CHANGES, round)?;
        changed.push(timed(|| Ok(workspace.snapshot(&named)?))?.1);
        add_changed.push(timed(|| git_tree(&git, &folder))?.1);
    }

    let walk = median(walks);
    let row = |name: &str, own: Duration, git: Duration| {
        let per_walk = own.as_secs_f64() / walk.as_secs_f64();
        let per_git = own.as_secs_f64() / git.as_secs_f64();
        eprintln!(
            "{name:<22} {own:>10.1?} git {git:>10.1?}  {per_walk:>6.2} walks  {per_git:>5.2} of git"
        );
        (per_walk, per_git)
    };
    eprintln!("bare walk              {walk:>10.1?}");
    let (_, per_git) = row("first snapshot", median(own_first), median(add_first));
    let (per_walk, _) = row("unchanged", median(unchanged), median(add_unchanged));
    row("10 files changed", median(changed), median(add_changed));
    limits.at_most("snapshot without a change, in bare walks", per_walk, 1.5);
    limits.at_most("first snapshot, in runs of git add -A", per_git, 3.0);
    limits.at_most(
        "growth of the store without a change, bytes",
        growth_of_none as f64,
        0.0,
    );
    for (count, limit) in [
        (1, GROWTH_BYTES_OF_ONE),
        (10, GROWTH_BYTES_OF_ONE),
        (100, GROWTH_BYTES_OF_EACH),
        (1_000, GROWTH_BYTES_OF_EACH),
    ] {
        let stored = workspace.stored_bytes();
        change(&folder, files, count, RUNS + count)?;
        workspace.snapshot(&named)?;
        let growth = (workspace.stored_bytes() - stored) as f64 / count as f64;
        let name = format!("growth of the store for each of {count} changed files, bytes");
        limits.at_most(&name, growth, limit);
    }
    drop(workspace);
    match folders_listed(&folder, &at.join("store"))? {
        Some(count) => limits.at_most(
            "folders of the workspace listed to update one path",
            count as f64,
            0.0,
        ),
        None => eprintln!("strace is not installed, so listed folders were not counted"),
    }
    limits.result()
}

/// Limits that were compared, and those that were missed.
#[derive(Default)]
struct Limits {
    missed: Vec<String>,
}

impl Limits {
    fn at_most(&mut self, name: &str, value: f64, limit: f64) {
        let verdict = if value <= limit { "ok" } else { "MISSED" };
        eprintln!("figure: {name}: {value:.2}  at most {limit}  {verdict}");
        if value > limit {
            self.missed.push(name.to_owned());
        }
    }

    fn result(self) -> Result<()> {
        match self.missed.is_empty() {
            true => Ok(()),
            false => Err(format!("missed: {}", self.missed.join(", ")).into()),
        }
    }
}

fn open_workspace(folder: &Path, store: &Path) -> Result<Workspace> {
    Ok(Workspace::open(folder, store, SnapshotLimits::default())?)
}

/// Changes some files, each in another folder while there are enough.
fn change(folder: &Path, files: usize, count: usize, round: usize) -> Result<()> {
    for number in 0..count {
        let path = path_of(folder, number * files / count);
        fs::write(path, format!("{round} {number}\n"))?;
    }
    Ok(())
}

/// Updates the newest snapshot at one path, as for a tool that names its file.
fn update_one(folder: &Path, store: &Path) -> Result<()> {
    let mut workspace = open_workspace(folder, store)?;
    let newest = workspace.snapshots()?.pop().ok_or("a snapshot")?;
    let newest: Snapshot = workspace.load(newest.id)?;
    let path = WorkspacePath::new("folder-1/file-101").ok_or("a path")?;
    let (_, time) = timed(|| Ok(workspace.update(&newest, &BTreeSet::from([path]))?))?;
    eprintln!("update of one path     {time:>10.1?}");
    Ok(())
}

/// Counts the folders of the workspace that an update of one path lists; `None` without strace.
fn folders_listed(folder: &Path, store: &Path) -> Result<Option<usize>> {
    let log = store.with_extension("strace");
    let traced = Command::new("strace")
        .args(["-f", "-y", "-qqq", "-e", "trace=getdents64", "-o"])
        .arg(&log)
        .arg(std::env::current_exe()?)
        .arg(UPDATE)
        .args([folder, store])
        .status();
    match traced {
        Ok(status) if status.success() => {}
        Ok(status) => return Err(format!("the update ended with {status}").into()),
        Err(_) => return Ok(None),
    }
    let log = fs::read_to_string(log)?;
    let below = format!("<{}", folder.display());
    Ok(Some(log.lines().filter(|it| it.contains(&below)).count()))
}

fn path_of(folder: &Path, number: usize) -> PathBuf {
    let inner = number / FILES_PER_FOLDER;
    folder.join(format!("folder-{inner}/file-{number}"))
}

/// Writes files of words, half of which are random.
fn generate(folder: &Path, files: usize, bytes: usize) -> Result<()> {
    let mut rng = support::Rng::new(1);
    for number in 0..files {
        let path = path_of(folder, number);
        if number % FILES_PER_FOLDER == 0 {
            fs::create_dir_all(path.parent().ok_or("a folder")?)?;
        }
        let mut text = String::with_capacity(bytes + 64);
        while text.len() < bytes {
            text.push_str(&format!(
                "let value_{:x} = compute(\"{:016x}\");\n",
                number,
                rng.bits()
            ));
        }
        text.truncate(bytes);
        fs::write(path, text)?;
    }
    Ok(())
}

/// Looks at each entry once, and does nothing else.
fn bare_walk(folder: &Path) -> Result<u64> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    walk_folder(open(folder, flags, Mode::empty())?)
}

fn walk_folder(folder: OwnedFd) -> Result<u64> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut count = 0;
    let mut entries = Dir::read_from(&folder)?;
    while let Some(entry) = entries.read() {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_bytes() == b"." || name.to_bytes() == b".." {
            continue;
        }
        let stat = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        count += 1;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            count += walk_folder(openat(&folder, name, flags, Mode::empty())?)?;
        }
    }
    Ok(count)
}

/// Writes a tree of all files with git, in a repository outside the folder.
fn git_tree(git: &Path, folder: &Path) -> Result<()> {
    let run = |arguments: &[&str]| -> Result<()> {
        let status = Command::new("git")
            .args([
                "-c",
                "core.hooksPath=/dev/null",
                "-c",
                "core.fsmonitor=false",
            ])
            .args(["-c", "gc.auto=0", "-c", "core.autocrlf=false"])
            .args(arguments)
            .current_dir(folder)
            .env("GIT_DIR", git)
            .env("GIT_WORK_TREE", folder)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        status
            .success()
            .then_some(())
            .ok_or_else(|| "git failed".into())
    };
    if !git.exists() {
        run(&["init", "--quiet"])?;
    }
    run(&["add", "-A"])?;
    run(&["write-tree"])
}

fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<(T, Duration)> {
    let start = Instant::now();
    let result = work()?;
    Ok((result, start.elapsed()))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
