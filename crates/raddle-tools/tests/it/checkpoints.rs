//! Checkpoints of turns, and undo. Each case is a transcript: a line that begins with `>` is a step,
//! and the lines after it are its result.
//!
//! | Step | Does |
//! |---|---|
//! | `run SCRIPT` | a command of the agent |
//! | `leave SCRIPT` | a command that runs on after its call, until the turn ends |
//! | `write PATH TEXT` | a file tool of the agent; no text deletes the file |
//! | `nested-write PATH TEXT` | the same, of another thread whose workspace is the folder `sub` |
//! | `user SCRIPT` | an edit of the user, long before the next step |
//! | `turn` | the next turn |
//! | `die SCRIPT` | a command during which the server dies |
//! | `list`, `diff`, `undo ID [PATH …]`, `preview ID` | operations of a client |
//! | `show SCRIPT` | prints what the script prints |

use std::fs;
use std::future::{pending, poll_fn, ready};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use raddle_core::policy::ActKind;
use raddle_core::ports::{
    Authorization, BackgroundTerminal, BoxFuture, CheckpointRange, Checkpoints, FileRestore,
    NoPluginActs, QuestionSink, ReportSink, RestoreFiles, ToolIntent, ToolJob, ToolResult,
    ToolSpec, Tools,
};
use raddle_core::{
    Ask, ChangeKind, CommandRun, FileChange, Item, ItemBody, ItemId, ItemStatus, Output, Patch,
    Resolution, Sandbox, Settings, ThreadId, Timestamp, ToolCall, TurnId,
};
use raddle_sandbox::FileHolds;
use raddle_tools::{CheckpointOptions, CheckpointedTools, FileCheckpoints, TurnDiffs};
use tempfile::TempDir;

#[track_caller]
fn check(transcript: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let mut world = TestThread::new();
    let mut actual = String::new();
    let lines: Vec<&str> = transcript
        .lines()
        .map(str::trim)
        .filter(|it| !it.is_empty())
        .collect();
    for line in &lines {
        if let Some(step) = line.strip_prefix("> ") {
            actual.push_str(&format!("> {step}\n"));
            let results = runtime.block_on(world.step(step)).into_iter();
            for result in results.filter(|it| !it.is_empty()) {
                actual.push_str(&format!("{}\n", result.trim_end()));
            }
        }
    }
    let expected: String = lines.iter().map(|it| format!("{it}\n")).collect();
    assert_eq!(actual, expected, "\n--- actual ---\n{actual}");
}

/// Runs each call as a shell script in the workspace.
#[derive(Default)]
pub struct ShellTools {
    runs_on: Mutex<bool>,
}

struct TestThread {
    at: TempDir,
    work: PathBuf,
    inner: Arc<ShellTools>,
    checkpoints: FileCheckpoints,
    tools: CheckpointedTools,
    thread: ThreadId,
    turn: u32,
}

impl TestThread {
    fn new() -> Self {
        let at = TempDir::new().expect("a folder");
        let work = at.path().join("work");
        fs::create_dir(&work).expect("a folder");
        let inner = Arc::new(ShellTools::default());
        let (checkpoints, tools) = Self::start(at.path(), &inner);
        Self {
            at,
            work,
            inner,
            checkpoints,
            tools,
            thread: ThreadId::mint(),
            turn: 1,
        }
    }

    fn start(at: &Path, inner: &Arc<ShellTools>) -> (FileCheckpoints, CheckpointedTools) {
        let checkpoints = FileCheckpoints::new(CheckpointOptions {
            folder: at.join("home/checkpoints"),
            copies: at.join("home-copies"),
            too_wide: vec![at.join("home")],
            holds: FileHolds::of(&at.join("home")),
            clock: || Timestamp(7),
            is_enabled: Box::new(|| true),
        });
        let diffs = Arc::new(TurnDiffs::default());
        let tools = CheckpointedTools::new(inner.clone(), diffs, checkpoints.clone());
        (checkpoints, tools)
    }

