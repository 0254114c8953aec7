//! Digest of a command and its files: an approval covers exactly this.
//!
//! The submodules determine which files a command may run, and their state.
//! [`approval_digest::command`] defines the digest over them.

mod code;
mod expansion;
mod file_name;
mod folder;
mod named_files;
mod repository;

use std::collections::BTreeMap;
use std::path::PathBuf;

use raddle_core::policy::approval_digest::{self, CommandIdentity};
use raddle_sandbox::WrittenFolders;

use folder::identity;
use named_files::NamedFiles;

/// Everything that identifies a command.
#[derive(Clone, Copy, Debug)]
pub struct DigestInput<'a> {
    /// Words of the command, the program first.
    pub words: &'a [String],
    /// The words of every command that it runs.
    pub commands: &'a [Vec<String>],
    /// Working folder of the command.
    pub cwd: &'a str,
    /// Variables set for it in addition to the usual ones.
    pub environment: &'a BTreeMap<String, String>,
    /// Its sandbox, or the running command that gets it as input: the result of
    /// [`approval_digest::launch_scope`] or [`approval_digest::input_scope`].
    pub scope: &'a str,
    /// Folders whose whole contents are part of the digest if any file in them could be run. Empty
    /// for a sandboxed command.
    pub folders: &'a [PathBuf],
    /// Folders that sandboxed commands of other threads may write.
    pub written: Option<&'a WrittenFolders>,
    /// Id of the call. It is part of the digest if the executed files cannot be listed: an approval
    /// then covers this call only.
    pub call: &'a str,
}

/// Reason why the files that a command could run cannot be identified.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0}. So this exact command cannot be approved. Name the files that it runs, without variables, patterns and \
     other expansions."
)]
pub struct UnseenFiles(String);

/// Subject of an approval: one command, and the state of the files that it may run.
#[derive(Clone, Debug)]
pub struct ApprovalSubject {
    /// SHA-256 of the command and its files, in hex, or the reason why the files cannot be
    /// identified.
    pub digest: Result<String, UnseenFiles>,
    /// Paths that the digest depends on: the working folder, the files and folders that the command
    /// names, and missing files that it would run.
    pub paths: Vec<PathBuf>,
}

/// Computes the subject of an approval from the files and folders that a command names. It may
/// block on the disk.
pub fn approval_subject(it: DigestInput<'_>) -> ApprovalSubject {
    let cwd_identity = identity(it.cwd.as_ref()).unwrap_or_default();
    let NamedFiles {
        files,
        repositories,
        is_all,
        unseen,
        missing,
    } = named_files::look(it);
    let digest = match unseen {
        Some(why) => Err(UnseenFiles(why)),
        None => {
            let repositories = repositories.iter().map(|(path, state)| (path, state));
            let files = files.iter().chain(repositories);
            let files: Vec<(&[u8], &[u8])> = files
                .map(|(path, state)| (path.as_os_str().as_encoded_bytes(), state.as_slice()))
                .collect();
            Ok(approval_digest::command(CommandIdentity {
                words: it.words,
                cwd: it.cwd,
                cwd_identity: &cwd_identity,
                environment: it.environment,
                scope: it.scope,
                files: &files,
                call: (!is_all).then_some(it.call),
            }))
        }
    };
    let paths = std::iter::once(PathBuf::from(it.cwd)).chain(files.into_keys());
    ApprovalSubject {
        digest,
        paths: paths.chain(missing).collect(),
    }
}
