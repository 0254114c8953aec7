//! The hunks of the diffs that reviews are about.
//!
//! Git prints each changed file in full, with its old and new lines. From these come the hunks that
//! the diff of a turn would have, with the same ids. Git runs in a sandbox that only reads: it
//! follows a configuration that the agent may have written.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use raddle_core::ports::{BoxFuture, ReviewDiffs, ReviewedDiff};
use raddle_core::{ReviewedHunk, Settings};
use raddle_workspace::{DiffLimits, FileChange, FileHunk, ProposedFile, WorkspacePath};
use tokio::time::timeout;

use crate::command::{policy, read_only_output};
use crate::files::{FinalLink, Roots};
use crate::registry::BuiltInTools;
use crate::tool_call_error::ToolCallError;
use crate::tool_deps::ToolDeps;

/// Limit: time that `review/start` waits for the diff under review; beyond it, the findings have no
/// ids of hunks.
const DIFF_TIMEOUT: Duration = Duration::from_secs(10);

/// Limit: text of the files in a diff under review, those that git tracks and the others; beyond it,
/// the findings have no ids of hunks.
const TEXT_BYTES_MAX: usize = 16 << 20;

/// Limit: hunks of a diff under review; beyond it, findings in further hunks have no ids of hunks.
const HUNKS_MAX: usize = 1000;

/// Variables of git. It takes no locks, and fetches nothing.
const VARIABLES: [(&str, &str); 2] = [("GIT_OPTIONAL_LOCKS", "0"), ("GIT_NO_LAZY_FETCH", "1")];

/// Options that make the output independent of the configuration, and run none of the programs
/// that it may name for diffs.
const CONFIG: &[&str] = &[
    "git",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.quotePath=false",
    "-c",
    "diff.suppressBlankEmpty=false",
];

/// A patch with all lines of each file that is in the folder.
const PATCH: &[&str] = &[
    "diff",
    "--unified=1000000000",
    "--relative",
    "--find-renames",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--ignore-submodules=all",
];

const NAMES: &[&str] = &["diff", "--name-only", "-z", "--relative", "--no-renames"];

const UNTRACKED: &[&str] = &["ls-files", "-z", "--others", "--exclude-standard"];

impl ReviewDiffs for BuiltInTools {
    fn hunks(&self, settings: Settings, diff: ReviewedDiff) -> BoxFuture<'_, Vec<ReviewedHunk>> {
        Box::pin(async move {
            let git = Git {
                inner: self.inner(),
                settings: &settings,
            };
            let error = match timeout(DIFF_TIMEOUT, git.hunks(&diff)).await {
                Ok(Ok(hunks)) => return hunks,
                Ok(Err(error)) => error.to_string(),
                Err(elapsed) => elapsed.to_string(),
            };
            tracing::info!(
                cwd = settings.cwd,
                error,
                "the diff under review is not known"
            );
            Vec::new()
        })
    }
}

/// Git in the folder of a thread.
struct Git<'a> {
    inner: &'a ToolDeps,
    settings: &'a Settings,
}

