//! The policy of a command.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Permissions of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each command, and nearly all have rules"
)]
pub enum Policy {
    /// Everything that the user may do: there is no sandbox.
    FullAccess,
    /// Everything that the rules allow, and nothing else.
    Confined(SandboxRules),
}

/// The rules of a sandbox. Of two that name folders inside each other, the deeper one wins.
///
/// Every path is the principal's. None may come from a model, a repository or the output of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxRules {
    /// Files that may be read.
    pub read: ReadScope,
    /// Real paths that may be written, with everything in them. Paths that do not exist grant
    /// nothing; one with a link on the path is refused.
    pub write: Vec<PathBuf>,
    /// Paths that may be written and in which no name is protected: `/tmp` and the like, which
    /// every program uses. One outside of `/tmp` that overlaps a workspace is treated as a
    /// workspace.
    pub scratch: Vec<PathBuf>,
    /// Names that cannot be changed at the top of every path in `write`, nor created where they are
    /// missing. A path that `write` names itself is not protected.
    pub protected: Vec<OsString>,
    /// Absolute paths that cannot be read although a folder around them can. Missing ones are
    /// created as empty folders, if a command could create them.
    pub hidden: Vec<PathBuf>,
    /// The paths among them from which the server reads its settings, where they are files. A file
    /// can be replaced while it is hidden, so its folder is hidden with it where commands may write
    /// there. A command that works in that folder is refused.
    pub settings: Vec<PathBuf>,
    /// The content of `/tmp`.
    pub tmp: Tmp,
    /// The network access of the command.
    pub network: Network,
    /// Maximum number of processes and threads at once; enforced only where the sandbox has its own
    /// user namespace.
    pub processes_max: Option<u64>,
}

/// Files that may be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadScope {
    /// Every file that the user may read, except `/run`, which holds the sockets and secrets of
    /// services.
    All,
    /// The system's programs and settings, the writable paths, and these absolute paths.
    Listed(Vec<PathBuf>),
}

/// Folders that may be written besides those of a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scratch {
    /// Whether `/tmp` may be written.
    pub tmp: bool,
    /// Whether the folder that `TMPDIR` names may be written.
    pub tmpdir: bool,
}

/// The content of `/tmp` for the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tmp {
    /// A path like any other: the other rules apply.
    Plain,
    /// Empty, writable, and removed with the command.
    Private,
    /// This folder, writable, so that later commands find the files of earlier ones.
    Folder(PathBuf),
}

/// The network access of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    /// None outside the sandbox. Where the sandbox has its own network, its processes can reach
    /// each other.
    None,
    /// The hosts that the proxy behind this socket allows: see [`egress`](crate::egress). The
    /// command finds it by the variables of [`egress::variables`](crate::egress::variables).
    Proxy(PathBuf),
    /// Every host that the user can reach over IP.
    Open,
}

/// The names that are protected by default: those from which git runs code, and the folders in
/// which agents that speak our protocol keep files that control them. Settings of editors are not
/// among them, because writing those is ordinary work.
pub const PROTECTED: [&str; 4] = [".git", ".codex", ".agents", ".raddle"];

/// Far more than a build needs, and few enough to stop a fork bomb.
const PROCESSES_MAX: u64 = 8192;

impl SandboxRules {
    /// Builds rules that read everything, write nothing and have no network.
    pub fn read_only() -> Self {
        Self::workspace_write(Vec::new())
    }

    /// Builds rules that read everything, write these folders except the protected names in them,
    /// and have no network.
    pub fn workspace_write(folders: Vec<PathBuf>) -> Self {
        Self {
            read: ReadScope::All,
            write: folders,
            scratch: Vec::new(),
            protected: PROTECTED.iter().map(OsString::from).collect(),
            hidden: Vec::new(),
            settings: Vec::new(),
            tmp: Tmp::Plain,
            network: Network::None,
            processes_max: Some(PROCESSES_MAX),
        }
    }

    /// Hides the server's own paths: folders, and files from which it reads its settings.
    pub fn hide_own(&mut self, own: &[PathBuf]) {
        self.hidden.extend(own.iter().cloned());
        self.settings.extend(own.iter().cloned());
    }

    /// Builds the rules of [`Self::workspace_write`] for a working directory, other folders, and
    /// the scratch folders. Returns `None` if the working directory is the whole disk.
    pub fn workspace(
        cwd: &Path,
        others: impl IntoIterator<Item = PathBuf>,
        scratch: Scratch,
    ) -> Option<Self> {
        if cwd == Path::new("/") {
            return None;
        }
        let folders = [cwd.to_owned()].into_iter().chain(others);
        let mut rules = Self::workspace_write(folders.collect());
        let (tmp, tmpdir) = scratch_folders();
        rules.scratch.extend(scratch.tmp.then(|| tmp.clone()));
        rules
            .scratch
            .extend(tmpdir.clone().filter(|_| scratch.tmpdir));
        Some(rules)
    }
}

/// Returns the real paths of `/tmp` and of the folder that `TMPDIR` names, as they were before the
/// first command: commands may replace the latter by a link.
pub fn scratch_folders() -> &'static (PathBuf, Option<PathBuf>) {
    static FOLDERS: LazyLock<(PathBuf, Option<PathBuf>)> = LazyLock::new(|| {
        let real = |path: PathBuf| std::fs::canonicalize(&path).unwrap_or(path);
        let tmpdir = std::env::var_os("TMPDIR").map(PathBuf::from);
        let tmpdir = tmpdir.filter(|it| it.is_absolute());
        (real("/tmp".into()), tmpdir.map(real))
    });
    &FOLDERS
}
