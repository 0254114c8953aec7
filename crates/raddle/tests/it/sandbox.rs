//! `raddle sandbox` and `raddle doctor`: commands inside the sandbox, and the report about it.

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
    /// The `PATH` of commands.
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

    /// Configures this script as `bwrap`.
    fn with_bubblewrap(script: &str) -> Self {
        let home = Self::new();
        let bubblewrap = home.folder.path().join("programs/bwrap");
        write_program(&bubblewrap, script);
        home.configure(&bubblewrap);
        home
    }

    /// Writes the path of bubblewrap into the configuration.
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

    /// A script with the path of a file outside the workspace in `OUTSIDE`.
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

/// Writes a script as a program, and creates its folder.
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
fn a_command_is_confined_and_its_exit_status_is_passed_on() {
    // Options, the script, its exit status, and its output.
    for (options, script, code, stdout) in [
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
        // Neither secrets of the environment nor Raddle's own folders.
        (&[], "echo \"$OPENAI_API_KEY\"; [ -n \"$PATH\" ]", 0, ""),
        (&[], "ls -A ../home | grep . || echo no", 0, "no"),
        (
            &["--write", "../home"],
            "ls ../home",
            0,
            "fence\nholds\nwritten-folders",
        ),
    ] {
        let home = SandboxHome::new();
        let script = &home.with_outside(script);
        let words = [&["sandbox"], options, &["--", "/bin/sh", "-c", script]].concat();
        let output = home.run(&words);
        let at = format!("{options:?} {script}: {}", err(&output));
        assert_eq!(output.status.code(), Some(code), "{at}");
        assert_eq!(out(&output).trim(), stdout, "{at}");
    }
}

#[test]
fn nothing_is_left_in_the_workspace() {
    let home = SandboxHome::new();
    let output = home.run(&["sandbox", "--", "/bin/ls", "-A"]);
    let expected = [".agents", ".codex", ".git", ".raddle"];
    assert_eq!(
        out(&output).lines().collect::<Vec<_>>(),
        expected,
        "{}",
        err(&output)
    );
    assert_eq!(home.names(), [".git"]);
}

/// The leftovers of one command block no other, and `doctor` reports them with advice.
#[test]
fn unprotected_paths_are_reported_and_block_nothing() {
    let home = SandboxHome::new();
    let damage = "mkdir -p closed/a linked && ln -s ../evil linked/.git && chmod 000 closed";
    assert!(
        home.run(&["sandbox", "--", "sh", "-c", damage])
            .status
            .success()
    );
    let next = home.run(&["sandbox", "--", "sh", "-c", "echo x > file && cat file"]);
    assert_eq!(
        (out(&next).trim(), next.status.code()),
        ("x", Some(0)),
        "{}",
        err(&next)
    );
    let report = out(&home.run(&["doctor"]));
    for expected in [
        "workspace: ",
        "closed cannot be entered",
        "linked/.git is a symbolic link",
    ] {
        assert!(report.contains(expected), "{expected}: {report}");
        assert!(
            expected == "workspace: " || err(&next).contains(expected),
            "{}",
            err(&next)
        );
    }
    let undo = "chmod 755 closed; rm linked/.git; rmdir closed/a";
    assert!(
        !home
            .run(&["sandbox", "--", "sh", "-c", undo])
            .status
            .success()
    );
    let cleanup = home.run(&["sandbox", "--unprotected", "--", "sh", "-c", undo]);
    assert!(cleanup.status.success(), "{}", err(&cleanup));
    let report = out(&home.run(&["doctor"]));
    assert!(!report.contains("workspace: "), "{report}");
}

#[test]
fn the_dotfiles_of_a_home_are_protected() {
    let home = SandboxHome::new();
    fs::create_dir(home.work().join("project")).expect("it is made");
    for (script, works) in [
        ("echo x > .profile", false),
        ("mkdir .ssh", false),
        ("mv project .config", false),
        ("echo x > project/file", true),
    ] {
        let mut raddle = home.raddle(&["sandbox", "--", "sh", "-c", script]);
        let output = raddle.env("HOME", home.work()).output().expect("it starts");
        assert_eq!(output.status.success(), works, "{script}: {}", err(&output));
        assert!(err(&output).contains("is your home"), "{}", err(&output));
    }
    assert_eq!(home.names(), [".git", "project"]);
}

#[test]
fn the_doctor_caches_its_measurement() {
    let home = SandboxHome::new();
    for (words, expected) in [
        (&["doctor", "-v"][..], "just now"),
        (&["doctor", "--verbose"], "earlier"),
        (&["doctor", "-v", "--again"], "just now"),
    ] {
        let report = out(&home.run(words));
        let line = sandbox_line(&report);
        assert!(
            line.starts_with("sandbox: namespaces+landlock (tier A"),
            "{line}"
        );
        assert!(line.contains(expected), "{line}");
        assert!(report.contains("\nholds:\n"), "{report}");
        assert!(!report.contains("does not hold"), "{report}");
    }
}

