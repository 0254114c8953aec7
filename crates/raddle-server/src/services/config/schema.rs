//! The configuration as a JSON Schema, with which editors complete and check `config.toml`.

use serde_json::{Map, Value, json};

use super::approval;
use super::keys::{ConfigKey, KEYS, Kind, is_any};

/// The schema, in the draft that editors of TOML know.
pub fn schema() -> Value {
    let mut root = table("Raddle's configuration, config.toml.");
    for key in KEYS {
        put(&mut root, &key.path.split('.').collect::<Vec<_>>(), of(key));
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

fn of(key: &ConfigKey) -> Value {
    let shape = match &key.kind {
        Kind::Table => return table(key.says),
        Kind::Text => json!({ "type": "string" }),
        Kind::OneOf(names) => json!({ "enum": names }),
        Kind::Approval => approval::schema(),
        Kind::Whole => json!({ "type": "integer", "minimum": 0 }),
        Kind::Dollars => json!({ "type": "number", "minimum": 0 }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        Kind::Tables => json!({ "type": "array", "items": { "type": "object" } }),
        Kind::TextTable => {
            json!({ "type": "object", "additionalProperties": { "type": "string" } })
        }
        Kind::ClientOwned => json!({}),
    };
    let mut says = key.says.to_owned();
    if !key.usual.is_empty() {
        says.push_str(&format!("; without it: {}", key.usual));
    }
    described(&says, shape)
}

fn table(says: &str) -> Value {
    let shape = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    described(says, shape)
}

fn described(says: &str, shape: Value) -> Value {
    let mut all = json!({ "description": says });
    if let (Value::Object(all), Value::Object(shape)) = (&mut all, shape) {
        all.extend(shape);
    }
    all
}

/// Puts a key in its place. A table stands before what is in it, so all that is above is there.
fn put(table: &mut Value, path: &[&str], key: Value) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    let place = match is_any(first) {
        true => &mut table["additionalProperties"],
        false => &mut table["properties"][*first],
    };
    match rest {
        [] => *place = key,
        rest => put(place, rest, key),
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
