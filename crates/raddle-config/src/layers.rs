//! Layers of configuration: the values of each, which value wins, and its origin.

use std::collections::BTreeMap;
use std::ops::Range;

use raddle_protocol::{ConfigLayerMetadata, ConfigLayerSource};

use crate::config_error::{KeyError, KeyPathError};

/// One source of configuration.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    pub(crate) source: ConfigLayerSource,
    pub(crate) version: String,
    pub(crate) table: toml::Table,
}

impl Layer {
    pub(crate) fn metadata(&self) -> ConfigLayerMetadata {
        ConfigLayerMetadata {
            name: self.source.clone(),
            version: self.version.clone(),
        }
    }

    /// Returns the layer's file, if it has one.
    pub(crate) fn file(&self) -> Option<&str> {
        match &self.source {
            ConfigLayerSource::System(it) => Some(&it.file),
            ConfigLayerSource::User(it) => Some(&it.file),
            _ => None,
        }
    }

    /// Returns a name of the layer, for people.
    pub(crate) fn describe(&self) -> &str {
        self.file().unwrap_or("the command line")
    }
}

/// All layers, weakest first.
#[derive(Clone, Debug)]
pub(crate) struct Layers(Vec<Layer>);

impl Layers {
    pub(crate) fn new(layers: Vec<Layer>) -> Self {
        Self(layers)
    }

    pub(crate) fn each(&self) -> impl DoubleEndedIterator<Item = &Layer> {
        self.0.iter()
    }

    /// Merges all layers: tables are joined, anything else is replaced.
    pub(crate) fn merged(&self) -> toml::Table {
        let mut merged = toml::Table::new();
        for layer in &self.0 {
            join(&mut merged, &layer.table);
        }
        merged
    }

    /// Returns the layer that each effective value comes from.
    pub(crate) fn origins(&self) -> BTreeMap<String, ConfigLayerMetadata> {
        let mut origins = BTreeMap::new();
        visit_leaves(&self.merged(), &mut Vec::new(), &mut |path| {
            if let Some((layer, _)) = self.winner(path) {
                origins.insert(path.join("."), layer.metadata());
            }
        });
        origins
    }

    pub(crate) fn winner(&self, path: &[String]) -> Option<(&Layer, &toml::Value)> {
        self.0
            .iter()
            .rev()
            .find_map(|layer| Some((layer, get(&layer.table, path)?)))
    }
}

/// Parses a dotted path; parts with dots in them are quoted.
pub(crate) fn key_path(text: &str) -> Result<Vec<String>, KeyPathError> {
    if text.is_empty() {
        return Err(KeyPathError::Empty);
    }
    toml_edit::Key::parse(text)
        .map(|keys| keys.into_iter().map(|key| key.get().to_owned()).collect())
        .map_err(|error| {
            let error = error.to_string();
            let message = error.lines().last().unwrap_or("not a key");
            KeyPathError::Syntax(message.trim().to_owned())
        })
}

/// Parses the path of a key that a person wrote, and names it in the error.
pub(crate) fn named_key_path(key: &str) -> Result<Vec<String>, KeyError> {
    key_path(key).map_err(|error| KeyError::Path {
        key: key.to_owned(),
        error,
    })
}

/// Sets a value. Creates the tables above it, and replaces values in their place.
pub(crate) fn set(table: &mut toml::Table, path: &[String], value: toml::Value) {
    let Some((last, parents)) = path.split_last() else {
        return;
    };
    let mut table = table;
    for part in parents {
        let next = table
            .entry(part.clone())
            .or_insert_with(|| toml::Table::new().into());
        if !next.is_table() {
            *next = toml::Table::new().into();
        }
        let toml::Value::Table(inner) = next else {
            return;
        };
        table = inner;
    }
    table.insert(last.clone(), value);
}

/// Removes the value at a path, if there is one.
pub(crate) fn remove(table: &mut toml::Table, path: &[String]) {
    let Some((last, parents)) = path.split_last() else {
        return;
    };
    let mut parents = parents.iter();
    let table = parents.try_fold(table, |inner, name| inner.get_mut(name)?.as_table_mut());
    table.map(|it| it.remove(last));
}

/// Returns a string that is not empty.
pub(crate) fn text<'a>(table: &'a toml::Table, key: &str) -> Option<&'a str> {
    let text = table.get(key).and_then(toml::Value::as_str);
    text.filter(|text| !text.is_empty())
}

/// Returns the line, counted from 1, in which a span begins.
pub(crate) fn line_of(text: &str, span: Option<Range<usize>>) -> usize {
    let preceding = text.as_bytes().iter().take(span.map_or(0, |it| it.start));
    1 + preceding.filter(|it| **it == b'\n').count()
}

pub(crate) fn get<'a>(table: &'a toml::Table, path: &[String]) -> Option<&'a toml::Value> {
    let (first, rest) = path.split_first()?;
    let value = table.get(first)?;
    if rest.is_empty() {
        Some(value)
    } else {
        get(value.as_table()?, rest)
    }
}

/// Returns the path of a value that both tables have, and that differs.
pub(crate) fn difference(a: &toml::Table, b: &toml::Table) -> Option<Vec<String>> {
    b.iter().find_map(|(key, value)| {
        let below = match (a.get(key)?, value) {
            (toml::Value::Table(a), toml::Value::Table(b)) => difference(a, b)?,
            (a, b) if a == b => return None,
            _ => Vec::new(),
        };
        Some(std::iter::once(key.clone()).chain(below).collect())
    })
}

/// Joins a table into another: tables in both are joined, anything else is replaced.
pub(crate) fn join(into: &mut toml::Table, from: &toml::Table) {
    for (key, value) in from {
        match (into.get_mut(key), value) {
            (Some(toml::Value::Table(into)), toml::Value::Table(from)) => join(into, from),
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}

pub(crate) fn visit_leaves(
    table: &toml::Table,
    path: &mut Vec<String>,
    visit: &mut impl FnMut(&[String]),
) {
    for (key, value) in table {
        path.push(key.clone());
        match value {
            toml::Value::Table(inner) if !inner.is_empty() => visit_leaves(inner, path, visit),
            _ => visit(path),
        }
        path.pop();
    }
}

/// Converts a JSON value. Null, and values that TOML cannot hold, are omitted.
pub(crate) fn from_json(value: &serde_json::Value) -> Option<toml::Value> {
    use serde_json::Value;
    Some(match value {
        Value::Null => return None,
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => match number.as_i64() {
            Some(number) => number.into(),
            None => number.as_f64()?.into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(values) => toml::Value::Array(values.iter().filter_map(from_json).collect()),
        Value::Object(members) => {
            let members = members.iter();
            let entries = members.filter_map(|(key, value)| Some((key.clone(), from_json(value)?)));
            toml::Value::Table(entries.collect())
        }
    })
}

pub(crate) fn to_json(value: &toml::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        toml::Value::String(text) => Value::from(text.as_str()),
        toml::Value::Integer(number) => Value::from(*number),
        toml::Value::Float(number) => Value::from(*number),
        toml::Value::Boolean(flag) => Value::from(*flag),
        toml::Value::Datetime(time) => Value::from(time.to_string()),
        toml::Value::Array(values) => values.iter().map(to_json).collect(),
        toml::Value::Table(table) => table
            .iter()
            .map(|(key, value)| (key.clone(), to_json(value)))
            .collect(),
    }
}
