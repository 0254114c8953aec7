//! `raddle sandbox` and `raddle doctor`: commands inside the fence, and what is said of it.

mod swapped_folders;

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tempfile::TempDir;

use crate::support::TEST_TIMEOUT;
use crate::support::server::command;

/// A folder to work in, and a home beside it.
struct SandboxHome {
    folder: TempDir,
    /// Where programs are looked for.
    path: String,
}

impl SandboxHome {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        fs::create_dir_all(folder.path().join("work/.git")).expect("it is made");
        fs::write(folder.path().join("work/.git/config"), "").expect("it is written");
        fs::write(folder.path().join("outside"), "").expect("it is written");
        fs::create_dir(folder.path().join("home")).expect("it is made");
        let path = std::env::var("PATH").expect("a PATH");
        Self { folder, path }
    }

    /// One where the configuration says that this script is `bwrap`.
    fn with_bubblewrap(script: &str) -> Self {
        let place = Self::new();
        let bubblewrap = place.folder.path().join("programs/bwrap");
        write_program(&bubblewrap, script);
        place.configure(&bubblewrap);
        place
    }

    /// Writes down where bubblewrap is.
    fn configure(&self, bubblewrap: &Path) {
        let text = format!("sandbox_bwrap_path = '{}'\n", bubblewrap.display());
        let file = self.folder.path().join("home/config.toml");
        fs::write(file, text).expect("it is written");
    }

    fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    fn raddle(&self, arguments: &[&str]) -> Command {
        let mut command = command(&self.folder.path().join("home"));
        command
            .args(arguments)
            .current_dir(self.work())
            .env("PATH", &self.path)
            .env("TMPDIR", self.folder.path())
            .env("OPENAI_API_KEY", "secret")
            .stdin(Stdio::null());
        command
    }

    /// A script that knows a file which is not its own.
    fn with_outside(&self, script: &str) -> String {
        let outside = self.folder.path().join("outside");
        format!("OUTSIDE='{}'; {script}", outside.display())
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.raddle(arguments).output().expect("the binary starts")
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.work()).expect("it is there");
        let name = |it: std::io::Result<fs::DirEntry>| it.expect("an entry").file_name();
        let mut names: Vec<String> = entries
            .map(|it| name(it).into_string().expect("text"))
            .collect();
        names.sort();
        names
    }
}

/// Makes a program of a script, and the folder that it is in.
fn write_program(file: &Path, script: &str) {
    fs::create_dir_all(file.parent().expect("a folder")).expect("it is made");
    fs::write(file, format!("#!/bin/sh\n{script}\n")).expect("it is written");
    fs::set_permissions(file, Permissions::from_mode(0o755)).expect("it is marked");
}

fn out(of: &Output) -> String {
    String::from_utf8_lossy(&of.stdout).into_owned()
}

fn err(of: &Output) -> String {
    String::from_utf8_lossy(&of.stderr).into_owned()
}

#[test]
fn a_command_does_what_it_may_and_ends_as_it_ends() {
    // Options, what a shell is told, how it ends, and what it says.
    for (options, script, code, said) in [
        (&[][..], "echo x > file && cat file", 0, "x"),
        (&[], "exit 3", 3, ""),
        (&[], "kill -9 $$", 137, ""),
        (&[], "exec no-such-program", 127, ""),
        (&[], "echo x > \"$OUTSIDE\" || echo no", 0, "no"),
        (&[], "echo x > .git/config || echo no", 0, "no"),
        (&[], "mkdir .codex/x || echo no", 0, "no"),
        (&[], "cat \"$OUTSIDE\" && echo read", 0, "read"),
        (&["--read-only"], "echo x > file || echo no", 0, "no"),
        (
            &["--unprotected"],
            "echo x > .git/config && echo yes",
            0,
            "yes",
        ),
        (
            &["--write", ".."],
            "echo x > \"$OUTSIDE\" && echo yes",
            0,
            "yes",
        ),
        (
            &["--hide", "../outside"],
            "cat \"$OUTSIDE\" || echo no",
            0,
            "no",
        ),
        (&["--read", "/usr"], "cat \"$OUTSIDE\" || echo no", 0, "no"),
        (
            &["--private-tmp"],
            "echo x > /tmp/x && ls /tmp/x",
            0,
            "/tmp/x",
        ),
        (&[], "echo $$", 0, "2"),
        // Nothing of the environment that opens anything, nor of our own folders.
        (&[], "echo \"$OPENAI_API_KEY\"; [ -n \"$PATH\" ]", 0, ""),
        (&[], "ls -A ../home | grep . || echo no", 0, "no"),
        (
            &["--write", "../home"],
            "ls ../home",
            0,
            "fence\nholds\nwritten-folders",
        ),
    ] {
        let place = SandboxHome::new();
        let script = &place.with_outside(script);
        let words = [&["sandbox"], options, &["--", "/bin/sh", "-c", script]].concat();
        let ran = place.run(&words);
        let at = format!("{options:?} {script}: {}", err(&ran));
        assert_eq!(ran.status.code(), Some(code), "{at}");
        assert_eq!(out(&ran).trim(), said, "{at}");
    }
}

