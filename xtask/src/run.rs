//! Runner of other programs: prints them before they start, and kills them at the deadline.

use std::cell::RefCell;
use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use crate::failure_text::{FailureSearch, ReportedFailure};
use crate::processes;

/// Exit code of a trial that failed only by a missed time limit (`EX_TEMPFAIL` of sysexits.h).
const LATE: i32 = 75;

/// Signals that end a program from outside: hangup, interrupt, kill and terminate. Others, such as
/// that of a segmentation fault, are failures of the program itself.
const ENDING_SIGNALS: [i32; 4] = [1, 2, 9, 15];

/// Error of a program that was ended before it had a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Termination {
    pub reason: String,
}

impl fmt::Display for Termination {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.reason)
    }
}

impl Error for Termination {}

thread_local! {
    /// Log for programs started by this thread, if they do not write to our own outputs.
    static BACKGROUND_LOG: RefCell<Option<File>> = const { RefCell::new(None) };
}

/// Makes programs that this thread starts from now on write to `log` and run at low priority.
pub fn in_background(log: File) {
    BACKGROUND_LOG.with(|it| *it.borrow_mut() = Some(log));
}

/// Prefix of output lines that are figures of a proof.
const FIGURE: &str = "figure: ";

/// Figures so far; `None` while they are not collected.
static FIGURES: Mutex<Option<Vec<String>>> = Mutex::new(None);

/// Starts collecting the figures of programs for [`figures`].
pub fn collect_figures() {
    *FIGURES.lock().unwrap_or_else(PoisonError::into_inner) = Some(Vec::new());
}

/// Returns the collected figures.
pub fn figures() -> Vec<String> {
    let figures = FIGURES.lock().unwrap_or_else(PoisonError::into_inner);
    figures.clone().unwrap_or_default()
}

/// Prints a figure, and stores it while figures are collected.
pub fn figure(text: &str) {
    println!("{FIGURE}{text}");
    keep_figure(text);
}

fn keep_figure(text: &str) {
    let mut figures = FIGURES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(figures) = figures.as_mut() {
        // Collapses the spaces of tables.
        let words: Vec<&str> = text.split_whitespace().collect();
        figures.push(words.join(" "));
    }
}

fn collects_figures() -> bool {
    FIGURES
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .is_some()
}

/// Forwards a program's output and stores its figures. Returns the failure that it reports.
fn pass_on(output: impl Read) -> Option<ReportedFailure> {
    let mut search = FailureSearch::default();
    let mut lines = BufReader::new(output);
    let mut line = Vec::new();
    while lines
        .read_until(b'\n', &mut line)
        .is_ok_and(|bytes| bytes > 0)
    {
        let text = String::from_utf8_lossy(&line);
        print!("{text}");
        if let Some(figure) = text.strip_prefix(FIGURE) {
            keep_figure(figure.trim_end());
        }
        search.read(&text);
        line.clear();
    }
    search.end()
}

/// End of a program.
struct Ending {
    status: ExitStatus,
    /// Failure that it reported, if its output was read.
    reported: Option<ReportedFailure>,
}

/// Result of a program that may miss its time limit.
#[derive(Debug, PartialEq, Eq)]
pub enum Punctuality {
    InTime,
    /// Only a time limit was missed.
    Late,
}

/// Default deadline, well above the duration of any program; a hung program must not block the
/// whole CI run.
const DEADLINE: Duration = Duration::from_secs(45 * 60);
const POLL: Duration = Duration::from_millis(50);

/// A program to run.
pub struct Run {
    command: Command,
    deadline: Duration,
    /// File for both outputs, if not our own.
    log: Option<File>,
}

