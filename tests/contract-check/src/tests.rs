//! Tests of the check with schemas and types that must fail it.

mod changes;

use std::collections::BTreeMap;

use raddle_protocol::{RoundTrip, round_trip};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::bundle::Bundle;
use crate::check::{Check, InstanceCounts};
use crate::exceptions::Exceptions;
use crate::findings::Findings;
use crate::generate::{Generator, Nulls, heights};
use crate::parts::ContractPart;
use crate::shape::Graph;
use crate::structure::Structure;

const ROUNDS: u32 = 10;

fn no_exceptions() -> Exceptions {
    Exceptions {
        entries: Vec::new(),
    }
}

fn bundle(definitions: Value) -> Bundle {
    Bundle { definitions }
}

/// Checks a type against a reference with one definition, `T`, and an identical schema of ours.
fn check(
    schema: Value,
    trip: fn(&str) -> Result<RoundTrip, serde_json::Error>,
    nulls: Nulls,
) -> (InstanceCounts, Vec<String>) {
    check_with(&no_exceptions(), schema.clone(), schema, trip, nulls)
}

fn check_with(
    exceptions: &Exceptions,
    their_schema: Value,
    our_schema: Value,
    trip: fn(&str) -> Result<RoundTrip, serde_json::Error>,
    nulls: Nulls,
) -> (InstanceCounts, Vec<String>) {
    let reference = bundle(json!({ "T": their_schema }));
    let mut theirs = Graph::new(reference.definitions.clone());
    let mut ours = Graph::new(json!({ "T": our_schema }));
    let part = ContractPart {
        side: "params",
        theirs: theirs
            .reference("#/definitions/T", exceptions)
            .expect("a schema"),
        ours: ours
            .reference("#/definitions/T", exceptions)
            .expect("a schema"),
        schema: json!({ "$ref": "#/definitions/T" }),
        trip,
        nulls,
    };
    let check = Check::new(&reference, &theirs, &ours, Default::default(), ROUNDS);
    let (counts, findings) = check.part("test", &part).expect("a schema");
    (counts, findings.lines())
}

fn structure(theirs: Value, stable: Value, ours: Value) -> Vec<String> {
    let exceptions = no_exceptions();
    let mut findings = Findings::default();
    let mut graphs = [theirs, stable, ours].map(|schema| Graph::new(json!({ "T": schema })));
    let roots = graphs.each_mut().map(|graph| {
        graph
            .reference("#/definitions/T", &exceptions)
            .expect("a schema")
    });
    let [theirs, stable, ours] = &graphs;
    Structure::new(ours, theirs, stable, &exceptions, &mut findings).compare(roots[2], roots[0]);
    findings.lines()
}

fn has(lines: &[String], text: &str) -> bool {
    lines.iter().any(|line| line.starts_with(text))
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required })
}

