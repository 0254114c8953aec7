//! Checks an answer against a JSON Schema: the subset that vendors support for structured output.
//!
//! `pattern`, `patternProperties` and `format` are left to the vendor. Unknown keywords are
//! ignored, as the specification says.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

/// The maximum nesting depth of a schema.
const DEPTH_MAX: usize = 128;

/// The maximum number of references and subschemas on the path to a value. More than a text can
/// nest, for recursive schemas.
const STEPS_MAX: usize = 1024;

#[derive(Clone, Debug)]
pub(crate) struct Schema(Value);

/// The place of a problem in a schema or in a text, and the reason.
#[derive(Clone, Debug, Default, PartialEq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct SchemaError(String);

impl From<String> for SchemaError {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl Schema {
    /// Parses a schema. The error has the path of the problem.
    pub(crate) fn read(text: &str) -> Result<Self, SchemaError> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if !value.is_object() {
            return Err("it is no object".to_owned().into());
        }
        check_schema(&value, &value, "", 0)?;
        Ok(Self(value))
    }

    pub(crate) fn value(&self) -> &Value {
        &self.0
    }

    /// Checks that a text is JSON that matches the schema. The error has the path and the reason.
    pub(crate) fn check(&self, text: &str) -> Result<(), SchemaError> {
        let value: Value =
            serde_json::from_str(text.trim()).map_err(|error| format!("it is no JSON: {error}"))?;
        let check = Check {
            root: &self.0,
            results: RefCell::default(),
        };
        Ok(check.fits(&self.0, &value, "", 0)?)
    }
}

/// Checks that the values of a schema's keywords have the right types.
fn check_schema(root: &Value, schema: &Value, at: &str, depth: usize) -> Result<(), String> {
    if depth > DEPTH_MAX {
        return Err(format!("{}: it is too deep", path_or_root(at)));
    }
    let words = match schema {
        Value::Bool(_) => return Ok(()),
        Value::Object(words) => words,
        _ => return Err(format!("{} is no schema", path_or_root(at))),
    };
    for (word, value) in words {
        let at = format!("{at}/{word}");
        let below = |value: &Value, at: &str| check_schema(root, value, at, depth + 1);
        let is_right = match word.as_str() {
            "type" => types(value).is_some_and(|it| it.iter().all(|it| TYPES.contains(it))),
            "enum" => value.is_array(),
            "required" => strings(value).is_some(),
            "properties" | "patternProperties" | "$defs" | "definitions" => match value.as_object()
            {
                Some(parts) => {
                    for (name, part) in parts {
                        below(part, &format!("{at}/{name}"))?;
                    }
                    true
                }
                None => false,
            },
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => match value.as_array() {
                Some(parts) => {
                    for (number, part) in parts.iter().enumerate() {
                        below(part, &format!("{at}/{number}"))?;
                    }
                    true
                }
                None => false,
            },
            "items" | "additionalProperties" | "not" => {
                below(value, &at)?;
                true
            }
            "minItems" | "maxItems" | "minLength" | "maxLength" | "minProperties"
            | "maxProperties" => value.as_u64().is_some(),
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
            "multipleOf" => value.as_f64().is_some_and(|it| it > 0.0),
            "uniqueItems" => value.is_boolean(),
            "$ref" => match value.as_str() {
                Some(reference) => {
                    resolve(root, reference, &at)?;
                    true
                }
                None => false,
            },
            _ => true,
        };
        if !is_right {
            return Err(format!("{} cannot be {value}", path_or_root(&at)));
        }
    }
    Ok(())
}

const TYPES: [&str; 7] = [
    "null", "boolean", "object", "array", "number", "string", "integer",
];

/// Resolves a reference inside the same schema.
fn resolve<'a>(root: &'a Value, reference: &str, at: &str) -> Result<&'a Value, String> {
    let pointer = reference.strip_prefix('#');
    let target = pointer.and_then(|it| root.pointer(it));
    target.ok_or_else(|| {
        format!(
            "{}: {reference} leads nowhere in this schema",
            path_or_root(at)
        )
    })
}

struct Check<'a> {
    root: &'a Value,
    /// Each pair is checked once, however often the schema leads to it.
    results: RefCell<HashMap<Pair, PairResult>>,
}

/// A subschema and a part of the value, by address.
type Pair = (*const Value, *const Value);

/// The result of a pair; `None` while its check runs.
type PairResult = Option<Result<(), String>>;

