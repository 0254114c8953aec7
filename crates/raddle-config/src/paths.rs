//! Paths of the files of a home.

use std::path::{Path, PathBuf};

/// Paths of the server's own files.
#[derive(Clone, Debug)]
pub struct Paths {
    /// The home that clients receive in the response to `initialize`.
    pub home: PathBuf,
    /// The administrator's configuration; may be missing.
    pub system_config: PathBuf,
    /// The user's configuration; may be missing.
    pub user_config: PathBuf,
    /// The user's skills; may be missing.
    pub skills: PathBuf,
    /// Further folders of the user's skills, which other agents share; may be missing.
    pub shared_skills: Vec<PathBuf>,
    /// Policy files with rules for agents; may be missing.
    pub rules: Vec<PathBuf>,
    /// The file with the threads, if there is one; `thread/read` returns it.
    pub threads: Option<PathBuf>,
}

impl Paths {
    /// Returns the folder of the administrator's skills, which may be missing.
    pub fn admin_skills(&self) -> PathBuf {
        self.system_config.with_file_name("skills")
    }

    /// Returns the paths hidden from commands in a sandbox: configuration may contain keys, and
    /// threads are private. Policy files are named one by one, because each may be a link to
    /// another folder.
    pub fn hidden_paths(&self) -> Vec<PathBuf> {
        let threads = self.threads.as_deref().and_then(Path::parent);
        let config = self.user_config.parent();
        let mut hidden = vec![self.home.clone()];
        hidden.extend(threads.into_iter().chain(config).map(PathBuf::from));
        hidden.push(self.user_config.clone());
        hidden.extend(self.rules.iter().cloned());
        hidden
    }
}