#[derive(Debug, Serialize, Deserialize)]
struct Good {
    name: String,
    #[serde(default)]
    colour: Option<Colour>,
    #[serde(default)]
    tags: BTreeMap<String, Option<u16>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
enum Colour {
    Red,
    Unrecognized(String),
}

impl From<String> for Colour {
    fn from(text: String) -> Self {
        if text == "red" {
            Self::Red
        } else {
            Self::Unrecognized(text)
        }
    }
}

impl From<Colour> for String {
    fn from(colour: Colour) -> Self {
        match colour {
            Colour::Red => "red".to_owned(),
            Colour::Unrecognized(text) => text,
        }
    }
}

impl Clone for Colour {
    fn clone(&self) -> Self {
        String::from(match self {
            Self::Red => "red",
            Self::Unrecognized(text) => text,
        })
        .into()
    }
}

fn good_schema(colours: &[&str]) -> Value {
    object(
        json!({
            "name": { "type": "string" },
            "colour": { "anyOf": [{ "enum": colours, "type": "string" }, { "type": "null" }] },
            "tags": {
                "additionalProperties": { "format": "uint16", "type": ["integer", "null"] },
                "default": {},
                "type": "object",
            },
        }),
        &["name"],
    )
}

#[test]
fn a_type_that_fits_is_covered_without_a_finding() {
    let (counts, lines) = check(good_schema(&["red"]), round_trip::<Good>, Nulls::AsDeclared);
    assert_eq!(lines, [""; 0]);
    // colour: absent, null, value; tags: absent, value; entries: none, one, two; each null or not.
    assert_eq!((counts.covered, counts.options), (20, 20));
    assert!(counts.from_reference >= 20 && counts.from_ours >= 20);
}

#[test]
fn missing_enum_value_is_reported_in_both_directions() {
    let (_, lines) = check(
        good_schema(&["red", "blue"]),
        round_trip::<Good>,
        Nulls::AsDeclared,
    );
    assert!(has(&lines, "not recognized: test"), "{lines:?}");
    let (theirs, ours) = (
        good_schema(&["red", "blue"]),
        good_schema(&["red", "green"]),
    );
    let lines = structure(theirs.clone(), theirs, ours);
    assert_eq!(
        lines,
        [
            "extra-value: T.colour[green]",
            "missing-value: T.colour[blue]"
        ]
    );
}

#[test]
fn a_null_that_clients_may_send_must_be_read() {
    let (_, lines) = check(good_schema(&["red"]), round_trip::<Good>, Nulls::Everywhere);
    assert!(
        has(&lines, "not read: test: invalid type: null"),
        "{lines:?}"
    );
}

#[test]
fn a_lost_member_is_reported() {
    let mut schema = good_schema(&["red"]);
    schema["properties"]["more"] = json!({ "type": "string" });
    let (_, lines) = check(schema.clone(), round_trip::<Good>, Nulls::AsDeclared);
    assert!(has(&lines, "not the same: test: /more"), "{lines:?}");
    let lines = structure(schema.clone(), schema, good_schema(&["red"]));
    assert_eq!(lines, ["missing-member: T.more"]);
}

#[test]
fn member_optional_in_reference_must_be_optional_here() {
    let schema = object(json!({ "name": { "type": "string" } }), &[]);
    let (_, lines) = check(schema, round_trip::<Good>, Nulls::AsDeclared);
    assert!(
        has(&lines, "not read: test: missing field `name`"),
        "{lines:?}"
    );
}

#[test]
fn written_values_must_be_valid_in_reference() {
    let mut schema = good_schema(&["red"]);
    schema["properties"]["colour"] = json!({ "enum": ["red"], "type": "string" });
    let (_, lines) = check(schema, round_trip::<Good>, Nulls::AsDeclared);
    assert!(has(&lines, "not valid there: test: /colour"), "{lines:?}");
}

#[test]
fn values_allowed_only_by_our_schema_must_be_valid_in_reference() {
    let (_, lines) = check_with(
        &no_exceptions(),
        object(
            json!({ "name": { "minLength": 1, "type": "string" } }),
            &["name"],
        ),
        object(json!({ "name": { "type": "string" } }), &["name"]),
        round_trip::<BTreeMap<String, String>>,
        Nulls::AsDeclared,
    );
    assert!(has(&lines, "not valid there: test: /name"), "{lines:?}");
}

#[test]
fn a_narrower_integer_is_reported() {
    let mut schema = good_schema(&["red"]);
    schema["properties"]["tags"]["additionalProperties"]["format"] = json!("uint32");
    let (_, lines) = check(schema.clone(), round_trip::<Good>, Nulls::AsDeclared);
    assert!(
        has(&lines, "not read: test: invalid value: integer"),
        "{lines:?}"
    );
    let lines = structure(schema.clone(), schema, good_schema(&["red"]));
    assert_eq!(lines, ["other-form: T.tags{}"]);
}

#[test]
fn a_lost_map_entry_is_reported_even_if_it_is_null() {
    #[derive(Debug, Serialize, Deserialize)]
    struct Lossy {
        #[serde(skip_serializing_if = "Option::is_none")]
        key0: Option<u8>,
        #[serde(flatten)]
        rest: BTreeMap<String, Option<u8>>,
    }
    let schema = json!({ "additionalProperties": { "format": "uint8", "type": ["integer", "null"] }, "type": "object" });
    let (_, lines) = check(schema, round_trip::<Lossy>, Nulls::AsDeclared);
    assert!(has(&lines, "not the same: test: /key0"), "{lines:?}");
}

#[test]
fn an_open_arm_must_stay_unrecognized() {
    let text = "[[exception]]\nkind = \"open-arm\"\nwhat = [\"T[string]\"]\nreason = \"open\"";
    let exceptions = Exceptions::parse(text).expect("good text");
    let open = json!({ "anyOf": [{ "enum": ["red"], "type": "string" }, { "type": "string" }] });
    let ours = json!({ "enum": ["red"], "type": "string" });
    let trip = round_trip::<Colour>;
    let (_, lines) = check_with(
        &exceptions,
        open.clone(),
        ours.clone(),
        trip,
        Nulls::AsDeclared,
    );
    assert_eq!(lines, [""; 0]);
    let trip = round_trip::<String>;
    let (_, lines) = check_with(&exceptions, open, ours, trip, Nulls::AsDeclared);
    assert!(
        has(&lines, "recognized an unknown value: test"),
        "{lines:?}"
    );
}

#[test]
fn experimental_gate_must_match_on_both_sides() {
    let all = object(
        json!({ "a": { "type": "string" }, "b": { "type": "string" } }),
        &[],
    );
    let stable = object(json!({ "a": { "type": "string" } }), &[]);
    let mut ours = all.clone();
    ours["properties"]["b"]["x-experimental"] = json!(true);
    assert_eq!(
        structure(all.clone(), stable.clone(), ours.clone()),
        [""; 0]
    );
    assert_eq!(structure(all.clone(), stable, all.clone()), ["gate: T.b"]);
    assert_eq!(structure(all.clone(), all, ours), ["gate: T.b"]);
}

#[test]
fn arms_and_free_members_are_compared() {
    let arm = |tag: &str, body: Value| {
        object(
            json!({ "type": { "enum": [tag] }, "body": body }),
            &["type", "body"],
        )
    };
    let theirs = json!({ "oneOf": [arm("a", json!({ "type": "string" })), arm("b", json!({ "type": "boolean" }))] });
    let ours = json!({ "oneOf": [arm("a", json!(true)), arm("c", json!({ "type": "boolean" }))] });
    assert_eq!(
        structure(theirs.clone(), theirs, ours),
        [
            "extra-value: T[type=c]",
            "missing-value: T[type=b]",
            "opaque: T[a].body"
        ]
    );
}

#[test]
fn a_type_that_contains_itself_ends_and_is_covered() {
    let schema = json!({
        "anyOf": [
            { "type": "null" },
            object(json!({ "left": { "$ref": "#/definitions/T" }, "right": { "$ref": "#/definitions/T" } }), &["left"]),
            { "items": { "$ref": "#/definitions/T" }, "type": "array" },
        ]
    });
    let reference = bundle(json!({ "T": schema }));
    let mut graph = Graph::new(reference.definitions.clone());
    let root = graph
        .reference("#/definitions/T", &no_exceptions())
        .expect("a schema");
    let heights = heights(&graph);
    let mut generator = Generator::new(&graph, &heights, root, "test", ROUNDS, Nulls::AsDeclared);
    assert!(!generator.missing().is_empty());
    let document = reference.document(&json!({ "$ref": "#/definitions/T" }));
    let validator = jsonschema::draft7::new(&document).expect("a schema");
    while let Some(instance) = generator.next() {
        assert!(validator.is_valid(&instance.value), "{}", instance.value);
    }
    assert_eq!(generator.missing(), [""; 0]);
    assert_eq!(generator.covered(), generator.options());
}

#[test]
fn the_same_seed_gives_the_same_instances() {
    let mut graph = Graph::new(json!({ "T": good_schema(&["red", "blue"]) }));
    let root = graph
        .reference("#/definitions/T", &no_exceptions())
        .expect("a schema");
    let heights = heights(&graph);
    let all = |name: &str| {
        let mut generator = Generator::new(&graph, &heights, root, name, ROUNDS, Nulls::AsDeclared);
        std::iter::from_fn(|| generator.next())
            .map(|it| it.value)
            .collect::<Vec<_>>()
    };
    assert_eq!(all("one"), all("one"));
    assert_ne!(all("one"), all("two"));
}
