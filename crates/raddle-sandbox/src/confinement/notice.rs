//! Paths that the sandbox could not protect, or only by protecting more than the rules ask for.

use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, PoisonError};

/// A path in a writable folder that the sandbox cannot protect exactly. Commands run all the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Notice {
    /// A folder that cannot be entered or listed; it is read-only as a whole.
    Closed(PathBuf),
    /// A link that git would follow; the folder around it is read-only as a whole.
    Link(PathBuf),
    /// A folder with more repositories than can be mounted; it is read-only as a whole.
    Many(PathBuf),
    /// A root with more paths that control git than the budget covers; it is read-only as a whole.
    Costly(PathBuf),
    /// A root with more folders than the walk visits.
    Walk(PathBuf),
    /// The user's home, which lies in a writable root; its top and its dotfiles are read-only.
    Home(PathBuf),
    /// A path that controls git and that a command could replace.
    Open {
        /// The path that stays unprotected.
        path: PathBuf,
        /// Way in which it controls git.
        because: String,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed(path) => write!(
                f,
                "{path} cannot be entered or listed, so it is not known whether a repository is in it, and commands \
                 cannot change it; to let them, make it readable (`chmod u+rwx {path}`) or remove it",
                path = path.display()
            ),
            Self::Link(path) => write!(
                f,
                "{} is a symbolic link, which cannot be kept as it is, so commands cannot write in the folder around \
                 it; to let them, remove the link, or put a file with `gitdir: PATH` in its place",
                path.display()
            ),
            Self::Many(path) => write!(
                f,
                "{} has more repositories than can be protected one by one, so commands cannot write in it; to let \
                 them, remove those that are not needed, or work in one of them",
                path.display()
            ),
            Self::Costly(path) => write!(
                f,
                "it takes too long to find what git obeys in {}, so commands cannot write in it; to let them, remove \
                 repositories with a very long configuration or index, or work in a folder without them",
                path.display()
            ),
            Self::Walk(path) => write!(
                f,
                "{} has more folders than are searched for repositories ({}); those further down are protected only \
                 if the index names them as submodules; work in a smaller folder",
                path.display(),
                crate::confinement::repositories::FOLDERS_MAX
            ),
            Self::Home(path) => write!(
                f,
                "{} is your home: commands can write in the folders in it, but can neither change its dotfiles nor make \
                 anything beside them, because shells and other programs obey those; start in the folder of a project",
                path.display()
            ),
            Self::Open { path, because } => write!(
                f,
                "{} is not protected, although {because}: a command could change it, and git would obey; look at it \
                 before you run git there",
                path.display()
            ),
        }
    }
}

/// Notices that are remembered, so that each is logged once.
const LOGGED_MAX: usize = 1_000;

/// Logs the notices that were not logged before.
pub(crate) fn log(notices: &[Notice]) {
    static LOGGED: LazyLock<Mutex<HashSet<Notice>>> = LazyLock::new(Mutex::default);
    if notices.is_empty() {
        return;
    }
    let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
    for notice in notices {
        if logged.len() < LOGGED_MAX && logged.insert(notice.clone()) {
            // A folder that a command named must not forge a line.
            let text = notice.to_string().replace(char::is_control, "\u{fffd}");
            tracing::warn!("{text}");
        }
    }
}
