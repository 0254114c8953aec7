//! Plans changes of files, and applies them.

use std::path::{Path, PathBuf};

use raddle_core::policy::approval_digest::{self, PlannedContents, PlannedVersions};
use raddle_core::{ChangeKind, FileChange};

use super::diff::unified;
use super::error::ToolError;
use super::open::{Contents, FILE_BYTES_MAX};
use super::roots::{ResolvedPath, Roots, WriteAccess};
use super::swap;
use super::walk::{FinalLink, Kind};

/// Limit: the diff of one file in an item; beyond it, the rest is left out with a note.
const SHOWN_BYTES_MAX: usize = 1 << 20;

/// Limit: files that one patch changes; beyond it, the call is rejected, and the model is notified.
const PLAN_BYTES_MAX: usize = 64 << 20;

/// A set of file changes, which is judged before it is applied.
#[derive(Clone, Debug)]
pub struct ChangePlan {
    /// All files that would change, in the order of the call.
    pub files: Vec<PlannedFile>,
}

/// Planned change of one file.
#[derive(Clone, Debug)]
pub struct PlannedFile {
    /// Path of the file, with links resolved.
    pub target: ResolvedPath,
    /// Contents before; `None` if there is no file.
    pub base: Option<Contents>,
    /// Contents afterwards; `None` if there is no file.
    pub now: Option<Contents>,
    /// Index of the target in the plan, if the file is moved.
    pub moved_to: Option<usize>,
    /// Index of the source in the plan, if the file is moved.
    pub moved_from: Option<usize>,
}

/// Changes that were applied.
#[derive(Clone, Debug)]
pub struct AppliedChanges {
    /// The changes, as an item shows them.
    pub changes: Vec<FileChange>,
    /// Summary for the model.
    pub summary: String,
}

/// Reason why changes were not applied, or not undone.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// A file changed since it was read.
    #[error("nothing was written, because {} changed after it was read; read it again", .0.display())]
    Changed(PathBuf),
    /// A file could not be written.
    #[error("{why}; {}", what_stands(.stands))]
    Failed {
        /// The error, with the path.
        why: ToolError,
        /// Files that were written before the error and could not be restored.
        stands: Vec<PathBuf>,
    },
}

fn what_stands(paths: &[PathBuf]) -> String {
    if paths.is_empty() {
        return "nothing was written".to_owned();
    }
    let paths: Vec<String> = paths.iter().map(|it| it.display().to_string()).collect();
    format!(
        "what was written to {} could not be undone and stands",
        paths.join(", ")
    )
}

impl ChangePlan {
    /// Returns the changes, as an item shows them.
    pub fn changes(&self) -> Vec<FileChange> {
        self.indexed_changes().map(|(_, it)| it).collect()
    }

    /// Returns the changes, each with the index of its file.
    pub(super) fn indexed_changes(&self) -> impl Iterator<Item = (usize, FileChange)> {
        let files = self.files.iter().enumerate();
        files.filter_map(|(index, it)| Some((index, self.change(it)?)))
    }

    fn change(&self, file: &PlannedFile) -> Option<FileChange> {
        let path = display_path(file.target.name());
        let (kind, diff) = match (&file.base, &file.now, file.moved_to) {
            (Some(base), None, Some(to)) => {
                let to = &self.files[to];
                let moved_to = Some(display_path(to.target.name()));
                let diff = between(base, to.now.as_ref()?);
                (ChangeKind::Update { moved_to }, diff)
            }
            (None, Some(_), _) if file.moved_from.is_some() => return None,
            (None, Some(now), _) => (ChangeKind::Add {}, added(now)),
            (Some(base), None, None) => (ChangeKind::Delete {}, removed(base)),
            (Some(base), Some(now), _) => {
                let moved_to = None;
                (ChangeKind::Update { moved_to }, between(base, now))
            }
            (None, None, _) => return None,
        };
        Some(FileChange { path, kind, diff })
    }