/// The line of a report about the sandbox.
fn sandbox_line(report: &str) -> &str {
    let line = report.lines().find(|it| it.starts_with("sandbox: "));
    line.unwrap_or_else(|| panic!("{report}"))
}

/// The details of the sandbox are many lines, which hide what else is wrong.
#[test]
fn the_doctor_prints_one_line_about_the_sandbox() {
    for home in [SandboxHome::new(), SandboxHome::with_bubblewrap("exit 1")] {
        let report = out(&home.run(&["doctor"]));
        let lines: Vec<&str> = report.lines().collect();
        let at = lines.iter().position(|it| it.starts_with("sandbox: "));
        let next = at.and_then(|it| lines.get(it + 1));
        let is_part =
            next.is_some_and(|it| it.starts_with("workspace: ") || it.starts_with("rules: "));
        assert!(is_part, "{report}");
    }
}

/// Without a working bubblewrap a machine has no first tier, and `doctor` reports why.
#[test]
fn a_bubblewrap_that_does_not_confine_is_detected() {
    let refuses = "echo 'bwrap: No permissions to create new namespace' >&2; exit 1";
    // Runs the helper and its command without any namespace.
    let does_nothing = format!(
        "while [ \"$1\" != -- ]; do shift; done; shift\n\
         for word; do shift; [ \"$word\" = /run/raddle-sandbox ] && word='{}'; set -- \"$@\" \"$word\"; done\n\
         exec \"$@\"",
        env!("CARGO_BIN_EXE_raddle")
    );
    for (script, why) in [
        (refuses, "No permissions to create new namespace"),
        (&does_nothing, "is writable although no rule allows it"),
        ("exit 0", "without a report"),
    ] {
        let home = SandboxHome::with_bubblewrap(script);
        let report = out(&home.run(&["doctor"]));
        let line = sandbox_line(&report);
        assert!(line.starts_with("sandbox: landlock (tier B"), "{report}");
        for expected in [
            why,
            "commands that write folders are refused",
            "`raddle doctor -v`",
        ] {
            assert!(line.contains(expected), "{report}");
        }
        let report = out(&home.run(&["doctor", "-v"]));
        assert!(report.contains(why), "{report}");
        assert!(
            report.contains("install bubblewrap 0.8 or later"),
            "{report}"
        );
    }
}

/// A `bwrap` on `PATH` is not run, whatever its owner: here one of the workspace, which an
/// activated environment puts first, and one of another folder. Each would go unnoticed, because it
/// does confine.
#[test]
fn a_bubblewrap_on_path_is_never_run() {
    for folder in ["work/bin", "programs"] {
        let mut home = SandboxHome::new();
        let log_file = home.folder.path().join("outside");
        let script = format!(
            "echo \"$@\" >> '{}'; exec /usr/bin/bwrap \"$@\"",
            log_file.display()
        );
        let programs = home.folder.path().join(folder);
        write_program(&programs.join("bwrap"), &script);
        home.path = format!("{}:{}", programs.display(), home.path);
        let report = out(&home.run(&["doctor", "--again"]));
        let line = sandbox_line(&report);
        assert!(line.starts_with("sandbox: namespaces"), "{report}");
        let output = home.run(&["sandbox", "--", "/bin/echo", "hello"]);
        assert_eq!(out(&output), "hello\n", "{}", err(&output));
        let log_text = fs::read_to_string(log_file).expect("it is there");
        assert_eq!(log_text, "", "{folder}");
    }
}

/// A verdict is cached; a lack of resources for the test is not.
#[test]
fn only_a_verdict_is_cached() {
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
        let home = SandboxHome::with_bubblewrap(script);
        for expected in ["just now", next] {
            let report = out(&home.run(&["doctor"]));
            let line = sandbox_line(&report);
            assert!(line.contains(expected), "{script}: {line}");
        }
    }
}

