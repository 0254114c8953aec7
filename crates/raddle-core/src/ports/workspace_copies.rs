//! Copies of workspaces, in which threads work instead of the user's folder.

use std::collections::BTreeMap;
use std::fmt;

use super::{BoxFuture, CheckpointDiff, CheckpointError, FileConflict, FileRestore};
use crate::ThreadId;

/// The copies of workspaces. The changes of a copy are applied to the user's folder only on request.
///
/// A copy is made for one thread. Its forks work in the same copy, unless they get one of their own.
pub trait WorkspaceCopies: fmt::Debug + Send + Sync {
    /// Copies a workspace for a new thread. A copy that was made for this thread before is used
    /// again, unless the thread was deleted.
    fn create(
        &self,
        thread: ThreadId,
        request: NewCopy,
    ) -> BoxFuture<'_, Result<CreatedCopy, CopyError>>;

    /// Removes the copy of a thread that did not start. Only for the caller that made the copy: an
    /// agent may have worked in an older one.
    fn abandon(&self, thread: ThreadId) -> BoxFuture<'_, Result<(), CopyError>>;

    /// Notes that a fork works in the copy of another thread, if that one has a copy.
    fn fork(&self, from: ThreadFolder, to: ThreadId) -> BoxFuture<'_, Result<(), CopyError>>;

    /// Returns where paths of the user's folder are in the copy in which a thread works. Paths
    /// elsewhere are left out, and all of them if it works in none.
    fn resolve(
        &self,
        at: ThreadFolder,
        paths: Vec<String>,
    ) -> BoxFuture<'_, Result<BTreeMap<String, String>, CopyError>>;

    /// Returns the changes that are not applied yet; `None` if the thread works in no copy.
    /// `has_overlaps`: whether other copies of the same folder are compared.
    fn changes(
        &self,
        at: ThreadFolder,
        has_overlaps: bool,
    ) -> BoxFuture<'_, Result<Option<CopyChanges>, CopyError>>;

    /// Applies changes to the user's folder, all of them or none. The state before is a checkpoint
    /// of the thread.
    fn apply(
        &self,
        at: ThreadFolder,
        request: ApplyChanges,
    ) -> BoxFuture<'_, Result<FileRestore, CopyError>>;
}

/// A request for a copy of the workspace around a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCopy {
    /// The folder in which the thread would work otherwise.
    pub cwd: String,
    /// All folders that its settings name.
    pub folders: Vec<String>,
    /// The files to copy, if the thread is a fork.
    pub fork: Option<ForkedFiles>,
}

/// The files of a fork.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkedFiles {
    /// The thread that is forked. If it works in a copy, that copy is copied.
    pub from: ThreadFolder,
    /// The checkpoint of that thread before which the files are; `None` leaves them as they are now.
    pub checkpoint: Option<String>,
}

/// The copy of a new thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedCopy {
    /// Where `cwd` is in the copy.
    pub cwd: String,
    /// Where the other folders are in it. Those elsewhere are left out.
    pub folders: BTreeMap<String, String>,
    /// Whether the copy was made now.
    pub is_new: bool,
    /// Files that are not in their state before the checkpoint, because they changed since the agent
    /// left them.
    pub conflicts: Vec<FileConflict>,
}

/// A thread and its working directory, by which an ephemeral fork finds its copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadFolder {
    /// The thread.
    pub thread: ThreadId,
    /// Its working directory.
    pub cwd: String,
}

/// The copy of a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceCopy {
    /// The user's folder.
    pub origin: String,
    /// The copy.
    pub folder: String,
}

impl WorkspaceCopy {
    /// Returns where a path of the user's folder is in the copy; `None` for a path elsewhere, and for
    /// one with `..`.
    pub fn path_in_copy(&self, path: &str) -> Option<String> {
        let rest = path.strip_prefix(&self.origin)?;
        let is_within = rest.is_empty() || rest.starts_with('/');
        let goes_up = rest.split('/').any(|it| it == "..");
        (is_within && !goes_up).then(|| format!("{}{rest}", self.folder))
    }
}

