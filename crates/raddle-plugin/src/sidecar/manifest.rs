//! The manifest of a plugin, `plugin.toml`.

mod hooks;
mod mcp_servers;
mod model_provider;
mod skills;
mod tools;

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use raddle_config::McpServer;
use rustix::fs::OFlags;
use serde_json::Value;
use toml::Table;

pub use self::hooks::PluginHook;
pub use self::tools::PluginTool;
use super::network;

/// Name of the manifest in the folder of a plugin.
pub const MANIFEST_FILE: &str = "plugin.toml";

/// Limit: manifest of a plugin; beyond it, the plugin is rejected.
const MANIFEST_BYTES_MAX: u64 = 256 << 10;

/// Limit: id, version or name of a method in a plugin's manifest; beyond it, the plugin is rejected.
const NAME_BYTES_MAX: usize = 200;

/// Permissions with a fixed name.
const PERMISSIONS: [&str; 4] = [
    "workspace.read",
    "workspace.write",
    "command.run",
    "model.call",
];

/// Prefix of permissions that continue with the name of a secret.
const SECRETS_PREFIX: &str = "secrets:";

/// Prefixes of methods that the contract defines.
const RESERVED_PREFIXES: [&str; 2] = ["plugin/", "host/"];

/// The manifest of a plugin.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// Id, such as `org.name`.
    pub id: String,
    /// Version, in any form.
    pub version: String,
    /// The program and its arguments, never empty.
    pub entrypoint: Vec<String>,
    /// Permissions that the plugin may ask for.
    pub permissions: Vec<String>,
    /// Methods that the plugin declares.
    pub methods: Vec<PluginMethod>,
    /// Tools that the plugin offers to the model.
    pub tools: Vec<PluginTool>,
    /// Methods that are called on events of threads.
    pub hooks: Vec<PluginHook>,
    /// Method that answers model calls, if the plugin is a model provider.
    pub model_provider: Option<String>,
    /// Folders of skills below the folder of the plugin; `None` for `skills`, if it exists.
    pub skills: Option<Vec<String>>,
    /// MCP servers that the plugin defines, under the names by which threads know them.
    pub mcp_servers: Vec<McpServer>,
    /// Keys that are not known, as sentences for the author.
    pub warnings: Vec<String>,
}

/// A method that a plugin declares.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginMethod {
    /// Name on the wire.
    pub name: String,
    /// Params of a call that has no lasting effect, for the test of the plugin.
    pub example: Option<Value>,
}

/// Reason why a manifest cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The file cannot be read.
    #[error(
        "cannot read {}: {error}; name the folder of a plugin, which contains {MANIFEST_FILE}",
        path.display()
    )]
    Read {
        /// Path of the manifest.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
    /// The file is too long.
    #[error("{} is longer than {MANIFEST_BYTES_MAX} bytes; shorten it", path.display())]
    TooLong {
        /// Path of the manifest.
        path: PathBuf,
    },
    /// The file is not TOML.
    #[error("{} is not valid TOML; correct it: {error}", path.display())]
    Syntax {
        /// Path of the manifest.
        path: PathBuf,
        /// Position and cause.
        error: Box<toml::de::Error>,
    },
    /// A key is missing, or its value is invalid.
    #[error("{}: `{key}` {problem}; {remedy}", path.display())]
    Key {
        /// Path of the manifest.
        path: PathBuf,
        /// Name of the key, with the keys around it.
        key: String,
        /// Problem of the value, after the name of the key.
        problem: String,
        /// Change that makes the value valid.
        remedy: String,
    },
}

impl Manifest {
    /// Reads the manifest of the plugin in this folder. It may block on the disk.
    pub fn read(folder: &Path) -> Result<Self, ManifestError> {
        let path = folder.join(MANIFEST_FILE);
        let mut text = String::new();
        let read = open(&path)
            .and_then(|file| file.take(MANIFEST_BYTES_MAX + 1).read_to_string(&mut text));
        match read {
            Err(error) => return Err(ManifestError::Read { path, error }),
            Ok(bytes) if bytes as u64 > MANIFEST_BYTES_MAX => {
                return Err(ManifestError::TooLong { path });
            }
            Ok(_) => {}
        }
        match text.parse::<Table>() {
            Ok(table) => Self::of_table(table).map_err(|fault| fault.at(path)),
            Err(error) => Err(ManifestError::Syntax {
                path,
                error: Box::new(error),
            }),
        }
    }

