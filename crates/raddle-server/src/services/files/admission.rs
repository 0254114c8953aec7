//! The rule for the paths that clients may reach by `fs/*` and `fuzzyFileSearch`.
//!
//! Closed to every client: the kernel's view of processes, because it contains the server's own
//! environment and memory; the server's own folders, except skills; and files with keys or tokens.
//! An observer reaches only the workspaces of threads that it follows.
//!
//! A path is opened first and judged by where that led. Data is read from the opened descriptor, so
//! exchanging a link in between has no effect.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use raddle_config::Config;
use raddle_protocol::table::Method;
use rustix::fs::{Mode, OFlags, fstatfs, open};

use crate::call::Call;
use crate::options::Options;
use crate::services::ServerState;
use crate::session::Session;
use crate::wire_error::WireError;

/// Magic number of `/proc`.
const PROC_MAGIC: u64 = 0x9fa0;

/// Magic numbers of `/proc`, control groups, and the kernel's debug file systems.
const KERNEL_MAGICS: [u64; 5] = [PROC_MAGIC, 0x27_e0eb, 0x6367_7270, 0x6462_6720, 0x7472_6163];

/// Limit: files of the server that a file with several names is compared with; beyond it, the file
/// is not served.
const FILES_MAX: usize = 20_000;

/// The rule for one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathAdmission {
    /// Folders and files of the server.
    closed: Vec<PathBuf>,
    /// Folders inside these that clients may reach.
    open: Vec<PathBuf>,
    /// The folders that an observer may read; other clients have no such limit.
    within: Option<Vec<PathBuf>>,
}

impl PathAdmission {
    /// Returns the rule for a connection, by the names of paths. [`PathAdmission::resolved`]
    /// resolves them.
    pub(crate) async fn of(state: &ServerState, session: &Session) -> Self {
        let mut within = None;
        if session.is_observer() {
            let mut folders = Vec::new();
            for id in session.followed_threads() {
                if let Ok(peek) = state.threads.peek(id).await {
                    let settings = peek.thread.settings();
                    let roots = std::iter::once(&settings.cwd).chain(&settings.roots);
                    folders.extend(roots.map(|it| PathBuf::from(settings.real(it))));
                }
            }
            within = Some(folders);
        }
        Self {
            within,
            ..Self::of_server(&state.options, &state.config)
        }
    }

    /// Returns the rule for the server's own reads, by the names of paths.
    pub(crate) fn of_server(options: &Options, config: &Config) -> Self {
        let mut closed = options.paths.hidden_paths();
        closed.extend(secret_files(options, config));
        Self {
            closed,
            open: vec![options.paths.skills.clone()],
            within: None,
        }
    }

    /// Whether a path leads into the server's own folders, skills included. Commands in a sandbox do
    /// not see it.
    pub(crate) fn is_of_server(&self, path: &Path) -> bool {
        let real = fs::canonicalize(path);
        let real = real.as_deref().unwrap_or(path);
        self.closed.iter().any(|it| real.starts_with(it))
    }

    /// Returns the rule with real paths. Blocks on the disk.
    pub(crate) fn resolved(&self) -> Self {
        let all = |paths: &[PathBuf]| paths.iter().flat_map(|it| names_of(it)).collect();
        Self {
            closed: all(&self.closed),
            open: all(&self.open),
            // These are real paths, unless a command has replaced one by a link.
            within: self.within.clone().map(|mut within| {
                within.retain(|it| fs::canonicalize(it).is_ok_and(|real| real == *it));
                within
            }),
        }
    }

    /// Runs the work of a request on a thread that may block on the disk, under the rule for its
    /// connection.
    pub(crate) async fn on_disk<M, F>(state: Arc<ServerState>, call: Call<M>, work: F)
    where
        M: Method,
        F: FnOnce(M::Params, &Self) -> Result<M::Result, WireError> + Send + 'static,
    {
        let admission = Self::of(&state, &call.session).await;
        drop(state);
        call.on_disk(move |params| work(params, &admission.resolved()))
            .await;
    }

