//! Wrong inputs on the command line, in the environment and in the files of a home. Each error says
//! what is wrong, why, and what to do.

/// The command line itself.
mod arguments;
/// Values and keys of `config.toml`.
mod configuration;
/// Files that are missing, damaged or something else, and homes that cannot be used.
mod files;
/// Addresses to listen on, and servers to connect to.
mod listeners;
/// Models, keys and providers.
mod providers;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;

use tempfile::TempDir;

use crate::model::MockModel;
use crate::support::server::command;

/// One wrong input. In its texts, `{HOME}` is the path of a new home, and `{MOCK}` the host and port
/// of a mock model.
struct WrongInput {
    name: &'static str,
    arguments: &'static [&'static str],
    config: &'static str,
    /// Further files of the home, by their paths in it.
    files: &'static [(&'static str, &'static str)],
    /// Variables of the environment. An empty one counts as unset.
    environment: &'static [(&'static str, &'static str)],
    /// A path to read as stdin.
    stdin: &'static str,
    code: i32,
    /// Parts of the error, in which the path of the home is `HOME`: what, why and what to do.
    says: &'static [&'static str],
}

/// A wrong input that consists of arguments alone.
const fn wrong(
    name: &'static str,
    arguments: &'static [&'static str],
    code: i32,
    says: &'static [&'static str],
) -> WrongInput {
    WrongInput {
        name,
        arguments,
        config: "",
        files: &[],
        environment: &[],
        stdin: "/dev/null",
        code,
        says,
    }
}

impl WrongInput {
    const fn with_config(self, config: &'static str) -> Self {
        Self { config, ..self }
    }

    const fn with_files(self, files: &'static [(&'static str, &'static str)]) -> Self {
        Self { files, ..self }
    }

    const fn with_environment(self, environment: &'static [(&'static str, &'static str)]) -> Self {
        Self {
            environment,
            ..self
        }
    }

    const fn with_stdin(self, stdin: &'static str) -> Self {
        Self { stdin, ..self }
    }

    /// Runs it in a new home. Returns the difference to what is expected, if there is one.
    fn problem(&self, mock: &MockModel) -> Option<String> {
        let (home, work) = (new_folder(), new_folder());
        let path = home.path().to_str().expect("a path");
        let filled = |text: &str| {
            text.replace("{HOME}", path)
                .replace("{MOCK}", mock.address())
        };
        if !self.config.is_empty() {
            write(home.path(), "config.toml", &filled(self.config));
        }
        for (name, text) in self.files {
            write(home.path(), name, &filled(text));
        }
        let environment = self.environment.iter();
        let output = command(home.path())
            .args(self.arguments.iter().map(|it| filled(it)))
            .current_dir(work.path())
            .env("COLUMNS", "80")
            .env("HOME", home.path())
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .envs(environment.map(|(name, value)| (name, filled(value))))
            .env_remove("RADDLE_LOG_FORMAT")
            .stdin(Stdio::from(File::open(filled(self.stdin)).expect("stdin")))
            .output()
            .expect("it runs");
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text).expect("text").replace(path, "HOME");
        let missing: Vec<&str> = self
            .says
            .iter()
            .copied()
            .filter(|it| !text.contains(&filled(it)))
            .collect();
        let is_expected = output.status.code() == Some(self.code) && missing.is_empty();
        (!is_expected).then(|| {
            format!(
                "{}: {} instead of {}, without {missing:?}:\n{text}",
                self.name, output.status, self.code
            )
        })
    }
}

fn new_folder() -> TempDir {
    TempDir::new().expect("a folder")
}

fn write(home: &Path, name: &str, text: &str) {
    let file = home.join(name);
    fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    fs::write(file, text).expect("it is written");
}

/// Runs a table, and reports every row that differs.
fn check(table: &[WrongInput]) {
    let mock = MockModel::start("");
    let problems: Vec<String> = table.iter().filter_map(|it| it.problem(&mock)).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn wrong_arguments_are_explained() {
    check(arguments::TABLE);
}

#[test]
fn wrong_configurations_are_explained() {
    check(configuration::TABLE);
}

#[test]
fn wrong_files_and_homes_are_explained() {
    check(files::TABLE);
}

#[test]
fn wrong_listeners_are_explained() {
    check(listeners::TABLE);
}

#[test]
fn wrong_providers_are_explained() {
    check(providers::TABLE);
}

#[test]
fn every_row_has_a_name_of_its_own() {
    let tables = [
        arguments::TABLE,
        configuration::TABLE,
        files::TABLE,
        listeners::TABLE,
        providers::TABLE,
    ];
    let names: BTreeSet<&str> = tables
        .iter()
        .flat_map(|it| it.iter())
        .map(|it| it.name)
        .collect();
    let count: usize = tables.iter().map(|it| it.len()).sum();
    assert_eq!(names.len(), count, "two rows have one name");
}
