//! The hooks of the configuration: commands that run on events of threads.
//!
//! Each layer defines hooks in `[hooks]` of its `config.toml` and in a `hooks.json` beside it, in
//! the form of Codex. Files of a workspace are no layer, so they define none. A hook of the user
//! runs once the user has trusted its current form, by the hash of the definition and of the
//! scripts that it names.

mod fingerprint;
mod matcher;
mod section;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use raddle_core::ports::{HookEvent, HookLayer};
use raddle_protocol::{ConfigEdit, ConfigLayerSource, MergeStrategy};
use serde_json::Value;

pub use self::matcher::Matcher as HookMatcher;
use crate::config::{Config, ConfigWriter, State};
use crate::config_error::ConfigWriteError;
use crate::layers::{self, Layer};

/// The table of hooks.
pub(crate) const HOOKS_TABLE: &str = "hooks";

/// The table in it with the trust of hooks.
const STATE_TABLE: &str = "state";

/// The file with hooks beside a `config.toml`.
const HOOKS_FILE: &str = "hooks.json";

/// Limit: size of a `hooks.json`; beyond it, its hooks do not run, and `hooks/list` reports it.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A hook.
#[derive(Clone, Debug)]
pub struct Hook {
    /// Key under which its trust is stored: file, event, and position.
    pub key: String,
    /// Event on which it runs.
    pub event: HookEvent,
    /// Selection of events, as written; `None` selects all.
    pub matcher: Option<String>,
    /// Command line for `sh -c`.
    pub command: String,
    /// Deadline of a run.
    pub timeout: Duration,
    /// Status line to show while it runs.
    pub status_message: Option<String>,
    /// Author of the hook.
    pub layer: HookLayer,
    /// File that defines it.
    pub source_path: PathBuf,
    /// Position among all hooks.
    pub display_order: i64,
    /// Whether it is enabled.
    pub enabled: bool,
    /// Hash of its current definition and scripts.
    pub current_hash: String,
    /// Hash that the user trusted.
    trusted_hash: Option<String>,
    selection: HookMatcher,
}

/// Trust in a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookTrust {
    /// The administrator defines it.
    Managed,
    /// The user trusts its current form.
    Trusted,
    /// It has changed since the user trusted it.
    Modified,
    /// The user never trusted it.
    Untrusted,
}

impl Hook {
    /// Returns the trust in its current form.
    pub fn trust(&self) -> HookTrust {
        match (&self.trusted_hash, self.layer) {
            (_, HookLayer::System) => HookTrust::Managed,
            (None, _) => HookTrust::Untrusted,
            (Some(hash), _) if *hash == self.current_hash => HookTrust::Trusted,
            (Some(_), _) => HookTrust::Modified,
        }
    }

    /// Whether it may run.
    pub fn may_run(&self) -> bool {
        self.enabled && matches!(self.trust(), HookTrust::Managed | HookTrust::Trusted)
    }

    /// Whether it selects an event with one of these names.
    pub fn selects(&self, subjects: &[String]) -> bool {
        self.selection.selects(subjects)
    }

    /// Returns the scripts that its command names, which are part of its hash.
    pub fn scripts(&self) -> Vec<PathBuf> {
        fingerprint::scripts(&self.command)
    }
}

/// All hooks, and the problems of their files.
#[derive(Clone, Debug, Default)]
pub struct HookSet {
    /// The hooks, in the order of layers, files and events.
    pub hooks: Vec<Hook>,
    /// Sentences about hooks that are left out.
    pub warnings: Vec<String>,
    /// Files that cannot be used.
    pub errors: Vec<HookFileError>,
    /// Keys that the user disabled. Hooks of plugins may be among them.
    disabled: BTreeSet<String>,
}

/// Reason why a file with hooks cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", path.display())]
pub struct HookFileError {
    /// The file.
    pub path: PathBuf,
    /// Description of the problem.
    pub message: String,
}

impl HookSet {
    /// Whether the user disabled the hook with this key.
    pub fn is_disabled(&self, key: &str) -> bool {
        self.disabled.contains(key)
    }

    /// Reads the hooks of all layers. Blocks on the disk.
    pub fn read(state: &State) -> Self {
        let mut set = Self::default();
        for layer in state.layers.each() {
            let author = match &layer.source {
                ConfigLayerSource::System(_) => HookLayer::System,
                ConfigLayerSource::User(_) => HookLayer::User,
                _ => {
                    if layer.table.contains_key(HOOKS_TABLE) {
                        let what = "hooks of the command line do not run; write them to a file";
                        set.warnings.push(what.to_owned());
                    }
                    continue;
                }
            };
            let Some(file) = layer.file().map(PathBuf::from) else {
                continue;
            };
            let json = file.with_file_name(HOOKS_FILE);
            match read_file(&json) {
                Ok(Some(events)) => set.add(&json, author, &events),
                Ok(None) => {}
                Err(message) => set.errors.push(HookFileError {
                    path: json,
                    message,
                }),
            }
            if let Some(events) = layer.table.get(HOOKS_TABLE) {
                set.add(&file, author, &layers::to_json(events));
            }
        }
        let states = states(state);
        let disabled = states.iter().filter(|(_, it)| !it.enabled);
        set.disabled = disabled.map(|(key, _)| (*key).to_owned()).collect();
        for hook in &mut set.hooks {
            if hook.layer == HookLayer::System {
                continue;
            }
            let Some(stored) = states.get(hook.key.as_str()) else {
                continue;
            };
            hook.enabled = stored.enabled;
            hook.trusted_hash.clone_from(&stored.trusted_hash);
        }
        set
    }