    fn turn_id(&self) -> TurnId {
        TurnId::from(format!("t{}", self.turn).as_str())
    }

    async fn step(&mut self, step: &str) -> Vec<String> {
        let (name, rest) = step.split_once(' ').unwrap_or((step, ""));
        match name {
            "run" => self.run(rest).await,
            "leave" => {
                *self.inner.runs_on.lock().expect("unpoisoned") = true;
                self.run("true").await;
                shell(&self.work, rest);
            }
            "write" => {
                let (path, text) = rest.split_once(' ').unwrap_or((rest, ""));
                self.write(path, text).await;
            }
            "nested-write" => {
                let (path, text) = rest.split_once(' ').unwrap_or((rest, ""));
                let folder = self.work.join("sub");
                let work = std::mem::replace(&mut self.work, folder);
                let thread = std::mem::replace(&mut self.thread, ThreadId::mint());
                self.write(path, text).await;
                self.tools.end_turn(self.thread, self.turn_id()).await;
                (self.work, self.thread) = (work, thread);
            }
            "user" => {
                shell(&self.work, rest);
                self.pass_time();
            }
            "turn" => {
                self.tools.end_turn(self.thread, self.turn_id()).await;
                *self.inner.runs_on.lock().expect("unpoisoned") = false;
                self.turn += 1;
            }
            "die" => {
                let job = self.job(ItemBody::Command(CommandRun::default()), step);
                let mut running = self.tools.run(job);
                let marker = self.at.path().join("began");
                poll_fn(|cx| {
                    let _ = running.as_mut().poll(cx);
                    cx.waker().wake_by_ref();
                    match marker.exists() {
                        true => Poll::Ready(()),
                        false => Poll::Pending,
                    }
                })
                .await;
                // The server is gone: outside of its runtime nothing notes the end of the call, and
                // another server begins.
                let dropping = std::thread::spawn(move || drop(running));
                dropping.join().expect("no panic");
                (self.checkpoints, self.tools) = Self::start(self.at.path(), &self.inner);
            }
            "list" => return self.list().await,
            "diff" => return self.diff().await,
            "preview" => {
                let request = restore_request(rest);
                let planned = self.checkpoints.preview(self.thread, request).await;
                return described(planned.map_err(|it| it.to_string()));
            }
            "undo" => {
                let request = restore_request(rest);
                let restored = self.checkpoints.restore(self.thread, request).await;
                return described(restored.map_err(|it| it.to_string()));
            }
            "show" => return shell(&self.work, rest).lines().map(str::to_owned).collect(),
            other => panic!("no step {other}"),
        }
        Vec::new()
    }

    async fn run(&self, script: &str) {
        let body = ItemBody::Command(CommandRun {
            command: script.to_owned(),
            ..CommandRun::default()
        });
        let result = self.tools.run(self.job(body, script)).await;
        assert_eq!(result.status, ItemStatus::Completed, "{script}");
    }

    async fn write(&self, path: &str, text: &str) {
        let kind = match text {
            "" => ChangeKind::Delete {},
            _ => ChangeKind::Add {},
        };
        let change = FileChange {
            path: path.to_owned(),
            kind,
            diff: String::new(),
        };
        let body = ItemBody::Patch(Patch {
            changes: vec![change],
        });
        let script = match text {
            "" => format!("rm '{path}'"),
            _ => format!("mkdir -p \"$(dirname '{path}')\"; echo '{text}' > '{path}'"),
        };
        self.tools.run(self.job(body, &script)).await;
    }

    fn job(&self, body: ItemBody, script: &str) -> ToolJob {
        job((self.thread, self.turn_id()), &self.work, body, script)
    }

    async fn list(&self) -> Vec<String> {
        let listed = self.checkpoints.list(self.thread).await.expect("a list");
        let lines = listed.into_iter().map(|it| {
            let turn = it.turn.map_or("restore".to_owned(), |it| it.to_string());
            format!("{} {turn} {:?} {}", it.id, it.state, it.files)
        });
        lines.collect()
    }

