use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use raddle_sandbox::{Policy, SandboxRules};
use raddle_tools::files::Roots;
use tempfile::TempDir;

/// A folder with a workspace in it, and space for files beside it.
pub struct TestWorkspace {
    pub folder: TempDir,
    pub work: PathBuf,
}

impl TestWorkspace {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let work = folder.path().join("work");
        std::fs::create_dir(&work).expect("a workspace");
        Self { folder, work }
    }

    /// Returns the roots of a thread that works in the workspace.
    pub fn roots(&self) -> Roots {
        self.roots_with(|_| {})
    }

    pub fn roots_with(&self, change: impl FnOnce(&mut SandboxRules)) -> Roots {
        let mut rules = SandboxRules::workspace_write(vec![self.work.clone()]);
        change(&mut rules);
        Roots::new(&self.work, &Policy::Confined(rules)).expect("roots")
    }

    pub fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.work.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder around it")).expect("folders");
        std::fs::write(path, bytes).expect("a file");
    }

    pub fn read(&self, path: &str) -> String {
        let bytes = std::fs::read(self.work.join(path)).expect("a file");
        String::from_utf8(bytes).expect("text")
    }

    /// Returns every file of the workspace, by its relative path. Empty folders count, with a
    /// slash.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        collect(&self.work, &self.work, &mut files);
        files
    }
}

fn collect(top: &Path, folder: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    let name = |path: &Path| {
        let below = path.strip_prefix(top).expect("it is below");
        below.display().to_string()
    };
    let mut is_empty = true;
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        is_empty = false;
        if entry.file_type().expect("a kind").is_dir() {
            collect(top, &entry.path(), files);
        } else {
            let bytes = std::fs::read(entry.path()).unwrap_or_default();
            files.insert(name(&entry.path()), bytes);
        }
    }
    if is_empty && folder != top {
        files.insert(format!("{}/", name(folder)), Vec::new());
    }
}
