//! Hides the principal's own paths, and the targets of their links.

use std::path::{Path, PathBuf};

use rustix::fs::Mode;

use super::folders::is_folder;
use super::policy_path::PolicyPath;
use super::survey::{HiddenKind, RuleSet, outermost};
use super::{SandboxRefusal, safe_open};

impl RuleSet {
    /// Hides paths, and prevents commands from creating anything in their place.
    pub(super) fn hide<'a>(
        &mut self,
        paths: impl Iterator<Item = &'a Path>,
    ) -> Result<(), SandboxRefusal> {
        for path in paths {
            // Mounts stand at real paths. A path that the server cannot see, a command cannot see
            // either.
            let Ok(PolicyPath {
                real,
                links,
                exists,
            }) = PolicyPath::of(path)
            else {
                continue;
            };
            if let Some(link) = links.iter().find(|it| self.can_be_created(it)) {
                let why = "it is a link on the path to a protected file, and commands could put another in its \
                           place; replace the link by its target";
                return Err(SandboxRefusal::Root {
                    path: link.clone(),
                    why,
                });
            }
            if !exists && self.can_be_created(&real) {
                if !links.is_empty() {
                    let why = "a link names it as a protected file, but it does not exist, and commands \
                               could create it; create it, or remove the link";
                    return Err(SandboxRefusal::Root { path: real, why });
                }
                make(&real)?;
            } else if !exists {
                continue;
            }
            if self.write.contains(&real) {
                let why = "it belongs to the server; work in another folder, or in one below it";
                return Err(SandboxRefusal::Root { path: real, why });
            }
            if !self.is_hidden(&real) {
                let kind = match is_folder(&real) {
                    true => HiddenKind::Folder,
                    false => HiddenKind::File,
                };
                self.hidden.push((real, kind));
            }
        }
        Ok(())
    }

    /// Hides the folders of settings where a command may write around the file: a program that
    /// rewrites the settings may replace the file, and a mount over the old file is gone with it.
    pub(super) fn hide_around(&mut self, settings: &[PathBuf]) -> Result<(), SandboxRefusal> {
        for path in settings {
            let Ok(PolicyPath { real, exists, .. }) = PolicyPath::of(path) else {
                continue;
            };
            let Some(folder) = real.parent().filter(|_| exists && !is_folder(&real)) else {
                continue;
            };
            let is_writable = self.write.iter().any(|root| folder.starts_with(root));
            if !is_writable || self.is_hidden(folder) {
                continue;
            }
            if self.write.iter().any(|root| root == folder) {
                let why = "the server reads its settings from it, and commands may write the folder that it is in; move \
                           it to another folder, or work in one below";
                return Err(SandboxRefusal::Root { path: real, why });
            }
            let folder = folder.to_owned();
            self.hidden.retain(|(path, _)| !path.starts_with(&folder));
            self.hidden.push((folder, HiddenKind::Folder));
        }
        Ok(())
    }

    /// Makes named roots below hidden folders writable: one around the hidden folder does not
    /// include them.
    pub(super) fn open_named(&mut self, named: &[PathBuf]) {
        let is_below = |it: &&PathBuf| {
            self.is_hidden(it) && !self.hidden.iter().any(|(hidden, _)| hidden == *it)
        };
        let below: Vec<PathBuf> = named.iter().filter(is_below).cloned().collect();
        self.write.extend(outermost(below));
    }

    /// Whether a command could create something at this real path.
    fn can_be_created(&self, path: &Path) -> bool {
        let parent = path.parent().unwrap_or(path);
        let is_writable = self.write.iter().any(|root| parent.starts_with(root));
        is_writable && !self.is_hidden(path)
    }

    /// Whether the path lies in a hidden folder, and in no writable root there.
    fn is_hidden(&self, path: &Path) -> bool {
        self.hidden.iter().any(|(folder, _)| {
            let is_open = |it: &PathBuf| it.starts_with(folder) && path.starts_with(it);
            path.starts_with(folder) && !self.write.iter().any(is_open)
        })
    }
}

