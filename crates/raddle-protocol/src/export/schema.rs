//! JSON Schema, in the file layout of the reference, so that tools for its files work with ours.
//!
//! Each type that the tables name has its own self-contained file; types that are only parts of
//! others have none. Two bundles hold all types at once.

use std::collections::{BTreeMap, BTreeSet};

use schemars::generate::Contract;
use serde_json::{Map, Value, json};

use super::File;
use super::catalog::{Catalog, REFERENCE, View, reference};
use super::envelope;
use crate::{NOTIFICATIONS, SERVER_REQUESTS};

/// Returns the contract as JSON Schema (draft 7), without or with its experimental part.
pub fn json_schema(experimental: bool) -> Vec<File> {
    let view = View::new(experimental);
    let catalog = Catalog::new(Contract::Deserialize, view);
    let folders = folders(view);
    let mut files: Vec<File> = folders
        .iter()
        .map(|(name, folder)| File {
            path: format!("{}{name}.json", folder.prefix()),
            text: pretty(alone(&catalog, name)),
        })
        .collect();
    files.push(File {
        path: String::from("codex_app_server_protocol.schemas.json"),
        text: pretty(nested_bundle(&catalog, &folders)),
    });
    files.push(File {
        path: String::from("codex_app_server_protocol.v2.schemas.json"),
        text: pretty(flat_bundle(&catalog, &folders)),
    });
    files
}

/// Directory in which the reference stores the file of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Folder {
    Top,
    V1,
    V2,
}

impl Folder {
    fn prefix(self) -> &'static str {
        match self {
            Self::Top => "",
            Self::V1 => "v1/",
            Self::V2 => "v2/",
        }
    }

    /// Returns the directory of params and results of methods, and of notifications.
    fn of(name: &str) -> Self {
        match name {
            "InitializeParams" | "InitializeResponse" => Self::V1,
            _ if name.starts_with("FuzzyFileSearch") => Self::Top,
            _ => Self::V2,
        }
    }
}

type Folders = BTreeMap<&'static str, Folder>;

/// Returns the types that have files.
fn folders(view: View) -> Folders {
    let mut folders = Folders::new();
    for row in view.methods() {
        for name in row.params.into_iter().chain([row.result]) {
            folders.insert(name, Folder::of(name));
        }
    }
    for row in NOTIFICATIONS {
        folders.insert(row.params, Folder::of(row.params));
    }
    for row in SERVER_REQUESTS {
        folders.insert(row.params, Folder::Top);
        folders.insert(row.result, Folder::Top);
    }
    let envelope = envelope::UNIONS.iter().chain(&envelope::MESSAGES);
    folders.extend(envelope.map(|name| (*name, Folder::Top)));
    folders.insert("RequestId", Folder::Top);
    folders
}

/// Returns the schema of one type with everything it refers to.
fn alone(catalog: &Catalog, name: &str) -> Value {
    let definitions: Map<String, Value> = catalog
        .reachable([name])
        .into_iter()
        .map(|it| (it.clone(), catalog.schema(&it).clone()))
        .collect();
    let mut root = titled(catalog, name);
    root["$schema"] = json!(DRAFT);
    if !definitions.is_empty() {
        root["definitions"] = Value::Object(definitions);
    }
    root
}

/// Returns the bundle of all types, with those of version 2 of the contract one level deeper. A
/// type that both levels need is stored in the deeper one.
fn nested_bundle(catalog: &Catalog, folders: &Folders) -> Value {
    let is_v2 = |name: &&str| folders[*name] == Folder::V2;
    let (v2, top): (BTreeSet<&str>, BTreeSet<&str>) = folders.keys().copied().partition(is_v2);
    let below = catalog.closure(&v2);
    let mut above = catalog.reachable(top.iter().copied());
    above.retain(|name| !below.contains(name));
    above.extend(top.into_iter().map(str::to_owned));

    let take = |names: &BTreeSet<String>| -> Map<String, Value> {
        let schema = |name: &String| {
            let mut schema = definition(catalog, folders, name);
            point_below(&mut schema, &below);
            (name.clone(), schema)
        };
        names.iter().map(schema).collect()
    };
    let mut definitions = take(&above);
    definitions.insert(String::from("v2"), Value::Object(take(&below)));
    bundle("CodexAppServerProtocol", definitions)
}

/// Returns the bundle of version 2 of the contract on one level, with the unions that lead into it.
fn flat_bundle(catalog: &Catalog, folders: &Folders) -> Value {
    let is_v2 = |name: &&str| folders[*name] == Folder::V2;
    let mut names: BTreeSet<&str> = folders.keys().copied().filter(is_v2).collect();
    names.extend([envelope::CLIENT_REQUEST, envelope::SERVER_NOTIFICATION]);
    let definitions = catalog
        .closure(&names)
        .into_iter()
        .map(|name| (name.clone(), definition(catalog, folders, &name)))
        .collect();
    bundle("CodexAppServerProtocolV2", definitions)
}

const DRAFT: &str = "http://json-schema.org/draft-07/schema#";

fn bundle(title: &str, definitions: Map<String, Value>) -> Value {
    json!({ "$schema": DRAFT, "definitions": definitions, "title": title, "type": "object" })
}

/// Returns the schema of a type in a bundle. Types that also have a file carry a title.
fn definition(catalog: &Catalog, folders: &Folders, name: &str) -> Value {
    if folders.contains_key(name) {
        titled(catalog, name)
    } else {
        catalog.schema(name).clone()
    }
}

fn titled(catalog: &Catalog, name: &str) -> Value {
    let mut schema = catalog.schema(name).clone();
    schema["title"] = json!(name);
    schema
}

fn point_below(schema: &mut Value, below: &BTreeSet<String>) {
    match schema {
        Value::Object(object) => {
            let name = reference(object).filter(|name| below.contains(*name));
            if let Some(moved) = name.map(|name| format!("{REFERENCE}v2/{name}")) {
                object.insert(String::from("$ref"), Value::String(moved));
            }
            object.values_mut().for_each(|it| point_below(it, below));
        }
        Value::Array(array) => array.iter_mut().for_each(|it| point_below(it, below)),
        _ => {}
    }
}

fn pretty(mut schema: Value) -> String {
    schema.sort_all_objects();
    format!("{schema:#}\n")
}