impl Check<'_> {
    fn fits(&self, schema: &Value, value: &Value, at: &str, depth: usize) -> Result<(), String> {
        let pair = (std::ptr::from_ref(schema), std::ptr::from_ref(value));
        if let Some(result) = self.results.borrow().get(&pair) {
            let circle = || {
                Err(format!(
                    "{}: the schema goes round in circles",
                    path_or_root(at)
                ))
            };
            return result.clone().unwrap_or_else(circle);
        }
        if depth > STEPS_MAX {
            return Err(format!("{} is too deep in the schema", path_or_root(at)));
        }
        self.results.borrow_mut().insert(pair, None);
        let result = self.check_value(schema, value, at, depth);
        self.results.borrow_mut().insert(pair, Some(result.clone()));
        result
    }

    fn check_value(
        &self,
        schema: &Value,
        value: &Value,
        at: &str,
        depth: usize,
    ) -> Result<(), String> {
        let words = match schema {
            Value::Bool(false) => return Err(format!("{} must not be there", path_or_root(at))),
            Value::Object(words) => words,
            _ => return Ok(()),
        };
        if let Some(reference) = words.get("$ref").and_then(Value::as_str) {
            let target = resolve(self.root, reference, at)?;
            self.fits(target, value, at, depth + 1)?;
        }
        if let Some(expected) = words.get("type").and_then(types)
            && !expected.iter().any(|it| is_a(value, it))
        {
            return Err(format!(
                "{} must be {}",
                path_or_root(at),
                expected.join(" or ")
            ));
        }
        if let Some(all) = words.get("enum").and_then(Value::as_array)
            && !all.iter().any(|it| same(it, value))
        {
            let all: Vec<String> = all.iter().map(ToString::to_string).collect();
            return Err(format!(
                "{} must be one of {}",
                path_or_root(at),
                all.join(", ")
            ));
        }
        if let Some(expected) = words.get("const")
            && !same(expected, value)
        {
            return Err(format!("{} must be {expected}", path_or_root(at)));
        }
        self.fits_together(words, value, at, depth)?;
        match value {
            Value::Object(members) => self.object(words, members, at, depth),
            Value::Array(items) => self.array(words, items, at, depth),
            Value::String(text) => {
                let letters = text.chars().count() as u64;
                within(words, ["minLength", "maxLength"], letters, at, "characters")
            }
            Value::Number(number) => numeric(words, number.as_f64().unwrap_or(f64::NAN), at),
            _ => Ok(()),
        }
    }

    fn fits_together(
        &self,
        words: &Map<String, Value>,
        value: &Value,
        at: &str,
        depth: usize,
    ) -> Result<(), String> {
        let parts = |word: &str| words.get(word).and_then(Value::as_array);
        let fit = |part: &Value| self.fits(part, value, at, depth + 1);
        for part in parts("allOf").into_iter().flatten() {
            fit(part)?;
        }
        if let Some(any) = parts("anyOf")
            && !any.iter().any(|it| fit(it).is_ok())
        {
            return Err(format!("{} fits none of `anyOf`", path_or_root(at)));
        }
        if let Some(one) = parts("oneOf") {
            let count = one.iter().filter(|it| fit(it).is_ok()).count();
            if count != 1 {
                return Err(format!(
                    "{} fits {count} of `oneOf`, not one",
                    path_or_root(at)
                ));
            }
        }
        if let Some(not) = words.get("not")
            && fit(not).is_ok()
        {
            return Err(format!("{} fits what it must not", path_or_root(at)));
        }
        Ok(())
    }

    fn object(
        &self,
        words: &Map<String, Value>,
        members: &Map<String, Value>,
        at: &str,
        depth: usize,
    ) -> Result<(), String> {
        for name in words
            .get("required")
            .and_then(strings)
            .into_iter()
            .flatten()
        {
            if !members.contains_key(name) {
                return Err(format!("{} has no `{name}`", path_or_root(at)));
            }
        }
        let known = words.get("properties").and_then(Value::as_object);
        // The names that a pattern matches are unknown here, and so are the additional ones.
        let others = match words.get("patternProperties").and_then(Value::as_object) {
            Some(patterns) if !patterns.is_empty() => None,
            _ => words.get("additionalProperties"),
        };
        for (name, value) in members {
            if let Some(schema) = known.and_then(|it| it.get(name)).or(others) {
                self.fits(schema, value, &format!("{at}/{name}"), depth + 1)?;
            }
        }
        let count = members.len() as u64;
        within(
            words,
            ["minProperties", "maxProperties"],
            count,
            at,
            "members",
        )
    }

    fn array(
        &self,
        words: &Map<String, Value>,
        items: &[Value],
        at: &str,
        depth: usize,
    ) -> Result<(), String> {
        let first = words.get("prefixItems").and_then(Value::as_array);
        let first = first.map_or(&[][..], Vec::as_slice);
        for (number, item) in items.iter().enumerate() {
            if let Some(schema) = first.get(number).or_else(|| words.get("items")) {
                self.fits(schema, item, &format!("{at}/{number}"), depth + 1)?;
            }
        }
        if words.get("uniqueItems") == Some(&Value::Bool(true)) {
            let mut seen = HashSet::new();
            if let Some(number) = items.iter().position(|it| !seen.insert(canonical(it))) {
                return Err(format!(
                    "{} is there twice",
                    path_or_root(&format!("{at}/{number}"))
                ));
            }
        }
        let count = items.len() as u64;
        within(words, ["minItems", "maxItems"], count, at, "items")
    }
}

