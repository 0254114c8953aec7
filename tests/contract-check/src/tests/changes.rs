//! Changes of the reference, from `changes.toml`: the check names each of them and nothing else.

use raddle_protocol::export::json_schema;
use serde::Deserialize;
use serde_json::Value;

use super::ROUNDS;
use crate::bundle::{BUNDLE_FILE, Bundle};
use crate::comparison::Comparison;
use crate::exceptions::Exceptions;
use crate::findings::Findings;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeFile {
    change: Vec<SchemaChange>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SchemaChange {
    title: String,
    row: String,
    edits: Vec<SchemaEdit>,
    /// Whether only the schema without the experimental part changes.
    #[serde(default)]
    stable: bool,
    /// Beginnings of all findings.
    findings: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SchemaEdit {
    at: String,
    /// The new value; `None` removes the old one.
    to: Option<Value>,
}

#[test]
fn changes_of_the_reference_are_named() {
    let text = include_str!("../../changes.toml");
    let ChangeFile { change: changes } = toml::from_str(text).expect("good text");
    let [reference, stable] = [true, false].map(own_schema);
    for change in &changes {
        let [mut reference, mut stable] = [&reference, &stable].map(|it| it.definitions.clone());
        for edit in &change.edits {
            if !change.stable {
                apply(edit, &mut reference);
            }
            apply(edit, &mut stable);
        }
        let lines = findings(reference, stable, &change.row);
        let title = &change.title;
        for expected in &change.findings {
            let is_named = lines.iter().any(|line| line.starts_with(expected));
            assert!(is_named, "{title}: no `{expected}` in {lines:#?}");
        }
        for line in &lines {
            let is_expected = change.findings.iter().any(|it| line.starts_with(it));
            assert!(is_expected, "{title}: `{line}` was not expected");
        }
    }
}

#[test]
fn an_unchanged_reference_has_no_findings() {
    let [reference, stable] = [true, false].map(|it| own_schema(it).definitions);
    assert_eq!(findings(reference, stable, "thread/name/set"), [""; 0]);
}

/// Returns our schema as a program would write it.
fn own_schema(experimental: bool) -> Bundle {
    let files = json_schema(experimental);
    let file = files.iter().find(|file| file.path == BUNDLE_FILE);
    Bundle::parse(&file.expect("the bundle").text).expect("a bundle")
}

fn findings(reference: Value, stable: Value, row: &str) -> Vec<String> {
    let exceptions = include_str!("../../exceptions.toml");
    let mut findings = Findings::default();
    Comparison {
        reference: &Bundle {
            definitions: reference,
        },
        stable_reference: &Bundle {
            definitions: stable,
        },
        our_bundle: &Bundle::linked(),
        exceptions: &Exceptions::parse(exceptions).expect("good text"),
        rounds: ROUNDS,
    }
    .run(|it| it.name == row, &mut findings)
    .expect("schemas");
    findings.lines()
}

fn apply(edit: &SchemaEdit, definitions: &mut Value) {
    let (parent, last) = edit.at.rsplit_once('/').expect("a pointer");
    let mut target = definitions;
    for step in parent.split('/').skip(1) {
        target = child(target, step).expect(&edit.at);
    }
    let to = edit.to.clone();
    match (target, to) {
        (Value::Array(arms), Some(to)) if last == "-" => arms.push(to),
        (Value::Object(members), Some(to)) => {
            members.insert(last.to_owned(), to);
        }
        (Value::Object(members), None) => {
            members.remove(last).expect(&edit.at);
        }
        (target, Some(to)) => *child(target, last).expect(&edit.at) = to,
        (target, None) => {
            let arms = target.as_array_mut().expect(&edit.at);
            let index = position(arms, last).expect(&edit.at);
            arms.remove(index);
        }
    }
}

fn child<'v>(value: &'v mut Value, step: &str) -> Option<&'v mut Value> {
    match value {
        Value::Array(arms) => {
            let index = position(arms, step)?;
            arms.get_mut(index)
        }
        value => value.get_mut(step),
    }
}

/// Returns the index of the arm for a method or with a type.
fn position(arms: &[Value], step: &str) -> Option<usize> {
    let name = step.replace("~1", "/");
    arms.iter().position(|arm| {
        let is = |tag: &str| arm["properties"][tag]["enum"][0] == name;
        is("method") || is("type")
    })
}
