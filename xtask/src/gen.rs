//! Files that the binary generates from its own tables: the reference pages under docs/reference,
//! and the schema of its configuration. The pages of methods get examples from conformance/.

mod examples;
mod pattern;
mod served;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::arguments::Arguments;
use crate::cache::remove_folder;
use crate::repository::{self, cargo};
use crate::run::Run;
use crate::tidy::methods;
use examples::{CONVERSATIONS, Examples};

const PAGES: &str = "docs/reference";
const SCHEMA: &str = "docs/config.schema.json";

pub fn command(mut arguments: Arguments) -> Result<()> {
    let check = arguments.flag("--check");
    let raddle = arguments
        .value("--raddle")?
        .map(std::path::absolute)
        .transpose()?;
    arguments.end()?;
    let root = repository::root()?;
    let raddle = match raddle {
        Some(program) => program,
        None => build(&root)?,
    };
    run(
        &root,
        &raddle,
        if check { Mode::Check } else { Mode::Write },
    )
}

pub enum Mode {
    /// Reports stale files.
    Check,
    /// Writes the files.
    Write,
}

/// Generates the pages with the binary, and compares or copies them.
pub fn run(root: &Path, raddle: &Path, mode: Mode) -> Result<()> {
    let mut fresh = generate(root, raddle)?;
    let routes = fs::read_to_string(root.join(methods::ROUTES))?;
    let without_page = served::mark(&methods::routes(&routes), &mut fresh);
    if !without_page.is_empty() {
        bail!("no page describes {}", without_page.join(", "));
    }
    let examples = Examples::collect(&read_folder(&root.join(CONVERSATIONS))?);
    let without = examples.insert_into(&mut fresh);
    println!(
        "{} methods have no example in {CONVERSATIONS}/: {}",
        without.len(),
        without.join(", ")
    );
    let pages = root.join(PAGES);
    let committed = read_folder(&pages)?;
    let mut differences = differences(&committed, &fresh);
    let schema = Run::new(raddle)
        .directory(root)
        .args(["config", "schema"])
        .minutes(2)
        .output()?;
    if fs::read_to_string(root.join(SCHEMA)).unwrap_or_default() != schema {
        differences.push(format!("{SCHEMA} differs"));
    }
    match mode {
        Mode::Check if differences.is_empty() => {
            println!(
                "{PAGES}: {} files, none stale; nor is {SCHEMA}",
                fresh.len()
            );
            Ok(())
        }
        Mode::Check => bail!(
            "generated files are stale; run `cargo xtask gen` and commit:\n  {}",
            differences.join("\n  ")
        ),
        Mode::Write => {
            remove_folder(&pages)?;
            for (path, bytes) in &fresh {
                let to = pages.join(path);
                fs::create_dir_all(to.parent().context("a page has a folder")?)?;
                fs::write(&to, bytes)?;
            }
            fs::write(root.join(SCHEMA), schema)?;
            println!(
                "{PAGES} and {SCHEMA}: {} pages, {} files changed",
                fresh.len(),
                differences.len()
            );
            Ok(())
        }
    }
}

type GeneratedFiles = BTreeMap<PathBuf, Vec<u8>>;

fn generate(root: &Path, raddle: &Path) -> Result<GeneratedFiles> {
    let out = std::env::temp_dir().join(format!("raddle-gen-{}", std::process::id()));
    remove_folder(&out)?;
    fs::create_dir_all(&out)?;
    let result = Run::new(raddle)
        .directory(root)
        .args(["app-server", "generate-reference", "--out"])
        .arg(&out)
        .minutes(2)
        .go();
    let files = result.and_then(|()| read_folder(&out));
    remove_folder(&out)?;
    let files = files?;
    if files.is_empty() {
        bail!("`raddle app-server generate-reference` wrote nothing");
    }
    Ok(files)
}

/// Builds the binary for developers, and returns its path.
pub fn build(root: &Path) -> Result<PathBuf> {
    cargo(root)
        .args(["build", "--package", "raddle", "--locked"])
        .go()?;
    let metadata = cargo(root)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output()?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata)?;
    let target = metadata["target_directory"]
        .as_str()
        .context("cargo names no target folder")?;
    Ok(Path::new(target).join("debug/raddle"))
}

/// Returns all files below a directory by relative path; empty if it does not exist.
fn read_folder(folder: &Path) -> Result<GeneratedFiles> {
    let mut files = GeneratedFiles::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        if !next.is_dir() {
            continue;
        }
        for entry in fs::read_dir(&next)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.insert(path.strip_prefix(folder)?.to_owned(), fs::read(&path)?);
            }
        }
    }
    Ok(files)
}

fn differences(committed: &GeneratedFiles, fresh: &GeneratedFiles) -> Vec<String> {
    let mut differences = Vec::new();
    for (path, bytes) in fresh {
        match committed.get(path) {
            None => differences.push(format!("{PAGES}/{} is missing", path.display())),
            Some(old) if old != bytes => {
                differences.push(format!("{PAGES}/{} differs", path.display()));
            }
            Some(_) => {}
        }
    }
    for path in committed.keys().filter(|path| !fresh.contains_key(*path)) {
        differences.push(format!("{PAGES}/{} is no longer generated", path.display()));
    }
    differences
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(of: &[(&str, &str)]) -> GeneratedFiles {
        of.iter()
            .map(|(path, text)| (PathBuf::from(path), text.as_bytes().to_vec()))
            .collect()
    }

    #[test]
    fn every_kind_of_difference_is_found() {
        let committed = files(&[("same.md", "1"), ("old.md", "1"), ("gone.md", "1")]);
        let fresh = files(&[("same.md", "1"), ("old.md", "2"), ("fs/new.md", "1")]);
        assert_eq!(
            differences(&committed, &fresh),
            [
                "docs/reference/fs/new.md is missing",
                "docs/reference/old.md differs",
                "docs/reference/gone.md is no longer generated",
            ]
        );
        assert!(differences(&fresh, &fresh).is_empty());
    }
}
