//! The configuration: files and the command line in layers, and the user's file to write to.
//!
//! Nothing in a workspace is ever a layer.

pub(crate) mod approval;
mod edit;
pub(crate) mod effective;
mod keys;
mod layers;
mod loader;
mod local_disk;
mod redaction;
mod schema;
mod standalone;
mod suggestions;

use std::fmt;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use raddle_protocol::{
    ConfigEdit, ConfigLayerSource, ConfigReadResponse, ConfigWarningNotification,
    ConfigWriteResponse, OverriddenMetadata, SystemConfigLayerSource, UserConfigLayerSource,
    WriteStatus,
};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

pub(crate) use self::edit::EditedFile;
pub(crate) use self::effective::EffectiveConfig;
use self::layers::{Layer, Layers};
pub(crate) use self::loader::{ConfigLoader, ConfigSnapshot};
pub use self::schema::schema;
pub use self::standalone::{ConfigModel, ConfigValue, Configuration, WrittenValue, presets};
use super::providers;
use crate::server::Paths;
use crate::wire_error::WireError;

/// A setting that a program is started with: a `-c key=value` of the command line, or an
/// environment variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Override {
    path: Vec<String>,
    value: toml::Value,
    /// Name of the environment variable, if it came from one.
    variable: Option<String>,
}

impl Override {
    /// Returns the settings from the environment, by a lookup of variables. They come before those
    /// of the command line, which are stronger. An empty variable counts as unset.
    pub fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Vec<Self> {
        let from_variables = keys::variables().filter_map(|(key, name)| {
            let value = variable(&name).filter(|it| !it.trim().is_empty())?;
            Some(Self {
                path: vec![key.to_owned()],
                value: value.trim().into(),
                variable: Some(name),
            })
        });
        from_variables.collect()
    }

    /// Returns its origin, for people.
    fn origin(&self) -> &str {
        self.variable.as_deref().unwrap_or("-c")
    }
}

impl FromStr for Override {
    type Err = String;

    /// Parses the value as TOML; anything else is a plain string.
    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| format!("`{text}` has no `=`; write key=value"))?;
        let path =
            layers::key_path(key.trim()).map_err(|error| format!("`{}`: {error}", key.trim()))?;
        Ok(Self {
            path,
            value: value_of(value),
            variable: None,
        })
    }
}

/// Parses a value as people write it: text that is not TOML is a plain string.
fn value_of(text: &str) -> toml::Value {
    let text = text.trim();
    format!("x = {text}")
        .parse::<toml::Table>()
        .ok()
        .and_then(|mut table| table.remove("x"))
        .unwrap_or_else(|| toml::Value::String(text.to_owned()))
}

impl Override {
    /// Returns the key, part by part.
    pub fn path(&self) -> &[String] {
        &self.path
    }

    /// Returns the value as JSON, for the `config` member of a request.
    pub fn to_json(&self) -> serde_json::Value {
        layers::to_json(&self.value)
    }
}

impl fmt::Display for Override {
    /// Writes the form that `-c` accepts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, part) in self.path.iter().enumerate() {
            let dot = if number > 0 { "." } else { "" };
            write!(f, "{dot}{}", toml_edit::Key::new(part).display_repr())?;
        }
        write!(f, "={}", self.value)
    }
}

/// Reason why the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file is not TOML. The line itself is not shown: it may contain a key.
    #[error("{} is not valid TOML: line {line}: {what}", path.display())]
    Syntax {
        /// Path of the file.
        path: PathBuf,
        /// Line number, counted from 1.
        line: usize,
        /// Message of the parser.
        what: String,
    },
    /// The file exists but cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
}

