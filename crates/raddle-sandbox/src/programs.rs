//! Resolves a program's name to a file, where the server itself starts the program outside every
//! sandbox.
//!
//! There are two classes. The server's own helpers come from the system, or from a path that the
//! operator configured. They are not looked up on `PATH`, because an activated environment puts
//! folders of a workspace first in it. Programs that the operator names are looked up on `PATH`,
//! but never in a folder that a sandboxed command may write.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::confinement::PolicyPath;
use crate::search_path::without_writable;

/// Folders in which a system keeps its programs, in the order in which they are searched.
const SYSTEM: [&str; 3] = ["/usr/bin", "/bin", "/usr/local/bin"];

/// The search path where `PATH` is not set, as in a shell.
pub const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Reason why a program is not started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// The system has no such program.
    #[error(
        "bubblewrap is not installed: there is no `bwrap` in /usr/bin, /bin or /usr/local/bin{}; if it is elsewhere, \
         write its absolute path into config.toml as `sandbox_bwrap_path`",
        ignored.as_ref().map(|it| format!(" ({} on PATH is ignored)", it.display())).unwrap_or_default()
    )]
    NoBubblewrap {
        /// The one that `PATH` names.
        ignored: Option<PathBuf>,
    },
    /// Users other than root could have written it.
    #[error(
        "{} is ignored: it, or a folder around it, is not owned by root or can be written by others; fix that, or \
         write its absolute path into config.toml as `sandbox_bwrap_path`",
        path.display()
    )]
    NotRoots {
        /// The file that is ignored.
        path: PathBuf,
    },
    /// The configured path cannot be used.
    #[error("`{}`, which the configuration names, cannot be used: {why}", path.display())]
    Configured {
        /// The path as the configuration has it.
        path: PathBuf,
        /// The problem with the path.
        why: &'static str,
    },
    /// It is unknown which bubblewrap is configured, for this reason.
    #[error("cannot determine which bubblewrap to use: {0}")]
    NotKnown(String),
    /// No folder of `PATH` that may be used has it.
    #[error("there is no program `{name}` on PATH, or only in folders that commands may write")]
    NotFound {
        /// The name that was looked up.
        name: String,
    },
    /// A sandboxed command could replace it.
    #[error("{} lies in a folder that commands may write; move it to another one", path.display())]
    Writable {
        /// The file that commands may write.
        path: PathBuf,
    },
}

/// Returns the bubblewrap to start: the one that the operator configured, else the system's. `path`
/// is the `PATH`; a bubblewrap on it is only named in the error.
pub fn find_bubblewrap(
    configured: Option<&Path>,
    path: Option<&OsStr>,
) -> Result<PathBuf, ProgramError> {
    match configured {
        Some(named) => configured_program(named),
        None => system_program("bwrap", path),
    }
}

/// Returns a program of the system: a file of root's in folders that only root can write.
fn system_program(name: &str, path: Option<&OsStr>) -> Result<PathBuf, ProgramError> {
    let mut rejected = None;
    for folder in SYSTEM {
        let file = Path::new(folder).join(name);
        if !is_program(&file) {
            continue;
        }
        match fs::canonicalize(&file) {
            Ok(real) if is_owned_by_root(&file) => return Ok(real),
            _ => rejected = rejected.or(Some(file)),
        }
    }
    if let Some(path) = rejected {
        return Err(ProgramError::NotRoots { path });
    }
    let on_path = path.into_iter().flat_map(std::env::split_paths);
    let mut on_path = on_path.map(|it| it.join(name));
    Err(ProgramError::NoBubblewrap {
        ignored: on_path.find(|it| it.is_absolute() && is_program(it)),
    })
}

const NOT_EXECUTABLE: &str = "it is not an executable file; write the path of bwrap";

/// Returns a program by the path that the operator configured. It may be the user's own.
fn configured_program(named: &Path) -> Result<PathBuf, ProgramError> {
    let error = |why| ProgramError::Configured {
        path: named.to_owned(),
        why,
    };
    if !named.is_absolute() {
        return Err(error("it must be an absolute path"));
    }
    if !is_program(named) {
        return Err(error(NOT_EXECUTABLE));
    }
    let real = fs::canonicalize(named).map_err(|_| error("it cannot be read"))?;
    // A command could replace a link although its target is protected. Links of root's stay as they
    // are.
    if real != named && !is_owned_by_root(named) {
        return Err(error("its path contains a link; name the file itself"));
    }
    Ok(real)
}

