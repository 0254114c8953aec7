//! The effective configuration of one request: the layers, with the request's own `config` above
//! them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use raddle_protocol::AskForApproval;
use serde_json::Value;

use crate::approval::{self, APPROVAL_POLICY};
use crate::config::State;
use crate::setting_error::{SettingError, quoted};
use crate::suggestions::nearest;
use crate::{keys, layers};

/// Keys that bound the agent, and that a thread can set for itself.
const THREAD_KEYS: &[&str] = &[
    "approval_policy",
    "approvals_reviewer",
    BUDGET,
    "default_permissions",
    "permissions",
    "sandbox_mode",
    "sandbox_workspace_write",
    keys::VARIABLES_TABLE,
];

/// The key for limits on models, which also apply to threads without tools.
const BUDGET: &str = "budget";

/// Prefixes of keys that bound the agent, in the words of this server, of the reference, or of
/// clients. Letters only: see [`letters`].
const FAMILIES: &[&str] = &[
    "allowed",
    "allowlogin",
    "approval",
    "askforapproval",
    "blocked",
    "budget",
    "defaultpermission",
    "denied",
    "deny",
    "disabledtool",
    "disallow",
    "enabledtool",
    "execpolicy",
    "forbid",
    "loginshell",
    "maxoutput",
    "maxturns",
    "network",
    "outputbytes",
    "permission",
    "readonly",
    "rules",
    "sandbox",
    "shellenvironment",
    "timeout",
    "tokenbudget",
    "tools",
    "unattended",
    "writableroots",
];

/// Reduces a name to its letters and digits in lower case, so that all naming styles compare equal.
pub fn letters(name: &str) -> String {
    let letters = name.chars().filter(|it| it.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// Whether a name begins like a key or member that bounds the agent.
pub fn may_bound(name: &str) -> bool {
    let name = letters(name);
    FAMILIES.iter().any(|it| name.starts_with(it))
}

/// All layers merged, with a request's own `config` above them.
#[derive(Debug)]
pub struct EffectiveConfig<'a> {
    table: Cow<'a, toml::Table>,
    state: &'a State,
    /// The keys that the request itself sets.
    request_keys: Vec<OwnKey>,
}

/// A key of a request's own `config`, and its value.
#[derive(Debug)]
struct OwnKey {
    /// The name as the client wrote it.
    name: String,
    path: Vec<String>,
    /// The value at its path: a dotted key is the same as nested tables.
    layer: toml::Table,
}

impl OwnKey {
    /// Returns the top-level key of the configuration.
    fn first(&self) -> &str {
        self.path.first().map_or("", String::as_str)
    }

    /// Whether it only enables tools and bounds nothing: no agent here searches the web, and all
    /// may view images.
    fn only_enables_tools(&self) -> bool {
        let tools = self.layer.get("tools").and_then(toml::Value::as_table);
        tools.is_some_and(|tools| {
            let only_enables = |(name, value): (&String, &toml::Value)| match name.as_str() {
                "web_search" => true,
                "view_image" => value.as_bool() == Some(true),
                _ => false,
            };
            !tools.is_empty() && tools.iter().all(only_enables)
        })
    }
}

impl State {
    /// Merges a request's `config`: keys may be dotted, values may be tables. Null values are
    /// ignored.
    pub fn with_request(&self, config: Option<&BTreeMap<String, Value>>) -> EffectiveConfig<'_> {
        let mut table = Cow::Borrowed(&self.merged);
        let mut request_keys = Vec::new();
        for (key, value) in config.into_iter().flatten() {
            // Clients send keys that have no meaning here, even some that are not paths.
            let path = layers::key_path(key).unwrap_or_else(|_| vec![key.clone()]);
            if let Some(value) = layers::from_json(value) {
                let mut layer = toml::Table::new();
                layers::set(&mut layer, &path, value);
                layers::join(table.to_mut(), &layer);
                let name = key.clone();
                request_keys.push(OwnKey { name, path, layer });
            }
        }
        let state = self;
        EffectiveConfig {
            table,
            state,
            request_keys,
        }
    }
}

