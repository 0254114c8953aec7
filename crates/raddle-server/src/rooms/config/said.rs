//! The configuration as one request sees it: what is read from files, and what the request says beside it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use super::{State, layers};
use crate::wire_error::WireError;

/// Keys that bound commands and are not read from requests. The last is the reference's, and read nowhere.
const OF_OPERATOR: &[&str] = &[
    "sandbox_network",
    "sandbox_accept_tier",
    "shell_environment_policy",
];

/// All layers in one, and a request's own `config` above them.
#[derive(Debug)]
pub(crate) struct Said<'a> {
    table: Cow<'a, toml::Table>,
    state: &'a State,
    /// The keys that the request itself says.
    own: Vec<Vec<String>>,
}

impl State {
    /// With what a request says: its keys may be dotted, and its values tables. What is null says nothing.
    pub(crate) fn said(&self, config: Option<&BTreeMap<String, Value>>) -> Said<'_> {
        let mut table = Cow::Borrowed(&self.merged);
        let mut own = Vec::new();
        for (key, value) in config.into_iter().flatten() {
            // Clients send keys that mean nothing here, also some that are no paths.
            let path = layers::key_path(key).unwrap_or_else(|_| vec![key.clone()]);
            if let Some(value) = layers::from_json(value) {
                layers::put(table.to_mut(), &path, value);
                own.push(path);
            }
        }
        let state = self;
        Said { table, state, own }
    }
}

impl Said<'_> {
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
        let is_key = |own: &Vec<String>| own.first().is_some_and(|it| it == key);
        self.own.iter().any(is_key)
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

    /// Refuses what a request says otherwise of keys that only whoever runs the server may say: it would be taken
    /// for a limit and be none.
    pub(crate) fn leaves_to_operator(&self) -> Result<(), WireError> {
        let is_other =
            |key: &&&str| self.names(key) && self.table.get(**key) != self.state.merged.get(**key);
        match OF_OPERATOR.iter().find(is_other) {
            Some(key) => Err(WireError::Refused(
                format!(
                    "`{key}` holds for the whole server and cannot be said in a request; leave it out of `config`, or \
                     set it in the server's configuration"
                )
                .into(),
            )),
            None => Ok(()),
        }
    }

    /// That a value cannot be, with the file that says it. Who says it in the request itself knows where.
    pub(crate) fn refused(&self, what: String, path: &[&str]) -> WireError {
        let path: Vec<String> = path.iter().map(|it| (*it).to_owned()).collect();
        let is_here = |own: &Vec<String>| own.starts_with(&path) || path.starts_with(own);
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

pub(crate) fn text<'a>(table: &'a toml::Table, key: &str) -> Option<&'a str> {
    let text = table.get(key).and_then(toml::Value::as_str);
    text.filter(|text| !text.is_empty())
}