#[test]
fn the_second_tier_reports_its_limits_and_enforces_the_rest() {
    let home = SandboxHome::new();
    home.configure(Path::new("/nowhere/bwrap"));
    let report = out(&home.run(&["doctor", "-v"]));
    assert!(
        report.contains("`/nowhere/bwrap`, which the configuration names, cannot be used"),
        "{report}"
    );
    assert!(
        report.contains("sandbox_bwrap_path /absolute/path"),
        "{report}"
    );
    assert!(report.contains("sandbox_accept_tier = \"B\""), "{report}");
    let refused = home.run(&["sandbox", "--", "/bin/true"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        err(&refused).contains("install bubblewrap"),
        "{}",
        err(&refused)
    );
    let script = &home.with_outside("echo x > file; echo x > \"$OUTSIDE\" || echo no");
    let output = home.run(&["sandbox", "--unprotected", "--", "/bin/sh", "-c", script]);
    assert_eq!(out(&output), "no\n", "{}", err(&output));
    assert_eq!(home.names(), [".git", "file"]);
    // Landlock does not cover these, so the seccomp filter does if nothing may be written.
    let script = "/bin/chmod 666 \"$OUTSIDE\" || /bin/touch -d @0 \"$OUTSIDE\" || echo no";
    let script = &home.with_outside(script);
    let output = home.run(&["sandbox", "--read-only", "--", "/bin/sh", "-c", script]);
    assert_eq!(out(&output), "no\n", "{}", err(&output));
}

/// The sandbox inside the sandbox: there are no namespaces, and the second tier works.
#[test]
fn a_sandbox_works_inside_another() {
    let home = SandboxHome::new();
    let work = home.work();
    let raddle = env!("CARGO_BIN_EXE_raddle");
    let output = home
        .raddle(&["sandbox", "--", "/usr/bin/env"])
        .arg(format!("TMPDIR={}", work.display()))
        .arg(format!("RADDLE_HOME={}", work.join("home").display()))
        .args([raddle, "doctor"])
        .output()
        .expect("the binary starts");
    assert!(
        sandbox_line(&out(&output)).starts_with("sandbox: landlock (tier B"),
        "{}",
        err(&output)
    );
}

#[test]
fn killing_the_sandbox_kills_its_processes() {
    let home = SandboxHome::new();
    let pipe = home.work().join("pipe");
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).expect("a pipe");
    let script = "setsid cat pipe & wait";
    let mut raddle = home
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
    let timeout = Timespec {
        tv_sec: TEST_TIMEOUT.as_secs() as i64,
        tv_nsec: 0,
    };
    let polled = poll(&mut [PollFd::new(&ours, PollFlags::ERR)], Some(&timeout));
    assert_eq!(polled, Ok(1), "what was started in the sandbox still reads");
}

/// The first command is still protected after the end of the second, which used the same
/// placeholder folders.
#[test]
fn concurrent_commands_share_placeholders() {
    let home = SandboxHome::new();
    let pipe = home.work().join("pipe");
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).expect("a pipe");
    let script = "cat pipe; mkdir .codex/x || mkdir .codex && echo made";
    let first = home
        .raddle(&["sandbox", "--", "/bin/sh", "-c", script])
        .spawn()
        .expect("the binary starts");
    let go = OpenOptions::new()
        .write(true)
        .open(&pipe)
        .expect("it opens");
    let second = home.run(&["sandbox", "--", "/bin/true"]);
    assert!(second.status.success(), "{}", err(&second));
    drop(go);
    let first = first.wait_with_output().expect("it ends");
    assert_eq!(out(&first), "", "{}", err(&first));
    assert_eq!(home.names(), [".git", "pipe"]);
}

/// Starts a shell with a script inside the sandbox, on a terminal of its own.
fn start_on_terminal(home: &SandboxHome, script: &str) -> (File, Child) {
    let (master, slave) = terminal();
    let plain = home.raddle(&["sandbox", "--", "/bin/sh", "-c", script]);
    let variables = plain.get_envs();
    let child = Command::new("setsid")
        .args(["--ctty", "--wait"])
        .arg(plain.get_program())
        .args(plain.get_args())
        .envs(variables.filter_map(|(name, value)| Some((name, value?))))
        .current_dir(home.work())
        .stdin(slave)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    (master.into(), child)
}

#[test]
fn a_command_keeps_its_terminal() {
    let home = SandboxHome::new();
    let script = "test -t 0 && echo hello > /dev/tty";
    let (mut terminal, child) = start_on_terminal(&home, script);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", err(&output));
    let mut bytes = [0; 5];
    terminal.read_exact(&mut bytes).expect("it was said");
    assert_eq!(&bytes, b"hello");
}

#[test]
fn an_interrupt_reaches_the_command() {
    let home = SandboxHome::new();
    // A shell that waits for a program could miss a signal just before it starts one.
    let script = "trap 'echo caught; exit 5' INT; echo ready > /dev/tty; while :; do :; done";
    let (mut terminal, child) = start_on_terminal(&home, script);
    terminal.read_exact(&mut [0; 5]).expect("it is ready");
    terminal.write_all(b"\x03").expect("it is typed");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(out(&output), "caught\n", "{}", err(&output));
    assert_eq!(output.status.code(), Some(5));
    assert_eq!(home.names(), [".git"], "nothing is left behind");
}

fn terminal() -> (OwnedFd, File) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&master).expect("it is ours");
    unlockpt(&master).expect("it is open");
    let name = ptsname(&master, Vec::new()).expect("a name");
    let name = name.to_str().expect("text");
    // Opened with `NOCTTY`, so it does not become our controlling terminal.
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
    let slave = rustix::fs::open(Path::new(name), flags, Mode::empty()).expect("it opens");
    (master, slave.into())
}