/// A numeric keyword, its description, and the predicate for a number and a bound.
type Rule = (&'static str, &'static str, fn(f64, f64) -> bool);

fn numeric(words: &Map<String, Value>, number: f64, at: &str) -> Result<(), String> {
    let bound = |word: &str| words.get(word).and_then(Value::as_f64);
    let rules: [Rule; 5] = [
        ("minimum", "at least", |it, bound| it >= bound),
        ("maximum", "at most", |it, bound| it <= bound),
        ("exclusiveMinimum", "more than", |it, bound| it > bound),
        ("exclusiveMaximum", "less than", |it, bound| it < bound),
        ("multipleOf", "a multiple of", |it, bound| {
            let times = it / bound;
            (times - times.round()).abs() < 1e-9
        }),
    ];
    for (word, description, holds) in rules {
        if let Some(bound) = bound(word)
            && !holds(number, bound)
        {
            return Err(format!(
                "{} must be {description} {bound}",
                path_or_root(at)
            ));
        }
    }
    Ok(())
}

fn within(
    words: &Map<String, Value>,
    [least, most]: [&str; 2],
    count: u64,
    at: &str,
    what: &str,
) -> Result<(), String> {
    let bound = |word: &str| words.get(word).and_then(Value::as_u64);
    if let Some(least) = bound(least).filter(|it| count < *it) {
        return Err(format!(
            "{} must have at least {least} {what}",
            path_or_root(at)
        ));
    }
    if let Some(most) = bound(most).filter(|it| count > *it) {
        return Err(format!(
            "{} must have at most {most} {what}",
            path_or_root(at)
        ));
    }
    Ok(())
}

/// Whether a value has a type, by the type's name.
fn is_a(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        // 1.0 is an integer too.
        "integer" => value.as_f64().is_some_and(|it| it.fract() == 0.0),
        _ => false,
    }
}

/// Whether two values are equal in JSON: 1 equals 1.0, and the order of members is irrelevant.
fn same(one: &Value, other: &Value) -> bool {
    canonical(one) == canonical(other)
}

/// A text that is equal for equal values: numbers by value, members sorted by name.
fn canonical(value: &Value) -> String {
    match value {
        Value::Number(number) => match number.as_f64() {
            // Normalizes -0.0 to 0.0.
            Some(number) => format!("{:e}", number + 0.0),
            None => number.to_string(),
        },
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(canonical).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(members) => {
            let text = |(name, value): (&String, &Value)| {
                format!("{}:{}", Value::from(name.as_str()), canonical(value))
            };
            let mut members: Vec<String> = members.iter().map(text).collect();
            members.sort_unstable();
            format!("{{{}}}", members.join(","))
        }
        _ => value.to_string(),
    }
}

/// A type name or a list of them.
fn types(value: &Value) -> Option<Vec<&str>> {
    match value {
        Value::String(name) => Some(vec![name]),
        _ => strings(value),
    }
}

fn strings(value: &Value) -> Option<Vec<&str>> {
    value.as_array()?.iter().map(Value::as_str).collect()
}

fn path_or_root(at: &str) -> &str {
    if at.is_empty() { "the whole" } else { at }
}

#[cfg(test)]
mod tests;