/// Creates a folder of the principal, so that no command creates it.
fn make(path: &Path) -> Result<(), SandboxRefusal> {
    let result = safe_open::make_folders(path, Mode::RWXU).map(drop);
    result.map_err(|source| SandboxRefusal::Disk {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::confinement::{SandboxHost, Tier};
    use crate::launch::Launch;
    use crate::policy::{Policy, SandboxRules};

    /// The principal's own paths stay protected where commands write around them: here, a home with
    /// a folder in it.
    #[test]
    fn hidden_paths_cannot_be_created_or_redirected() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path().canonicalize().expect("its plain path");
        let at = |name: &str| home.join(name);
        fs::create_dir_all(at("there/work")).expect("folders");
        fs::create_dir(at("store")).expect("a folder");
        fs::create_dir(at("other")).expect("a folder");
        fs::write(at("store/rules.toml"), "").expect("a file");
        symlink(at("store/rules.toml"), at("there/rules.toml")).expect("a link");
        symlink(at("store/none.toml"), at("there/none.toml")).expect("a link");
        symlink("there", at("way")).expect("a link");
        let hiding = |write: &[&str], hidden: &[&str]| {
            let mut rules = SandboxRules {
                protected: Vec::new(),
                ..SandboxRules::workspace_write(write.iter().map(|it| at(it)).collect())
            };
            let own: Vec<PathBuf> = hidden.iter().map(|it| at(it)).collect();
            rules.hide_own(&own);
            let sandbox = SandboxHost::new(Tier::A, "/usr/bin/bwrap".into(), "/opt/raddle".into());
            let launch = Launch {
                program: "true".into(),
                args: Vec::new(),
                cwd: "/".into(),
                env: Vec::new(),
            };
            let result = sandbox.wrap(launch, &Policy::Confined(rules)).map(|it| {
                let words = it.launch.args.iter();
                let words: Vec<String> = words.map(|it| it.display().to_string()).collect();
                words.join(" ")
            });
            result.map_err(|it| it.to_string())
        };
        let hidden_file = |name: &str| format!("--ro-bind /dev/null {}", at(name).display());
        fs::create_dir_all(at("deep/store")).expect("folders");
        fs::write(at("deep/store/rules.toml"), "").expect("a file");
        symlink(at("deep/store/rules.toml"), at("there/deep.toml")).expect("a link");
        let hidden_folder = |name: &str| format!("--tmpfs {}", at(name).display());
        for (write, hidden, expected) in [
            // The server creates it if it is missing, so that no command does.
            (
                &[""][..],
                &["new/config"][..],
                Ok(hidden_folder("new/config")),
            ),
            (&["store"], &["there"], Ok(hidden_folder("there"))),
            (&["there/work"], &["there"], Ok(hidden_folder("there"))),
            (&["", "there/work"], &["there"], Ok(hidden_folder("there"))),
            // A file in it may link elsewhere. Where the target's folder can be written, the whole
            // folder is hidden.
            (
                &["other"],
                &["there", "there/rules.toml"],
                Ok(hidden_file("store/rules.toml")),
            ),
            (
                &[""],
                &["there", "there/rules.toml"],
                Ok(hidden_folder("store")),
            ),
            (
                &[""],
                &["there", "there/deep.toml"],
                Ok(hidden_folder("deep/store")),
            ),
            (
                &["deep"],
                &["there", "there/deep.toml"],
                Ok(hidden_folder("deep/store")),
            ),
            (
                &["store"],
                &["there", "there/rules.toml"],
                Err("store/rules.toml"),
            ),
            // A path that is named directly, without a link.
            (&["store"], &["store/rules.toml"], Err("store/rules.toml")),
            (&[""], &["store/rules.toml"], Ok(hidden_folder("store"))),
            (&[""], &["there", "there/none.toml"], Err("store/none.toml")),
            (
                &["there/work"],
                &["there", "there/none.toml"],
                Ok(hidden_folder("there")),
            ),
            (&[""], &["there/rules.toml"], Err("there/rules.toml")),
            (&[""], &["way"], Err("way")),
            (&["there"], &["way"], Err("there")),
            (&["there"], &["there"], Err("there")),
        ] {
            let result = hiding(write, hidden);
            let about = format!("{hidden:?} where {write:?} is written: {result:?}");
            match (&result, expected) {
                (Ok(words), Ok(expected)) => assert!(words.contains(&expected), "{about}"),
                (Err(why), Err(name)) => {
                    let path = at(name).display().to_string();
                    assert!(
                        why.starts_with(&format!("{path} cannot be used")),
                        "{about}"
                    );
                }
                _ => panic!("{about}"),
            }
        }
        let metadata = fs::metadata(at("new/config")).expect("it is made");
        assert_eq!(metadata.permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_folder_of_our_own_is_not_made_through_a_link() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("its plain path");
        fs::create_dir(root.join("elsewhere")).expect("a folder");
        symlink("elsewhere", root.join("link")).expect("a link");
        assert!(make(&root.join("link/a/b")).is_err());
        assert!(!root.join("elsewhere/a").exists());
        make(&root.join("new/a")).expect("it is made");
        make(&root.join("new/a")).expect("it is there");
        let mode = fs::metadata(root.join("new")).expect("it is there");
        assert_eq!(mode.permissions().mode() & 0o777, 0o700);
    }
}
