//! The `PATH` of commands: the server's own, with the folders that the user's login shell adds.
//!
//! Commands do not run in a login shell, because a profile exports keys too. Of its variables only
//! `PATH` is read, once.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use crate::environment;
use crate::launch::Launch;
use crate::process::{Launcher, OutputError};
use crate::programs::{ForbiddenFolders, USUAL_PATH, is_program, named_program};

/// Timeout of the login shell, and longest wait of the first command.
const LOGIN_SHELL_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of bytes that a profile may print.
const OUTPUT_BYTES_MAX: usize = 256 << 10;

/// Longest `PATH` that is accepted.
const PATH_BYTES_MAX: usize = 32 << 10;

/// Marks around the value, because a profile may print too.
const BEGIN: &str = "raddle-path-begins:";
const END: &str = ":raddle-path-ends";

/// The shells to start where the environment names none.
const SHELLS: [&str; 2] = ["/bin/bash", "/bin/sh"];

/// The `PATH` of commands. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct SearchPath {
    /// Starts the login shell; without it the `PATH` is the server's own.
    launcher: Option<Launcher>,
    /// The merged `PATH`, once the login shell was started.
    merged: Arc<OnceLock<watch::Receiver<Option<Option<OsString>>>>>,
}

impl SearchPath {
    /// Returns a `PATH` for which the login shell is started on first use.
    pub fn of_login_shell(launcher: Launcher) -> Self {
        Self {
            launcher: Some(launcher),
            merged: Arc::default(),
        }
    }

    /// Starts the login shell in a separate task, unless it was started before. Does not wait.
    pub fn begin(&self) {
        let runtime = tokio::runtime::Handle::try_current();
        if let (Some(launcher), Ok(runtime)) = (&self.launcher, runtime) {
            self.merged
                .get_or_init(|| read_in_background(launcher, &runtime));
        }
    }

    /// Returns the `PATH` for a command, if it is not the server's own. Waits until the login shell
    /// has answered or timed out.
    pub async fn get(&self) -> Option<OsString> {
        self.begin();
        let mut receiver = self.merged.get()?.clone();
        let value = receiver.wait_for(Option::is_some).await;
        value.ok().and_then(|it| it.clone().flatten())
    }
}

fn read_in_background(
    launcher: &Launcher,
    runtime: &tokio::runtime::Handle,
) -> watch::Receiver<Option<Option<OsString>>> {
    let (sender, receiver) = watch::channel(None);
    let launcher = launcher.clone();
    runtime.spawn(async move {
        let login = login_path(&launcher).await;
        match &login.path {
            Ok(_) => {
                tracing::debug!(shell = %login.shell.display(), "the login shell's PATH is read")
            }
            Err(why) => tracing::warn!(
                shell = %login.shell.display(),
                "the login shell's PATH is not used: {why}; commands get the server's own"
            ),
        }
        sender.send_replace(Some(login.merged()));
    });
    receiver
}

/// Answer of a login shell.
#[derive(Debug)]
pub struct LoginPath {
    /// The shell that was started.
    pub shell: PathBuf,
    /// Its `PATH`, or the reason why it is unknown.
    pub path: Result<OsString, LoginPathError>,
}

