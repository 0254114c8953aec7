//! Layers of configuration: the values of each, which value wins, and its origin.

use std::collections::BTreeMap;

use raddle_protocol::{ConfigLayer, ConfigLayerMetadata, ConfigLayerSource};

use super::redaction::redact;

/// One source of configuration.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    pub(super) source: ConfigLayerSource,
    pub(super) version: String,
    pub(super) table: toml::Table,
}

impl Layer {
    pub(super) fn metadata(&self) -> ConfigLayerMetadata {
        ConfigLayerMetadata {
            name: self.source.clone(),
            version: self.version.clone(),
        }
    }

    /// Returns the layer's file, if it has one.
    pub(super) fn file(&self) -> Option<&str> {
        match &self.source {
            ConfigLayerSource::System(it) => Some(&it.file),
            ConfigLayerSource::User(it) => Some(&it.file),
            _ => None,
        }
    }

    /// Returns a name of the layer, for people.
    pub(super) fn describe(&self) -> &str {
        self.file().unwrap_or("the command line")
    }
}

/// All layers, weakest first.
#[derive(Clone, Debug)]
pub(super) struct Layers(Vec<Layer>);

impl Layers {
    pub(super) fn new(layers: Vec<Layer>) -> Self {
        Self(layers)
    }

    pub(super) fn each(&self) -> impl Iterator<Item = &Layer> {
        self.0.iter()
    }

    /// Merges all layers: tables are joined, anything else is replaced.
    pub(super) fn merged(&self) -> toml::Table {
        let mut merged = toml::Table::new();
        for layer in &self.0 {
            join(&mut merged, &layer.table);
        }
        merged
    }

    /// Returns the layer that each effective value comes from.
    pub(super) fn origins(&self) -> BTreeMap<String, ConfigLayerMetadata> {
        let mut origins = BTreeMap::new();
        visit_leaves(&self.merged(), &mut Vec::new(), &mut |path| {
            if let Some((layer, _)) = self.winner(path) {
                origins.insert(path.join("."), layer.metadata());
            }
        });
        origins
    }

    /// Returns the layers for a client: strongest first, without an empty layer of the command
    /// line.
    pub(super) fn for_client(&self) -> Vec<ConfigLayer> {
        let view = |layer: &Layer| ConfigLayer {
            name: layer.source.clone(),
            version: layer.version.clone(),
            config: redacted_json(&layer.table),
            disabled_reason: None,
        };
        let is_empty_command_line = |layer: &&Layer| {
            layer.source == ConfigLayerSource::SessionFlags && layer.table.is_empty()
        };
        self.0
            .iter()
            .rev()
            .filter(|layer| !is_empty_command_line(layer))
            .map(view)
            .collect()
    }

    /// Returns a layer stronger than the user's that sets this value, and the redacted value.
    pub(super) fn overriding_user(&self, path: &[String]) -> Option<(&Layer, toml::Value)> {
        let (layer, _) = self.winner(path).filter(|(layer, _)| {
            !matches!(
                layer.source,
                ConfigLayerSource::User(_) | ConfigLayerSource::System(_)
            )
        })?;
        let table = without_secrets(&layer.table);
        Some((layer, get(&table, path)?.clone()))
    }

    pub(super) fn winner(&self, path: &[String]) -> Option<(&Layer, &toml::Value)> {
        self.0
            .iter()
            .rev()
            .find_map(|layer| Some((layer, get(&layer.table, path)?)))
    }
}

/// Parses a dotted path; parts with dots in them are quoted.
pub(super) fn key_path(text: &str) -> Result<Vec<String>, String> {
    if text.is_empty() {
        return Err("the key must not be empty".to_owned());
    }
    toml_edit::Key::parse(text)
        .map(|keys| keys.into_iter().map(|key| key.get().to_owned()).collect())
        .map_err(|error| {
            error
                .to_string()
                .lines()
                .last()
                .unwrap_or("not a key")
                .trim()
                .to_owned()
        })
}

/// Sets a value. Creates the tables above it, and replaces values in their place.
pub(super) fn set(table: &mut toml::Table, path: &[String], value: toml::Value) {
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
pub(super) fn remove(table: &mut toml::Table, path: &[String]) {
    let Some((last, parents)) = path.split_last() else {
        return;
    };
    let mut parents = parents.iter();
    let table = parents.try_fold(table, |inner, name| inner.get_mut(name)?.as_table_mut());
    table.map(|it| it.remove(last));
}

pub(super) fn get<'a>(table: &'a toml::Table, path: &[String]) -> Option<&'a toml::Value> {
    let (first, rest) = path.split_first()?;
    let value = table.get(first)?;
    if rest.is_empty() {
        Some(value)
    } else {
        get(value.as_table()?, rest)
    }
}

/// Returns the path of a value that both tables have, and that differs.
pub(super) fn difference(a: &toml::Table, b: &toml::Table) -> Option<Vec<String>> {
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
pub(super) fn join(into: &mut toml::Table, from: &toml::Table) {
    for (key, value) in from {
        match (into.get_mut(key), value) {
            (Some(toml::Value::Table(into)), toml::Value::Table(from)) => join(into, from),
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}

pub(super) fn visit_leaves(
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
pub(super) fn from_json(value: &serde_json::Value) -> Option<toml::Value> {
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

/// Converts a table to JSON, with secrets redacted.
pub(super) fn redacted_json(table: &toml::Table) -> serde_json::Value {
    to_json(&toml::Value::Table(without_secrets(table)))
}

pub(super) fn without_secrets(table: &toml::Table) -> toml::Table {
    let mut table = table.clone();
    redact(&mut table);
    table
}

pub(super) fn to_json(value: &toml::Value) -> serde_json::Value {
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
