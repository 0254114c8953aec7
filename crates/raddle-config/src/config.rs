//! The configuration: files and the command line in layers, and the user's file to write to.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use data_encoding::HEXLOWER;
use raddle_protocol::{
    ConfigEdit, ConfigLayerSource, ConfigReadResponse, ConfigWarningNotification,
    ConfigWriteResponse, OverriddenMetadata, SystemConfigLayerSource, UserConfigLayerSource,
    WriteStatus,
};
use sha2::{Digest, Sha256};

use crate::config_error::{ConfigError, ConfigWriteError};
use crate::edit::{self, EditedFile};
use crate::layers::{Layer, Layers};
use crate::mcp_servers::{self, MCP_TABLE, McpServers};
use crate::overrides::Override;
use crate::paths::Paths;
use crate::providers::prices;
use crate::redaction::redacted_json;
use crate::{keys, layers, local_disk, managed_plugins, skills};

/// The configuration of a home, with its files as last loaded.
#[derive(Debug)]
pub struct Config {
    pub(crate) system: PathBuf,
    pub(crate) user: PathBuf,
    flags: Layer,
    state: RwLock<Arc<State>>,
    /// Held while the user's file is written.
    writing: Mutex<()>,
    /// Whether both files lie on disks of this machine.
    is_local: bool,
}

/// The configuration as last loaded.
#[derive(Debug)]
pub struct State {
    pub(crate) layers: Layers,
    system: FileStamp,
    user: FileStamp,
    /// Whether the files were older than the timestamp granularity when they were loaded, so that
    /// their stamps reveal any later change.
    settled: bool,
    /// The values in force: all layers merged.
    pub(crate) merged: toml::Table,
    /// Warnings about it, for people.
    warnings: Vec<ConfigWarningNotification>,
    /// The warnings about invalid values that are in force.
    pub(crate) problems: Vec<String>,
    /// The MCP servers in force.
    pub(crate) mcp_servers: McpServers,
}

/// Stamp of a file; it differs once the file has changed.
type FileStamp = Option<(SystemTime, u64)>;

/// Granularity of file timestamps; some file systems have whole seconds. Two changes within it look
/// alike.
const TIMESTAMP_GRANULARITY: Duration = Duration::from_secs(2);

impl Config {
    /// Loads every layer. A file that cannot be used keeps the server from starting.
    pub fn open(paths: &Paths, overrides: &[Override]) -> Result<Self, ConfigError> {
        let mut table = toml::Table::new();
        for it in overrides {
            layers::set(&mut table, it.path(), it.value().clone());
        }
        let version = version_of(table.to_string().as_bytes());
        let flags = Layer {
            source: ConfigLayerSource::SessionFlags,
            version,
            table,
        };
        let state = load(&paths.system_config, &paths.user_config, &flags)?;
        Ok(Self {
            system: paths.system_config.clone(),
            user: paths.user_config.clone(),
            flags,
            state: RwLock::new(Arc::new(state)),
            writing: Mutex::new(()),
            is_local: local_disk::is_local(&paths.system_config)
                && local_disk::is_local(&paths.user_config),
        })
    }

    /// Returns the path of the user's own file, which may not exist.
    pub fn user_file(&self) -> &Path {
        &self.user
    }

    /// Returns the warnings about the current configuration, for people.
    pub fn warnings(&self) -> Vec<ConfigWarningNotification> {
        match self.refresh() {
            Ok(state) => state.warnings.clone(),
            Err(error) => vec![ConfigWarningNotification {
                summary: error.to_string(),
                details: None,
                path: Some(error.path().display().to_string()),
                range: None,
            }],
        }
    }