impl Run {
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(program);
        command.stdin(Stdio::null());
        Self {
            command,
            deadline: DEADLINE,
            log: None,
        }
    }

    pub fn arg(mut self, word: impl AsRef<OsStr>) -> Self {
        self.command.arg(word);
        self
    }

    pub fn args<I, S>(mut self, words: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        self.command.args(words);
        self
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Prepends a directory to `PATH`.
    pub fn path_first(self, folder: &Path) -> Self {
        let old = std::env::var_os("PATH").unwrap_or_default();
        let mut path = folder.as_os_str().to_owned();
        path.push(":");
        path.push(old);
        self.env("PATH", path)
    }

    pub fn directory(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    pub fn minutes(mut self, minutes: u64) -> Self {
        self.deadline = Duration::from_secs(minutes * 60);
        self
    }

    /// Redirects both outputs to a file, and prints nothing.
    pub fn log_to(mut self, file: &File) -> Result<Self> {
        self.log = Some(file.try_clone()?);
        Ok(self)
    }

    /// Runs the program to its end; anything but success is an error.
    pub fn go(self) -> Result<()> {
        let line = self.line();
        let ending = self.finish()?;
        if !ending.status.success() {
            return Err(failure(&line, ending));
        }
        Ok(())
    }

    /// Runs the program to its end; a missed time limit alone is not an error.
    pub fn go_timed(self) -> Result<Punctuality> {
        let line = self.line();
        let ending = self.finish()?;
        match ending.status.code() {
            Some(0) => Ok(Punctuality::InTime),
            Some(LATE) => Ok(Punctuality::Late),
            _ => Err(failure(&line, ending)),
        }
    }

    fn finish(mut self) -> Result<Ending> {
        let line = self.line();
        let background = BACKGROUND_LOG.with(|it| it.borrow().as_ref().map(File::try_clone));
        if let Some(log) = background.transpose()? {
            self = self.at_low_priority();
            if self.log.is_none() {
                writeln!(&log, "$ {line}")?;
                self.log = Some(log);
            }
        }
        match &self.log {
            Some(log) => {
                self.command
                    .stdout(log.try_clone()?)
                    .stderr(log.try_clone()?);
            }
            None => {
                println!("$ {line}");
                if collects_figures() {
                    self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
                }
            }
        }
        let mut child = self
            .command
            .spawn()
            .with_context(|| format!("cannot start `{line}`"))?;
        // Test runners print on stderr, trials on stdout.
        let stdout = child
            .stdout
            .take()
            .map(|it| thread::spawn(move || pass_on(it)));
        let stderr = child
            .stderr
            .take()
            .map(|it| thread::spawn(move || pass_on(it)));
        let status = wait(&mut child, self.deadline).with_context(|| format!("`{line}`"))?;
        let mut reported = None;
        for reader in [stdout, stderr].into_iter().flatten() {
            let found = reader.join().ok().flatten();
            reported = reported.or(found);
        }
        Ok(Ending { status, reported })
    }

    /// Wraps the program in `nice`, so that timed programs beside it get the processor first.
    fn at_low_priority(mut self) -> Self {
        let mut words = vec![OsString::from("-n"), "15".into()];
        words.push(self.command.get_program().to_owned());
        words.extend(self.command.get_args().map(OsStr::to_owned));
        let mut command = Command::new("nice");
        command.args(words).stdin(Stdio::null());
        for (name, value) in self.command.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(folder) = self.command.get_current_dir() {
            command.current_dir(folder);
        }
        self.command = command;
        self
    }

    /// Runs the program to its end and returns its stdout. Meant for short outputs.
    pub fn output(mut self) -> Result<String> {
        let line = self.line();
        let output = self
            .command
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("cannot start `{line}`"))?;
        if !output.status.success() {
            let ending = Ending {
                status: output.status,
                reported: None,
            };
            return Err(failure(&line, ending));
        }
        String::from_utf8(output.stdout).with_context(|| format!("`{line}` did not write text"))
    }

    /// Returns whether the program starts and succeeds. Its output is discarded.
    pub fn succeeds(mut self) -> bool {
        self.command.stdout(Stdio::null()).stderr(Stdio::null());
        self.command.status().is_ok_and(|status| status.success())
    }

    /// Returns the command line, as a user would type it.
    fn line(&self) -> String {
        let mut line = self.command.get_program().to_string_lossy().into_owned();
        for word in self.command.get_args() {
            line.push(' ');
            line.push_str(&word.to_string_lossy());
        }
        line
    }
}

/// Returns whether there is such a program on `PATH`.
pub fn on_path(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|it| it.join(program).is_file()))
}

/// Returns the error of a program that did not succeed.
fn failure(line: &str, ending: Ending) -> anyhow::Error {
    let Ending { status, reported } = ending;
    let failure = format!("`{line}` ended with {status}");
    // Shells, and runners of other programs, report the signal of a child as 128 and its number.
    let signal = status.signal().or(status.code().map(|code| code - 128));
    match signal.filter(|it| ENDING_SIGNALS.contains(it)) {
        Some(signal) => {
            let reason = format!("ended by signal {signal}");
            anyhow::Error::new(Termination { reason }).context(failure)
        }
        None => match reported {
            Some(it) => anyhow::Error::new(it).context(failure),
            None => anyhow!(failure),
        },
    }
}

fn wait(child: &mut Child, deadline: Duration) -> Result<ExitStatus> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if start.elapsed() >= deadline {
            processes::kill_descendants(child.id());
            child.kill()?;
            child.wait()?;
            let seconds = deadline.as_secs();
            let reason = format!("still running after {seconds} s, so it was ended");
            bail!(Termination { reason });
        }
        thread::sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_command() {
        let error = Run::new("sh")
            .args(["-c", "exit 3"])
            .go()
            .expect_err("it fails");
        assert!(format!("{error:#}").contains("sh -c exit 3"), "{error:#}");
    }

    #[test]
    fn a_program_that_was_ended_is_not_one_that_failed() {
        for (script, expected) in [
            ("exit 3", None),
            ("exit 101", None),
            ("kill -ABRT $$", None),
            ("kill -KILL $$", Some("ended by signal 9")),
            ("kill -TERM $$", Some("ended by signal 15")),
            ("exit 130", Some("ended by signal 2")),
        ] {
            let error = Run::new("sh").args(["-c", script]).go();
            let error = error.expect_err("it does not succeed");
            let mut causes = error.chain();
            let termination = causes.find_map(|it| it.downcast_ref::<Termination>());
            let reason = termination.map(|it| it.reason.as_str());
            assert_eq!(reason, expected, "{script}");
        }
    }

    #[test]
    fn program_past_its_deadline_is_killed_with_its_children() {
        let start = Instant::now();
        let mut run = Run::new("sh").args(["-c", "sleep 61 & sleep 61; true"]);
        run.deadline = Duration::from_millis(200);
        let error = run.go().expect_err("it is ended");
        assert!(format!("{error:#}").contains("still running"), "{error:#}");
        assert!(start.elapsed() < Duration::from_secs(30));
    }
}
