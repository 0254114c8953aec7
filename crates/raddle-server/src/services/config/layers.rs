//! Layers of configuration: what each says, what wins, and where it comes from.

use std::collections::BTreeMap;

use raddle_protocol::{ConfigLayer, ConfigLayerMetadata, ConfigLayerSource};

use super::redaction::hide;

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

    /// The layer's file, if it has one.
    pub(super) fn file(&self) -> Option<&str> {
        match &self.source {
            ConfigLayerSource::System(it) => Some(&it.file),
            ConfigLayerSource::User(it) => Some(&it.file),
            _ => None,
        }
    }

    /// The layer, for people.
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

    /// All layers in one: tables are joined, anything else is replaced.
    pub(super) fn merged(&self) -> toml::Table {
        let mut merged = toml::Table::new();
        for layer in &self.0 {
            join(&mut merged, &layer.table);
        }
        merged
    }

    /// For each value that counts, the layer it comes from.
    pub(super) fn origins(&self) -> BTreeMap<String, ConfigLayerMetadata> {
        let mut origins = BTreeMap::new();
        leaves(&self.merged(), &mut Vec::new(), &mut |path| {
            if let Some((layer, _)) = self.winner(path) {
                origins.insert(path.join("."), layer.metadata());
            }
        });
        origins
    }

    /// The layers as a client is told of them: strongest first, empty ones of the command line left out.
    pub(super) fn told(&self) -> Vec<ConfigLayer> {
        let told = |layer: &Layer| ConfigLayer {
            name: layer.source.clone(),
            version: layer.version.clone(),
            config: shown(&layer.table),
            disabled_reason: None,
        };
        let silent = |layer: &&Layer| {
            layer.source == ConfigLayerSource::SessionFlags && layer.table.is_empty()
        };
        self.0
            .iter()
            .rev()
            .filter(|layer| !silent(layer))
            .map(told)
            .collect()
    }

    /// A layer stronger than the user's that decides this value, and the value as it may be shown.
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

/// Reads a dotted path; parts with dots in them are quoted.
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

/// Sets a value, making tables on the way and replacing what is not one.
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
    let table = parents.try_fold(table, |at, name| at.get_mut(name)?.as_table_mut());
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

/// The path of a value that both tables have, and that differs.
pub(super) fn difference(one: &toml::Table, other: &toml::Table) -> Option<Vec<String>> {
    other.iter().find_map(|(key, value)| {
        let below = match (one.get(key)?, value) {
            (toml::Value::Table(one), toml::Value::Table(other)) => difference(one, other)?,
            (one, other) if one == other => return None,
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

pub(super) fn leaves(
    table: &toml::Table,
    path: &mut Vec<String>,
    visit: &mut impl FnMut(&[String]),
) {
    for (key, value) in table {
        path.push(key.clone());
        match value {
            toml::Value::Table(inner) if !inner.is_empty() => leaves(inner, path, visit),
            _ => visit(path),
        }
        path.pop();
    }
}

/// A value of the wire. What is null, or has no place in TOML, says nothing.
pub(super) fn from_json(value: &serde_json::Value) -> Option<toml::Value> {
    use serde_json::Value;
    Some(match value {
        Value::Null => return None,
        Value::Bool(yes) => (*yes).into(),
        Value::Number(number) => match number.as_i64() {
            Some(number) => number.into(),
            None => number.as_f64()?.into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(values) => toml::Value::Array(values.iter().filter_map(from_json).collect()),
        Value::Object(members) => {
            let members = members.iter();
            let said = members.filter_map(|(key, value)| Some((key.clone(), from_json(value)?)));
            toml::Value::Table(said.collect())
        }
    })
}

/// A table as the wire says it, without secrets.
pub(super) fn shown(table: &toml::Table) -> serde_json::Value {
    to_json(&toml::Value::Table(without_secrets(table)))
}

pub(super) fn without_secrets(table: &toml::Table) -> toml::Table {
    let mut table = table.clone();
    hide(&mut table);
    table
}

/// The value as the wire says it.
pub(super) fn to_json(value: &toml::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        toml::Value::String(text) => Value::from(text.as_str()),
        toml::Value::Integer(number) => Value::from(*number),
        toml::Value::Float(number) => Value::from(*number),
        toml::Value::Boolean(yes) => Value::from(*yes),
        toml::Value::Datetime(time) => Value::from(time.to_string()),
        toml::Value::Array(values) => values.iter().map(to_json).collect(),
        toml::Value::Table(table) => table
            .iter()
            .map(|(key, value)| (key.clone(), to_json(value)))
            .collect(),
    }
}