    /// Opens a path for inspection, if it is admitted.
    pub(crate) fn open(&self, path: &Path) -> Result<AdmittedPath, WireError> {
        let fd = match open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
            Ok(fd) => fd,
            Err(error) => {
                // Does not reveal whether a closed path exists.
                self.check(path)?;
                return Err(io::Error::from(error).into());
            }
        };
        let admitted = AdmittedPath { fd };
        self.judge(&admitted, path)?;
        Ok(admitted)
    }

    /// Checks that a path is admitted, by where it leads. A path that does not exist yet is judged
    /// by where it would be.
    pub(crate) fn check(&self, path: &Path) -> Result<(), WireError> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        for folder in path.ancestors() {
            match open(folder, flags, Mode::empty()) {
                Ok(fd) => {
                    let below = path.strip_prefix(folder).unwrap_or(Path::new(""));
                    if below.components().any(|it| it == Component::ParentDir) {
                        return Err(io::Error::from(io::ErrorKind::NotFound).into());
                    }
                    let admitted = AdmittedPath { fd };
                    if below == Path::new("") {
                        return self.judge(&admitted, path);
                    }
                    let real = admitted.real()?;
                    if admitted.is_kernel_generated()? {
                        return Err(closed(path));
                    }
                    return self.judge_path(&real.join(below), path);
                }
                // A write would follow a dangling link.
                Err(_) if folder.is_symlink() => {
                    let target = fs::read_link(folder)?;
                    let parent = folder.parent().unwrap_or(Path::new("/"));
                    let target = parent.join(target);
                    if target.components().any(|it| it == Component::ParentDir) {
                        return Err(closed(path));
                    }
                    self.judge_path(&target, path)?;
                }
                Err(_) => {}
            }
        }
        Err(closed(path))
    }

    /// Like [`Self::check`], for a path whose last component is not followed if it is a link.
    pub(crate) fn check_name(&self, path: &Path) -> Result<(), WireError> {
        // After a link, such an ending leads into the folder that the link names.
        let text = path.as_os_str().as_bytes();
        if text.ends_with(b"/") || text.ends_with(b"/.") {
            return self.check(path);
        }
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return self.check(path);
        };
        self.check(folder)?;
        match fs::canonicalize(folder) {
            Ok(real) => self.judge_path(&real.join(name), path),
            Err(_) => self.judge_path(path, path),
        }
    }

    /// Rejects a folder that contains something closed, because all of it would be read.
    pub(crate) fn check_all_below(&self, path: &Path) -> Result<(), WireError> {
        self.judge_all_below(&fs::canonicalize(path)?, path)
    }

    /// Like [`Self::check_all_below`], for a folder by its real path.
    pub(super) fn judge_all_below(&self, real: &Path, requested: &Path) -> Result<(), WireError> {
        let is_inside = |it: &PathBuf| it.starts_with(real);
        match self.closed.iter().any(is_inside) || Path::new("/proc").starts_with(real) {
            true => Err(closed(requested)),
            false => Ok(()),
        }
    }

    /// Returns the rule restricted to paths below a folder, given by its real path.
    pub(crate) fn below(&self, folder: &Path) -> Self {
        let within = match &self.within {
            None => vec![folder.to_owned()],
            Some(within) => {
                let narrower = |it: &PathBuf| match folder.starts_with(it) {
                    true => Some(folder.to_owned()),
                    false => it.starts_with(folder).then(|| it.clone()),
                };
                within.iter().filter_map(narrower).collect()
            }
        };
        Self {
            within: Some(within),
            ..self.clone()
        }
    }

    /// Rejects an open file that has another link which is closed.
    pub(crate) fn check_file(&self, path: &Path, metadata: &Metadata) -> Result<(), WireError> {
        let is_same_file =
            |other: &Metadata| (other.dev(), other.ino()) == (metadata.dev(), metadata.ino());
        if !metadata.is_file() || metadata.nlink() < 2 {
            return Ok(());
        }
        let mut waiting = self.closed.clone();
        let mut remaining = FILES_MAX;
        while let Some(next) = waiting.pop() {
            let Ok(metadata_of_next) = fs::symlink_metadata(&next) else {
                continue;
            };
            if is_same_file(&metadata_of_next) || remaining == 0 {
                return Err(closed(path));
            }
            remaining -= 1;
            let is_open = self.open.iter().any(|it| next.starts_with(it));
            if metadata_of_next.is_dir() && !is_open {
                let entries = fs::read_dir(&next).into_iter().flatten();
                waiting.extend(entries.flatten().map(|it| it.path()));
            }
        }
        Ok(())
    }

    fn judge(&self, admitted: &AdmittedPath, requested: &Path) -> Result<(), WireError> {
        if admitted.is_kernel_generated()? {
            return Err(closed(requested));
        }
        self.judge_path(&admitted.real()?, requested)?;
        self.check_file(requested, &admitted.metadata()?)
    }

    /// Checks that a real path is admitted.
    pub(crate) fn judge_path(&self, real: &Path, requested: &Path) -> Result<(), WireError> {
        let is_in = |folders: &[PathBuf]| folders.iter().any(|it| real.starts_with(it));
        let is_closed = is_in(&self.closed) && !is_in(&self.open);
        if is_closed || real.starts_with("/proc") {
            return Err(closed(requested));
        }
        match &self.within {
            Some(within) if !is_in(within) => Err(WireError::OutsideOfThreads {
                path: requested.to_owned(),
            }),
            _ => Ok(()),
        }
    }
}

