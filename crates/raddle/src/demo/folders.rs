//! The temporary folder of the demo.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// The file that the agent changes.
pub(super) const FILE: &str = "hello.py";

const CONTENT: &str = "print(\"Helo, world!\")\n";

/// Deadline for the end of helpers of a killed server.
const HELPERS_TIMEOUT: Duration = Duration::from_secs(5);

const HELPERS_POLL: Duration = Duration::from_millis(10);

/// Maximum number of names to try.
const NAMES_MAX: usize = 100;

/// A folder with the home of the servers, their temporary files, and the folder that the agent
/// works in. Dropping it removes it.
#[derive(Debug)]
pub(super) struct DemoFolders {
    top: PathBuf,
}

impl DemoFolders {
    pub(super) fn create() -> Result<Self> {
        let folders = Self { top: create_top()? };
        let create = |folder: PathBuf| {
            let created = DirBuilder::new().mode(0o700).create(&folder);
            created.with_context(|| format!("cannot make {}", folder.display()))
        };
        create(folders.home())?;
        create(folders.temporary())?;
        create(folders.work())?;
        let file = folders.work().join(FILE);
        fs::write(&file, CONTENT).with_context(|| format!("cannot write {}", file.display()))?;
        Ok(folders)
    }

    /// The home of the servers.
    pub(super) fn home(&self) -> PathBuf {
        self.top.join("home")
    }

    /// The temporary files of the servers.
    pub(super) fn temporary(&self) -> PathBuf {
        self.top.join("tmp")
    }

    /// The folder that the agent works in.
    pub(super) fn work(&self) -> PathBuf {
        self.top.join("work")
    }

    /// Removes all of it, or says what is left.
    ///
    /// A killed server may leave helpers that write to its home until they notice its end.
    pub(super) fn remove(self) -> Result<()> {
        let start = Instant::now();
        let removed = loop {
            match fs::remove_dir_all(&self.top) {
                Err(error)
                    if error.kind() == io::ErrorKind::DirectoryNotEmpty
                        && start.elapsed() < HELPERS_TIMEOUT =>
                {
                    thread::sleep(HELPERS_POLL);
                }
                result => break result,
            }
        };
        removed.with_context(|| format!("cannot remove {}; remove it by hand", self.top.display()))
    }
}

impl Drop for DemoFolders {
    fn drop(&mut self) {
        // Usually it is gone already.
        let _ = fs::remove_dir_all(&self.top);
    }
}

/// Creates a folder of a new name, which only this user can read.
fn create_top() -> Result<PathBuf> {
    let parent = std::env::temp_dir();
    let cannot = |path: &Path| {
        format!(
            "cannot make a folder in {}; set TMPDIR to a folder that you can write",
            path.display()
        )
    };
    let parent = parent.canonicalize().with_context(|| cannot(&parent))?;
    for number in 0..NAMES_MAX {
        let top = parent.join(format!("raddle-demo-{}-{number}", std::process::id()));
        match DirBuilder::new().mode(0o700).create(&top) {
            Ok(()) => return Ok(top),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(|| cannot(&parent)),
        }
    }
    bail!(
        "{} has {NAMES_MAX} folders named raddle-demo-…; remove them",
        parent.display()
    )
}