/// The changes of a copy that the user's folder does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyChanges {
    /// The copy.
    pub copy: WorkspaceCopy,
    /// The changes.
    pub diff: CheckpointDiff,
    /// Files that changed in the user's folder too since they were copied.
    pub conflicts: Vec<FileConflict>,
    /// Other threads with copies of the same folder that changed the same files.
    pub overlaps: Vec<CopyOverlap>,
}

/// Files that another thread changed too, in a copy of the same folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyOverlap {
    /// The other thread.
    pub thread: ThreadId,
    /// The files, relative to the workspace.
    pub paths: Vec<String>,
}

/// A request to apply changes of a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApplyChanges {
    /// The changes to apply; `None` applies all.
    pub files: Option<Vec<FileToApply>>,
    /// Paths that are applied although they changed in the user's folder too.
    pub overwrite: Vec<String>,
}

/// A file whose change is applied, in whole or in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileToApply {
    /// Path, relative to the workspace.
    pub path: String,
    /// Id of the change that the user saw; `None` accepts any.
    pub change: Option<String>,
    /// The hunks to apply; `None` applies the whole change.
    pub hunks: Option<Vec<HunkToApply>>,
}

/// A hunk that is applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HunkToApply {
    /// Id of the hunk.
    pub id: String,
    /// Text in place of its new lines.
    pub replacement: Option<String>,
}

/// Failure of an operation on copies.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CopyError {
    /// The folder cannot be copied.
    #[error("{0}")]
    CannotCopy(String),
    /// The thread works in the user's folder.
    #[error(
        "the thread works in the folder itself, so there is nothing to apply: start a thread with \
         `workspace` set to `copy`"
    )]
    NoCopy,
    /// A path or a hunk that is not among the changes.
    #[error("{0}")]
    NotChanged(String),
    /// The copy or the user's folder cannot be read or written.
    #[error(transparent)]
    Files(#[from] CheckpointError),
}

/// No copies: every thread works in the user's folder.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWorkspaceCopies;

impl WorkspaceCopies for NoWorkspaceCopies {
    fn create(&self, _: ThreadId, _: NewCopy) -> BoxFuture<'_, Result<CreatedCopy, CopyError>> {
        let error = CopyError::CannotCopy("this server makes no copies of workspaces".to_owned());
        Box::pin(std::future::ready(Err(error)))
    }

    fn abandon(&self, _: ThreadId) -> BoxFuture<'_, Result<(), CopyError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn fork(&self, _: ThreadFolder, _: ThreadId) -> BoxFuture<'_, Result<(), CopyError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn resolve(
        &self,
        _: ThreadFolder,
        _: Vec<String>,
    ) -> BoxFuture<'_, Result<BTreeMap<String, String>, CopyError>> {
        Box::pin(std::future::ready(Ok(BTreeMap::new())))
    }

    fn changes(
        &self,
        _: ThreadFolder,
        _: bool,
    ) -> BoxFuture<'_, Result<Option<CopyChanges>, CopyError>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    fn apply(
        &self,
        _: ThreadFolder,
        _: ApplyChanges,
    ) -> BoxFuture<'_, Result<FileRestore, CopyError>> {
        Box::pin(std::future::ready(Err(CopyError::NoCopy)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_the_folder_is_in_the_copy() {
        let copy = WorkspaceCopy {
            origin: "/home/me/app".to_owned(),
            folder: "/copies/1/app".to_owned(),
        };
        for (path, expected) in [
            ("/home/me/app", Some("/copies/1/app")),
            ("/home/me/app/src", Some("/copies/1/app/src")),
            ("/home/me/apple", None),
            ("/home/me/app/..", None),
            ("/home/me/app/a/../b", None),
            ("/home/me/app/..a", Some("/copies/1/app/..a")),
            ("/home/me", None),
            ("/copies/1/app", None),
        ] {
            assert_eq!(copy.path_in_copy(path).as_deref(), expected, "{path}");
        }
    }
}