    /// Returns the configuration as last loaded. Never blocks on the disk.
    pub fn state(&self) -> Arc<State> {
        self.state
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns the current configuration, and reloads files that changed. A file that has become
    /// unusable is an error, and the last state stays in force. Blocks on the disk.
    pub fn refresh(&self) -> Result<Arc<State>, ConfigError> {
        if let Some(state) = self.unchanged().or_else(|| self.unchanged_text()) {
            return Ok(state);
        }
        let state = Arc::new(load(&self.system, &self.user, &self.flags)?);
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = state.clone();
        Ok(state)
    }

    /// Returns the current configuration, if that needs no waiting: the files are on local disks,
    /// whose metadata is in memory, and have not changed.
    pub fn without_blocking(&self) -> Option<Arc<State>> {
        self.is_local.then(|| self.unchanged()).flatten()
    }

    /// Returns the loaded configuration, if the stamps of its files are unchanged.
    fn unchanged(&self) -> Option<Arc<State>> {
        let state = self.state();
        let same = state.system == stamp(&self.system) && state.user == stamp(&self.user);
        (same && state.settled).then_some(state)
    }

    /// Returns the loaded configuration, if the contents of its files are unchanged. Only used
    /// while the stamps are too recent to reveal a change: it reads the files, but does not parse
    /// them.
    fn unchanged_text(&self) -> Option<Arc<State>> {
        let state = self.state();
        if are_settled([state.system, state.user]) {
            return None;
        }
        // Files come first among the layers, in this order.
        let is_same = [&self.system, &self.user]
            .into_iter()
            .zip(state.layers.each())
            .all(|(path, layer)| {
                read_or_empty(path).is_ok_and(|text| layer.version == version_of(text.as_bytes()))
            });
        is_same.then_some(state)
    }

    /// Writes the user's file, all edits or none.
    pub fn write(
        &self,
        edits: &[ConfigEdit],
        expected_version: Option<&str>,
        file_path: Option<&str>,
        writer: ConfigWriter,
    ) -> Result<ConfigWriteResponse, ConfigWriteError> {
        if file_path.is_some_and(|path| Path::new(path) != self.user) {
            return Err(ConfigWriteError::Rejected {
                kind: "configLayerReadonly",
                message: format!(
                    "only the user's configuration can be written: {}",
                    self.user.display()
                ),
            });
        }
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let _lock = lock_file(&self.user)?;
        let old_text = read_or_empty(&self.user)?;
        if expected_version.is_some_and(|expected| expected != version_of(old_text.as_bytes())) {
            return Err(ConfigWriteError::Rejected {
                kind: "configVersionConflict",
                message: "the configuration has changed since it was read; read it again and retry"
                    .to_owned(),
            });
        }
        let state = self.state();
        let EditedFile { text, paths } = edit::apply(&old_text, edits, &state.merged)?;
        let mut edited = paths
            .iter()
            .zip(edits)
            .filter(|(_, it)| !it.value.is_null());
        let refusal =
            edited.find_map(|(path, _)| managed_plugins::edit_refusal(&state.layers, path));
        if let Some(message) = refusal {
            return Err(ConfigWriteError::Rejected {
                kind: "configLayerReadonly",
                message,
            });
        }
        if writer == ConfigWriter::Remote && !self.lets_remote_clients_set_programs() {
            let table = |text: &str| text.parse().unwrap_or_default();
            if let Some(key) = keys::guarded_change(&table(&old_text), &table(&text)) {
                let command = match key {
                    "hooks" => "run `raddle hooks trust` or ",
                    "plugins" => "run `raddle plugin` or ",
                    _ => "",
                };
                return Err(ConfigWriteError::Rejected {
                    kind: "configLayerReadonly",
                    message: format!(
                        "`{key}` names programs, the store, destinations of keys or prices, so a \
                         remote client may not change it; {command}edit {} on the server's machine, or set `{}` to true there",
                        self.user.display(),
                        keys::REMOTE_FLAG
                    ),
                });
            }
        }
        replace_file(&self.user, &text)?;
        let state = self.refresh().map_err(ConfigWriteError::Unusable)?;
        let overridden = paths
            .iter()
            .find_map(|path| state.layers.overriding_user(path));
        Ok(ConfigWriteResponse {
            status: if overridden.is_some() {
                WriteStatus::OkOverridden
            } else {
                WriteStatus::Ok
            },
            version: version_of(text.as_bytes()),
            file_path: self.user.display().to_string(),
            overridden_metadata: overridden.map(|(layer, value)| OverriddenMetadata {
                effective_value: layers::to_json(&value),
                message: format!("overridden by {}", layer.describe()),
                overriding_layer: layer.metadata(),
            }),
        })
    }
}

impl Config {
    fn lets_remote_clients_set_programs(&self) -> bool {
        let state = self.state();
        state.value(keys::REMOTE_FLAG) == Some(&toml::Value::Boolean(true))
    }
}

/// Origin of a write to the user's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigWriter {
    /// A local process of the user: a command line, or the process that started the server.
    Local,
    /// A client that connected over a socket.
    Remote,
}

