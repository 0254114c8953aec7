//! The command line, as people meet it.

/// `raddle config`.
mod config;
/// `raddle doctor`, beside the fence.
mod doctor;
/// What is said to whoever does not know what to type.
mod help;
/// `raddle init`.
mod init;
/// The log: where it goes, and how much of it.
mod log;
/// Mistakes, and what is said of them.
mod mistakes;
/// `raddle model list`.
mod models;
/// `raddle completions` and `raddle man`.
mod shell;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::support::server::command;

/// A home, and what is typed there.
struct CliHome {
    home: TempDir,
    variables: Vec<(String, String)>,
}

/// How it went.
struct CliOutput {
    code: Option<i32>,
    out: String,
    err: String,
}

impl CliHome {
    fn new() -> Self {
        Self {
            home: TempDir::new().expect("a folder"),
            variables: Vec::new(),
        }
    }

    /// With this configuration.
    fn with(config: &str) -> Self {
        let place = Self::new();
        fs::write(place.config(), config).expect("it is written");
        place
    }

    fn set(&mut self, name: &str, value: &str) {
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    fn config(&self) -> PathBuf {
        self.home.path().join("config.toml")
    }

    /// The configuration as it is now.
    fn text(&self) -> String {
        fs::read_to_string(self.config()).expect("a configuration")
    }

    /// `raddle` with these words, not started yet. Nobody is at its stdin.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = command(self.home.path());
        command.args(words).env("COLUMNS", "80");
        command.env("HOME", self.home.path());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, words: &[&str]) -> CliOutput {
        let Output {
            status,
            stdout,
            stderr,
        } = self.command(words).output().expect("it runs");
        let text = |bytes: Vec<u8>| {
            let text = String::from_utf8(bytes).expect("text");
            text.replace(self.home.path().to_str().expect("a path"), "HOME")
        };
        CliOutput {
            code: status.code(),
            out: text(stdout),
            err: text(stderr),
        }
    }
}
