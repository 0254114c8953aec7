//! The restore in a process of its own, whose system calls strace lists, and makes fail or fatal.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::AtFlags;

use super::scene::{Scene, SnapshotNames};

/// Name of a file that does not exist. The process looks for it where the calls of interest begin.
const MARKER: &str = "/raddle-calls-begin";

/// Number of calls of each kind that the process makes before the marker.
///
/// strace counts the calls of each thread, and cannot be told which thread is meant. So the thread
/// of the restore makes more calls than any other thread ever does, and only its later ones have
/// the numbers that are made to fail.
const EARLIER_CALLS: usize = 64;

/// Calls that change the disk. Names that the machine or strace does not know are ignored.
const CHANGING: &[&str] = &[
    "openat",
    "open",
    "creat",
    "write",
    "writev",
    "pwrite64",
    "pwritev",
    "pwritev2",
    "fsync",
    "fdatasync",
    "sync_file_range",
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "unlink",
    "unlinkat",
    "rmdir",
    "symlink",
    "symlinkat",
    "mkdir",
    "mkdirat",
    "mknod",
    "mknodat",
    "chmod",
    "fchmod",
    "fchmodat",
    "fchmodat2",
    "chown",
    "fchown",
    "fchownat",
    "lchown",
    "truncate",
    "ftruncate",
    "fallocate",
    "utimensat",
    "copy_file_range",
    "sendfile",
    "splice",
    "ioctl",
    "setxattr",
    "fsetxattr",
    "lsetxattr",
    "removexattr",
    "fremovexattr",
];

/// Calls that only look.
const LOOKING: &[&str] = &[
    "openat2",
    "read",
    "pread64",
    "readv",
    "preadv",
    "getdents64",
    "newfstatat",
    "fstat",
    "stat",
    "lstat",
    "statx",
    "readlink",
    "readlinkat",
    "lseek",
    "flock",
    "access",
    "faccessat",
    "faccessat2",
];

/// Calls that a full disk refuses. Opening does too, but strace cannot tell creating from reading.
const NEED_SPACE: &[&str] = &[
    "write",
    "writev",
    "pwrite64",
    "fsync",
    "fdatasync",
    "symlink",
    "symlinkat",
    "mkdir",
    "mkdirat",
    "link",
    "linkat",
    "fallocate",
    "copy_file_range",
];

/// A system call of the process, by its number among those of the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedCall {
    pub name: String,
    pub number: u64,
    /// Number of calls of each name until this one, without it.
    before: BTreeMap<String, u64>,
    pub line: String,
    pub is_changing: bool,
}

impl TracedCall {
    /// Whether a full disk makes it fail.
    pub fn needs_space(&self) -> bool {
        NEED_SPACE.contains(&self.name.as_str())
    }
}

/// Fault of the calls of a process.
#[derive(Clone, Debug)]
pub struct Inject(Vec<String>);

impl Inject {
    pub fn nothing() -> Self {
        Self(Vec::new())
    }

    /// Kills the process before the call.
    pub fn kill(call: &TracedCall) -> Self {
        Self(vec![format!(
            "{}:signal=KILL:when={}",
            call.name, call.number
        )])
    }

    pub fn fail(call: &TracedCall, error: &str) -> Self {
        Self(vec![format!(
            "{}:error={error}:when={}",
            call.name, call.number
        )])
    }

    /// Makes this call and all later ones fail that need space.
    pub fn full_from(call: &TracedCall) -> Self {
        Self::from(call, "ENOSPC", NEED_SPACE)
    }

    /// Makes this call and all later ones fail.
    pub fn broken_from(call: &TracedCall) -> Self {
        Self::from(call, "EIO", CHANGING)
    }

    fn from(call: &TracedCall, error: &str, names: &[&str]) -> Self {
        let of_name = |name: &&str| {
            let next = call.before.get(*name).unwrap_or(&0) + 1;
            format!("?{name}:error={error}:when={next}+")
        };
        Self(names.iter().map(of_name).collect())
    }

    /// Makes the calls fail that file systems without an exchange of files lack.
    pub fn without_exchange(mut self) -> Self {
        self.0.push("renameat2:error=EINVAL".to_owned());
        self
    }
}

/// End of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChildExit {
    Killed,
    /// The restore was complete.
    Restored,
    /// It returned an error that says that every file is as before.
    NotRestored,
    /// It returned another error.
    Failed,
    /// The plan had conflicts because files could not be read, and nothing was restored.
    Refused,
    /// It panicked, or ended in another way.
    Other(String),
}

/// Exit codes of the process.
pub mod code {
    pub const RESTORED: i32 = 20;
    pub const NOT_RESTORED: i32 = 21;
    pub const FAILED: i32 = 22;
    pub const REFUSED: i32 = 23;
}

/// Work of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildWork {
    Restore,
    Recover,
}

impl ChildWork {
    pub fn name(self) -> &'static str {
        match self {
            Self::Restore => "restore",
            Self::Recover => "recover",
        }
    }
}

/// Result of a traced process.
pub struct TracedRun {
    pub exit: ChildExit,
    pub log: String,
    pub stderr: String,
}

impl TracedRun {
    /// Reports whether a fault was injected.
    pub fn was_hit(&self) -> bool {
        self.exit == ChildExit::Killed || self.log.contains("(INJECTED)")
    }
}