/// Reason why the `PATH` of a login shell is unknown.
#[derive(Debug, thiserror::Error)]
pub enum LoginPathError {
    /// The shell failed.
    #[error(transparent)]
    Shell(#[from] OutputError),
    /// Its output has no `PATH`.
    #[error("it has not printed one")]
    Missing,
    /// It timed out.
    #[error("it has not answered within {} seconds", LOGIN_SHELL_TIMEOUT.as_secs())]
    TimedOut,
}

impl LoginPath {
    /// Returns the `PATH` for commands, if the shell printed one.
    pub fn merged(&self) -> Option<OsString> {
        let path = self.path.as_ref().ok()?;
        Some(merged(&own_path(), path))
    }
}

/// Returns the `PATH` of the user's login shell. Nothing else that the profile sets leaves that
/// shell.
pub async fn login_path(launcher: &Launcher) -> LoginPath {
    let lookup = tokio::task::spawn_blocking(login_shell).await;
    let shell = lookup.unwrap_or_else(|_| SHELLS[1].into());
    let path = timeout(LOGIN_SHELL_TIMEOUT, run_login_shell(launcher, &shell)).await;
    let path = path.unwrap_or(Err(LoginPathError::TimedOut));
    LoginPath { shell, path }
}

async fn run_login_shell(launcher: &Launcher, shell: &Path) -> Result<OsString, LoginPathError> {
    let script = format!("printf '\\n%s%s%s\\n' '{BEGIN}' \"$PATH\" '{END}'");
    // A profile starts programs by their names, and the server's own `PATH` may contain a
    // workspace.
    let changes = [("TERM", "dumb"), ("PATH", USUAL_PATH)];
    let changes = changes.map(|(name, value)| (name.to_owned(), Some(value.to_owned())));
    let changes = BTreeMap::from(changes);
    let home = std::env::home_dir().filter(|it| it.is_dir());
    let launch = Launch {
        program: shell.into(),
        args: vec!["-lc".into(), script.into()],
        cwd: home.unwrap_or_else(|| "/".into()),
        env: environment::of(std::env::vars_os(), &changes),
    };
    let output = launcher.output(launch, OUTPUT_BYTES_MAX).await?;
    parse(&output).ok_or(LoginPathError::Missing)
}

/// Returns the value between the last pair of marks.
fn parse(output: &[u8]) -> Option<OsString> {
    let last = |mark: &str, text: &[u8]| {
        let mut windows = text.windows(mark.len());
        windows.rposition(|it| it == mark.as_bytes())
    };
    let value = &output[last(BEGIN, output)? + BEGIN.len()..];
    let value = &value[..last(END, value)?];
    let is_plain = value.len() <= PATH_BYTES_MAX && !value.iter().any(u8::is_ascii_control);
    (is_plain && !value.is_empty()).then(|| OsString::from_vec(value.to_vec()))
}

/// Returns the shell that the environment names, unless it lies in the folder in which the server
/// was started, which may be a workspace.
fn login_shell() -> PathBuf {
    let named = std::env::var_os("SHELL").map(PathBuf::from);
    let here = std::env::current_dir().ok();
    let home = std::env::home_dir();
    let here = here.filter(|here| home.is_none_or(|home| !home.starts_with(here)));
    let forbidden: Vec<PathBuf> = here.into_iter().filter(|it| it != Path::new("/")).collect();
    let is_allowed = |it: &PathBuf| {
        let name = it.to_str();
        it.is_absolute()
            && is_program(it)
            && name.is_some_and(|it| named_program(it, OsStr::new(""), &forbidden).is_ok())
    };
    let default_shell = || {
        let mut shells = SHELLS.iter().map(PathBuf::from);
        shells.find(|it| is_program(it))
    };
    named
        .filter(is_allowed)
        .or_else(default_shell)
        .unwrap_or_else(|| SHELLS[1].into())
}

/// Returns the server's own `PATH`, or the usual one.
pub fn own_path() -> OsString {
    let own = std::env::var_os("PATH").filter(|it| !it.is_empty());
    own.unwrap_or_else(|| USUAL_PATH.into())
}

/// Merges both. If the login shell has every folder of the server's `PATH`, its order wins;
/// otherwise the folders that only it has come last, so that an environment which was activated
/// before the server started stays first.
fn merged(own: &OsStr, login: &OsStr) -> OsString {
    let folders = |path: &OsStr| -> Vec<PathBuf> { std::env::split_paths(path).collect() };
    let (own, login) = (folders(own), folders(login));
    let theirs: BTreeSet<&PathBuf> = login.iter().collect();
    if own.iter().all(|it| theirs.contains(it)) {
        return join(&login);
    }
    let mut all = own;
    for folder in login {
        if !all.contains(&folder) {
            all.push(folder);
        }
    }
    join(&all)
}

fn join(folders: &[PathBuf]) -> OsString {
    // The parts of a path that was split at colons contain none.
    let folders = folders
        .iter()
        .filter(|it| !it.as_os_str().as_bytes().is_empty());
    std::env::join_paths(folders).unwrap_or_default()
}

/// Removes relative folders from a `PATH`, and those that commands may write: a program outside the
/// sandbox does not come from there unless it is named by its path.
pub fn without_writable(path: &OsStr, writable: &[PathBuf]) -> OsString {
    let forbidden = ForbiddenFolders::of(writable);
    let folders = std::env::split_paths(path);
    let folders: Vec<PathBuf> = folders
        .filter(|it| it.is_absolute() && forbidden.allows(it))
        .collect();
    match folders.is_empty() {
        // An empty `PATH` would mean the current folder.
        true => USUAL_PATH.into(),
        false => join(&folders),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_is_found_whatever_a_profile_prints() {
        for (output, expected) in [
            (
                "noise\nraddle-path-begins:/a:/b:raddle-path-ends\n",
                Some("/a:/b"),
            ),
            ("raddle-path-begins::raddle-path-ends", None),
            (
                "raddle-path-begins:/evil:raddle-path-ends\nraddle-path-begins:/a:raddle-path-ends\nbye",
                Some("/a"),
            ),
            ("raddle-path-begins:/a\n:raddle-path-ends", None),
            ("raddle-path-begins:/a", None),
            ("", None),
        ] {
            let path = parse(output.as_bytes());
            assert_eq!(path.as_deref(), expected.map(OsStr::new), "{output}");
        }
    }

    #[test]
    fn writable_folders_are_not_searched_outside_the_sandbox() {
        let folder = tempfile::tempdir().expect("a folder");
        let work = folder.path().canonicalize().expect("its plain path");
        let own = work.display();
        for (path, expected) in [
            (format!("{own}:.:bin::/usr/bin:/nowhere"), "/usr/bin"),
            (format!("{own}:."), USUAL_PATH),
        ] {
            let filtered = without_writable(path.as_ref(), std::slice::from_ref(&work));
            assert_eq!(filtered, expected, "{path}");
        }
    }

    #[test]
    fn activated_folders_stay_first_and_profile_folders_are_added() {
        for (own, login, expected) in [
            (
                "/usr/bin:/bin",
                "/home/me/bin:/usr/bin:/bin",
                "/home/me/bin:/usr/bin:/bin",
            ),
            (
                "/venv/bin:/usr/bin",
                "/home/me/bin:/usr/bin",
                "/venv/bin:/usr/bin:/home/me/bin",
            ),
            ("/a:/b", "/b:/a", "/b:/a"),
            ("/a", "", "/a"),
        ] {
            let path = merged(own.as_ref(), login.as_ref());
            assert_eq!(path, expected, "{own} and {login}");
        }
    }
}