    async fn diff(&self) -> Vec<String> {
        let range = CheckpointRange::Turn(self.turn_id());
        match self.checkpoints.diff(self.thread, range).await {
            Ok(diff) => {
                let files = diff.files.iter();
                let files = files.map(|it| format!("{:?} {} by {:?}", it.kind, it.path, it.author));
                files.collect()
            }
            Err(error) => vec![error.to_string()],
        }
    }

    /// Waits until the kernel's clock for files is so far ahead that earlier edits are older than
    /// the next tool without doubt.
    fn pass_time(&self) {
        let probe = self.at.path().join("probe");
        let stamp = || {
            fs::write(&probe, b"x").expect("a file");
            let metadata = fs::metadata(&probe).expect("metadata");
            metadata.ctime() * 1_000 + metadata.ctime_nsec() / 1_000_000
        };
        let start = stamp();
        while stamp() < start + 70 {
            std::thread::yield_now();
        }
    }
}

/// Returns a call of a turn in a folder.
fn job((thread, turn): (ThreadId, TurnId), work: &Path, body: ItemBody, script: &str) -> ToolJob {
    ToolJob {
        thread,
        turn,
        is_ephemeral: false,
        item: Item {
            id: ItemId::from("i"),
            status: ItemStatus::InProgress,
            body,
            call: Some(ToolCall {
                id: "c".to_owned(),
                tool: "sh".to_owned(),
                arguments: script.to_owned(),
                freeform: true,
                alone: false,
            }),
            output: None,
            sealed: None,
            started_at: Timestamp::default(),
            completed_at: None,
        },
        settings: Settings {
            cwd: work.display().to_string(),
            sandbox: Sandbox::FullAccess,
            ..Settings::default()
        },
        hunks: Vec::new(),
        hunk_cwd: String::new(),
        authorization: Some(Authorization::Kind(ActKind::Read {
            path: String::new(),
        })),
        reports: Box::new(NoReports),
        questions: Arc::new(NoQuestions),
        acts: Arc::new(NoPluginActs),
        stopped: Box::pin(pending()),
    }
}

/// Runs a turn of one command.
pub async fn run_turn(
    tools: &CheckpointedTools,
    (thread, turn): (ThreadId, TurnId),
    work: &Path,
    script: &str,
) {
    let body = ItemBody::Command(CommandRun {
        command: script.to_owned(),
        ..CommandRun::default()
    });
    let job = job((thread, turn.clone()), work, body, script);
    let result = tools.run(job).await;
    assert_eq!(result.status, ItemStatus::Completed, "{script}");
    tools.end_turn(thread, turn).await;
}

fn restore_request(words: &str) -> RestoreFiles {
    let mut words = words.split(' ').map(str::to_owned);
    RestoreFiles {
        checkpoint: words.next().unwrap_or_default(),
        overwrite: words.collect(),
    }
}

fn described(restored: Result<FileRestore, String>) -> Vec<String> {
    match restored {
        Ok(it) => {
            let restored = it
                .restored
                .iter()
                .map(|it| format!("{:?} {}", it.effect, it.path));
            let conflicts = it.conflicts.iter();
            let conflicts = conflicts.map(|it| format!("conflict {} {:?}", it.path, it.reason));
            restored.chain(conflicts).collect()
        }
        Err(error) => vec![error],
    }
}