    /// Returns every file that would be created, changed, moved or removed, by all its names: a
    /// rule on one name applies to the file.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        for ResolvedPath { plain, shown, .. } in self.files.iter().map(|it| &it.target) {
            paths.push(display_path(shown));
            paths.extend((plain != shown).then(|| display_path(plain)));
        }
        paths
    }

    /// Whether a file of the plan is outside the writable folders.
    pub fn is_beyond(&self) -> bool {
        self.files
            .iter()
            .any(|it| it.target.access == WriteAccess::Beyond)
    }

    /// Returns a SHA-256 in hex over all files, with their contents before and afterwards.
    pub fn digest(&self) -> String {
        approval_digest::change_plan(self.files.iter().map(|it| PlannedVersions {
            path: it.target.plain.as_os_str().as_encoded_bytes(),
            before: it.base.as_ref().map(planned_contents),
            after: it.now.as_ref().map(planned_contents),
        }))
    }

    /// Returns the summary for the model after success.
    pub fn summary(&self) -> String {
        let mut lines = Vec::new();
        for change in self.changes() {
            lines.push(match change.kind {
                ChangeKind::Add {} => format!("A {}", change.path),
                ChangeKind::Delete {} => format!("D {}", change.path),
                ChangeKind::Update { moved_to: None } => format!("M {}", change.path),
                ChangeKind::Update { moved_to: Some(to) } => format!("R {} -> {to}", change.path),
            });
        }
        if lines.is_empty() {
            return "Nothing was changed: the files are already like this.\n".to_owned();
        }
        format!(
            "Success. Updated the following files:\n{}\n",
            lines.join("\n")
        )
    }

    /// Writes all files, or none if a file changed since it was read. If the disk fails half-way,
    /// the files already written are restored.
    pub fn apply(&self, roots: &Roots) -> Result<AppliedChanges, ApplyError> {
        swap::run(roots, &self.files)?;
        Ok(AppliedChanges {
            changes: self.changes(),
            summary: self.summary(),
        })
    }
}

/// Returns the files that change.
pub(super) fn changed_files(files: &[PlannedFile]) -> Vec<PlannedFile> {
    let is_changed = |it: &PlannedFile| it.base != it.now;
    let changed: Vec<usize> = (0..files.len())
        .filter(|it| is_changed(&files[*it]))
        .collect();
    let new_index = |index: Option<usize>| changed.iter().position(|it| Some(*it) == index);
    let files = files.iter().filter(|it| is_changed(it));
    let files = files.cloned().map(|it| PlannedFile {
        moved_to: new_index(it.moved_to),
        moved_from: new_index(it.moved_from),
        ..it
    });
    files.collect()
}

fn planned_contents(contents: &Contents) -> PlannedContents<'_> {
    PlannedContents {
        mode: contents.mode,
        bytes: &contents.bytes,
    }
}

fn display_path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Returns the diff of one file. A client that approves a change must see all of it, so the diff is
/// empty only if the contents are equal.
fn between(base: &Contents, now: &Contents) -> String {
    if base.bytes == now.bytes {
        return String::new();
    }
    match (base.text(), std::str::from_utf8(&now.bytes)) {
        (Some(base), Ok(now)) => cut(escaped(unified(base, now))),
        (None, Ok("")) => removed(base),
        // Binary contents cannot be shown, only the text that replaces them.
        (None, Ok(now)) => cut(escaped(unified("", now))),
        (_, Err(_)) => FileChange::cut_mark(now.bytes.len()),
    }
}

fn added(now: &Contents) -> String {
    match std::str::from_utf8(&now.bytes) {
        Ok(text) => cut(escaped(text.to_owned())),
        Err(_) => FileChange::cut_mark(now.bytes.len()),
    }
}

fn removed(base: &Contents) -> String {
    match base.text() {
        Some(text) => cut(text.to_owned()),
        None => format!("(binary, {} bytes)\n", base.bytes.len()),
    }
}

/// Escapes NUL bytes in a diff: shells read on behind them, and clients may not show what follows.
fn escaped(diff: String) -> String {
    match diff.contains('\0') {
        true => diff.replace('\0', "\\x00"),
        false => diff,
    }
}

fn cut(mut text: String) -> String {
    if text.len() > SHOWN_BYTES_MAX {
        let whole = text.len();
        text.truncate(text.floor_char_boundary(SHOWN_BYTES_MAX));
        text.truncate(text.rfind('\n').map_or(text.len(), |at| at + 1));
        text.push_str(&FileChange::cut_mark(whole));
    }
    text
}