/// Returns whether only root can have written a file, and put it where it is.
pub fn is_owned_by_root(path: &Path) -> bool {
    let is_root_owned = |it: &Path| {
        let metadata = fs::symlink_metadata(it);
        metadata.is_ok_and(|it| it.uid() == 0 && it.mode() & 0o022 == 0)
    };
    let real = fs::canonicalize(path);
    // A link on the path is as trustworthy as the folder that contains it.
    let named = path.parent().and_then(|it| fs::canonicalize(it).ok());
    real.is_ok_and(|it| it.ancestors().all(is_root_owned))
        && named.is_some_and(|it| it.ancestors().all(is_root_owned))
}

/// A program that the operator named, ready to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedProgram {
    /// The file that the name resolved to.
    pub file: PathBuf,
    /// The `PATH` for it, without folders that commands may write.
    pub path: OsString,
}

/// Resolves a program that the operator names, by its name or its absolute path. `path` is the
/// `PATH`; `writable` are the workspaces and the other folders that sandboxed commands may write.
pub fn named_program(
    name: &str,
    path: &OsStr,
    writable: &[PathBuf],
) -> Result<NamedProgram, ProgramError> {
    let forbidden = ForbiddenFolders::of(writable);
    let path = without_writable(path, writable);
    let file = if name.contains('/') {
        let file = PathBuf::from(name);
        if file.exists() && !forbidden.allows(&file) {
            return Err(ProgramError::Writable { path: file });
        }
        file
    } else {
        let mut files = std::env::split_paths(&path).map(|it| it.join(name));
        let program = files.find(|it| is_program(it) && forbidden.allows(it));
        program.ok_or_else(|| ProgramError::NotFound {
            name: name.to_owned(),
        })?
    };
    Ok(NamedProgram { file, path })
}

/// Whether commands that may write these folders could replace a file or a folder: by its path, a
/// link that the path passes through, or its target. It blocks on the disk.
pub fn is_replaceable(path: &Path, writable: &[PathBuf]) -> bool {
    path.exists() && !ForbiddenFolders::of(writable).allows(path)
}

/// Folders from which nothing is started, by their names and by their real paths.
pub(crate) struct ForbiddenFolders(Vec<PathBuf>);

impl ForbiddenFolders {
    pub(crate) fn of(folders: &[PathBuf]) -> Self {
        let real = folders.iter().filter_map(|it| fs::canonicalize(it).ok());
        Self(real.chain(folders.to_vec()).collect())
    }

    /// Returns whether a path exists, and neither it, nor a link that it passes through, nor its
    /// target lies in one of them.
    pub(crate) fn allows(&self, path: &Path) -> bool {
        let policy_path = std::path::absolute(path).and_then(|it| PolicyPath::of(&it));
        policy_path.is_ok_and(|policy_path| {
            let is_forbidden = |it: &Path| self.0.iter().any(|folder| it.starts_with(folder));
            let links = policy_path.links.iter().map(PathBuf::as_path);
            policy_path.exists && !links.chain([path, &policy_path.real]).any(is_forbidden)
        })
    }
}

