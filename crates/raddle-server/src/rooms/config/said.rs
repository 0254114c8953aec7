//! The configuration as one request sees it: what is read from files, and what the request says beside it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use super::{State, layers};

/// All layers in one, and a request's own `config` above them.
#[derive(Debug)]
pub(crate) struct Said<'a>(Cow<'a, toml::Table>);

impl State {
    /// With what a request says: its keys may be dotted, and its values tables. What is null says nothing.
    pub(crate) fn said(&self, config: Option<&BTreeMap<String, Value>>) -> Said<'_> {
        let mut said = Cow::Borrowed(&self.merged);
        for (key, value) in config.into_iter().flatten() {
            // Clients send keys that mean nothing here, also some that are no paths.
            let path = layers::key_path(key).unwrap_or_else(|_| vec![key.clone()]);
            if let Some(value) = layers::from_json(value) {
                layers::put(said.to_mut(), &path, value);
            }
        }
        Said(said)
    }
}

impl Said<'_> {
    /// A string that says something.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        text(&self.0, key)
    }

    /// All of it.
    pub(crate) fn table(&self) -> &toml::Table {
        &self.0
    }

    /// A value.
    pub(crate) fn value(&self, key: &str) -> Option<&toml::Value> {
        self.0.get(key)
    }
}

pub(crate) fn text<'a>(table: &'a toml::Table, key: &str) -> Option<&'a str> {
    let text = table.get(key).and_then(toml::Value::as_str);
    text.filter(|text| !text.is_empty())
}
