//! Tests of the command line as a user runs it.

mod codex;
mod config;
mod demo;
mod doctor;
mod help;
mod init;
mod log;
mod login;
mod mcp;
mod mistakes;
mod models;
mod plugin;
mod shell;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::support::server::command;

/// A home, and the commands run in it.
struct CliHome {
    home: TempDir,
    variables: Vec<(String, String)>,
}

/// The result of a command.
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

    /// Creates a home with this configuration.
    fn with(config: &str) -> Self {
        let home = Self::new();
        fs::write(home.config(), config).expect("it is written");
        home
    }

    fn set(&mut self, name: &str, value: &str) {
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    fn config(&self) -> PathBuf {
        self.home.path().join("config.toml")
    }

    /// Returns the current configuration.
    fn text(&self) -> String {
        fs::read_to_string(self.config()).expect("a configuration")
    }

    /// Prepares `raddle` with these arguments, without starting it. Its stdin is empty.
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
