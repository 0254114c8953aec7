//! The temporary folders of a test: the workspace that the plugin may use, and the host's files.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use anyhow::{Context, Result};
use raddle_core::ThreadId;

/// A file of the workspace, so that a plugin has something to read.
const FILE: (&str, &str) = ("README.md", "# A workspace for a test of a plugin\n");

/// A folder with both. Dropping it removes it.
pub(super) struct TestFolders {
    top: PathBuf,
}

impl TestFolders {
    pub(super) fn create() -> Result<Self> {
        let parent = std::env::temp_dir();
        let cannot = || {
            format!(
                "cannot make a folder in {}; set TMPDIR to a folder that you can write",
                parent.display()
            )
        };
        let parent = parent.canonicalize().with_context(cannot)?;
        let folders = Self {
            top: parent.join(format!("raddle-plugin-test-{}", ThreadId::mint())),
        };
        for folder in [folders.top.clone(), folders.home(), folders.work()] {
            let created = DirBuilder::new().mode(0o700).create(folder);
            created.with_context(cannot)?;
        }
        let (name, text) = FILE;
        fs::write(folders.work().join(name), text).with_context(cannot)?;
        Ok(folders)
    }

    /// The folder for the host's files.
    pub(super) fn home(&self) -> PathBuf {
        self.top.join("home")
    }

    /// The workspace.
    pub(super) fn work(&self) -> PathBuf {
        self.top.join("work")
    }
}

impl Drop for TestFolders {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.top);
    }
}
