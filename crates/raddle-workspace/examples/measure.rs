//! The cost of snapshots, beside a bare walk and beside git's plumbing, on the same files.
//!
//! `cargo run --release -p raddle-workspace --example measure -- [FILES] [BYTES_OF_ALL] [FOLDER]`
//!
//! The files are generated in a temporary folder, which is removed. git is run with an index, a
//! repository and a configuration of its own, as a snapshot by git would have to be.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use raddle_workspace::{SnapshotLimits, Workspace};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, open, openat, statat};

const FILES_PER_FOLDER: usize = 100;
const CHANGES: usize = 10;
const RUNS: usize = 15;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let files: usize = arguments.next().map_or(Ok(50_000), |it| it.parse())?;
    let bytes: usize = arguments.next().map_or(Ok(1 << 30), |it| it.parse())?;
    let base = arguments.next().map_or_else(std::env::temp_dir, Into::into);
    let at = tempfile::tempdir_in(base)?;
    let folder = at.path().canonicalize()?.join("project");
    generate(&folder, files, bytes / files.max(1))?;
    eprintln!("{files} files, {} MB", bytes >> 20);

    let git = at.path().join("git");
    let (_, add_first) = timed(|| git_tree(&git, &folder))?;
    let mut workspace =
        Workspace::open(&folder, &at.path().join("store"), SnapshotLimits::default())?;
    let named = BTreeSet::new();
    let (first, own_first) = timed(|| Ok(workspace.snapshot(&named)?))?;
    assert!(first.gaps().is_empty(), "{:?}", first.gaps());

    let mut walks = Vec::new();
    let mut unchanged = Vec::new();
    let mut add_unchanged = Vec::new();
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
    let stored = workspace.stored_bytes();
    let mut changed = Vec::new();
    let mut add_changed = Vec::new();
    for round in 0..RUNS {
        for number in 0..CHANGES {
            let path = path_of(&folder, number * files / CHANGES);
            fs::write(path, format!("{round} {number}\n"))?;
        }
        changed.push(timed(|| Ok(workspace.snapshot(&named)?))?.1);
        add_changed.push(timed(|| git_tree(&git, &folder))?.1);
    }
    let growth = (workspace.stored_bytes() - stored) / RUNS as u64;
    let one: BTreeSet<_> = raddle_workspace::WorkspacePath::new("folder-1/file-101")
        .into_iter()
        .collect();
    let latest = workspace.snapshot(&named)?;
    let (_, update) = timed(|| Ok(workspace.update(&latest, &one)?))?;

    let walk = median(walks);
    let row = |name: &str, own: Duration, git: Duration| {
        let per_walk = own.as_secs_f64() / walk.as_secs_f64();
        let per_git = own.as_secs_f64() / git.as_secs_f64();
        eprintln!(
            "{name:<22} {own:>10.1?} git {git:>10.1?}  {per_walk:>6.2} walks  {per_git:>5.2} of git"
        );
    };
    eprintln!("bare walk              {walk:>10.1?}");
    row("first snapshot", own_first, add_first);
    row("unchanged", median(unchanged), median(add_unchanged));
    row("10 files changed", median(changed), median(add_changed));
    eprintln!("update of one path     {update:>10.1?}");
    eprintln!(
        "stored {} MB, {} KB more after 10 changes",
        stored >> 20,
        growth >> 10
    );
    Ok(())
}

fn path_of(folder: &Path, number: usize) -> std::path::PathBuf {
    let inner = number / FILES_PER_FOLDER;
    folder.join(format!("folder-{inner}/file-{number}"))
}

/// Writes files of words, half of which are random.
fn generate(folder: &Path, files: usize, bytes: usize) -> Result<(), Box<dyn Error>> {
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
fn bare_walk(folder: &Path) -> Result<u64, Box<dyn Error>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    walk_folder(open(folder, flags, Mode::empty())?)
}

fn walk_folder(folder: OwnedFd) -> Result<u64, Box<dyn Error>> {
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
fn git_tree(git: &Path, folder: &Path) -> Result<(), Box<dyn Error>> {
    let run = |arguments: &[&str]| -> Result<(), Box<dyn Error>> {
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

fn timed<T>(
    work: impl FnOnce() -> Result<T, Box<dyn Error>>,
) -> Result<(T, Duration), Box<dyn Error>> {
    let start = Instant::now();
    let result = work()?;
    Ok((result, start.elapsed()))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
