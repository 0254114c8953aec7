//! What exactly a command is: a yes is good for this and nothing else.

mod code;
mod expansion;
mod folder;
mod named_files;
mod repository;

use std::collections::BTreeMap;
use std::path::PathBuf;

use raddle_sandbox::WrittenFolders;
use sha2::{Digest, Sha256};

use named_files::{NamedFiles, identity};

use crate::hex::hex;

/// Everything that makes a command this one and no other.
#[derive(Clone, Copy, Debug)]
pub struct DigestInput<'a> {
    /// Its words.
    pub words: &'a [String],
    /// The words of everything that it runs.
    pub commands: &'a [Vec<String>],
    /// Where it runs.
    pub cwd: &'a str,
    /// What is set for it beside the usual.
    pub environment: &'a BTreeMap<String, String>,
    /// The sandbox in which it runs, however it is written down.
    pub sandbox: &'a str,
    /// The folders that count with all that is in them where any file could be run. Empty for a command in
    /// the sandbox.
    pub folders: &'a [PathBuf],
    /// The folders that sandboxed commands of other threads may write.
    pub written: Option<&'a WrittenFolders>,
    /// The call that it comes with. It counts where what runs cannot be listed: a yes is then good for this
    /// call only.
    pub call: &'a str,
}

/// The reason why the files that a command could run cannot be told from others.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0}. So nobody can say yes to exactly this command. Name the files that it runs, without variables, patterns and \
     other expansions."
)]
pub struct UnseenFiles(String);

/// The subject of an approval: one command, and the state of the files that it may run.
#[derive(Clone, Debug)]
pub struct ApprovalSubject {
    /// The SHA-256 of the command and the files, in hex, or why the files cannot be told from others.
    pub digest: Result<String, UnseenFiles>,
    /// The paths that the digest depends on: the command's folder, the files and folders that it names, and those that
    /// it would run if they were there.
    pub paths: Vec<PathBuf>,
}

/// Looks at the files and folders that a command names. This may wait for a disk.
pub fn approval_subject(it: DigestInput<'_>) -> ApprovalSubject {
    let mut sum = Sha256::new();
    // Each part says how long it is, so that no two lists of parts look alike.
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
        files: found,
        repositories,
        is_all,
        unseen,
        missing,
    } = named_files::look(it);
    let repositories = repositories.iter().map(|(path, what)| (path, what));
    for (path, what) in found.iter().chain(repositories) {
        part(path.as_os_str().as_encoded_bytes());
        part(what);
    }
    if !is_all {
        part(it.call.as_bytes());
    }
    let paths = std::iter::once(PathBuf::from(it.cwd)).chain(found.into_keys());
    ApprovalSubject {
        digest: match unseen {
            Some(why) => Err(UnseenFiles(why)),
            None => Ok(hex(&sum.finalize())),
        },
        paths: paths.chain(missing).collect(),
    }
}
