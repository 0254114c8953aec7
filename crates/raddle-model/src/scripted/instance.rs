//! A small instance of a schema, for calls that ask for one when no script says what to answer.

use serde_json::{Map, Value};

/// Schemas that refer to themselves end here.
const DEPTH_MAX: usize = 16;

/// A small value that fits a schema, with these words where it wants a text. Whatever is not understood is
/// left aside.
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
                let least = schema["minItems"].as_u64().unwrap_or_default().min(100);
                let items = (0..least).map(|_| self.value(&schema["items"], depth + 1));
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

    /// The words, as long as they may be and at least as long as they must be.
    fn text(&self, schema: &Value) -> Value {
        let letters = |name: &str| {
            schema[name]
                .as_u64()
                .and_then(|it| usize::try_from(it).ok())
        };
        let most = letters("maxLength").unwrap_or(60);
        let mut text: String = self.words.chars().take(most).collect();
        let least = letters("minLength").unwrap_or_default().min(10_000);
        while text.chars().count() < least {
            text.push('.');
        }
        Value::String(text)
    }
}

/// What a schema wants; of several kinds the first that is not null.
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
        for (schema, wanted) in [
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
            assert_eq!(of(&schema, "mend the loom"), wanted, "{schema}");
        }
    }
}