/// An opened path, held so that it stays what was judged.
#[derive(Debug)]
pub(crate) struct AdmittedPath {
    fd: OwnedFd,
}

impl AdmittedPath {
    /// Returns a path that leads to exactly this file while it is held.
    pub(crate) fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.fd.as_raw_fd()).into()
    }

    pub(super) fn of(fd: OwnedFd) -> Self {
        Self { fd }
    }

    pub(super) fn into_fd(self) -> OwnedFd {
        self.fd
    }

    /// Returns its real path.
    pub(super) fn real(&self) -> io::Result<PathBuf> {
        fs::read_link(self.path())
    }

    /// Whether its real name ends with this extension.
    pub(crate) fn is_named_like(&self, extension: &str) -> Result<bool, WireError> {
        let real = self.real()?;
        let actual = real.extension();
        Ok(actual.is_some_and(|it| it.eq_ignore_ascii_case(extension)))
    }

    pub(crate) fn metadata(&self) -> io::Result<Metadata> {
        File::from(self.fd.try_clone()?).metadata()
    }

    /// Whether it is on a file system that the kernel generates from processes.
    pub(super) fn is_kernel_generated(&self) -> Result<bool, WireError> {
        let kind = fstatfs(&self.fd).map_err(io::Error::from)?.f_type;
        Ok(u64::try_from(kind).is_ok_and(|it| KERNEL_MAGICS.contains(&it)))
    }
}

pub(super) fn closed(path: &Path) -> WireError {
    WireError::ClosedPath {
        path: path.to_owned(),
    }
}

/// Returns a path as named, with its parent resolved, and fully resolved.
fn names_of(path: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let real = fs::canonicalize(path).ok();
    let folder = path.parent().and_then(|it| fs::canonicalize(it).ok());
    let name = folder.and_then(|it| Some(it.join(path.file_name()?)));
    let other = |it: &PathBuf| it != path;
    let mut all = vec![path.to_owned()];
    all.extend(name.filter(other));
    all.extend(real.filter(other));
    all.dedup();
    all.into_iter()
}

/// Returns the files that hold tokens of clients and keys of models.
pub(crate) fn secret_files(options: &Options, config: &Config) -> Vec<PathBuf> {
    let mut files = options.secrets.clone();
    files.extend(key_files(config.state().table()));
    files
}

/// Returns the files that hold the keys of models.
fn key_files(config: &toml::Table) -> Vec<PathBuf> {
    let providers = config
        .get("model_providers")
        .and_then(toml::Value::as_table);
    let providers = providers.into_iter().flat_map(toml::Table::values);
    let files = providers.filter_map(|it| it.get("key_file")?.as_str());
    let home = std::env::var_os("HOME");
    let file = |it: &str| match (it.strip_prefix("~/"), &home) {
        (Some(below), Some(home)) => Path::new(home).join(below),
        _ => PathBuf::from(it),
    };
    files.map(file).collect()
}