fn shell(folder: &Path, script: &str) -> String {
    let output = Command::new("sh")
        .args(["-c", script])
        .current_dir(folder)
        .output();
    let output = output.expect("a shell");
    assert!(output.status.success(), "{script}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

impl Tools for ShellTools {
    fn specs(&self, _: &Settings) -> Vec<Arc<ToolSpec>> {
        Vec::new()
    }

    fn intent<'a>(
        &'a self,
        _: ThreadId,
        _: &'a Settings,
        _: &'a ToolCall,
    ) -> BoxFuture<'a, Option<(ItemBody, ToolIntent)>> {
        Box::pin(ready(None))
    }

    fn user_command(&self, _: &Settings, _: &str) -> CommandRun {
        CommandRun::default()
    }

    fn run(&self, job: ToolJob) -> BoxFuture<'static, ToolResult> {
        let call = job.item.call.expect("a call");
        let cwd = Path::new(&job.settings.cwd);
        if let Some(script) = call.arguments.strip_prefix("die ") {
            shell(cwd, &format!("{script}; touch ../began"));
            return Box::pin(pending());
        }
        shell(cwd, &call.arguments);
        let output = Output::text(String::new());
        let result = ToolResult::new(ItemStatus::Completed, job.item.body, output);
        Box::pin(ready(result))
    }

    fn end_turn(&self, _: ThreadId, _: TurnId) -> BoxFuture<'static, Vec<String>> {
        Box::pin(ready(Vec::new()))
    }

    fn terminals(&self, _: ThreadId) -> Vec<BackgroundTerminal> {
        let terminal = BackgroundTerminal {
            id: "1".to_owned(),
            item: ItemId::from("i"),
            command: String::new(),
            cwd: String::new(),
            pid: None,
        };
        let runs_on = *self.runs_on.lock().expect("unpoisoned");
        runs_on.then_some(terminal).into_iter().collect()
    }

    fn end_terminal(&self, _: ThreadId, _: Option<&str>) -> bool {
        false
    }
}

struct NoReports;

impl ReportSink for NoReports {
    fn report(&self, _: raddle_core::Command) -> BoxFuture<'_, bool> {
        Box::pin(ready(true))
    }

    fn progress(&self, _: String) {}

    fn plugin_event(&self, _: raddle_core::ports::PluginEvent) -> bool {
        false
    }
}

struct NoQuestions;

impl QuestionSink for NoQuestions {
    fn ask(&self, _: Ask) -> BoxFuture<'static, Resolution> {
        Box::pin(ready(Resolution::Withdrawn {}))
    }
}

#[test]
fn changes_of_commands_and_file_tools_are_shown_and_undone() {
    check(
        "
        > user echo one > a; echo two > b; mkdir d; echo three > d/c
        > run echo 1 > a; rm b; mkdir -p new/deep; echo x > new/deep/file
        > write d/e text
        > diff
        Modified a by Tool
        Deleted b by Tool
        Added d/e by Agent
        Added new/deep/file by Tool
        > turn
        > run true
        > turn
        > list
        1 t1 Complete 4
        > preview 1
        Changed a
        Created b
        Deleted d/e
        Deleted new/deep/file
        > undo 1
        Changed a
        Created b
        Deleted d/e
        Deleted new/deep/file
        > show find . -type f | sort | xargs tail -n +1; ls
        ==> ./a <==
        one
        ==> ./b <==
        two
        ==> ./d/c <==
        three
        a
        b
        d
        > list
        1 t1 Complete 4
        3 restore Complete 4
        > undo 1
        > undo 3
        Changed a
        Deleted b
        Created d/e
        Created new/deep/file
        > show find . -type f | sort
        ./a
        ./d/c
        ./d/e
        ./new/deep/file
        ",
    );
}

#[test]
fn edits_of_the_user_are_neither_shown_nor_undone() {
    check(
        "
        > user echo one > a; echo two > b; echo three > c
        > run echo 1 > a
        > user echo edited > b; echo added > u; rm c
        > run echo 1 >> a
        > diff
        Modified a by Tool
        > turn
        > user echo mine >> a
        > preview 1
        conflict a Changed
        > undo 1
        conflict a Changed
        > undo 1 a
        Changed a
        > show tail -n +1 a b u; ls
        ==> a <==
        one

        ==> b <==
        edited

        ==> u <==
        added
        a
        b
        u
        > undo 1 u
        no file to overwrite: `u` is none that the checkpoints changed; name one that the preview lists as a conflict
        ",
    );
}