impl Git<'_> {
    async fn hunks(&self, diff: &ReviewedDiff) -> Result<Vec<ReviewedHunk>, ToolCallError> {
        let (base, commit) = match diff {
            ReviewedDiff::Uncommitted => (self.commit_or_empty("HEAD").await?, None),
            ReviewedDiff::SinceBranch(branch) => {
                let words = ["merge-base", "HEAD", plain(branch)?];
                (self.line(&[&words]).await?, None)
            }
            ReviewedDiff::Commit(named) => {
                let commit = format!("{}^{{commit}}", plain(named)?);
                let commit = self.line(&[&["rev-parse", "--verify", &commit]]).await?;
                let base = self.commit_or_empty(&format!("{commit}^")).await?;
                (base, Some(commit))
            }
        };
        let ends = [Some(&*base), commit.as_deref(), Some("--")];
        let ends: Vec<&str> = ends.into_iter().flatten().collect();
        let patch = self.run(&[PATCH, &ends]).await?;
        // The model names the lines that a file has now, so a file that changed since is left out.
        let (untracked, changed) = match &commit {
            Some(commit) => (Vec::new(), self.run(&[NAMES, &[commit, "--"]]).await?),
            None => (self.run(&[UNTRACKED]).await?, Vec::new()),
        };
        let changed: HashSet<WorkspacePath> = paths(&changed).collect();
        let cwd = PathBuf::from(self.settings.real(&self.settings.cwd));
        let policy = policy(self.settings, &self.inner.own)?;
        let read = tokio::task::spawn_blocking(move || {
            let patched = patched_files(&patch).filter(|it| !changed.contains(&it.path));
            let roots = Roots::new(&cwd, &policy).map_err(ToolCallError::new)?;
            let mut rest = TEXT_BYTES_MAX;
            let new = paths(&untracked).filter_map(|path| {
                let resolved = roots.resolve(path.as_path(), FinalLink::Keep).ok()?;
                let new = roots.read(&resolved).ok()?.bytes;
                rest = rest.checked_sub(new.len())?;
                let old = Vec::new();
                Some(ChangedFile { path, old, new })
            });
            let hunks = patched.chain(new).flat_map(|it| it.hunks());
            Ok(hunks.take(HUNKS_MAX).collect())
        });
        read.await.map_err(ToolCallError::new)?
    }

    /// Returns the id of a commit, or that of the tree without files.
    async fn commit_or_empty(&self, name: &str) -> Result<String, ToolCallError> {
        match self.line(&[&["rev-parse", "--verify", name]]).await {
            Ok(commit) => Ok(commit),
            Err(_) => {
                self.line(&[&["hash-object", "-t", "tree", "/dev/null"]])
                    .await
            }
        }
    }

    /// Returns the first line that git prints.
    async fn line(&self, words: &[&[&str]]) -> Result<String, ToolCallError> {
        let printed = self.run(words).await?;
        let printed = String::from_utf8(printed).map_err(ToolCallError::new)?;
        Ok(printed.lines().next().unwrap_or_default().to_owned())
    }

    async fn run(&self, words: &[&[&str]]) -> Result<Vec<u8>, ToolCallError> {
        let words = std::iter::once(&CONFIG).chain(words).copied().flatten();
        let words: Vec<&str> = words.copied().collect();
        let (inner, settings) = (self.inner, self.settings);
        let output = read_only_output(inner, settings, &words, &VARIABLES, TEXT_BYTES_MAX).await?;
        match output.len() > TEXT_BYTES_MAX {
            true => Err(ToolCallError::new("the diff is too large")),
            false => Ok(output),
        }
    }
}

/// Rejects a name that git would read as an option.
fn plain(name: &str) -> Result<&str, ToolCallError> {
    match name.starts_with('-') {
        true => Err(ToolCallError::new("a name that begins with a dash")),
        false => Ok(name),
    }
}

/// Parses paths that each end with a NUL.
fn paths(list: &[u8]) -> impl Iterator<Item = WorkspacePath> {
    let paths = list.split(|it| *it == 0);
    paths.filter_map(|it| WorkspacePath::new(Path::new(OsStr::from_bytes(it))))
}

/// A text file before and after a change.
#[derive(Debug, PartialEq, Eq)]
struct ChangedFile {
    path: WorkspacePath,
    old: Vec<u8>,
    new: Vec<u8>,
}

impl ChangedFile {
    fn hunks(&self) -> Vec<ReviewedHunk> {
        let side = |bytes| ProposedFile {
            path: &self.path,
            mode: 0o644,
            bytes,
        };
        let limits = DiffLimits::default();
        let change = FileChange::proposed(Some(side(&self.old)), Some(side(&self.new)), &limits);
        let hunks = change.iter().flat_map(FileChange::hunks);
        hunks.map(|it| reviewed(&self.path, it)).collect()
    }
}

fn reviewed(path: &WorkspacePath, hunk: &FileHunk) -> ReviewedHunk {
    let (start, end) = (hunk.after.start, hunk.after.end);
    // Removed lines are between two others.
    let (first, last) = match hunk.after.is_empty() {
        true => (start.max(1), start + 1),
        false => (start + 1, end),
    };
    ReviewedHunk {
        path: path.to_string(),
        id: hunk.id.clone(),
        first,
        last,
    }
}

