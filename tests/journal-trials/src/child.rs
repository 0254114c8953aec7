//! Writers in processes of their own, and how they are ended.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{self, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use raddle_core::ThreadId;

use crate::ledger::WriterLine;

/// The signal that cannot be caught.
const SIGKILL: i32 = 9;

/// A writer that says nothing for so long never will.
const SILENCE_MAX: Duration = Duration::from_secs(20);

/// What a writer's system calls come to, by way of strace.
#[derive(Clone, Debug)]
pub struct Inject {
    calls: String,
    what: String,
    /// Whether the writer goes on after failures.
    stubborn: bool,
}

impl Inject {
    /// Killed before the call is made for the n-th time.
    pub fn kill(call: &str, number: u64) -> Self {
        Self {
            calls: call.to_owned(),
            what: format!("signal=KILL:when={number}"),
            stubborn: false,
        }
    }

    /// The call fails, as `when` says.
    pub fn fail(calls: &str, error: &str, when: &str) -> Self {
        Self {
            calls: calls.to_owned(),
            what: format!("error={error}:when={when}"),
            stubborn: true,
        }
    }
}

/// How a writer is started.
struct WriterStart<'a> {
    home: &'a Path,
    node: &'a str,
    seed: u64,
    threads: &'a [ThreadId],
    inject: Option<&'a Inject>,
    /// How much it does, if there is an end to it.
    acts: Option<u64>,
}

/// A writer that runs. Nobody need end it: it does not outlive this.
pub struct Child {
    process: process::Child,
    lines: Receiver<WriterLine>,
    /// What was taken from there already.
    said: Vec<WriterLine>,
    reader: Option<JoinHandle<()>>,
    errors: Option<JoinHandle<String>>,
    /// Where strace says what it did.
    log: tempfile::NamedTempFile,
}

impl Drop for Child {
    fn drop(&mut self) {
        // One that has ended already cannot be killed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A writer that has ended.
pub struct WriterExit {
    /// What it said.
    pub lines: Vec<WriterLine>,
    /// Whether it was killed, rather than having ended by itself.
    pub killed: bool,
    /// The opposite, if nobody meant it to.
    pub ended_by_itself: bool,
    /// What it wrote to stderr.
    pub errors: String,
    /// How many of its calls were made to fail.
    pub injected: u64,
}

impl WriterExit {
    /// Whether it came to the end of its script.
    pub fn is_done(&self) -> bool {
        matches!(self.lines.last(), Some(WriterLine::Done))
    }
}

impl Child {
    /// Starts one. With something to inject it plays its script once; otherwise it goes on for ever.
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

    /// Starts one that bears failures and does some things by chance.
    pub fn for_a_while(home: &Path, node: &str, seed: u64, acts: u64) -> Result<Self> {
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
        let started = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut process = started.with_context(|| {
            let program = command.get_program().display();
            format!("{program} cannot be started; install it to run this trial")
        })?;
        let (sender, lines) = mpsc::channel();
        let stdout = process.stdout.take().context("its stdout is ours")?;
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // A line that was cut off says nothing.
                if let Ok(line) = serde_json::from_str(&line) {
                    let _ = sender.send(line);
                }
            }
        });
        let mut stderr = process.stderr.take().context("its stderr is ours")?;
        let errors = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text);
            text
        });
        Ok(Self {
            process,
            lines,
            said: Vec::new(),
            reader: Some(reader),
            errors: Some(errors),
            log,
        })
    }

    /// Waits until it has said so many lines, lets it live for a time from then on, and kills it.
    pub fn kill_after(mut self, words: u64, life: Duration) -> Result<WriterExit> {
        for _ in 0..words {
            // One that ends instead says no more, and is noticed below.
            match self.lines.recv_timeout(SILENCE_MAX) {
                Ok(line) => self.said.push(line),
                Err(_) => break,
            }
        }
        std::thread::sleep(life);
        self.process.kill()?;
        let status = self.process.wait()?;
        let mut end = self.end(status);
        end.ended_by_itself = !end.killed;
        Ok(end)
    }

    /// Waits until it has ended.
    pub fn wait(mut self) -> Result<WriterExit> {
        let status = self.process.wait()?;
        Ok(self.end(status))
    }

    fn end(mut self, status: ExitStatus) -> WriterExit {
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        let errors = self.errors.take().map(JoinHandle::join);
        let log = std::fs::read_to_string(self.log.path()).unwrap_or_default();
        let mut lines = std::mem::take(&mut self.said);
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