impl ConfigError {
    /// Returns the file that cannot be used.
    fn path(&self) -> &Path {
        match self {
            Self::Syntax { path, .. } | Self::Read { path, .. } => path,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Config {
    system: PathBuf,
    user: PathBuf,
    flags: Layer,
    state: RwLock<Arc<State>>,
    /// Held while the user's file is written.
    writing: Mutex<()>,
    /// Whether both files lie on disks of this machine.
    is_local: bool,
}

/// The configuration as last loaded.
#[derive(Debug)]
pub(crate) struct State {
    layers: Layers,
    system: FileStamp,
    user: FileStamp,
    /// Whether the files were older than the timestamp granularity when they were loaded, so that
    /// their stamps reveal any later change.
    settled: bool,
    /// All layers merged.
    pub(crate) merged: toml::Table,
    /// Warnings about it, for people.
    warnings: Vec<ConfigWarningNotification>,
    /// The warnings about invalid values that are in force.
    problems: Vec<String>,
    /// All models it names, as `model/list` returns them; serialised on first use.
    pub(crate) model_list: OnceLock<Box<RawValue>>,
}

/// Stamp of a file; it differs once the file has changed.
type FileStamp = Option<(SystemTime, u64)>;

/// Granularity of file timestamps; some file systems have whole seconds. Two changes within it look
/// alike.
const TIMESTAMP_GRANULARITY: Duration = Duration::from_secs(2);

impl Config {
    /// Loads every layer. A file that cannot be used keeps the server from starting.
    pub(crate) fn open(paths: &Paths, overrides: &[Override]) -> Result<Self, ConfigError> {
        let mut table = toml::Table::new();
        for it in overrides {
            layers::set(&mut table, &it.path, it.value.clone());
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
    pub(crate) fn user_file(&self) -> &Path {
        &self.user
    }

    /// Returns the warnings about the current configuration, for people.
    pub(crate) fn warnings(&self) -> Vec<ConfigWarningNotification> {
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
    pub(crate) fn state(&self) -> Arc<State> {
        self.state
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns the current configuration, and reloads files that changed. A file that has become
    /// unusable is an error, and the last state stays in force. Blocks on the disk.
    pub(crate) fn refresh(&self) -> Result<Arc<State>, ConfigError> {
        if let Some(state) = self.unchanged().or_else(|| self.unchanged_text()) {
            return Ok(state);
        }
        let state = Arc::new(load(&self.system, &self.user, &self.flags)?);
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = state.clone();
        Ok(state)
    }

    /// Returns the current configuration, if that needs no waiting: the files are on local disks,
    /// whose metadata is in memory, and have not changed.
    pub(super) fn without_blocking(&self) -> Option<Arc<State>> {
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
    pub(crate) fn write(
        &self,
        edits: &[ConfigEdit],
        expected_version: Option<&str>,
        file_path: Option<&str>,
        writer: ConfigWriter,
    ) -> Result<ConfigWriteResponse, WireError> {
        if file_path.is_some_and(|path| Path::new(path) != self.user) {
            return Err(WireError::ConfigWrite {
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
            return Err(WireError::ConfigWrite {
                kind: "configVersionConflict",
                message: "the configuration has changed since it was read; read it again and retry"
                    .to_owned(),
            });
        }
        let EditedFile { text, paths } = edit::apply(&old_text, edits)?;
        if writer == ConfigWriter::Remote && !self.lets_remote_clients_set_programs() {
            let table = |text: &str| text.parse().unwrap_or_default();
            if let Some(key) = keys::guarded_change(&table(&old_text), &table(&text)) {
                return Err(WireError::ConfigWrite {
                    kind: "configLayerReadonly",
                    message: format!(
                        "`{key}` names programs, destinations of keys or prices, so a \
                         remote client may not change it; edit {} on the server's machine, or set `{}` to true there",
                        self.user.display(),
                        keys::REMOTE_FLAG
                    ),
                });
            }
        }
        replace_file(&self.user, &text)?;
        let state = self
            .refresh()
            .map_err(|error| WireError::Refused(error.to_string().into()))?;
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
pub(crate) enum ConfigWriter {
    /// A local process of the user: a command line, or the process that started the server.
    Local,
    /// A client that connected over a socket.
    Remote,
}

impl State {
    /// Returns the response to `config/read`.
    pub(crate) fn read_response(&self, include_layers: bool) -> ConfigReadResponse {
        ConfigReadResponse {
            config: layers::redacted_json(&self.merged),
            origins: self.layers.origins(),
            layers: include_layers.then(|| self.layers.for_client()),
        }
    }

    /// Returns a string of the merged configuration.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        effective::text(&self.merged, key)
    }

    /// Whether the `PATH` of commands includes the additions of the user's login shell.
    pub(crate) fn asks_login_shell(&self) -> bool {
        self.value("login_shell_path") != Some(&toml::Value::Boolean(false))
    }

    /// Returns a value of the merged configuration.
    pub(crate) fn value(&self, key: &str) -> Option<&toml::Value> {
        self.merged.get(key)
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
    Ok(State {
        layers,
        system: system_stamp,
        user: user_stamp,
        settled,
        merged,
        warnings,
        problems,
        model_list: OnceLock::new(),
    })
}

impl State {
    /// Returns the same state without invalid values.
    fn without_problems(&self) -> Self {
        Self {
            layers: self.layers.clone(),
            system: self.system,
            user: self.user,
            settled: self.settled,
            merged: keys::without_invalid(&self.merged),
            warnings: Vec::new(),
            problems: Vec::new(),
            model_list: OnceLock::new(),
        }
    }
}

/// Returns the invalid and unused values of a table, a sentence each.
fn check_table(table: &toml::Table) -> keys::LayerProblems {
    let mut problems = keys::check_layer(table);
    problems
        .invalid
        .extend(providers::problems_of_prices(table));
    problems
}

fn read_layer(path: &Path, source: ConfigLayerSource) -> Result<Layer, ConfigError> {
    let text = read_or_empty(path).map_err(|error| ConfigError::Read {
        path: path.to_owned(),
        error,
    })?;
    let syntax_error = |error: toml::de::Error| ConfigError::Syntax {
        path: path.to_owned(),
        line: line_of(&text, error.span()),
        what: error.message().to_owned(),
    };
    let table = text.parse().map_err(syntax_error)?;
    Ok(Layer {
        source,
        version: version_of(text.as_bytes()),
        table,
    })
}

/// Returns the line, counted from 1, in which a span begins.
fn line_of(text: &str, span: Option<Range<usize>>) -> usize {
    let preceding = text.as_bytes().iter().take(span.map_or(0, |it| it.start));
    1 + preceding.filter(|it| **it == b'\n').count()
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
    let digest = Sha256::digest(text);
    let mut version = String::from("sha256:");
    for byte in digest {
        use std::fmt::Write as _;
        let _ = write!(version, "{byte:02x}");
    }
    version
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
        // text is beside the link.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrides() {
        for (text, path, value) in [
            ("model=x", vec!["model"], toml::Value::String("x".into())),
            (
                r#"model="x""#,
                vec!["model"],
                toml::Value::String("x".into()),
            ),
            ("a.b = 3", vec!["a", "b"], toml::Value::Integer(3)),
            (
                r#"projects."/a.b".trust_level=trusted"#,
                vec!["projects", "/a.b", "trust_level"],
                toml::Value::String("trusted".into()),
            ),
            ("x=true", vec!["x"], toml::Value::Boolean(true)),
            ("x=", vec!["x"], toml::Value::String(String::new())),
            ("x=a=b", vec!["x"], toml::Value::String("a=b".into())),
            (
                r#"a={b = "c", d = [1, 2.5]}"#,
                vec!["a"],
                toml::Value::Table(toml::toml! { b = "c"
                d = [1, 2.5] }),
            ),
        ] {
            let parsed: Override = text.parse().expect(text);
            assert_eq!(
                (parsed.path, parsed.value),
                (path.into_iter().map(str::to_owned).collect(), value),
                "{text}"
            );
            let rendered = text.parse::<Override>().expect(text).to_string();
            assert_eq!(rendered.parse(), text.parse::<Override>(), "{rendered}");
        }
        for text in ["model", "=x", "a..b=1", r#"a."b=1"#] {
            assert!(text.parse::<Override>().is_err(), "{text}");
        }
    }
}