/// Whether strace is there and may trace.
pub fn is_available() -> bool {
    let status = Command::new("strace")
        .args(["-f", "-qqq", "-o", "/dev/null", "true"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|it| it.success())
}

/// Runs the work on a scene under strace. All calls are listed only where nothing is injected.
pub fn run(scene: &Scene, names: &SnapshotNames, work: ChildWork, inject: &Inject) -> TracedRun {
    let log = scene.at.at.path().join("strace.log");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qqq", "-s", "200", "-o"]).arg(&log);
    // Faster, but strace sends no signal then.
    if !inject.0.iter().any(|it| it.contains("signal=")) {
        strace.arg("--seccomp-bpf");
    }
    let is_listing = !inject.0.iter().any(|it| it.contains("when="));
    let traced: Vec<String> = match is_listing {
        true => CHANGING
            .iter()
            .chain(LOOKING)
            .map(|it| format!("?{it}"))
            .collect(),
        false => {
            let name = |it: &String| it.split(':').next().unwrap_or_default().to_owned();
            inject.0.iter().map(name).collect()
        }
    };
    strace.arg("-e").arg(format!("trace={}", traced.join(",")));
    for it in &inject.0 {
        strace.arg("-e").arg(format!("inject={it}"));
    }
    strace
        .arg(env::current_exe().expect("the test program"))
        .args(["--exact", "crashes::child", "--ignored", "--nocapture"])
        .args(["--test-threads", "1"])
        .env("RADDLE_CRASH_WORK", work.name())
        .env("RADDLE_CRASH_FOLDER", &scene.at.folder)
        .env("RADDLE_CRASH_STORE", scene.at.store())
        .env("RADDLE_CRASH_CHECKPOINT", &names.checkpoint)
        .env("RADDLE_CRASH_AGENT", &names.agent)
        .env("RUST_BACKTRACE", "0")
        // Cargo's paths would have the loader look into many folders.
        .env_remove("LD_LIBRARY_PATH")
        .stdin(Stdio::null());
    let output = strace.output().expect("strace");
    let exit = match (output.status.signal(), output.status.code()) {
        (Some(9), _) => ChildExit::Killed,
        (_, Some(code::RESTORED)) => ChildExit::Restored,
        (_, Some(code::NOT_RESTORED)) => ChildExit::NotRestored,
        (_, Some(code::FAILED)) => ChildExit::Failed,
        (_, Some(code::REFUSED)) => ChildExit::Refused,
        _ => ChildExit::Other(output.status.to_string()),
    };
    TracedRun {
        exit,
        log: fs::read_to_string(&log).unwrap_or_default(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Makes the calls before the marker, and then looks for it.
pub fn begin() {
    let null = Path::new("/dev/null");
    for _ in 0..EARLIER_CALLS {
        let mut file = File::options()
            .read(true)
            .write(true)
            .open(null)
            .expect("a file");
        let _ = file.write(b"x").expect("a write");
        let _ = file.read(&mut [0]).expect("a read");
        let _ = file.read_at(&mut [0], 0).expect("a read");
        file.seek(SeekFrom::Start(0)).expect("a position");
        rustix::fs::fstat(&file).expect("attributes");
        rustix::fs::statat(rustix::fs::CWD, null, AtFlags::empty()).expect("attributes");
        fs::metadata(null).expect("metadata");
        let _ = fs::read_link(null);
    }
    let _ = fs::metadata(MARKER);
}

/// Returns the calls of the thread that looked for the marker, from there on.
pub fn calls(log: &str) -> Vec<TracedCall> {
    let marked = log
        .lines()
        .find(|it| it.contains(MARKER))
        .expect("the marker");
    let thread = marked.split_whitespace().next().expect("the thread");
    let mut calls = Vec::new();
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut others: BTreeMap<&str, u64> = BTreeMap::new();
    let mut is_begun = false;
    for line in log.lines() {
        let Some((id, call)) = line.split_once(' ') else {
            continue;
        };
        let call = call.trim_start();
        let Some((name, arguments)) = call.split_once('(') else {
            continue;
        };
        let is_name = name
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || it == b'_');
        if !is_name {
            continue;
        }
        if id != thread {
            *others.entry(name).or_default() += 1;
            continue;
        }
        let before = counts.clone();
        let number = counts.entry(name.to_owned()).or_default();
        *number += 1;
        if is_begun {
            calls.push(TracedCall {
                name: name.to_owned(),
                number: *number,
                before,
                line: call.to_owned(),
                is_changing: is_changing(name, arguments),
            });
        }
        is_begun |= line.contains(MARKER);
    }
    for call in &calls {
        let other = others.get(&*call.name).copied().unwrap_or(0);
        assert!(
            other < call.number,
            "another thread calls {} as often",
            call.name
        );
    }
    calls
}

/// Reports whether a call that succeeds changes the disk.
fn is_changing(name: &str, arguments: &str) -> bool {
    let opens_to_write = ["O_CREAT", "O_TRUNC", "O_WRONLY", "O_RDWR"];
    let is_output = arguments.starts_with("1, ") || arguments.starts_with("2, ");
    match name {
        "openat" | "open" => opens_to_write.iter().any(|it| arguments.contains(it)),
        "write" | "writev" => !is_output,
        _ => CHANGING.contains(&name),
    }
}