/// Parses a patch that has all lines of each file. Left out are deleted files, files without lines,
/// and those whose path has control characters or quotation marks.
fn patched_files(patch: &[u8]) -> impl Iterator<Item = ChangedFile> {
    let mut lines = patch.split_inclusive(|it| *it == b'\n').peekable();
    std::iter::from_fn(move || {
        let mut path = None;
        for line in lines.by_ref() {
            if line.starts_with(b"diff --git ") {
                path = None;
            }
            if let Some(name) = line.strip_prefix(b"+++ b/") {
                // A tab follows a name with spaces.
                let name = name.strip_suffix(b"\n").unwrap_or(name);
                let name = name.strip_suffix(b"\t").unwrap_or(name);
                path = WorkspacePath::new(Path::new(OsStr::from_bytes(name)));
            }
            if line.starts_with(b"@@ ")
                && let Some(path) = path.take()
            {
                return Some(file_of(path, &mut lines));
            }
        }
        None
    })
}

/// Parses the lines of a file, up to the header of the next.
fn file_of<'a>(
    path: WorkspacePath,
    lines: &mut std::iter::Peekable<impl Iterator<Item = &'a [u8]>>,
) -> ChangedFile {
    let (mut old, mut new) = (Vec::new(), Vec::new());
    let mut sides = (false, false);
    while let Some((kind, text)) = lines
        .next_if(|it| it.first().is_some_and(|it| b" -+\\".contains(it)))
        .and_then(<[u8]>::split_first)
    {
        if *kind == b'\\' {
            // The line before has no end.
            sides.0.then(|| old.pop());
            sides.1.then(|| new.pop());
            continue;
        }
        sides = (*kind != b'+', *kind != b'-');
        if sides.0 {
            old.extend_from_slice(text);
        }
        if sides.1 {
            new.extend_from_slice(text);
        }
    }
    ChangedFile { path, old, new }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_has_each_file_before_and_after() {
        let header =
            |path: &str| format!("diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ {path}\n");
        for (patch, expected) in [
            (String::new(), &[][..]),
            (
                header("b/a") + "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
                &[("a", "one\ntwo\nthree\n", "one\n2\nthree\n")],
            ),
            // A file without a last line end, before another; a line that looks like a header.
            (
                header("b/a b\t")
                    + "@@ -1 +1 @@ f\n-++ b/z\n+++ b/y\n\\ No newline at end of file\n"
                    + &header("b/c")
                    + "@@ -1 +1,2 @@\n-one\n\\ No newline at end of file\n+one\n+\n",
                &[("a b", "++ b/z\n", "++ b/y"), ("c", "one", "one\n\n")],
            ),
            // A deleted file, one whose name is quoted, and one without lines.
            (
                header("/dev/null")
                    + "@@ -1 +0,0 @@\n-one\n"
                    + &header("\"b/\\303\"")
                    + "@@ -0,0 +1 @@\n+++ b/w\n"
                    + "diff --git a/m b/m\nold mode 100644\nnew mode 100755\n"
                    + &header("b/d")
                    + "@@ -1 +1 @@\n one\n",
                &[("d", "one\n", "one\n")],
            ),
        ] {
            let files = patched_files(patch.as_bytes());
            let expected = expected.iter().map(|(path, old, new)| ChangedFile {
                path: WorkspacePath::new(path).expect("a path"),
                old: old.as_bytes().to_vec(),
                new: new.as_bytes().to_vec(),
            });
            assert_eq!(
                files.collect::<Vec<_>>(),
                expected.collect::<Vec<_>>(),
                "{patch}"
            );
        }
    }

    #[test]
    fn hunks_have_the_lines_that_a_finding_names() {
        let lines = |text: &str| {
            text.split(' ')
                .map(|it| format!("{it}\n"))
                .collect::<String>()
        };
        for (old, new, expected) in [
            ("a b c", "a B c", (2, 2)),
            ("a b c", "a b x y c", (3, 4)),
            // Removed lines.
            ("a b c", "a c", (1, 2)),
            ("a b c", "b c", (1, 1)),
            ("a b c", "a b", (2, 3)),
        ] {
            let file = ChangedFile {
                path: WorkspacePath::new("a").expect("a path"),
                old: lines(old).into_bytes(),
                new: lines(new).into_bytes(),
            };
            let hunks: Vec<_> = file.hunks().iter().map(|it| (it.first, it.last)).collect();
            assert_eq!(hunks, [expected], "{old} → {new}");
        }
    }
}
