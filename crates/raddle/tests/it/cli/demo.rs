//! `raddle demo`: a turn on two servers, after which nothing is left.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::CliHome;
use crate::support::eventually;
use crate::support::terminal::TestTerminal;

const QUESTION: &str = "Allow the change? [y/n] ";

/// An empty home, and an empty folder for temporary files.
struct DemoHarness {
    home: CliHome,
    temporary: TempDir,
}

impl DemoHarness {
    fn new() -> Self {
        let mut home = CliHome::new();
        let temporary = TempDir::new().expect("a folder");
        home.set("TMPDIR", temporary.path().to_str().expect("a path"));
        Self { home, temporary }
    }

    /// Prepares the demo on a terminal.
    fn on(&self, terminal: &TestTerminal) -> Command {
        let mut command = self.home.command(&["demo"]);
        command
            .stdin(terminal.program_side())
            .stdout(terminal.program_side())
            .stderr(terminal.program_side());
        command
    }

    /// Neither a file nor a process is left.
    fn assert_empty(&self) {
        for folder in [self.home.home.path(), self.temporary.path()] {
            let left = fs::read_dir(folder).expect("a folder");
            let left: Vec<_> = left.map(|it| it.expect("an entry").path()).collect();
            assert!(left.is_empty(), "{left:?}");
        }
        // The keeper of the killed server may need a moment after the demo.
        eventually("no process", || {
            let left = processes_in(self.temporary.path());
            left.is_empty().then_some(())
        });
    }
}

/// The processes that work in a folder, even if it is removed.
fn processes_in(folder: &Path) -> Vec<String> {
    let folder = folder.canonicalize().expect("a path");
    let processes = fs::read_dir("/proc").expect("processes");
    let ids = processes.filter_map(|it| it.ok()?.file_name().into_string().ok());
    let works_there = |id: &String| {
        let work = fs::read_link(format!("/proc/{id}/cwd"));
        work.is_ok_and(|it| it.starts_with(&folder))
    };
    ids.filter(works_there).collect()
}

#[test]
fn without_a_terminal_the_demo_answers_itself_and_leaves_nothing() {
    for (words, answer) in [
        (&["demo"][..], "because there is no terminal"),
        (&["demo", "--yes"], "by --yes"),
    ] {
        let harness = DemoHarness::new();
        let output = harness.home.run(words);
        assert_eq!(
            (output.code, output.err.as_str()),
            (Some(0), ""),
            "{}",
            output.out
        );
        for text in [
            "-print(\"Helo, world!\")\n",
            "+print(\"Hello, world!\")\n",
            "killed with SIGKILL",
            "asks for approval, id ",
            "asks again, ",
            answer,
            "The turn ends: completed",
            "file   print(\"Hello, world!\")\n",
            "raddle init",
            "raddle exec",
        ] {
            assert!(output.out.contains(text), "{text}: {}", output.out);
        }
        // The second server asks under the id of the first.
        let ids: Vec<&str> = output.out.lines().filter_map(approval_id).collect();
        assert_eq!(ids.len(), 2, "{}", output.out);
        assert_eq!(ids[0], ids[1]);
        assert!(output.out.lines().all(|it| it.chars().count() <= 80));
        harness.assert_empty();
    }
}

fn approval_id(line: &str) -> Option<&str> {
    let line = line.trim_start().strip_prefix("server ")?;
    Some(line.split_once(" id ")?.1)
}

#[test]
fn on_a_terminal_the_user_answers() {
    for (typed, file) in [
        ("y\n", "Hello, world!"),
        ("what?\nn\n", "I left hello.py as it was."),
    ] {
        let harness = DemoHarness::new();
        let mut terminal = TestTerminal::open();
        let mut demo = harness.on(&terminal).spawn().expect("it runs");
        terminal.wait_for(QUESTION);
        let typed = typed.as_bytes();
        terminal.user_side.write_all(typed).expect("typed");
        let status = demo.wait().expect("an end");
        assert_eq!(status.code(), Some(0), "{}", terminal.shown());
        terminal.wait_for("raddle exec");
        assert!(terminal.shown().contains(file), "{}", terminal.shown());
        harness.assert_empty();
    }
}

#[test]
fn a_signal_ends_the_demo_and_leaves_nothing() {
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let harness = DemoHarness::new();
        let terminal = TestTerminal::open();
        let mut demo = harness.on(&terminal).spawn().expect("it runs");
        terminal.wait_for(QUESTION);
        kill_process(Pid::from_child(&demo), signal).expect("it runs");
        let ended = demo.wait().expect("an end");
        assert_eq!(ended.code(), Some(status), "{}", terminal.shown());
        harness.assert_empty();
    }
}
