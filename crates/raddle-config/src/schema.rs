//! The JSON Schema of the configuration, with which editors complete and check `config.toml`.

use serde_json::{Map, Value, json};

use crate::approval;
use crate::keys::{ConfigKey, KEYS, Kind, is_placeholder};

/// Returns the schema, in the draft that TOML editors support.
pub fn schema() -> Value {
    let mut root = table("Raddle's configuration, config.toml.");
    for key in KEYS {
        add_key(
            &mut root,
            &key.path.split('.').collect::<Vec<_>>(),
            schema_of(key),
        );
    }
    let mut schema = Map::new();
    schema.insert(
        "$schema".to_owned(),
        "http://json-schema.org/draft-07/schema#".into(),
    );
    schema.insert("title".to_owned(), "Raddle config.toml".into());
    if let Value::Object(root) = root {
        schema.extend(root);
    }
    Value::Object(schema)
}

fn schema_of(key: &ConfigKey) -> Value {
    let shape = match &key.kind {
        Kind::Table => return table(key.description),
        Kind::Text => json!({ "type": "string" }),
        Kind::OneOf(names) => json!({ "enum": names }),
        Kind::Approval => approval::schema(),
        Kind::Whole => json!({ "type": "integer", "minimum": 0 }),
        Kind::Dollars => json!({ "type": "number", "minimum": 0 }),
        Kind::Seconds => json!({ "type": "number", "exclusiveMinimum": 0 }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        Kind::Variables => {
            json!({ "type": "array", "items": { "type": ["string", "object"] } })
        }
        Kind::Tables => json!({ "type": "array", "items": { "type": "object" } }),
        Kind::TextTable => {
            json!({ "type": "object", "additionalProperties": { "type": "string" } })
        }
        Kind::AccessTable => {
            json!({ "type": "object", "additionalProperties": { "type": ["string", "object"] } })
        }
        Kind::ClientOwned => json!({}),
    };
    let mut description = key.description.to_owned();
    if !key.default_value.is_empty() {
        description.push_str(&format!("; without it: {}", key.default_value));
    }
    described(&description, shape)
}

fn table(description: &str) -> Value {
    let shape = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    described(description, shape)
}

fn described(description: &str, shape: Value) -> Value {
    let mut schema = json!({ "description": description });
    if let (Value::Object(members), Value::Object(shape)) = (&mut schema, shape) {
        members.extend(shape);
    }
    schema
}

/// Adds a key at its path. A table precedes its keys, so its parents already exist.
fn add_key(table: &mut Value, path: &[&str], key: Value) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    let slot = match is_placeholder(first) {
        true => &mut table["additionalProperties"],
        false => &mut table["properties"][*first],
    };
    match rest {
        [] => *slot = key,
        rest => add_key(slot, rest, key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_where_it_is_in_the_file() {
        let schema = schema();
        assert_eq!(schema["properties"]["model"]["type"], "string");
        let provider = &schema["properties"]["model_providers"]["additionalProperties"];
        assert_eq!(
            provider["properties"]["auth"]["properties"]["args"]["items"]["type"],
            "string"
        );
        assert_eq!(provider["additionalProperties"], false);
        assert_eq!(schema["properties"]["tui"].get("type"), None);
    }
}