/// Returns whether there is an executable file.
pub fn is_program(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_program_is_replaceable_by_its_path_its_links_and_its_target() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        for name in ["workspace/python3", "usr/python3"] {
            write_program(&at(name));
        }
        symlink(at("workspace"), at("link")).expect("a link");
        symlink(at("usr/python3"), at("workspace/system")).expect("a link");
        symlink(at("workspace/python3"), at("usr/other")).expect("a link");
        for (name, expected) in [
            ("workspace/python3", true),
            ("link/python3", true),
            ("workspace/system", true),
            ("usr/other", true),
            ("usr/python3", false),
            ("usr/missing", false),
        ] {
            let writable = [at("workspace")];
            assert_eq!(is_replaceable(&at(name), &writable), expected, "{name}");
            assert!(!is_replaceable(&at(name), &[]), "{name}");
        }
    }

    fn write_program(file: &Path) {
        fs::create_dir_all(file.parent().expect("a folder")).expect("it is made");
        fs::write(file, "#!/bin/sh\n").expect("it is written");
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).expect("it is marked");
    }

    #[test]
    fn the_systems_bubblewrap_is_found_without_a_path() {
        let folder = tempfile::tempdir().expect("a folder");
        write_program(&folder.path().join("bwrap"));
        let program = find_bubblewrap(None, Some(folder.path().as_os_str())).expect("bubblewrap");
        assert!(is_owned_by_root(&program), "{}", program.display());
        assert!(!program.starts_with(folder.path()), "{}", program.display());
    }

    #[test]
    fn a_program_that_the_system_lacks_is_named_and_not_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = folder.path().join("no-such-program");
        write_program(&own);
        let error = system_program("no-such-program", Some(folder.path().as_os_str()));
        let ignored = Some(own);
        assert_eq!(error, Err(ProgramError::NoBubblewrap { ignored }));
        let relative = system_program("no-such-program", Some(OsStr::new(".:bin")));
        assert_eq!(relative, Err(ProgramError::NoBubblewrap { ignored: None }));
    }

    #[test]
    fn a_configured_path_is_the_users_to_choose() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().canonicalize().expect("its plain path");
        let own = folder.join("bwrap");
        write_program(&own);
        symlink(&own, folder.join("link")).expect("a link");
        fs::write(folder.join("text"), "").expect("a file");
        let find = |named: &Path| find_bubblewrap(Some(named), None);
        assert_eq!(find(&own), Ok(own.clone()));
        // Links of root's are followed: NixOS has nothing else.
        let systems = fs::canonicalize("/bin/sh").expect("a shell");
        assert_eq!(find(Path::new("/bin/sh")), Ok(systems));
        for (named, why) in [
            (Path::new("bwrap"), "it must be an absolute path"),
            (&folder.join("none"), NOT_EXECUTABLE),
            (&folder.join("text"), NOT_EXECUTABLE),
            (&folder, NOT_EXECUTABLE),
            (
                &folder.join("link"),
                "its path contains a link; name the file itself",
            ),
        ] {
            let path = named.to_owned();
            assert_eq!(find(named), Err(ProgramError::Configured { path, why }));
        }
    }

    #[test]
    fn files_that_others_can_write_are_not_root_owned() {
        assert!(is_owned_by_root(Path::new("/usr/bin/env")));
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("bwrap");
        write_program(&file);
        // Every user can write `/tmp`.
        assert!(!is_owned_by_root(&file));
        // A file of root's behind a link that is not root's.
        symlink("/usr/bin/env", folder.path().join("env")).expect("a link");
        assert!(!is_owned_by_root(&folder.path().join("env")));
        assert!(!is_owned_by_root(Path::new("/usr/bin/no-such-program")));
    }

    #[test]
    fn a_named_program_is_never_one_that_commands_may_write() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().canonicalize().expect("its plain path");
        let at = |name: &str| folder.join(name);
        for name in ["work/bin/a", "work/bin/b", "own/a", "own/c/d", "more/a"] {
            write_program(&at(name));
        }
        symlink(at("work"), at("link")).expect("a link");
        symlink(at("own"), at("work/own")).expect("a link");
        symlink(at("work/bin/b"), at("own/b")).expect("a link");
        // Outside at both ends, and a command chooses its target.
        symlink(at("own"), at("work/hop")).expect("a link");
        symlink(at("work/hop"), at("hop")).expect("a link");
        let path = |names: &[&str]| {
            let folders = names.iter().map(|it| match it.starts_with('=') {
                true => PathBuf::from(&it[1..]),
                false => at(it),
            });
            std::env::join_paths(folders).expect("a path")
        };
        let long = path(&[
            "=bin", "=", "work/bin", "link/bin", "work/own", "hop", "own", "more",
        ]);
        let find = |name: &str| named_program(name, &long, &[at("work")]);
        let short = path(&["own", "more"]);
        let a = NamedProgram {
            file: at("own/a"),
            path: short.clone(),
        };
        assert_eq!(find("a"), Ok(a));
        // In an allowed folder, but linked into the workspace.
        let name = "b".to_owned();
        assert_eq!(find("b"), Err(ProgramError::NotFound { name }));
        for (named, is_refused) in [
            ("own/a", false),
            ("own/none", false),
            ("work/bin/a", true),
            ("link/bin/a", true),
            ("own/b", true),
            ("work/own/a", true),
            ("hop/a", true),
        ] {
            let file = at(named);
            let expected = match is_refused {
                true => Err(ProgramError::Writable { path: file.clone() }),
                false => Ok(NamedProgram {
                    file: file.clone(),
                    path: short.clone(),
                }),
            };
            assert_eq!(find(file.to_str().expect("text")), expected, "{named}");
        }
    }
}
