//! Paths of the user's files: `$RADDLE_HOME`, else the folders of the XDG specification.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use raddle_config::Paths;

use crate::rules;

/// The folders of this user.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    pub(crate) config: PathBuf,
    pub(crate) state: PathBuf,
}

impl Home {
    /// Reads the environment. Creates nothing, and rejects a file in the place of a folder.
    pub(crate) fn find() -> Result<Self> {
        let home = Self::of_environment()?;
        for folder in [&home.config, &home.state] {
            let is_file = std::fs::metadata(folder).is_ok_and(|it| !it.is_dir());
            ensure!(
                !is_file,
                "the home {} is not a folder; move that file away, or name another home with RADDLE_HOME",
                folder.display()
            );
        }
        Ok(home)
    }

    fn of_environment() -> Result<Self> {
        if let Some(home) = folder("RADDLE_HOME") {
            let home = std::path::absolute(&home).context("RADDLE_HOME")?;
            return Ok(Self {
                config: home.clone(),
                state: home,
            });
        }
        let user =
            || folder("HOME").context("neither RADDLE_HOME nor HOME is set; set one of them");
        let config = match folder("XDG_CONFIG_HOME") {
            Some(config) => config,
            None => user()?.join(".config"),
        };
        let state = match folder("XDG_STATE_HOME") {
            Some(state) => state,
            None => user()?.join(".local/state"),
        };
        Ok(Self {
            config: config.join("raddle"),
            state: state.join("raddle"),
        })
    }

    /// The path of the user's rules.
    pub(crate) fn rules(&self) -> PathBuf {
        self.config.join("rules.toml")
    }

    /// The paths that the server needs.
    pub(crate) fn paths(&self) -> Paths {
        Paths {
            home: self.state.clone(),
            system_config: PathBuf::from("/etc/raddle/config.toml"),
            user_config: self.config.join("config.toml"),
            skills: self.config.join("skills"),
            shared_skills: shared_skills(),
            rules: std::iter::once(self.rules())
                .chain(rules::extra_managed_file())
                .collect(),
            // Clients take a thread without a path for an ephemeral one, so they get this path also if
            // the threads are in a database.
            threads: Some(
                raddle_store::Options {
                    folder: self.threads(),
                }
                .file(),
            ),
        }
    }

    /// The folder of the daemon's lock and log.
    pub(crate) fn daemon(&self) -> PathBuf {
        self.state.join("daemon")
    }

    /// The socket that `--listen unix://` means.
    pub(crate) fn socket(&self) -> PathBuf {
        self.state
            .join("app-server-control/app-server-control.sock")
    }
}

/// The folders of the user's skills that other agents read too.
fn shared_skills() -> Vec<PathBuf> {
    let user = folder("HOME").into_iter();
    user.flat_map(|it| [it.join(".agents/skills"), it.join(".codex/skills")])
        .collect()
}

/// Describes a folder of the home that cannot be created, with advice.
pub(crate) fn not_made(folder: &Path) -> String {
    format!(
        "cannot make {}; give this user write access to the folder above it, or name another home with RADDLE_HOME",
        folder.display()
    )
}

/// An absolute folder from the environment. Empty and relative ones count as unset, as XDG says.
fn folder(name: &str) -> Option<PathBuf> {
    let value = PathBuf::from(std::env::var_os(name)?);
    let usable = if name == "RADDLE_HOME" {
        !value.as_os_str().is_empty()
    } else {
        Path::is_absolute(&value)
    };
    usable.then_some(value)
}
