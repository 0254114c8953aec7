//! Resolves program names to files, for commands that run outside the thread's sandbox.
//!
//! An approval of a name does not cover a file that sandboxed commands can replace. Names are
//! looked up in `PATH`, whose folders and files may be links: write access to any link on the path
//! decides which file runs.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use raddle_core::Settings;
use raddle_core::policy::UNKNOWN;
use raddle_sandbox::{FileHolds, is_around_home, is_program, own_path, without_writable};

use super::confinement::workspaces;
use crate::files::visited_paths;
use crate::tool_call_error::ToolCallError;

/// Folders that sandboxed commands may write, by name and by canonical path.
pub(super) struct WritableFolders(Vec<PathBuf>);

impl WritableFolders {
    pub(super) fn of(folders: Vec<PathBuf>) -> Self {
        let real = folders.iter().filter_map(|it| fs::canonicalize(it).ok());
        let real: Vec<PathBuf> = real.collect();
        Self([folders, real].concat())
    }

    /// Returns the folders of this thread, and of every other thread of this home.
    fn of_all(settings: &Settings, holds: &FileHolds) -> Result<Self, ToolCallError> {
        let others = holds.written().all().map_err(|error| {
            ToolCallError::new(format!(
                "It is not known which folders commands in the sandbox may write: {error}."
            ))
        })?;
        // The user's programs are in the home. It does not count as writable only because a thread
        // worked there.
        let others = others
            .into_iter()
            .filter(|it| !is_around_home(it))
            .collect();
        Ok(Self::of([workspaces(settings), others].concat()))
    }

    /// Returns the folders of one thread.
    pub(super) fn of_thread(settings: &Settings) -> Self {
        Self::of(workspaces(settings))
    }

    /// Whether an absolute path resolves into or through these folders. A path that exists but
    /// cannot be resolved is treated as one that does.
    pub(super) fn are_passed_by(&self, path: &Path) -> bool {
        let is_in = |it: &PathBuf| self.0.iter().any(|folder| it.starts_with(folder));
        match visited_paths(path) {
            Ok(visited) => visited.iter().any(is_in),
            Err(_) => fs::symlink_metadata(path).is_ok(),
        }
    }

    /// Returns the `PATH` for a command outside the sandbox, given the one inside: without folders
    /// that resolve here.
    pub(super) fn shortened(&self, path: Option<OsString>) -> OsString {
        without_writable(&path.unwrap_or_else(own_path), &self.0)
    }

    /// Rejects commands with these names outside the sandbox, if one resolves here by its name
    /// alone. `path` is the shortened `PATH`.
    pub(super) fn check_names<'a>(
        &self,
        names: impl IntoIterator<Item = &'a String>,
        path: &OsStr,
    ) -> Result<(), ToolCallError> {
        let is_name = |it: &&String| !it.is_empty() && !it.contains(['/', '\0', UNKNOWN]);
        let names: BTreeSet<&String> = names.into_iter().filter(is_name).collect();
        let folders: Vec<PathBuf> = std::env::split_paths(path).collect();
        for name in names {
            for file in folders.iter().map(|it| it.join(name)) {
                // Not yet executable files count too: a command could make them executable.
                if self.are_passed_by(&file) {
                    let real = fs::canonicalize(&file).unwrap_or(file);
                    return Err(ToolCallError::new(format!(
                        "Commands in the sandbox can exchange the file that `{name}` stands for, so it is not run outside \
                         the sandbox by its name. Call it by its path: {}.",
                        real.display()
                    )));
                }
                if is_program(&file) {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Returns the `PATH` with which commands of these names run outside the sandbox of a thread, or
/// the reason to refuse them. `path` is that of its sandboxed commands, if not the server's own. It
/// may block on the disk.
pub(super) fn search_path(
    settings: &Settings,
    names: &[String],
    path: Option<OsString>,
    holds: &FileHolds,
) -> Result<OsString, ToolCallError> {
    let folders = WritableFolders::of_all(settings, holds)?;
    let path = folders.shortened(path);
    folders.check_names(names, &path)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn create_program(file: &Path) {
        fs::create_dir_all(file.parent().expect("a folder")).expect("it is made");
        fs::write(file, "#!/bin/sh\n").expect("it is written");
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).expect("it is marked");
    }

    /// Another thread, perhaps of another process, may have written a program into its workspace.
    #[test]
    fn programs_never_come_from_folders_of_other_threads() {
        let folder = tempfile::tempdir().expect("a folder");
        let top = folder.path().canonicalize().expect("its plain path");
        let at = |name: &str| top.join(name);
        for name in ["a/bin/tool", "a/bin/linked", "b/bin/tool", "opt/plain"] {
            create_program(&at(name));
        }
        symlink(at("a/bin/linked"), at("opt/linked")).expect("a link");
        let settings = Settings {
            cwd: at("b").display().to_string(),
            ..Settings::default()
        };
        let join = |names: &[&str]| {
            let folders = names.iter().map(|it| at(it));
            std::env::join_paths(folders).expect("a path")
        };
        let path = join(&["a/bin", "b/bin", "opt"]);
        let home = at("home");
        let search = |name: &str| {
            let names = [name.to_owned()];
            search_path(&settings, &names, Some(path.clone()), &FileHolds::of(&home))
        };
        assert_eq!(search("linked"), Ok(join(&["a/bin", "opt"])));
        let holds = FileHolds::of(&home);
        holds.written().add(&[at("a")]).expect("it is added");
        assert_eq!(search("plain"), Ok(join(&["opt"])));
        assert!(search("linked").is_err());
    }

    #[test]
    fn names_of_replaceable_programs_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let top = folder.path().canonicalize().expect("its plain path");
        let at = |name: &str| top.join(name);
        for name in [
            "work/bin/own",
            "opt/safe",
            "bin/plain",
            "more/late",
            "more/plain",
        ] {
            create_program(&at(name));
        }
        for (target, link) in [
            ("../work/bin/own", "bin/direct"),
            ("../work/hop", "bin/hopped"),
            ("../opt/safe", "work/hop"),
            ("../work/none", "bin/dangling"),
            ("../work/bin/../../opt/safe", "bin/roundabout"),
            ("../work/late", "bin/late"),
            ("../opt/safe", "bin/outside"),
        ] {
            symlink(target, at(link)).expect("a link");
        }
        symlink(at("opt"), at("work/store")).expect("a link");
        symlink(at("work/store"), at("result")).expect("a link");
        let folders = WritableFolders::of(vec![at("work")]);
        let join = |names: &[&str]| {
            let folders = names.iter().map(|it| at(it));
            std::env::join_paths(folders).expect("a path")
        };
        let path = folders.shortened(Some(join(&["work/bin", "result", "bin", "more"])));
        assert_eq!(path, join(&["bin", "more"]));
        for (name, is_refused) in [
            ("plain", false),
            ("outside", false),
            ("missing", false),
            ("own", false),
            ("direct", true),
            ("hopped", true),
            ("dangling", true),
            ("roundabout", true),
            // A link in an earlier folder counts before the program in a later one.
            ("late", true),
            // Programs named by path are checked as files.
            ("./direct", false),
        ] {
            let checked = folders.check_names(&[name.to_owned()], &path);
            assert_eq!(checked.is_err(), is_refused, "{name}: {checked:?}");
        }
        let checked = folders.check_names(&["direct".to_owned()], &path);
        let real = at("work/bin/own").display().to_string();
        assert!(checked.is_err_and(|it| it.to_string().contains(&real)));
    }
}