    fn add(&mut self, file: &Path, layer: HookLayer, events: &Value) {
        let first = self.hooks.len();
        section::read(file, layer, events, self);
        for (at, hook) in self.hooks.iter_mut().enumerate().skip(first) {
            hook.display_order = i64::try_from(at).unwrap_or(i64::MAX);
        }
    }
}

/// The user's decisions about a hook.
struct StoredState {
    enabled: bool,
    trusted_hash: Option<String>,
}

/// Returns the user's decisions, by the keys of hooks.
fn states(state: &State) -> BTreeMap<&str, StoredState> {
    let is_user = |it: &&Layer| matches!(it.source, ConfigLayerSource::User(_));
    let user = state.layers.each().find(is_user);
    let hooks = user.and_then(|it| it.table.get(HOOKS_TABLE)?.get(STATE_TABLE)?.as_table());
    let entries = hooks.into_iter().flat_map(toml::Table::iter);
    let stored = entries.map(|(key, value)| {
        let enabled = value.get("enabled").and_then(toml::Value::as_bool);
        let trusted_hash = value.get("trusted_hash").and_then(toml::Value::as_str);
        let stored = StoredState {
            enabled: enabled.unwrap_or(true),
            trusted_hash: trusted_hash.map(str::to_owned),
        };
        (key.as_str(), stored)
    });
    stored.collect()
}

/// Returns the edits that remove the user's decisions about the hooks of a plugin.
pub(crate) fn forget_plugin(state: &State, plugin: &str) -> Vec<ConfigEdit> {
    let prefix = format!("{plugin}:");
    let states = states(state).into_keys();
    let of_plugin = states.filter(|key| key.starts_with(&prefix));
    let edits = of_plugin.map(|key| ConfigEdit {
        key_path: key_path(key),
        value: Value::Null,
        merge_strategy: MergeStrategy::Replace,
    });
    edits.collect()
}

/// Returns the path of the table with the decisions about a hook.
fn key_path(key: &str) -> String {
    let key = toml::Value::String(key.to_owned());
    format!("{HOOKS_TABLE}.{STATE_TABLE}.{key}")
}

/// Reads the events of a `hooks.json`; none if there is no such file.
fn read_file(path: &Path) -> Result<Option<Value>, String> {
    let metadata = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(|error| format!("it cannot be read: {error}"))?,
    };
    if metadata.len() > FILE_BYTES_MAX {
        return Err(format!("it has more than {FILE_BYTES_MAX} bytes"));
    }
    let text = fs::read(path).map_err(|error| format!("it cannot be read: {error}"))?;
    let file: Value =
        serde_json::from_slice(&text).map_err(|error| format!("it is no JSON: {error}"))?;
    match file {
        Value::Object(mut members) => Ok(members.remove("hooks")),
        _ => Err("it must be an object with `hooks`".to_owned()),
    }
}

/// The hooks of a running server, current at each call. Cheap to clone.
#[derive(Clone, Debug)]
pub struct HookConfig {
    config: Arc<Config>,
}

impl HookConfig {
    /// Returns the part of a configuration that is about hooks.
    pub fn of(config: &Arc<Config>) -> Self {
        let config = config.clone();
        Self { config }
    }

    /// Whether it is known without waiting for the disk that there are no hooks.
    pub fn is_known_empty(&self) -> bool {
        let is_absent = |path: &Path| {
            let metadata = fs::metadata(path);
            metadata.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        };
        let is_empty = |layer: &Layer| {
            let json = layer
                .file()
                .map(|it| Path::new(it).with_file_name(HOOKS_FILE));
            !layer.table.contains_key(HOOKS_TABLE) && json.is_none_or(|it| is_absent(&it))
        };
        let state = self.config.without_blocking();
        state.is_some_and(|it| it.layers.each().all(is_empty))
    }

    /// Reads all hooks, and the scripts that they name. If a `config.toml` has become unusable, the
    /// last configuration stays in force, and the file is among the errors: no mistake in the
    /// user's file switches off hooks of the administrator. Blocks on the disk.
    pub fn load(&self) -> HookSet {
        match self.config.refresh() {
            Ok(state) => HookSet::read(&state),
            Err(error) => {
                let mut set = HookSet::read(&self.config.state());
                set.errors.push(HookFileError {
                    path: error.path().to_owned(),
                    message: error.to_string(),
                });
                set
            }
        }
    }
}

/// Stores in the user's file that the current forms of these hooks are trusted.
pub(crate) fn trust(config: &Config, hooks: &[&Hook]) -> Result<String, ConfigWriteError> {
    let edit = |hook: &&Hook| ConfigEdit {
        key_path: format!("{}.trusted_hash", key_path(&hook.key)),
        value: hook.current_hash.as_str().into(),
        merge_strategy: MergeStrategy::Replace,
    };
    let edits: Vec<ConfigEdit> = hooks.iter().map(edit).collect();
    let written = config.write(&edits, None, None, ConfigWriter::Local)?;
    Ok(written.file_path)
}
