//! The `PATH` of commands: the server's own, with what the user's login shell adds to it.
//!
//! Commands run in no login shell, because a profile exports keys too. Of what it sets, `PATH` alone is read, once.

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
use crate::process::Launcher;
use crate::programs::{ForbiddenFolders, USUAL_PATH, is_program, named_program};

/// How long the login shell may take, and how long the first command waits for it at the most.
const TIMEOUT: Duration = Duration::from_secs(5);

/// How much a profile may write.
const OUTPUT_BYTES_MAX: usize = 256 << 10;

/// The longest `PATH` that is taken.
const PATH_BYTES_MAX: usize = 32 << 10;

/// What stands around the value, for a profile may write too.
const BEGIN: &str = "raddle-path-begins:";
const END: &str = ":raddle-path-ends";

/// The shells to ask where the environment names none.
const SHELLS: [&str; 2] = ["/bin/bash", "/bin/sh"];

/// The `PATH` of commands. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct SearchPath {
    /// Starts the login shell; without it the `PATH` is the server's own.
    launcher: Option<Launcher>,
    /// The `PATH` with what the login shell adds, once that was asked.
    read: Arc<OnceLock<watch::Receiver<Option<Option<OsString>>>>>,
}

impl SearchPath {
    /// One for which the login shell is asked when it is first needed.
    pub fn of_login_shell(engine: Launcher) -> Self {
        Self {
            launcher: Some(engine),
            read: Arc::default(),
        }
    }

    /// Begins to ask the login shell, in a task of its own, unless it was asked before. Does not wait.
    pub fn begin(&self) {
        let runtime = tokio::runtime::Handle::try_current();
        if let (Some(engine), Ok(runtime)) = (&self.launcher, runtime) {
            self.read
                .get_or_init(|| ask_in_background(engine, &runtime));
        }
    }

    /// What `PATH` is for a command, if not the server's own. Waits until the login shell has answered, or has had its
    /// time.
    pub async fn get(&self) -> Option<OsString> {
        self.begin();
        let mut read = self.read.get()?.clone();
        let read = read.wait_for(Option::is_some).await;
        read.ok().and_then(|it| it.clone().flatten())
    }
}

fn ask_in_background(
    engine: &Launcher,
    runtime: &tokio::runtime::Handle,
) -> watch::Receiver<Option<Option<OsString>>> {
    let (found, read) = watch::channel(None);
    let engine = engine.clone();
    runtime.spawn(async move {
        let login = login_path(&engine).await;
        match &login.path {
            Ok(_) => {
                tracing::debug!(shell = %login.shell.display(), "the login shell's PATH is read")
            }
            Err(why) => tracing::warn!(
                shell = %login.shell.display(),
                "the login shell's PATH is not used: {why}; commands get the server's own"
            ),
        }
        found.send_replace(Some(login.merged()));
    });
    read
}

/// What a login shell says.
#[derive(Debug)]
pub struct LoginPath {
    /// The shell.
    pub shell: PathBuf,
    /// Its `PATH`, or why it is not known.
    pub path: Result<OsString, String>,
}

impl LoginPath {
    /// The `PATH` for commands, if the shell has said one.
    pub fn merged(&self) -> Option<OsString> {
        let path = self.path.as_ref().ok()?;
        Some(merged(&own_path(), path))
    }
}

/// The `PATH` that the user's login shell has. Nothing else of what the profile sets leaves that shell.
pub async fn login_path(engine: &Launcher) -> LoginPath {
    let looking = tokio::task::spawn_blocking(login_shell).await;
    let shell = looking.unwrap_or_else(|_| SHELLS[1].into());
    let path = timeout(TIMEOUT, ask(engine, &shell)).await;
    let path = path.unwrap_or_else(|_| {
        let seconds = TIMEOUT.as_secs();
        Err(format!("it has not answered within {seconds} seconds"))
    });
    LoginPath { shell, path }
}

