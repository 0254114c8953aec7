//! Installation of one tool into one directory, once.
//!
//! A stamp with the recipe's text is written last. A directory without it, or with another text, is
//! left over from an interrupted or older install, and is recreated from scratch.

mod code_server;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::cache::remove_folder;
use crate::run::Run;

const STAMP: &str = ".stamp";
pub const LOG_LINES_SHOWN: usize = 40;

/// How a directory is filled. Versions are part of it, so a new version has a new stamp.
#[derive(Debug, Clone, Copy)]
pub enum Recipe {
    /// A Python environment, with the arguments of each `pip install` in it.
    Python(&'static [&'static [&'static str]]),
    /// Npm packages, installed with the Node of a part instead of the machine's.
    Node(&'static [&'static str]),
    /// A Rust program, installed by cargo.
    Cargo {
        name: &'static str,
        version: &'static str,
    },
    /// The same, with these features instead of the default ones.
    CargoFeatures {
        name: &'static str,
        version: &'static str,
        features: &'static str,
    },
    /// A Rust program with its own lock file: the path and the text of each of its files.
    CargoSource(&'static [(&'static str, &'static str)]),
    /// VS Code as a server, with the modules that it compiles.
    CodeServer { version: &'static str },
}

/// An install to perform.
pub struct Install<'a> {
    pub recipe: Recipe,
    pub folder: &'a Path,
    /// Directory with `node` and `npm`, for recipes that need it.
    pub node: Option<&'a Path>,
}

impl Install<'_> {
    /// Installs the recipe into the directory, unless it is already installed.
    pub fn ensure(&self) -> Result<()> {
        let stamp = self.folder.join(STAMP);
        let text = format!("{:?}\n", self.recipe);
        if fs::read_to_string(&stamp).is_ok_and(|stamped| stamped == text) {
            return Ok(());
        }
        remove_folder(self.folder)?;
        fs::create_dir_all(self.folder)?;
        let log = log_beside(self.folder);
        println!(
            "installing {} (log: {})",
            self.folder.display(),
            log.display()
        );
        let file = File::create(&log)?;
        self.fill(&file).with_context(|| {
            format!(
                "cannot install {}; the end of {}:\n{}",
                self.folder.display(),
                log.display(),
                end_of(
                    &fs::read_to_string(&log).unwrap_or_default(),
                    LOG_LINES_SHOWN
                )
            )
        })?;
        fs::write(&stamp, text)?;
        Ok(())
    }

    fn fill(&self, log: &File) -> Result<()> {
        match self.recipe {
            Recipe::Python(installs) => {
                self.run("python3", log)?
                    .args(["-m", "venv"])
                    .arg(self.folder)
                    .go()?;
                for words in installs {
                    let pip = self.folder.join("bin/pip");
                    self.run(pip, log)?
                        .args(["install", "--quiet"])
                        .args(*words)
                        .go()?;
                }
                Ok(())
            }
            Recipe::Node(packages) => {
                let node = self.node.context("npm packages need the part `node`")?;
                self.run(node.join("npm"), log)?
                    .path_first(node)
                    .args([
                        "install",
                        "--no-audit",
                        "--no-fund",
                        "--save-exact",
                        "--prefix",
                    ])
                    .arg(self.folder)
                    .args(packages)
                    .go()
            }
            Recipe::Cargo { name, version } => self.build(&[name, "--version", version], log),
            Recipe::CargoFeatures {
                name,
                version,
                features,
            } => {
                let program = [name, "--version", version];
                let words = ["--no-default-features", "--features", features];
                self.build(&[program, words].concat(), log)
            }
            Recipe::CargoSource(files) => {
                let source = self.folder.join("source");
                for (path, text) in files {
                    let path = source.join(path);
                    fs::create_dir_all(path.parent().unwrap_or(&source))?;
                    fs::write(path, text)?;
                }
                self.build(&["--path", "source"], log)
            }
            Recipe::CodeServer { version } => code_server::fill(self, version, log),
        }
    }

    /// Installs a program with cargo; `words` select it.
    fn build(&self, words: &[&str], log: &File) -> Result<()> {
        let build = self.folder.join("build");
        self.run("cargo", log)?
            .args(["install", "--locked"])
            .args(words)
            .arg("--root")
            .arg(self.folder)
            .env("CARGO_TARGET_DIR", &build)
            // The tool runs for seconds, so only its build time matters.
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
            .env("CARGO_PROFILE_RELEASE_LTO", "off")
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
            .minutes(30)
            .go()?;
        remove_folder(&build)
    }

    /// Runs a program inside the new directory, so that no settings of the repository apply.
    fn run(&self, program: impl AsRef<std::ffi::OsStr>, log: &File) -> Result<Run> {
        Run::new(program)
            .directory(self.folder)
            .minutes(10)
            .log_to(log)
    }
}

fn log_beside(folder: &Path) -> PathBuf {
    folder.with_added_extension("log")
}

pub fn end_of(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_its_stamp_is_made_again() {
        let folder = std::env::temp_dir().join(format!("raddle-xtask-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("half"), "").expect("a file");
        // Without packages and Node, the recipe fails after the old directory was removed.
        let install = Install {
            recipe: Recipe::Node(&[]),
            folder: &folder,
            node: None,
        };
        let error = install.ensure().expect_err("it needs node");
        assert!(
            format!("{error:#}").contains("need the part `node`"),
            "{error:#}"
        );
        assert!(!folder.join("half").exists());
        assert!(!folder.join(STAMP).exists());

        fs::write(folder.join(STAMP), format!("{:?}\n", Recipe::Node(&[]))).expect("a stamp");
        install
            .ensure()
            .expect("with the stamp there is nothing to do");
        fs::remove_dir_all(&folder).expect("cleaned up");
        fs::remove_file(log_beside(&folder)).expect("cleaned up");
    }

    #[test]
    fn only_the_end_of_a_long_log_is_shown() {
        assert_eq!(end_of("a\nb\nc\n", 2), "b\nc");
        assert_eq!(end_of("a\n", 2), "a");
    }
}