    /// Whether the plugin declares a method, for clients or for a tool. It declares none that the
    /// contract defines.
    pub(super) fn declares(&self, method: &str) -> bool {
        let is_declared = self.methods.iter().any(|it| it.name == method);
        is_declared || self.tools.iter().any(|it| it.method == method)
    }

    fn of_table(mut table: Table) -> Result<Self, KeyFault> {
        let keys = &mut table;
        let id = id(keys)?;
        let version = name(keys, "version", "\"0.1.0\"")?;
        let entrypoint = strings(keys, "entrypoint", ENTRYPOINT_EXAMPLE)?;
        let entrypoint =
            entrypoint.ok_or_else(|| KeyFault::missing("entrypoint", ENTRYPOINT_EXAMPLE))?;
        if entrypoint.first().is_none_or(String::is_empty) {
            let remedy = format!("name the program first, as in {ENTRYPOINT_EXAMPLE}");
            return Err(KeyFault::new("entrypoint", "names no program", remedy));
        }
        let permissions = strings(keys, "permissions", "[\"workspace.read\"]")?.unwrap_or_default();
        if let Some(unknown) = permissions.iter().find(|it| !is_permission(it)) {
            let problem = format!("has the unknown permission `{unknown}`");
            return Err(KeyFault::new("permissions", problem, permission_list()));
        }
        let mut warnings = Vec::new();
        let mut contributions = match keys.remove("contributions") {
            None => Table::new(),
            Some(toml::Value::Table(contributions)) => contributions,
            Some(_) => return Err(KeyFault::wrong("contributions", "a table", METHOD_EXAMPLE)),
        };
        let methods = methods(&mut contributions, &mut warnings)?;
        let tools = tools::take(&mut contributions, &mut warnings)?;
        let hooks = hooks::take(&mut contributions, &mut warnings)?;
        let model_provider = model_provider::take(&mut contributions, &mut warnings)?;
        let skills = skills::take(&mut contributions)?;
        let mcp_servers = mcp_servers::take(&mut contributions, &id)?;
        warn_of(&contributions, "contributions.", &mut warnings);
        warn_of(keys, "", &mut warnings);
        Ok(Self {
            id,
            version,
            entrypoint,
            permissions,
            methods,
            tools,
            hooks,
            model_provider,
            skills,
            mcp_servers,
            warnings,
        })
    }
}

/// Opens an ordinary file. Another one, such as a pipe, could block its reader for ever.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::options()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is no ordinary file")),
    }
}

const ENTRYPOINT_EXAMPLE: &str = "[\"python3\", \"main.py\"]";

const METHOD_EXAMPLE: &str = "[[contributions.methods]]";

/// A key with an invalid value, in a file that the caller knows.
struct KeyFault {
    key: String,
    problem: String,
    remedy: String,
}

impl KeyFault {
    fn new(key: &str, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            key: key.to_owned(),
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }

    fn missing(key: &str, example: &str) -> Self {
        Self::new(key, "is missing", format!("add `{key} = {example}`"))
    }

    fn wrong(key: &str, kind: &str, example: &str) -> Self {
        let problem = format!("must be {kind}");
        Self::new(key, problem, format!("write it as in `{example}`"))
    }

    /// Adds the table around the key.
    fn inside(self, table: &str) -> Self {
        let key = format!("{table}.{}", self.key);
        Self { key, ..self }
    }

    fn at(self, path: PathBuf) -> ManifestError {
        ManifestError::Key {
            path,
            key: self.key,
            problem: self.problem,
            remedy: self.remedy,
        }
    }
}