#[test]
fn a_file_tool_needs_no_walk_and_covers_ignored_files() {
    check(
        "
        > user echo '*.log' > .gitignore; echo one > x.log
        > write x.log changed
        > write sub/dir/new text
        > diff
        Added sub/dir/new by Agent
        Modified x.log by Agent
        > turn
        > run echo more >> x.log; echo ignored > y.log
        > diff
        Modified x.log by Tool
        > turn
        > undo 1
        Deleted sub/dir/new
        Changed x.log
        > show cat x.log; ls
        one
        x.log
        y.log
        ",
    );
}

#[test]
fn a_command_that_runs_on_belongs_to_its_turn_until_the_turn_ends() {
    check(
        "
        > user echo one > a
        > leave echo later > a
        > undo 1
        a tool of this or another thread runs in the folder: interrupt it or wait, and try again
        > turn
        > list
        1 t1 Complete 1
        > undo 1
        Changed a
        > show cat a
        one
        ",
    );
}

#[test]
fn a_change_of_a_thread_in_a_folder_within_has_no_known_author() {
    check(
        "
        > user mkdir sub; echo one > sub/x; echo one > y
        > leave echo two > y
        > nested-write x two
        > turn
        > list
        1 t1 Complete 2
        > undo 1
        Changed y
        conflict sub/x AuthorUnknown
        > show cat sub/x
        two
        ",
    );
}

#[test]
fn later_turns_are_undone_with_an_earlier_one() {
    check(
        "
        > user echo 0 > a; echo 0 > b
        > run echo 1 > a
        > turn
        > run echo 2 > a; echo 2 > b
        > turn
        > run echo 3 > b; echo 3 > c
        > turn
        > undo 3
        Changed b
        Deleted c
        > undo 1
        Changed a
        Changed b
        > show cat a b
        0
        0
        > undo 9
        no such checkpoint: pass an id that thread/checkpoint/list returned
        ",
    );
}

#[test]
fn changes_of_a_turn_whose_server_died_have_no_known_author() {
    check(
        "
        > user echo one > a; echo two > b
        > run echo 1 > a
        > die echo 2 > b
        > list
        1 t1 Interrupted 2
        > diff
        Modified a by Tool
        Modified b by Unknown
        > undo 1
        Changed a
        conflict b AuthorUnknown
        > undo 1 b
        Changed b
        > show cat a b
        one
        two
        ",
    );
}

/// Files of a folder that is moved keep the time of their last change.
#[test]
fn a_moved_or_replaced_folder_belongs_to_the_command_that_moved_it() {
    check(
        "
        > user mkdir src other; echo one > src/a; echo two > other/a
        > run true
        > user true
        > run mv src lib
        > diff
        Renamed lib/a by Tool
        > run rm -r lib; mv other lib
        > diff
        Renamed lib/a by Tool
        Deleted src/a by Tool
        > user mkdir mine; echo three > mine/b; mv mine yours
        > run touch here
        > diff
        Added here by Tool
        Renamed lib/a by Tool
        Deleted src/a by Tool
        ",
    );
}

#[test]
fn an_edit_of_the_user_between_two_changes_is_a_conflict() {
    check(
        "
        > user echo one > a
        > run echo 1 > a
        > turn
        > user echo mine >> a
        > run echo 2 >> a
        > turn
        > undo 2
        Changed a
        > show cat a
        1
        mine
        > undo 1
        conflict a AuthorUnknown
        > undo 1 a
        Changed a
        ",
    );
}

#[test]
fn a_deletion_counts_although_the_command_sets_the_times_of_the_folder() {
    check(
        "
        > user mkdir d; echo one > d/a; echo two > d/b
        > run rm d/a; touch -d 2000-01-01 d
        > diff
        Deleted d/a by Tool
        ",
    );
}