/// A plan under construction. Each step sees the contents that earlier steps wrote.
pub(crate) struct Draft<'a> {
    roots: &'a Roots,
    files: Vec<PlannedFile>,
    bytes: usize,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(roots: &'a Roots) -> Self {
        Self {
            roots,
            files: Vec::new(),
            bytes: 0,
        }
    }

    /// Adds a file that may change, and returns its index. A missing file is not an error here.
    pub(crate) fn look(&mut self, path: &Path, last: FinalLink) -> Result<usize, ToolError> {
        let resolved = self.roots.resolve(path, last)?;
        if let Some(index) = self
            .files
            .iter()
            .position(|it| it.target.plain == resolved.plain)
        {
            return Ok(index);
        }
        if resolved.access == WriteAccess::Protected || self.roots.controls_git(&resolved) {
            return Err(ToolError::Protected(resolved.shown));
        }
        let base = match resolved.kind {
            Kind::Missing => None,
            _ => Some(self.roots.read(&resolved)?),
        };
        if base.as_ref().is_some_and(|it| it.mode & 0o222 == 0) {
            return Err(ToolError::ReadOnly(resolved.shown));
        }
        self.bytes += base.as_ref().map_or(0, |it| it.bytes.len());
        if self.bytes > PLAN_BYTES_MAX {
            return Err(ToolError::TooLarge {
                path: resolved.shown,
                bytes: self.bytes as u64,
                max: PLAN_BYTES_MAX as u64,
            });
        }
        self.files.push(PlannedFile {
            target: resolved,
            now: base.clone(),
            base,
            moved_to: None,
            moved_from: None,
        });
        Ok(self.files.len() - 1)
    }

    pub(crate) fn shown(&self, index: usize) -> &Path {
        &self.files[index].target.shown
    }

    /// Returns the current contents.
    pub(crate) fn now(&self, index: usize) -> Result<&Contents, ToolError> {
        let file = &self.files[index];
        let missing = || ToolError::Missing(file.target.shown.clone());
        file.now.as_ref().ok_or_else(missing)
    }

    /// Returns the current contents as text.
    pub(crate) fn text(&self, index: usize) -> Result<&str, ToolError> {
        let binary = || ToolError::Binary(self.shown(index).to_owned());
        self.now(index)?.text().ok_or_else(binary)
    }

    /// Rejects a text of so many bytes: no tool could read the resulting file.
    pub(crate) fn refuse_too_large(&self, index: usize, bytes: usize) -> Result<(), ToolError> {
        let bytes = bytes as u64;
        match bytes > FILE_BYTES_MAX {
            false => Ok(()),
            true => Err(ToolError::TooLarge {
                path: self.shown(index).to_owned(),
                bytes,
                max: FILE_BYTES_MAX,
            }),
        }
    }

    /// Replaces the contents; the mode of the file stays.
    pub(crate) fn put(&mut self, index: usize, text: String) -> Result<(), ToolError> {
        self.refuse_too_large(index, text.len())?;
        let file = &mut self.files[index];
        let mode = file.now.as_ref().or(file.base.as_ref()).map(|it| it.mode);
        let mut now = Contents::new(text);
        now.mode = mode.unwrap_or(now.mode);
        file.now = Some(now);
        Ok(())
    }

    pub(crate) fn remove(&mut self, index: usize) {
        self.files[index].now = None;
    }

    /// Moves the current contents to another file, whose contents are lost.
    pub(crate) fn rename(&mut self, from: usize, to: usize) {
        if from == to {
            return;
        }
        let contents = self.files[from].now.take();
        let first = self.files[from].moved_from.take().unwrap_or(from);
        self.files[to].now = contents;
        self.files[to].moved_from = Some(first);
        self.files[first].moved_to = Some(to);
    }

    /// Returns the plan, without files that do not change.
    pub(crate) fn finish(mut self) -> Result<ChangePlan, ToolError> {
        self.refuse_files_in_files()?;
        for index in 0..self.files.len() {
            let Some(to) = self.files[index].moved_to else {
                continue;
            };
            // Shown as a move only if the target did not exist, and the source no longer does.
            let (from, end) = (&self.files[index], &self.files[to]);
            let is_move = from.base.is_some()
                && from.now.is_none()
                && end.base.is_none()
                && end.now.is_some()
                && end.moved_from == Some(index);
            if !is_move {
                self.files[index].moved_to = None;
                if self.files[to].moved_from == Some(index) {
                    self.files[to].moved_from = None;
                }
            }
        }
        let files = changed_files(&self.files);
        Ok(ChangePlan { files })
    }

    fn refuse_files_in_files(&self) -> Result<(), ToolError> {
        let remaining = self.files.iter().filter(|it| it.now.is_some());
        let remaining: Vec<&ResolvedPath> = remaining.map(|it| &it.target).collect();
        let is_inside = |it: &ResolvedPath| {
            let mut others = remaining.iter().filter(|other| other.plain != it.plain);
            others.any(|other| it.plain.starts_with(&other.plain))
        };
        match remaining.iter().find(|it| is_inside(it)) {
            None => Ok(()),
            Some(resolved) => Err(ToolError::Path {
                path: resolved.shown.clone(),
                why: "a file stands where it needs a folder",
            }),
        }
    }
}