#[test]
fn nothing_is_left_in_the_workspace() {
    let place = SandboxHome::new();
    let inside = place.run(&["sandbox", "--", "/bin/ls", "-A"]);
    let seen = [".agents", ".codex", ".git", ".raddle"];
    assert_eq!(
        out(&inside).lines().collect::<Vec<_>>(),
        seen,
        "{}",
        err(&inside)
    );
    assert_eq!(place.names(), [".git"]);
}

/// What one command leaves behind stops no other, and the user hears of it and how to get rid of it.
#[test]
fn what_cannot_be_protected_is_named_and_stops_nothing() {
    let place = SandboxHome::new();
    let spoil = "mkdir -p closed/a linked && ln -s ../evil linked/.git && chmod 000 closed";
    assert!(
        place
            .run(&["sandbox", "--", "sh", "-c", spoil])
            .status
            .success()
    );
    let next = place.run(&["sandbox", "--", "sh", "-c", "echo x > file && cat file"]);
    assert_eq!(
        (out(&next).trim(), next.status.code()),
        ("x", Some(0)),
        "{}",
        err(&next)
    );
    let told = out(&place.run(&["doctor"]));
    for expected in [
        "workspace: ",
        "closed cannot be entered",
        "linked/.git is a symbolic link",
    ] {
        assert!(told.contains(expected), "{expected}: {told}");
        assert!(
            expected == "workspace: " || err(&next).contains(expected),
            "{}",
            err(&next)
        );
    }
    let undo = "chmod 755 closed; rm linked/.git; rmdir closed/a";
    assert!(
        !place
            .run(&["sandbox", "--", "sh", "-c", undo])
            .status
            .success()
    );
    let way_out = place.run(&["sandbox", "--unprotected", "--", "sh", "-c", undo]);
    assert!(way_out.status.success(), "{}", err(&way_out));
    let told = out(&place.run(&["doctor"]));
    assert!(!told.contains("workspace: "), "{told}");
}

#[test]
fn the_dotfiles_of_a_home_stay_as_they_are() {
    let place = SandboxHome::new();
    fs::create_dir(place.work().join("project")).expect("it is made");
    for (script, works) in [
        ("echo x > .profile", false),
        ("mkdir .ssh", false),
        ("mv project .config", false),
        ("echo x > project/file", true),
    ] {
        let mut raddle = place.raddle(&["sandbox", "--", "sh", "-c", script]);
        let went = raddle
            .env("HOME", place.work())
            .output()
            .expect("it starts");
        assert_eq!(went.status.success(), works, "{script}: {}", err(&went));
        assert!(err(&went).contains("is your home"), "{}", err(&went));
    }
    assert_eq!(place.names(), [".git", "project"]);
}

#[test]
fn the_doctor_tries_once_and_remembers() {
    let place = SandboxHome::new();
    for (words, expected) in [
        (&["doctor"][..], "just now"),
        (&["doctor"], "earlier"),
        (&["doctor", "--again"], "just now"),
    ] {
        let told = place.run(words);
        let first = out(&told).lines().next().unwrap_or_default().to_owned();
        assert!(told.status.success(), "{}", err(&told));
        assert!(
            first.starts_with("sandbox: namespaces+landlock (tier A"),
            "{first}"
        );
        assert!(first.contains(expected), "{first}");
        assert!(!out(&told).contains("does not hold"), "{}", out(&told));
    }
}