fn id(keys: &mut Table) -> Result<String, KeyFault> {
    let id = name(keys, "id", "\"org.name\"")?;
    let is_part = |it: &str| {
        let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        !it.is_empty() && it.bytes().all(is_valid)
    };
    if id.contains('.') && id.split('.').all(is_part) {
        return Ok(id);
    }
    let remedy = "join two or more parts of letters, digits, - and _ with dots, as in \"org.name\"";
    Err(KeyFault::new("id", format!("is `{id}`"), remedy))
}

/// Takes a required string that is short and not empty.
fn name(keys: &mut Table, key: &str, example: &str) -> Result<String, KeyFault> {
    match keys.remove(key) {
        None => Err(KeyFault::missing(key, example)),
        Some(toml::Value::String(text)) if is_name(&text) => Ok(text),
        Some(_) => {
            let kind =
                format!("a string of 1 to {NAME_BYTES_MAX} bytes, without control characters");
            Err(KeyFault::wrong(key, &kind, &format!("{key} = {example}")))
        }
    }
}

fn is_name(text: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control)
}

/// Takes a list of strings; `None` if the key is absent.
fn strings(keys: &mut Table, key: &str, example: &str) -> Result<Option<Vec<String>>, KeyFault> {
    let Some(value) = keys.remove(key) else {
        return Ok(None);
    };
    let wrong = || KeyFault::wrong(key, "a list of strings", &format!("{key} = {example}"));
    let toml::Value::Array(values) = value else {
        return Err(wrong());
    };
    let texts = values.into_iter().map(|it| match it {
        // A program cannot be started with such an argument.
        toml::Value::String(text) if !text.contains('\0') => Ok(text),
        _ => Err(wrong()),
    });
    texts.collect::<Result<_, _>>().map(Some)
}

fn is_permission(text: &str) -> bool {
    let is_secret = text.strip_prefix(SECRETS_PREFIX).is_some_and(is_name);
    let is_host = text
        .strip_prefix(network::PREFIX)
        .is_some_and(network::is_host);
    is_secret || is_host || PERMISSIONS.contains(&text)
}

/// Whether the contract defines methods of this kind.
fn is_reserved(method: &str) -> bool {
    RESERVED_PREFIXES.iter().any(|it| method.starts_with(it))
}

fn permission_list() -> String {
    let fixed = PERMISSIONS.join(", ");
    format!("use {fixed}, secrets:NAME or network:HOST")
}

fn methods(keys: &mut Table, warnings: &mut Vec<String>) -> Result<Vec<PluginMethod>, KeyFault> {
    let key = "contributions.methods";
    let wrong = || KeyFault::wrong(key, "a list of tables", METHOD_EXAMPLE);
    let values = match keys.remove("methods") {
        None => Vec::new(),
        Some(toml::Value::Array(values)) => values,
        Some(_) => return Err(wrong()),
    };
    let mut methods: Vec<PluginMethod> = Vec::new();
    for value in values {
        let toml::Value::Table(mut method) = value else {
            return Err(wrong());
        };
        let name = name(&mut method, "name", "\"greeting/make\"");
        let name = name.map_err(|fault| fault.inside(key))?;
        if is_reserved(&name) {
            let remedy = "the contract defines plugin/ and host/; choose another prefix";
            return Err(KeyFault::new(key, format!("has the name `{name}`"), remedy));
        }
        if methods.iter().any(|it| it.name == name) {
            let problem = format!("has the name `{name}` twice");
            return Err(KeyFault::new(key, problem, "remove one of them"));
        }
        let example = match method.remove("example") {
            None => None,
            Some(example @ toml::Value::Table(_)) => serde_json::to_value(example).ok(),
            Some(_) => {
                let shape = "example = { name = \"Ada\" }";
                return Err(KeyFault::wrong(&format!("{key}.example"), "a table", shape));
            }
        };
        warn_of(&method, "contributions.methods.", warnings);
        methods.push(PluginMethod { name, example });
    }
    Ok(methods)
}

/// Adds a warning for each remaining key.
fn warn_of(keys: &Table, around: &str, warnings: &mut Vec<String>) {
    let unknown = keys.keys().map(|key| {
        format!("{MANIFEST_FILE}: the key `{around}{key}` is not known, and has no effect")
    });
    warnings.extend(unknown);
}

#[cfg(test)]
mod tests;
