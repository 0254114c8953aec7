use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use raddle_sandbox::{Policy, SandboxRules};
use raddle_tools::files::Roots;
use tempfile::TempDir;

/// A folder with a workspace in it, and room beside it.
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

    /// What a thread may do that works in the workspace.
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

    /// Every file of the workspace, by its path there. Empty folders count, with a slash.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let mut found = BTreeMap::new();
        collect(&self.work, &self.work, &mut found);
        found
    }
}

fn collect(top: &Path, folder: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
    let name = |path: &Path| {
        let below = path.strip_prefix(top).expect("it is below");
        below.display().to_string()
    };
    let mut is_empty = true;
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        is_empty = false;
        if entry.file_type().expect("a kind").is_dir() {
            collect(top, &entry.path(), found);
        } else {
            let bytes = std::fs::read(entry.path()).unwrap_or_default();
            found.insert(name(&entry.path()), bytes);
        }
    }
    if is_empty && folder != top {
        found.insert(format!("{}/", name(folder)), Vec::new());
    }
}