impl EffectiveConfig<'_> {
    /// Returns a string that is not empty.
    pub fn text(&self, key: &str) -> Option<&str> {
        layers::text(&self.table, key)
    }

    /// Returns the merged table.
    pub fn table(&self) -> &toml::Table {
        &self.table
    }

    /// Returns a value of the merged table.
    pub fn value(&self, key: &str) -> Option<&toml::Value> {
        self.table.get(key)
    }

    /// Whether the request itself sets a key, or one in its table.
    pub fn names(&self, key: &str) -> bool {
        self.request_keys.iter().any(|it| it.first() == key)
    }

    /// Returns the rank of the layer that sets a key; none if no layer does. The request itself
    /// ranks highest.
    pub fn strength(&self, key: &str) -> Option<usize> {
        let layers = self.state.layers.each();
        let layers: Vec<bool> = layers.map(|it| it.table.contains_key(key)).collect();
        match self.names(key) {
            true => Some(layers.len()),
            false => layers.iter().rposition(|it| *it),
        }
    }

    /// Rejects bounds in a request that no thread can set for itself or that the server does not
    /// know: the client would believe in limits that do not apply. Also rejects two different
    /// values of one bound. Without tools, only limits on models are bounds.
    pub fn bounds(&self, has_tools: bool) -> Result<(), SettingError> {
        let is_bound = |it: &&OwnKey| match has_tools {
            true => may_bound(it.first()) || resembles_bound(it.first()),
            false => letters(it.first()).starts_with(BUDGET),
        };
        let bounds = self.request_keys.iter().filter(is_bound);
        let bounds: Vec<&OwnKey> = bounds.filter(|it| !it.only_enables_tools()).collect();
        let mut merged_bounds = toml::Table::new();
        for (index, key) in bounds.iter().enumerate() {
            if !THREAD_KEYS.contains(&key.first()) {
                self.reject_operator_key(key.first())?;
                continue;
            }
            if let Some(path) = layers::difference(&merged_bounds, &key.layer) {
                let mut earlier = bounds[..index].iter();
                let conflicting = earlier.find(|it| layers::get(&it.layer, &path).is_some());
                let name = |it: &OwnKey| format!("config.{}", quoted(&it.name));
                return Err(SettingError::Contradiction {
                    first: conflicting.map_or_else(|| "config".to_owned(), |it| name(it)),
                    second: name(key),
                });
            }
            layers::join(&mut merged_bounds, &key.layer);
        }
        match keys::first_unknown_bound(&merged_bounds) {
            Some(problem) => Err(SettingError::Refused(quoted(&problem).into_owned())),
            None => Ok(()),
        }
    }

    /// Rejects a key that no thread can set for itself, unless its value is the one in force.
    fn reject_operator_key(&self, key: &str) -> Result<(), SettingError> {
        let value = self.table.get(key);
        let is_known = keys::known(&[key.to_owned()]).is_some();
        if is_known && value == self.state.merged.get(key) {
            return Ok(());
        }
        let key = quoted(key);
        let what = match is_known {
            true => format!(
                "`{key}` applies to the whole server and cannot be set in a request; leave it out of `config`, or \
                 set it in the server's configuration"
            ),
            false => format!(
                "`{key}` in `config` would bound nothing, because the server does not read it; leave it out. A request bounds its \
                 thread with {}",
                THREAD_KEYS.join(", ")
            ),
        };
        Err(SettingError::Refused(what))
    }

    /// Returns the error for an invalid value, with the file that sets it. If the request itself
    /// sets it, no file is named.
    pub fn refused(&self, what: String, path: &[&str]) -> SettingError {
        let path: Vec<String> = path.iter().map(|it| (*it).to_owned()).collect();
        let is_in_request =
            |key: &OwnKey| key.path.starts_with(&path) || path.starts_with(&key.path);
        let layer = match self.request_keys.iter().any(is_in_request) {
            true => None,
            false => self.state.layers.winner(&path),
        };
        SettingError::Refused(match layer {
            Some((layer, _)) => format!("{what}, in {}", layer.describe()),
            None => what,
        })
    }

    /// Returns the configured approval policy, or why it is invalid.
    pub fn approval_policy(&self) -> Result<Option<AskForApproval>, SettingError> {
        let Some(value) = self.value(APPROVAL_POLICY) else {
            return Ok(None);
        };
        let invalid = || {
            let what = format!("`{APPROVAL_POLICY}` must be {}", approval::EXPECTED_VALUE);
            self.refused(what, &[APPROVAL_POLICY])
        };
        approval::read(value).ok_or_else(invalid).map(Some)
    }
}

/// Whether an unknown key is probably a misspelt key that bounds the agent.
fn resembles_bound(key: &str) -> bool {
    let is_known = keys::known(&[key.to_owned()]).is_some();
    !is_known && nearest(key, THREAD_KEYS.iter().copied()).is_some()
}
