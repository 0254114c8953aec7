//! What a command may do.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// What a command may do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each command, and nearly all have rules"
)]
pub enum Policy {
    /// Whatever the user may: there is no fence.
    FullAccess,
    /// What the rules allow, and nothing else.
    Confined(SandboxRules),
}

/// The rules inside a fence. Of two that name folders inside each other, the deeper one counts.
///
/// Every path is the principal's. None may come from a model, a repository or the output of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxRules {
    /// What may be read.
    pub read: ReadScope,
    /// Real paths that may be written, with all that is in them. Those that do not exist give nothing; one with a link
    /// on the way is refused.
    pub write: Vec<PathBuf>,
    /// The same for paths in which no name is protected: `/tmp` and the like, which everybody uses. One outside of `/tmp`
    /// that meets a workspace is treated as one.
    pub scratch: Vec<PathBuf>,
    /// Names that stay as they are at the top of every path in `write`, and that cannot be made where they
    /// are missing. A path that `write` names itself is not protected.
    pub protected: Vec<OsString>,
    /// Absolute paths that cannot be read although a folder around them can. What is missing of them is made, as
    /// an empty folder, if a command could make it.
    pub hidden: Vec<PathBuf>,
    /// Those of them that the server reads its settings from, where they are files. A file can be exchanged while it is
    /// hidden, so its folder is hidden with it where commands may write there, and none that works in it is started.
    pub settings: Vec<PathBuf>,
    /// What `/tmp` is.
    pub tmp: Tmp,
    /// Whom the command can talk to.
    pub network: Network,
    /// How many processes and threads there may be at once; counted only where the fence has its own users.
    pub processes_max: Option<u64>,
}

/// What may be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadScope {
    /// Every file that the user may read, but for `/run`, where the sockets and secrets of services are.
    All,
    /// The system's programs and settings, what may be written, and these absolute paths.
    Listed(Vec<PathBuf>),
}

/// What is written besides the folders of a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scratch {
    /// Whether that is `/tmp`.
    pub tmp: bool,
    /// Whether that is the folder which `TMPDIR` names.
    pub tmpdir: bool,
}

/// What `/tmp` is to the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tmp {
    /// A path like any other: the other rules decide.
    Plain,
    /// Empty, writable, and gone with the command.
    Private,
    /// This folder, writable; so that what one command leaves there the next one finds.
    Folder(PathBuf),
}

/// Whom a command can talk to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    /// Nobody outside the fence. Where the fence has its own network, its processes can talk to each other.
    None,
    /// Whom the proxy behind this socket lets through: see [`egress`](crate::egress). The command finds it by
    /// the variables that [`egress::variables`](crate::egress::variables) names.
    Proxy(PathBuf),
    /// Everyone the user can, over IP.
    Open,
}

/// The names that are protected unless someone decides otherwise: what git runs code from, and the
/// folders in which agents that speak our protocol keep what they obey. Settings of editors are not among
/// them, because to write those is ordinary work.
pub const PROTECTED: [&str; 4] = [".git", ".codex", ".agents", ".raddle"];

/// Far more than a build needs, and few enough that a storm of forks ends.
const PROCESSES_MAX: u64 = 8192;

impl SandboxRules {
    /// Read everything, write nothing, talk to nobody.
    pub fn read_only() -> Self {
        Self::workspace_write(Vec::new())
    }

    /// Read everything, write these folders but for the protected names in them, talk to nobody.
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

    /// Hides what is the server's own: folders, and files that it reads its settings from.
    pub fn hide_own(&mut self, own: &[PathBuf]) {
        self.hidden.extend(own.iter().cloned());
        self.settings.extend(own.iter().cloned());
    }

    /// The same for a folder that is worked in, others beside it, and what everybody uses for scratch. Nothing if
    /// that folder is the whole disk.
    pub fn workspace(
        cwd: &Path,
        beside: impl IntoIterator<Item = PathBuf>,
        scratch: Scratch,
    ) -> Option<Self> {
        if cwd == Path::new("/") {
            return None;
        }
        let folders = [cwd.to_owned()].into_iter().chain(beside);
        let mut rules = Self::workspace_write(folders.collect());
        let (tmp, tmpdir) = scratch_folders();
        rules.scratch.extend(scratch.tmp.then(|| tmp.clone()));
        rules
            .scratch
            .extend(tmpdir.clone().filter(|_| scratch.tmpdir));
        Some(rules)
    }
}

/// The real paths of `/tmp` and of the folder which `TMPDIR` names, as they were before the first command: commands may
/// put a link where `TMPDIR` leads.
pub fn scratch_folders() -> &'static (PathBuf, Option<PathBuf>) {
    static FOLDERS: LazyLock<(PathBuf, Option<PathBuf>)> = LazyLock::new(|| {
        let real = |path: PathBuf| std::fs::canonicalize(&path).unwrap_or(path);
        let tmpdir = std::env::var_os("TMPDIR").map(PathBuf::from);
        let tmpdir = tmpdir.filter(|it| it.is_absolute());
        (real("/tmp".into()), tmpdir.map(real))
    });
    &FOLDERS
}
