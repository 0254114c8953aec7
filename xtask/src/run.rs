//! Running other programs: shown before they start, and ended when they take too long.

use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::processes;

/// No single program of ours should come near this; a hung one must not eat the whole CI run.
const DEADLINE: Duration = Duration::from_secs(45 * 60);
const POLL: Duration = Duration::from_millis(50);

/// One program to run.
pub struct Run {
    command: Command,
    deadline: Duration,
    quiet: bool,
}

impl Run {
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(program);
        command.stdin(Stdio::null());
        Self {
            command,
            deadline: DEADLINE,
            quiet: false,
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

    /// Puts a folder in front of `PATH`.
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

    /// Sends both outputs to a file, and says nothing itself.
    pub fn log_to(mut self, file: &File) -> Result<Self> {
        self.command
            .stdout(file.try_clone()?)
            .stderr(file.try_clone()?);
        self.quiet = true;
        Ok(self)
    }

    /// Runs to the end; anything but success is an error.
    pub fn go(mut self) -> Result<()> {
        let line = self.line();
        if !self.quiet {
            println!("$ {line}");
        }
        let mut child = self
            .command
            .spawn()
            .with_context(|| format!("cannot start `{line}`"))?;
        let status = wait(&mut child, self.deadline).with_context(|| format!("`{line}`"))?;
        if !status.success() {
            bail!("`{line}` ended with {status}");
        }
        Ok(())
    }

    /// Runs to the end and gives back what was written to stdout. Meant for short answers.
    pub fn output(mut self) -> Result<String> {
        let line = self.line();
        let output = self
            .command
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("cannot start `{line}`"))?;
        if !output.status.success() {
            bail!("`{line}` ended with {}", output.status);
        }
        String::from_utf8(output.stdout).with_context(|| format!("`{line}` did not write text"))
    }

    /// Does it start and succeed? Its output goes nowhere.
    pub fn succeeds(mut self) -> bool {
        self.command.stdout(Stdio::null()).stderr(Stdio::null());
        self.command.status().is_ok_and(|status| status.success())
    }

    /// The command as a person would type it.
    fn line(&self) -> String {
        let mut line = self.command.get_program().to_string_lossy().into_owned();
        for word in self.command.get_args() {
            line.push(' ');
            line.push_str(&word.to_string_lossy());
        }
        line
    }
}

/// Is there such a program on `PATH`?
pub fn on_path(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|it| it.join(program).is_file()))
}

fn wait(child: &mut Child, deadline: Duration) -> Result<ExitStatus> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if begun.elapsed() >= deadline {
            processes::kill_descendants(child.id());
            child.kill()?;
            child.wait()?;
            bail!(
                "still running after {} s, so it was ended",
                deadline.as_secs()
            );
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
    fn a_program_past_its_deadline_is_ended_with_its_children() {
        let begun = Instant::now();
        let mut run = Run::new("sh").args(["-c", "sleep 61 & sleep 61; true"]);
        run.deadline = Duration::from_millis(200);
        let error = run.go().expect_err("it is ended");
        assert!(format!("{error:#}").contains("still running"), "{error:#}");
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
}
