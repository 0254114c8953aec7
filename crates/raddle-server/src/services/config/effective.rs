//! The configuration as one request sees it: what is read from files, and what the request says beside it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use super::suggestions::nearest;
use super::{State, keys, layers};
use crate::wire_error::{WireError, shown};

/// Keys that bound the agent, and that a thread can have of its own.
const THREAD_KEYS: &[&str] = &[
    "approval_policy",
    "approvals_reviewer",
    BUDGET,
    "default_permissions",
    "permissions",
    "sandbox_mode",
    "sandbox_workspace_write",
];

/// The key for limits on models, which count for threads without tools too.
const BUDGET: &str = "budget";

/// How keys begin that bound the agent, by this server's words, the reference's, or those that clients make up.
/// Letters only: see [`letters`].
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

/// A name as the same words are written in any style.
pub(crate) fn letters(name: &str) -> String {
    let letters = name.chars().filter(|it| it.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// Whether a name begins like those of keys or members that bound the agent.
pub(crate) fn may_bound(name: &str) -> bool {
    let name = letters(name);
    FAMILIES.iter().any(|it| name.starts_with(it))
}

/// All layers in one, and a request's own `config` above them.
#[derive(Debug)]
pub(crate) struct EffectiveConfig<'a> {
    table: Cow<'a, toml::Table>,
    state: &'a State,
    /// The keys that the request itself says.
    own: Vec<OwnKey>,
}

/// A key of a request's own `config`, and its value.
#[derive(Debug)]
struct OwnKey {
    /// As the client wrote it.
    name: String,
    path: Vec<String>,
    /// The value at its path: a dotted key comes to the same as nested tables.
    layer: toml::Table,
}

impl OwnKey {
    /// The key of the configuration that it is, or is below of.
    fn first(&self) -> &str {
        self.path.first().map_or("", String::as_str)
    }

    /// Whether it is about tools and bounds nothing: no agent here searches the web, and all may view images.
    fn asks_for_tools(&self) -> bool {
        let tools = self.layer.get("tools").and_then(toml::Value::as_table);
        tools.is_some_and(|tools| {
            let asks = |(name, value): (&String, &toml::Value)| match name.as_str() {
                "web_search" => true,
                "view_image" => value.as_bool() == Some(true),
                _ => false,
            };
            !tools.is_empty() && tools.iter().all(asks)
        })
    }
}

impl State {
    /// With what a request says: its keys may be dotted, and its values tables. What is null says nothing.
    pub(crate) fn with_request(
        &self,
        config: Option<&BTreeMap<String, Value>>,
    ) -> EffectiveConfig<'_> {
        let mut table = Cow::Borrowed(&self.merged);
        let mut own = Vec::new();
        for (key, value) in config.into_iter().flatten() {
            // Clients send keys that mean nothing here, also some that are no paths.
            let path = layers::key_path(key).unwrap_or_else(|_| vec![key.clone()]);
            if let Some(value) = layers::from_json(value) {
                let mut layer = toml::Table::new();
                layers::set(&mut layer, &path, value);
                layers::join(table.to_mut(), &layer);
                let name = key.clone();
                own.push(OwnKey { name, path, layer });
            }
        }
        let state = self;
        EffectiveConfig { table, state, own }
    }
}

impl EffectiveConfig<'_> {
    /// A string that says something.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        text(&self.table, key)
    }

    /// All of it.
    pub(crate) fn table(&self) -> &toml::Table {
        &self.table
    }

    /// A value.
    pub(crate) fn value(&self, key: &str) -> Option<&toml::Value> {
        self.table.get(key)
    }

    /// Whether the request itself says something of a key, or of one in its table.
    pub(crate) fn names(&self, key: &str) -> bool {
        self.own.iter().any(|it| it.first() == key)
    }

    /// How strong the layer is that says a key: nothing if none does, and the request itself is the strongest.
    pub(crate) fn strength(&self, key: &str) -> Option<usize> {
        let layers = self.state.layers.each();
        let layers: Vec<bool> = layers.map(|it| it.table.contains_key(key)).collect();
        match self.names(key) {
            true => Some(layers.len()),
            false => layers.iter().rposition(|it| *it),
        }
    }

    /// Refuses what a request says to bound the agent, if no thread can have it of its own or nobody reads it: it
    /// would be taken for a limit and be none. Refuses two values of one bound as well. Without tools only what models
    /// use is bounded.
    pub(crate) fn bounds(&self, has_tools: bool) -> Result<(), WireError> {
        let is_bound = |it: &&OwnKey| match has_tools {
            true => may_bound(it.first()) || is_nearly_bound(it.first()),
            false => letters(it.first()).starts_with(BUDGET),
        };
        let bounds = self.own.iter().filter(is_bound);
        let bounds: Vec<&OwnKey> = bounds.filter(|it| !it.asks_for_tools()).collect();
        let mut own = toml::Table::new();
        for (at, bound) in bounds.iter().enumerate() {
            if !THREAD_KEYS.contains(&bound.first()) {
                self.leaves_to_operator(bound.first())?;
                continue;
            }
            if let Some(path) = layers::difference(&own, &bound.layer) {
                let mut before = bounds[..at].iter();
                let other = before.find(|it| layers::get(&it.layer, &path).is_some());
                let name = |it: &OwnKey| format!("config.{}", shown(&it.name));
                return Err(WireError::Contradiction {
                    one: other.map_or_else(|| "config".to_owned(), |it| name(it)),
                    other: name(bound),
                });
            }
            layers::join(&mut own, &bound.layer);
        }
        match keys::odd_in_request(&own) {
            Some(odd) => Err(WireError::Refused(shown(&odd).into_owned().into())),
            None => Ok(()),
        }
    }

    /// Refuses a key that no thread has of its own, unless it says what holds anyway.
    fn leaves_to_operator(&self, key: &str) -> Result<(), WireError> {
        let said = self.table.get(key);
        let is_known = keys::known(&[key.to_owned()]).is_some();
        if is_known && said == self.state.merged.get(key) {
            return Ok(());
        }
        let key = shown(key);
        let what = match is_known || key == "shell_environment_policy" {
            true => format!(
                "`{key}` holds for the whole server and cannot be said in a request; leave it out of `config`, or \
                 set it in the server's configuration"
            ),
            false => format!(
                "`{key}` in `config` would bound nothing, because nobody reads it; leave it out. A request bounds its \
                 thread with {}",
                THREAD_KEYS.join(", ")
            ),
        };
        Err(WireError::Refused(what.into()))
    }

    /// That a value cannot be, with the file that says it. Who says it in the request itself knows where.
    pub(crate) fn refused(&self, what: String, path: &[&str]) -> WireError {
        let path: Vec<String> = path.iter().map(|it| (*it).to_owned()).collect();
        let is_here = |own: &OwnKey| own.path.starts_with(&path) || path.starts_with(&own.path);
        let layer = match self.own.iter().any(is_here) {
            true => None,
            false => self.state.layers.winner(&path),
        };
        WireError::Refused(match layer {
            Some((layer, _)) => format!("{what}, in {}", layer.describe()).into(),
            None => what.into(),
        })
    }
}

/// Whether a key that nobody reads is one of those that bound the agent, written wrongly.
fn is_nearly_bound(key: &str) -> bool {
    let is_known = keys::known(&[key.to_owned()]).is_some();
    !is_known && nearest(key, THREAD_KEYS.iter().copied()).is_some()
}

pub(crate) fn text<'a>(table: &'a toml::Table, key: &str) -> Option<&'a str> {
    let text = table.get(key).and_then(toml::Value::as_str);
    text.filter(|text| !text.is_empty())
}
