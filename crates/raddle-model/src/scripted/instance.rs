//! A small instance of a schema, for calls with a schema when no script has an answer.

use serde_json::{Map, Value};

/// Recursion limit, which ends schemas that refer to themselves.
const DEPTH_MAX: usize = 16;

/// Returns a small value that matches a schema, with these words as its texts. Unsupported keywords
/// are ignored.
pub(super) fn of(schema: &Value, words: &str) -> Value {
    InstanceBuilder {
        root: schema,
        words,
    }
    .value(schema, 0)
}

struct InstanceBuilder<'a> {
    root: &'a Value,
    words: &'a str,
}

impl InstanceBuilder<'_> {
    fn value(&self, schema: &Value, depth: usize) -> Value {
        if depth > DEPTH_MAX {
            return Value::Null;
        }
        if let Some(value) = schema.get("const").or_else(|| schema["enum"].get(0)) {
            return value.clone();
        }
        let referred = schema["$ref"]
            .as_str()
            .and_then(|it| self.root.pointer(it.strip_prefix('#')?));
        let first = ["anyOf", "oneOf", "allOf"]
            .iter()
            .find_map(|it| schema[*it].get(0));
        if let Some(other) = referred.or(first) {
            return self.value(other, depth + 1);
        }
        match kind(schema) {
            "object" => self.object(schema, depth),
            "array" => {
                let items_min = schema["minItems"].as_u64().unwrap_or_default().min(100);
                let items = (0..items_min).map(|_| self.value(&schema["items"], depth + 1));
                Value::Array(items.collect())
            }
            "integer" | "number" => schema.get("minimum").cloned().unwrap_or_else(|| 0.into()),
            "boolean" => Value::Bool(false),
            "null" => Value::Null,
            _ => self.text(schema),
        }
    }

    fn object(&self, schema: &Value, depth: usize) -> Value {
        let required = schema["required"].as_array();
        let is_required = |name: &String| {
            required.is_none_or(|it| it.iter().any(|it| it.as_str() == Some(name.as_str())))
        };
        let members = schema["properties"].as_object().into_iter().flatten();
        let members = members
            .filter(|(name, _)| is_required(name))
            .map(|(name, schema)| (name.clone(), self.value(schema, depth + 1)));
        Value::Object(members.collect::<Map<_, _>>())
    }

    /// Returns the words, truncated or padded to the length that the schema requires.
    fn text(&self, schema: &Value) -> Value {
        let letters = |name: &str| {
            schema[name]
                .as_u64()
                .and_then(|it| usize::try_from(it).ok())
        };
        let length_max = letters("maxLength").unwrap_or(60);
        let mut text: String = self.words.chars().take(length_max).collect();
        let length_min = letters("minLength").unwrap_or_default().min(10_000);
        while text.chars().count() < length_min {
            text.push('.');
        }
        Value::String(text)
    }
}

/// Returns the type of a schema; of several the first that is not null.
fn kind(schema: &Value) -> &str {
    match &schema["type"] {
        Value::String(kind) => kind,
        Value::Array(kinds) => {
            let mut kinds = kinds.iter().filter_map(Value::as_str);
            kinds.find(|it| *it != "null").unwrap_or("null")
        }
        _ if schema["properties"].is_object() => "object",
        _ => "string",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn instances_fit() {
        for (schema, expected) in [
            (
                json!({"type": "object", "properties": {"title": {"type": "string", "minLength": 3, "maxLength": 8}}, "required": ["title"], "additionalProperties": false}),
                json!({"title": "mend the"}),
            ),
            (
                json!({"type": "string", "minLength": 15}),
                json!("mend the loom.."),
            ),
            (json!({"enum": ["a", "b"]}), json!("a")),
            (json!({"const": 7}), json!(7)),
            (json!({"type": ["null", "integer"], "minimum": 2}), json!(2)),
            (
                json!({"type": "array", "minItems": 2, "items": {"type": "boolean"}}),
                json!([false, false]),
            ),
            (
                json!({"properties": {"a": {"$ref": "#/$defs/a"}, "b": {}}, "required": ["a"], "$defs": {"a": {"anyOf": [{"type": "number"}]}}}),
                json!({"a": 0}),
            ),
            (json!({"$ref": "#"}), json!(null)),
            (json!(true), json!("mend the loom")),
        ] {
            assert_eq!(of(&schema, "mend the loom"), expected, "{schema}");
        }
    }
}