/// A machine where bubblewrap is missing, does not work, or does nothing has no first tier, and is told why.
#[test]
fn a_bubblewrap_that_does_not_fence_is_found_out() {
    let refuses = "echo 'bwrap: No permissions to create new namespace' >&2; exit 1";
    // Runs the helper, and what it is told to run, without any namespace.
    let does_nothing = format!(
        "while [ \"$1\" != -- ]; do shift; done; shift\n\
         for word; do shift; [ \"$word\" = /run/raddle-fence ] && word='{}'; set -- \"$@\" \"$word\"; done\n\
         exec \"$@\"",
        env!("CARGO_BIN_EXE_raddle")
    );
    for (script, why) in [
        (refuses, "No permissions to create new namespace"),
        (&does_nothing, "can be written although no rule says so"),
        ("exit 0", "without a report"),
    ] {
        let place = SandboxHome::with_bubblewrap(script);
        let told = out(&place.run(&["doctor"]));
        assert!(told.starts_with("sandbox: landlock (tier B"), "{told}");
        assert!(told.contains(why), "{told}");
        assert!(told.contains("to mend:"), "{told}");
    }
}

/// A `bwrap` that `PATH` names is not run, whose ever it is: here one of the workspace, as an activated environment
/// puts it first, and one of a folder beside it. Each would go unnoticed, because it fences.
#[test]
fn a_bubblewrap_on_path_is_never_run() {
    for folder in ["work/bin", "programs"] {
        let mut place = SandboxHome::new();
        let ran = place.folder.path().join("outside");
        let script = format!(
            "echo \"$@\" >> '{}'; exec /usr/bin/bwrap \"$@\"",
            ran.display()
        );
        let programs = place.folder.path().join(folder);
        write_program(&programs.join("bwrap"), &script);
        place.path = format!("{}:{}", programs.display(), place.path);
        let told = out(&place.run(&["doctor", "--again"]));
        assert!(told.starts_with("sandbox: namespaces"), "{told}");
        let inside = place.run(&["sandbox", "--", "/bin/echo", "hello"]);
        assert_eq!(out(&inside), "hello\n", "{}", err(&inside));
        let ran = fs::read_to_string(ran).expect("it is there");
        assert_eq!(ran, "", "{folder}");
    }
}

/// What was found is kept; that there was no room to find out is not.
#[test]
fn only_a_verdict_is_remembered() {
    for (script, next) in [
        (
            "echo 'bwrap: No permissions to create new namespace' >&2; exit 1",
            "earlier",
        ),
        (
            "echo 'bwrap: Creating new namespace failed: Resource temporarily unavailable' >&2; exit 1",
            "just now",
        ),
        ("exit 0", "just now"),
    ] {
        let place = SandboxHome::with_bubblewrap(script);
        for expected in ["just now", next] {
            let told = out(&place.run(&["doctor"]));
            let first = told.lines().next().unwrap_or_default();
            assert!(first.contains(expected), "{script}: {first}");
        }
    }
}

#[test]
fn the_second_tier_says_what_it_cannot_and_does_the_rest() {
    let place = SandboxHome::new();
    place.configure(Path::new("/nowhere/bwrap"));
    let told = out(&place.run(&["doctor"]));
    assert!(
        told.contains("`/nowhere/bwrap`, which the configuration names, cannot be used"),
        "{told}"
    );
    assert!(told.contains("sandbox_bwrap_path /absolute/path"), "{told}");
    assert!(told.contains("sandbox_accept_tier = \"B\""), "{told}");
    let refused = place.run(&["sandbox", "--", "/bin/true"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        err(&refused).contains("install bubblewrap"),
        "{}",
        err(&refused)
    );
    let script = &place.with_outside("echo x > file; echo x > \"$OUTSIDE\" || echo no");
    let ran = place.run(&["sandbox", "--unprotected", "--", "/bin/sh", "-c", script]);
    assert_eq!(out(&ran), "no\n", "{}", err(&ran));
    assert_eq!(place.names(), [".git", "file"]);
    // Landlock does not see these, so the filter does where nothing may be written.
    let script = "/bin/chmod 666 \"$OUTSIDE\" || /bin/touch -d @0 \"$OUTSIDE\" || echo no";
    let script = &place.with_outside(script);
    let ran = place.run(&["sandbox", "--read-only", "--", "/bin/sh", "-c", script]);
    assert_eq!(out(&ran), "no\n", "{}", err(&ran));
}

/// The fence inside the fence: there are no namespaces, and the second tier stands.
#[test]
fn a_fence_stands_inside_another() {
    let place = SandboxHome::new();
    let work = place.work();
    let raddle = env!("CARGO_BIN_EXE_raddle");
    let told = place
        .raddle(&["sandbox", "--", "/usr/bin/env"])
        .arg(format!("TMPDIR={}", work.display()))
        .arg(format!("RADDLE_HOME={}", work.join("home").display()))
        .args([raddle, "doctor"])
        .output()
        .expect("the binary starts");
    assert!(
        out(&told).starts_with("sandbox: landlock (tier B"),
        "{}{}",
        out(&told),
        err(&told)
    );
}

#[test]
fn whoever_kills_the_fence_kills_what_is_in_it() {
    let place = SandboxHome::new();
    let pipe = place.work().join("pipe");
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).expect("a pipe");
    let script = "setsid cat pipe & wait";
    let mut raddle = place
        .raddle(&["sandbox", "--", "/bin/sh", "-c", script])
        .spawn()
        .expect("the binary starts");
    // Opens when the other side does.
    let ours = OpenOptions::new()
        .write(true)
        .open(&pipe)
        .expect("it opens");
    raddle.kill().expect("it is killed");
    raddle.wait().expect("it ends");
    let patience = Timespec {
        tv_sec: TEST_TIMEOUT.as_secs() as i64,
        tv_nsec: 0,
    };
    let gone = poll(&mut [PollFd::new(&ours, PollFlags::ERR)], Some(&patience));
    assert_eq!(gone, Ok(1), "what was started in the fence still reads");
}