async fn ask(engine: &Launcher, shell: &Path) -> Result<OsString, String> {
    let script = format!("printf '\\n%s%s%s\\n' '{BEGIN}' \"$PATH\" '{END}'");
    // A profile starts programs by their names, and the server's own `PATH` may have a workspace in it.
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
    let output = engine.output(launch, OUTPUT_BYTES_MAX).await?;
    parse(&output).ok_or_else(|| "it has not printed one".to_owned())
}

/// The value between the last pair of marks.
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

/// The shell that the environment names, unless it lies in the folder that the server was started in, which may be a
/// workspace.
fn login_shell() -> PathBuf {
    let named = std::env::var_os("SHELL").map(PathBuf::from);
    let here = std::env::current_dir().ok();
    let home = std::env::home_dir();
    let here = here.filter(|here| home.is_none_or(|home| !home.starts_with(here)));
    let closed: Vec<PathBuf> = here.into_iter().filter(|it| it != Path::new("/")).collect();
    let is_open = |it: &PathBuf| {
        let name = it.to_str();
        it.is_absolute()
            && is_program(it)
            && name.is_some_and(|it| named_program(it, OsStr::new(""), &closed).is_ok())
    };
    let usual = || {
        let mut shells = SHELLS.iter().map(PathBuf::from);
        shells.find(|it| is_program(it))
    };
    named
        .filter(is_open)
        .or_else(usual)
        .unwrap_or_else(|| SHELLS[1].into())
}

/// The server's own `PATH`.
pub fn own_path() -> OsString {
    let own = std::env::var_os("PATH").filter(|it| !it.is_empty());
    own.unwrap_or_else(|| USUAL_PATH.into())
}

/// Both in one. If the login shell has every folder of the server's, its order counts; else what only it has comes
/// last, so that an environment which was activated before the server started stays first.
fn merged(own: &OsStr, login: &OsStr) -> OsString {
    let folders = |path: &OsStr| -> Vec<PathBuf> { std::env::split_paths(path).collect() };
    let (own, login) = (folders(own), folders(login));
    let theirs: BTreeSet<&PathBuf> = login.iter().collect();
    if own.iter().all(|it| theirs.contains(it)) {
        return joined(&login);
    }
    let mut all = own;
    for folder in login {
        if !all.contains(&folder) {
            all.push(folder);
        }
    }
    joined(&all)
}

fn joined(folders: &[PathBuf]) -> OsString {
    // What was split at colons has none.
    let folders = folders
        .iter()
        .filter(|it| !it.as_os_str().as_bytes().is_empty());
    std::env::join_paths(folders).unwrap_or_default()
}

/// The `PATH` without relative folders, and without those that commands may write: what is run outside the sandbox does
/// not come from there unless it is named by its path.
pub fn without_writable(path: &OsStr, writable: &[PathBuf]) -> OsString {
    let closed = ForbiddenFolders::of(writable);
    let folders = std::env::split_paths(path);
    let folders: Vec<PathBuf> = folders
        .filter(|it| it.is_absolute() && closed.is_open(it))
        .collect();
    match folders.is_empty() {
        // Nothing would mean the current folder.
        true => USUAL_PATH.into(),
        false => joined(&folders),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_is_found_whatever_a_profile_writes() {
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
            let found = parse(output.as_bytes());
            assert_eq!(found.as_deref(), expected.map(OsStr::new), "{output}");
        }
    }

    #[test]
    fn outside_the_sandbox_nothing_is_searched_that_commands_may_write() {
        let folder = tempfile::tempdir().expect("a folder");
        let work = folder.path().canonicalize().expect("its plain path");
        let own = work.display();
        for (path, expected) in [
            (format!("{own}:.:bin::/usr/bin:/nowhere"), "/usr/bin"),
            (format!("{own}:."), USUAL_PATH),
        ] {
            let found = without_writable(path.as_ref(), std::slice::from_ref(&work));
            assert_eq!(found, expected, "{path}");
        }
    }

    #[test]
    fn what_was_activated_stays_first_and_what_a_profile_adds_is_found() {
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
            let found = merged(own.as_ref(), login.as_ref());
            assert_eq!(found, expected, "{own} and {login}");
        }
    }
}
