//! The file of a generated schema that holds everything: types, methods, notifications.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use raddle_protocol::{METHODS, NOTIFICATIONS, SERVER_REQUESTS};
use serde_json::{Value, json};

/// Name of the file that holds the whole schema.
pub const BUNDLE_FILE: &str = "codex_app_server_protocol.schemas.json";

/// Extent of a generated schema: the whole contract or its stable part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    Everything,
    Stable,
}

pub struct Bundle {
    pub definitions: Value,
}

impl Bundle {
    /// Makes a program write its schema into a temporary directory, and reads it.
    pub fn generate(program: &Path, extent: Extent) -> Result<Self> {
        let folder = Scratch::new()?;
        let home = folder.0.join("home");
        let out = folder.0.join("out");
        fs::create_dir_all(&home)?;
        fs::create_dir_all(&out)?;
        let mut command = Command::new(program);
        command
            .args(["app-server", "generate-json-schema", "--out"])
            .arg(&out);
        if extent == Extent::Everything {
            command.arg("--experimental");
        }
        command.env("CODEX_HOME", &home).env("RADDLE_HOME", &home);
        let output = command
            .output()
            .with_context(|| format!("cannot start {}", program.display()))?;
        ensure!(
            output.status.success(),
            "{} did not write its schema: {}",
            program.display(),
            String::from_utf8_lossy(&output.stderr).trim()
        );
        let file = out.join(BUNDLE_FILE);
        Self::parse(&fs::read_to_string(&file).context("the schema lacks its bundle")?)
    }

    /// Reads the text of a bundle.
    pub fn parse(text: &str) -> Result<Self> {
        let document: Value = serde_json::from_str(text)?;
        let definitions = document
            .get("definitions")
            .context("the bundle has no definitions")?;
        Ok(Self {
            definitions: definitions.clone(),
        })
    }

    /// Returns our schema as the linked types describe it.
    pub fn linked() -> Self {
        let mut generator = schemars::generate::SchemaSettings::draft07().into_generator();
        for row in METHODS {
            (row.shapes.describe)(&mut generator);
        }
        for row in NOTIFICATIONS {
            (row.shapes.describe)(&mut generator);
        }
        for row in SERVER_REQUESTS {
            (row.shapes.describe)(&mut generator);
        }
        Self {
            definitions: Value::Object(generator.take_definitions(true)),
        }
    }

    /// Marks the members that the stable part of the same contract lacks.
    ///
    /// The linked types carry such marks; a generated schema does not.
    pub fn mark_experimental(&mut self, stable: &Self) {
        mark(&mut self.definitions, &stable.definitions);
    }

    /// Returns the reference to a type, in whichever namespace it is stored.
    pub fn reference(&self, name: &str) -> Option<String> {
        if self.definitions["v2"].get(name).is_some() {
            return Some(format!("#/definitions/v2/{name}"));
        }
        self.definitions.get(name)?;
        Some(format!("#/definitions/{name}"))
    }

    /// Returns the schema of a type; null if there is no type of that name.
    pub fn resolve(&self, name: &str) -> Value {
        let new = self.definitions["v2"].get(name);
        new.or_else(|| self.definitions.get(name))
            .cloned()
            .unwrap_or(Value::Null)
    }

    /// Returns the methods of `ClientRequest`, `ServerRequest` or `ServerNotification`, each with
    /// the schema of its params.
    pub fn methods(&self, union: &str) -> Result<BTreeMap<String, Value>> {
        let arms = self.definitions[union]["oneOf"]
            .as_array()
            .with_context(|| format!("the schema has no {union}"))?;
        let mut methods = BTreeMap::new();
        for arm in arms {
            let name = arm["properties"]["method"]["enum"][0]
                .as_str()
                .with_context(|| format!("an arm of {union} names no method"))?;
            let params = arm["properties"]
                .get("params")
                .cloned()
                .unwrap_or(Value::Null);
            methods.insert(name.to_owned(), params);
        }
        Ok(methods)
    }