/// The first command is still protected when the second one, which stood on the same empty folders, is over.
#[test]
fn two_commands_share_what_keeps_names_taken() {
    let place = SandboxHome::new();
    let pipe = place.work().join("pipe");
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).expect("a pipe");
    let script = "cat pipe; mkdir .codex/x || mkdir .codex && echo made";
    let first = place
        .raddle(&["sandbox", "--", "/bin/sh", "-c", script])
        .spawn()
        .expect("the binary starts");
    let go = OpenOptions::new()
        .write(true)
        .open(&pipe)
        .expect("it opens");
    let second = place.run(&["sandbox", "--", "/bin/true"]);
    assert!(second.status.success(), "{}", err(&second));
    drop(go);
    let first = first.wait_with_output().expect("it ends");
    assert_eq!(out(&first), "", "{}", err(&first));
    assert_eq!(place.names(), [".git", "pipe"]);
}

/// A terminal of its own, in front of which a shell is told something inside the fence.
fn in_front_of_a_terminal(place: &SandboxHome, script: &str) -> (File, Child) {
    let (master, slave) = terminal();
    let plain = place.raddle(&["sandbox", "--", "/bin/sh", "-c", script]);
    let variables = plain.get_envs();
    let child = Command::new("setsid")
        .args(["--ctty", "--wait"])
        .arg(plain.get_program())
        .args(plain.get_args())
        .envs(variables.filter_map(|(name, value)| Some((name, value?))))
        .current_dir(place.work())
        .stdin(slave)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    (master.into(), child)
}

#[test]
fn a_command_keeps_the_terminal_that_it_was_given() {
    let place = SandboxHome::new();
    let script = "test -t 0 && echo hello > /dev/tty";
    let (mut terminal, child) = in_front_of_a_terminal(&place, script);
    let ran = child.wait_with_output().expect("it ends");
    assert!(ran.status.success(), "{}", err(&ran));
    let mut said = [0; 5];
    terminal.read_exact(&mut said).expect("it was said");
    assert_eq!(&said, b"hello");
}

#[test]
fn a_command_decides_itself_what_an_interrupt_means() {
    let place = SandboxHome::new();
    // A shell that waits for a program could miss what comes just before it starts one.
    let script = "trap 'echo caught; exit 5' INT; echo ready > /dev/tty; while :; do :; done";
    let (mut terminal, child) = in_front_of_a_terminal(&place, script);
    terminal.read_exact(&mut [0; 5]).expect("it is ready");
    terminal.write_all(b"\x03").expect("it is typed");
    let ran = child.wait_with_output().expect("it ends");
    assert_eq!(out(&ran), "caught\n", "{}", err(&ran));
    assert_eq!(ran.status.code(), Some(5));
    assert_eq!(place.names(), [".git"], "nothing is left behind");
}

fn terminal() -> (OwnedFd, File) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&master).expect("it is ours");
    unlockpt(&master).expect("it is open");
    let name = ptsname(&master, Vec::new()).expect("a name");
    let name = name.to_str().expect("text");
    // Through a shell's eyes it is just a file, so it does not become ours.
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
    let slave = rustix::fs::open(Path::new(name), flags, Mode::empty()).expect("it opens");
    (master, slave.into())
}
