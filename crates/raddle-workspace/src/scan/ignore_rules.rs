//! Ignore files, read as content: `.gitignore` in each folder and `info/exclude` of a repository.
//!
//! Neither the configuration of git nor the ignore file of the user is read, because both lie
//! outside the workspace. A nested repository has only its own rules.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::names::EntryNames;
use crate::ContentHash;
use crate::opened::{open_folder, read_small};

/// Maximum size of an ignore file. A larger one is not read.
const BYTES_MAX: u64 = 1 << 20;

/// Maximum number of compiled ignore files that are kept for the next walk.
const FILES_MAX: usize = 4_096;

/// Compiled ignore files by content, because compiling takes longer than reading.
#[derive(Default)]
pub(crate) struct IgnoreFiles(HashMap<ContentHash, Arc<Gitignore>>);

impl IgnoreFiles {
    fn compiled(&mut self, content: &[u8]) -> Arc<Gitignore> {
        let hash = ContentHash::of(content);
        if self.0.len() >= FILES_MAX {
            self.0.clear();
        }
        let compile = || {
            let mut builder = GitignoreBuilder::new("");
            for line in String::from_utf8_lossy(content).lines() {
                // As in git, a line that is no pattern excludes nothing.
                let _ = builder.add_line(None, line);
            }
            Arc::new(builder.build().unwrap_or_else(|_| Gitignore::empty()))
        };
        Arc::clone(self.0.entry(hash).or_insert_with(compile))
    }
}

/// The rules of the folder at which the walk is, and of those above it.
pub(super) struct RuleStack<'a> {
    files: &'a mut IgnoreFiles,
    rules: Vec<(usize, Arc<Gitignore>)>,
    /// Number of rules that belong to outer repositories.
    scope: usize,
}

/// State to which [`RuleStack::leave`] returns.
pub(super) struct Outer {
    rules: usize,
    scope: usize,
}

impl<'a> RuleStack<'a> {
    pub fn new(files: &'a mut IgnoreFiles) -> Self {
        Self {
            files,
            rules: Vec::new(),
            scope: 0,
        }
    }

    /// Adds the rules of a folder, whose path has `length` bytes.
    pub fn enter(&mut self, folder: impl AsFd, names: &EntryNames, length: usize) -> Outer {
        let outer = Outer {
            rules: self.rules.len(),
            scope: self.scope,
        };
        // The path of an entry goes on after the slash, except in the workspace itself.
        let base = if length == 0 { 0 } else { length + 1 };
        if names.contains(b".git") {
            self.scope = self.rules.len();
            let exclude = open_folder(&folder, b".git")
                .and_then(|it| open_folder(it, b"info"))
                .ok()
                .and_then(|it| read_small(it, b"exclude", BYTES_MAX));
            self.add(base, exclude);
        }
        if names.contains(b".gitignore") {
            self.add(base, read_small(&folder, b".gitignore", BYTES_MAX));
        }
        outer
    }

    fn add(&mut self, base: usize, content: Option<Vec<u8>>) {
        let rules = content.map(|it| self.files.compiled(&it));
        if let Some(rules) = rules.filter(|it| !it.is_empty()) {
            self.rules.push((base, rules));
        }
    }

    pub fn leave(&mut self, outer: Outer) {
        self.rules.truncate(outer.rules);
        self.scope = outer.scope;
    }

    /// Reports whether an entry is excluded. The innermost rule that speaks of it decides.
    pub fn is_ignored(&self, path: &[u8], is_folder: bool) -> bool {
        let rules = self.rules[self.scope..].iter().rev();
        for (base, rules) in rules {
            let inner = Path::new(OsStr::from_bytes(&path[*base..]));
            match rules.matched(inner, is_folder) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}