    /// Returns a document that describes one schema and holds only the definitions it needs.
    pub fn document(&self, schema: &Value) -> Value {
        let mut references = BTreeSet::new();
        let mut queue = vec![schema];
        while let Some(value) = queue.pop() {
            match value {
                Value::Object(members) => {
                    if let Some(Value::String(reference)) = members.get("$ref")
                        && references.insert(reference.clone())
                    {
                        queue.extend(
                            self.definitions
                                .pointer(reference.trim_start_matches("#/definitions")),
                        );
                    }
                    queue.extend(members.values());
                }
                Value::Array(entries) => queue.extend(entries),
                _ => {}
            }
        }
        let mut definitions = json!({});
        for reference in &references {
            let path = reference.trim_start_matches("#/definitions/");
            let mut target = &mut definitions;
            for step in path.split('/') {
                target = &mut target[step];
            }
            *target = self
                .definitions
                .pointer(&format!("/{path}"))
                .cloned()
                .unwrap_or(Value::Null);
        }
        // Draft 7 ignores keywords beside a `$ref`, so the schema is nested one level deeper.
        json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "allOf": [schema],
            "definitions": definitions,
        })
    }
}

fn mark(all: &mut Value, stable: &Value) {
    match (all, stable) {
        (Value::Object(all), Value::Object(stable)) => {
            if let (Some(Value::Object(members)), Some(Value::Object(open))) =
                (all.get_mut("properties"), stable.get("properties"))
            {
                let new = members
                    .iter_mut()
                    .filter(|(name, _)| !open.contains_key(*name));
                for (_, member) in new {
                    match member {
                        Value::Object(member) => {
                            member.insert("x-experimental".into(), Value::Bool(true));
                        }
                        member => *member = json!({ "x-experimental": true }),
                    }
                }
            }
            for (key, value) in all.iter_mut() {
                if let Some(stable) = stable.get(key) {
                    mark(value, stable);
                }
            }
        }
        (Value::Array(all), Value::Array(stable)) => {
            for (value, stable) in all.iter_mut().zip(stable) {
                mark(value, stable);
            }
        }
        _ => {}
    }
}

/// A temporary directory for one run of a program.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self> {
        let name = format!("contract-check-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        // An existing directory belongs to another process.
        fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(Self(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A leftover in the system's temporary directory is harmless.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle() -> Bundle {
        Bundle {
            definitions: json!({
                "Old": { "type": "object", "properties": { "new": { "$ref": "#/definitions/v2/New" } } },
                "Other": true,
                "v2": { "New": { "type": "string" }, "Unused": true },
            }),
        }
    }

    #[test]
    fn document_holds_only_needed_definitions() {
        let document = bundle().document(&json!({ "$ref": "#/definitions/Old" }));
        assert_eq!(
            document["definitions"]["v2"],
            json!({ "New": { "type": "string" } })
        );
        assert!(document["definitions"].get("Other").is_none());
        let validator = jsonschema::draft7::new(&document).expect("a schema");
        assert!(validator.is_valid(&json!({ "new": "x" })));
        assert!(!validator.is_valid(&json!({ "new": 1 })));
    }

    #[test]
    fn experimental_members_are_marked() {
        let member = |names: &[&str]| {
            let members = names
                .iter()
                .map(|name| ((*name).to_owned(), Value::Bool(true)));
            json!({ "T": { "properties": members.collect::<serde_json::Map<_, _>>() } })
        };
        let mut all = Bundle {
            definitions: member(&["a", "b"]),
        };
        all.mark_experimental(&Bundle {
            definitions: member(&["a"]),
        });
        let members = &all.definitions["T"]["properties"];
        assert_eq!(
            *members,
            json!({ "a": true, "b": { "x-experimental": true } })
        );
    }

    #[test]
    fn types_are_found_in_both_namespaces() {
        assert_eq!(
            bundle().reference("New").as_deref(),
            Some("#/definitions/v2/New")
        );
        assert_eq!(
            bundle().reference("Old").as_deref(),
            Some("#/definitions/Old")
        );
        assert_eq!(bundle().reference("None"), None);
    }
}