impl State {
    /// Returns the response to `config/read`.
    pub fn read_response(&self, include_layers: bool) -> ConfigReadResponse {
        ConfigReadResponse {
            config: redacted_json(&self.merged),
            origins: self.layers.origins(),
            layers: include_layers.then(|| self.layers.for_client()),
        }
    }

    /// Returns a string of the merged configuration.
    pub fn text(&self, key: &str) -> Option<&str> {
        layers::text(&self.merged, key)
    }

    /// Whether the `PATH` of commands includes the additions of the user's login shell. With an
    /// invalid value, the shell is not started.
    pub fn asks_login_shell(&self) -> bool {
        let value = self.value("login_shell_path");
        value.is_none_or(|it| *it == toml::Value::Boolean(true))
    }

    /// Returns a value of the merged configuration.
    pub fn value(&self, key: &str) -> Option<&toml::Value> {
        self.merged.get(key)
    }

    /// Returns the merged configuration.
    pub fn table(&self) -> &toml::Table {
        &self.merged
    }
}

fn load(system: &Path, user: &Path, flags: &Layer) -> Result<State, ConfigError> {
    // Stamped before reading: a change in between is noticed the next time.
    let (system_stamp, user_stamp) = (stamp(system), stamp(user));
    let settled = are_settled([system_stamp, user_stamp]);
    let system_source = SystemConfigLayerSource {
        file: system.display().to_string(),
    };
    let user_source = UserConfigLayerSource {
        file: user.display().to_string(),
        profile: None,
    };
    let layers = Layers::new(vec![
        read_layer(system, ConfigLayerSource::System(system_source))?,
        read_layer(user, ConfigLayerSource::User(user_source))?,
        flags.clone(),
    ]);
    let merged = layers.merged();
    let invalid_in_force = check_table(&merged).invalid;
    let (mut warnings, mut problems) = (Vec::new(), Vec::new());
    for layer in layers.each() {
        let with_origin = |what: &String| format!("{what}, in {}", layer.describe());
        let keys::LayerProblems { invalid, unused } = check_table(&layer.table);
        // An invalid value that a stronger layer overrides is harmless.
        problems.extend(
            invalid
                .iter()
                .filter(|it| invalid_in_force.contains(it))
                .map(with_origin),
        );
        let all = invalid.iter().chain(&unused);
        warnings.extend(all.map(|what| ConfigWarningNotification {
            summary: with_origin(what),
            details: None,
            path: layer.file().map(str::to_owned),
            range: None,
        }));
    }
    // Layers may each define a part of an MCP server, so only the merged one is complete.
    let of_path = |path: &[String], what: String| {
        let winner = layers.winner(path);
        let layer = winner.map(|(layer, _)| layer);
        let origin = layer.map(|it| format!(", in {}", it.describe()));
        ConfigWarningNotification {
            summary: format!("{what}{}", origin.unwrap_or_default()),
            details: None,
            path: layer.and_then(Layer::file).map(str::to_owned),
            range: None,
        }
    };
    let of_server =
        |name: &str, what: String| of_path(&[MCP_TABLE.to_owned(), name.to_owned()], what);
    for (key, what) in mcp_servers::ineffective_login_keys(&merged) {
        warnings.push(of_path(&[key.to_owned()], what));
    }
    for problem in mcp_servers::structural_problems(&merged) {
        let warning = of_server(&problem.name, problem.to_string());
        problems.push(warning.summary.clone());
        warnings.push(warning);
    }
    for (name, what) in mcp_servers::ineffective_keys(&merged) {
        warnings.push(of_server(&name, what));
    }
    let mcp_servers = mcp_servers::read(&merged);
    Ok(State {
        layers,
        system: system_stamp,
        user: user_stamp,
        settled,
        merged,
        warnings,
        problems,
        mcp_servers,
    })
}

