//! Writers in separate processes, and how they end.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use raddle_core::ThreadId;
use support::ChildGuard;

use crate::ledger::WriterLine;

/// The signal that cannot be caught.
const SIGKILL: i32 = 9;

/// Timeout for the next line of a writer.
const SILENCE_MAX: Duration = Duration::from_secs(20);

/// Fault injection into a writer's system calls, by strace.
#[derive(Clone, Debug)]
pub struct Inject {
    calls: String,
    what: String,
    /// Whether the writer continues after failures.
    stubborn: bool,
}

impl Inject {
    /// Kills the writer before the n-th call.
    pub fn kill(call: &str, number: u64) -> Self {
        Self {
            calls: call.to_owned(),
            what: format!("signal=KILL:when={number}"),
            stubborn: false,
        }
    }

    /// Makes the call fail, as `when` selects.
    pub fn fail(calls: &str, error: &str, when: &str) -> Self {
        Self {
            calls: calls.to_owned(),
            what: format!("error={error}:when={when}"),
            stubborn: true,
        }
    }
}

/// Parameters of a writer.
struct WriterStart<'a> {
    home: &'a Path,
    node: &'a str,
    seed: u64,
    threads: &'a [ThreadId],
    inject: Option<&'a Inject>,
    /// Number of actions; `None` for no limit.
    acts: Option<u64>,
}

/// A running writer. It is killed when this is dropped.
pub struct Child {
    process: ChildGuard,
    lines: Receiver<WriterLine>,
    /// Lines received so far.
    received: Vec<WriterLine>,
    reader: Option<JoinHandle<()>>,
    errors: Option<JoinHandle<String>>,
    /// Log of strace.
    log: tempfile::NamedTempFile,
}

/// A writer that has ended.
pub struct WriterExit {
    /// Its output.
    pub lines: Vec<WriterLine>,
    /// Whether it was killed, rather than having ended by itself.
    pub killed: bool,
    /// Whether it ended by itself although it should have been killed.
    pub ended_by_itself: bool,
    /// Its stderr.
    pub errors: String,
    /// Number of its calls that were made to fail.
    pub injected: u64,
}

impl WriterExit {
    /// Whether it finished its script.
    pub fn is_done(&self) -> bool {
        matches!(self.lines.last(), Some(WriterLine::Done))
    }
}

impl Child {
    /// Starts a writer. With an injection it plays its script once; otherwise it never ends.
    pub fn start(
        home: &Path,
        node: &str,
        seed: u64,
        threads: &[ThreadId],
        inject: Option<&Inject>,
    ) -> Result<Self> {
        Self::spawn(&WriterStart {
            home,
            node,
            seed,
            threads,
            inject,
            acts: None,
        })
    }

    /// Starts a writer that tolerates failures and performs a number of random actions.
    pub fn start_with_acts(home: &Path, node: &str, seed: u64, acts: u64) -> Result<Self> {
        Self::spawn(&WriterStart {
            home,
            node,
            seed,
            threads: &[],
            inject: None,
            acts: Some(acts),
        })
    }

    fn spawn(start: &WriterStart<'_>) -> Result<Self> {
        let log = tempfile::NamedTempFile::new()?;
        let program = std::env::current_exe()?;
        let mut command = match start.inject {
            None => Command::new(&program),
            Some(inject) => {
                let mut strace = Command::new("strace");
                strace
                    .args(["-f", "-qqq", "-o"])
                    .arg(log.path())
                    .arg("-e")
                    .arg(format!("trace={}", inject.calls))
                    .arg("-e")
                    .arg(format!("inject={}:{}", inject.calls, inject.what))
                    .arg(&program);
                strace
            }
        };
        command.arg("write").arg("--home").arg(start.home);
        command.args(["--node", start.node, "--seed", &start.seed.to_string()]);
        for thread in start.threads {
            command.args(["--thread", &thread.to_string()]);
        }
        if let Some(acts) = start.acts {
            command.args(["--stubborn", "--acts", &acts.to_string()]);
        }
        if let Some(inject) = start.inject {
            command.arg("--once");
            if inject.stubborn {
                command.arg("--stubborn");
            }
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let process = ChildGuard::spawn(&mut command);
        let mut process =
            process.context("cannot start a writer; to inject faults, install strace")?;
        let (sender, lines) = mpsc::channel();
        let stdout = process.child.stdout.take().context("its stdout is ours")?;
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // A truncated line is ignored.
                if let Ok(line) = serde_json::from_str(&line) {
                    let _ = sender.send(line);
                }
            }
        });
        let mut stderr = process.child.stderr.take().context("its stderr is ours")?;
        let errors = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text);
            text
        });
        Ok(Self {
            process,
            lines,
            received: Vec::new(),
            reader: Some(reader),
            errors: Some(errors),
            log,
        })
    }

    /// Kills the writer some time after it has printed a number of lines.
    pub fn kill_after(mut self, line_count: u64, lifetime: Duration) -> Result<WriterExit> {
        for _ in 0..line_count {
            // A writer that ends early prints no more, which is detected below.
            match self.lines.recv_timeout(SILENCE_MAX) {
                Ok(line) => self.received.push(line),
                Err(_) => break,
            }
        }
        std::thread::sleep(lifetime);
        self.process.child.kill()?;
        let status = self.process.child.wait()?;
        let mut end = self.end(status);
        end.ended_by_itself = !end.killed;
        Ok(end)
    }

    /// Waits until it has ended.
    pub fn wait(mut self) -> Result<WriterExit> {
        let status = self.process.child.wait()?;
        Ok(self.end(status))
    }

    fn end(mut self, status: ExitStatus) -> WriterExit {
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        let errors = self.errors.take().map(JoinHandle::join);
        let log = std::fs::read_to_string(self.log.path()).unwrap_or_default();
        let mut lines = std::mem::take(&mut self.received);
        lines.extend(self.lines.try_iter());
        WriterExit {
            injected: log.matches("(INJECTED)").count() as u64,
            lines,
            killed: status.signal() == Some(SIGKILL),
            ended_by_itself: false,
            errors: errors.and_then(Result::ok).unwrap_or_default(),
        }
    }
}
