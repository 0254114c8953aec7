//! Digest of a command and its files: an approval covers exactly this.

mod code;
mod expansion;
mod file_name;
mod folder;
mod named_files;
mod repository;

use std::collections::BTreeMap;
use std::path::PathBuf;

use data_encoding::HEXLOWER;
use raddle_sandbox::WrittenFolders;
use sha2::{Digest, Sha256};

use folder::identity;
use named_files::NamedFiles;

/// Everything that identifies a command.
#[derive(Clone, Copy, Debug)]
pub struct DigestInput<'a> {
    /// Its words.
    pub words: &'a [String],
    /// The words of every command that it runs.
    pub commands: &'a [Vec<String>],
    /// Its working folder.
    pub cwd: &'a str,
    /// Variables set for it in addition to the usual ones.
    pub environment: &'a BTreeMap<String, String>,
    /// Its sandbox, in any stable text form.
    pub sandbox: &'a str,
    /// Folders whose whole contents count if any file in them could be run. Empty for a sandboxed
    /// command.
    pub folders: &'a [PathBuf],
    /// Folders that sandboxed commands of other threads may write.
    pub written: Option<&'a WrittenFolders>,
    /// Id of the call. It counts if the executed files cannot be listed: an approval then covers
    /// this call only.
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
    let mut sum = Sha256::new();
    // Each part is prefixed with its length, so that no two lists have the same encoding.
    let mut part = |bytes: &[u8]| {
        sum.update((bytes.len() as u64).to_le_bytes());
        sum.update(bytes);
    };
    let count = |of: usize| (of as u64).to_le_bytes();
    part(&count(it.words.len()));
    it.words.iter().for_each(|word| part(word.as_bytes()));
    part(it.cwd.as_bytes());
    part(&identity(it.cwd.as_ref()).unwrap_or_default());
    part(&count(it.environment.len()));
    for (name, value) in it.environment {
        part(name.as_bytes());
        part(value.as_bytes());
    }
    part(it.sandbox.as_bytes());
    let NamedFiles {
        files,
        repositories,
        is_all,
        unseen,
        missing,
    } = named_files::look(it);
    let repositories = repositories.iter().map(|(path, state)| (path, state));
    for (path, state) in files.iter().chain(repositories) {
        part(path.as_os_str().as_encoded_bytes());
        part(state);
    }
    if !is_all {
        part(it.call.as_bytes());
    }
    let paths = std::iter::once(PathBuf::from(it.cwd)).chain(files.into_keys());
    ApprovalSubject {
        digest: match unseen {
            Some(why) => Err(UnseenFiles(why)),
            None => Ok(HEXLOWER.encode(&sum.finalize())),
        },
        paths: paths.chain(missing).collect(),
    }
}