impl State {
    /// Returns the same state without invalid values.
    pub(crate) fn without_problems(&self) -> Self {
        Self {
            layers: self.layers.clone(),
            system: self.system,
            user: self.user,
            settled: self.settled,
            merged: keys::without_invalid(&self.merged),
            warnings: Vec::new(),
            problems: Vec::new(),
            mcp_servers: self.mcp_servers.clone(),
        }
    }
}

/// Returns the invalid and unused values of a table, a sentence each.
pub(crate) fn check_table(table: &toml::Table) -> keys::LayerProblems {
    let mut problems = keys::check_layer(table);
    problems.invalid.extend(prices::problems(table));
    problems.invalid.extend(skills::problems(table));
    problems
}

fn read_layer(path: &Path, source: ConfigLayerSource) -> Result<Layer, ConfigError> {
    let text = read_or_empty(path).map_err(|error| ConfigError::Read {
        path: path.to_owned(),
        error,
    })?;
    let syntax_error = |error: toml::de::Error| ConfigError::Syntax {
        path: path.to_owned(),
        line: layers::line_of(&text, error.span()),
        what: error.message().to_owned(),
    };
    let table = text.parse().map_err(syntax_error)?;
    Ok(Layer {
        source,
        version: version_of(text.as_bytes()),
        table,
    })
}

fn read_or_empty(path: &Path) -> io::Result<String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        other => other,
    }
}

fn stamp(path: &Path) -> FileStamp {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// Whether the files are older than the timestamp granularity, so that their stamps reveal any
/// later change.
fn are_settled(stamps: [FileStamp; 2]) -> bool {
    let now = SystemTime::now();
    let mut stamps = stamps.into_iter().flatten();
    stamps.all(|(modified, _)| {
        now.duration_since(modified)
            .is_ok_and(|age| age > TIMESTAMP_GRANULARITY)
    })
}

/// Returns the version of a layer: the hash of its text.
fn version_of(text: &[u8]) -> String {
    format!("sha256:{}", HEXLOWER.encode(&Sha256::digest(text)))
}

/// Locks the file, so that no other process of the same home writes at the same time.
fn lock_file(config: &Path) -> io::Result<fs::File> {
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
    if let Some(folder) = config.parent() {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    let path = config.with_extension("toml.lock");
    let file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?;
    file.lock()?;
    Ok(file)
}

/// Replaces the file in one step, so that a crash leaves the old or the new text.
fn replace_file(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let mode = fs::metadata(path).map_or(0o600, |metadata| metadata.permissions().mode() & 0o777);
    let new = path.with_extension("toml.new");
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(mode)
        .open(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    let is_link = fs::symlink_metadata(path).is_ok_and(|it| it.is_symlink());
    match fs::canonicalize(path) {
        // A link stays a link, and its target stays the same file: the sandbox of running commands
        // hides that very file, and they could read a new one. After a crash in between, the new
        // text is in a file next to the link.
        Ok(real) if is_link => {
            overwrite(&real, text)?;
            fs::remove_file(&new)
        }
        _ => fs::rename(&new, path),
    }
}

/// Writes a new text into the same file.
fn overwrite(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write as _;
    let mut file = fs::OpenOptions::new().write(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)?;
    file.sync_all()
}
