//! The check of one part in both directions: our types read and write values of the reference
//! without loss, and our values are valid in the reference.

use std::collections::{HashMap, HashSet};

use anyhow::{Result, anyhow};
use jsonschema::Validator;
use serde_json::Value;

use crate::bundle::Bundle;
use crate::compare::difference;
use crate::findings::Findings;
use crate::generate::{Generator, Instance, Nulls, heights};
use crate::parts::ContractPart;
use crate::shape::{Graph, NodeId};

pub struct Check<'a> {
    pub reference: &'a Bundle,
    pub theirs: &'a Graph,
    pub ours: &'a Graph,
    /// Our members that accept any JSON, with the reference's node for them.
    pub free: HashMap<NodeId, NodeId>,
    /// Our variants that the reference does not have.
    added: HashSet<NodeId>,
    pub rounds: u32,
    their_heights: Vec<usize>,
    our_heights: Vec<usize>,
}

/// Statistics of the check of a part.
#[derive(Clone, Copy, Debug, Default)]
pub struct InstanceCounts {
    pub from_reference: usize,
    pub from_ours: usize,
    /// Options of choices that were taken at least once per round.
    pub covered: usize,
    pub options: usize,
}

impl InstanceCounts {
    pub fn add(&mut self, other: Self) {
        self.from_reference += other.from_reference;
        self.from_ours += other.from_ours;
        self.covered += other.covered;
        self.options += other.options;
    }

    fn count(&mut self, generator: &Generator<'_>) {
        self.covered += generator.covered();
        self.options += generator.options();
    }
}

impl<'a> Check<'a> {
    pub fn new(
        reference: &'a Bundle,
        theirs: &'a Graph,
        ours: &'a Graph,
        (free, added): (HashMap<NodeId, NodeId>, HashSet<NodeId>),
        rounds: u32,
    ) -> Self {
        Self {
            reference,
            theirs,
            ours,
            free,
            added,
            rounds,
            their_heights: heights(theirs),
            our_heights: heights(ours),
        }
    }

    pub fn part(&self, name: &str, part: &ContractPart) -> Result<(InstanceCounts, Findings)> {
        let document = self.reference.document(&part.schema);
        let validator =
            jsonschema::draft7::new(&document).map_err(|error| anyhow!("{name}: {error}"))?;
        let mut run = Run {
            name,
            part,
            validator,
            counts: InstanceCounts::default(),
            findings: Findings::default(),
        };
        run.read_theirs(self, Nulls::AsDeclared);
        if part.nulls == Nulls::Everywhere {
            run.read_theirs(self, Nulls::Everywhere);
        }
        run.write_ours(self);
        Ok((run.counts, run.findings))
    }

    fn their_generator(&self, root: NodeId, name: &str, nulls: Nulls) -> Generator<'_> {
        Generator::new(
            self.theirs,
            &self.their_heights,
            root,
            name,
            self.rounds,
            nulls,
        )
    }
}

struct Run<'a> {
    name: &'a str,
    part: &'a ContractPart,
    validator: Validator,
    counts: InstanceCounts,
    findings: Findings,
}

impl Run<'_> {
    fn read_theirs(&mut self, check: &Check<'_>, nulls: Nulls) {
        let name = format!("{} {nulls:?}", self.name);
        let mut generator = check.their_generator(self.part.theirs, &name, nulls);
        while let Some(instance) = generator.next() {
            self.counts.from_reference += 1;
            if nulls == Nulls::AsDeclared {
                self.validate(
                    "the generated value is invalid in its schema",
                    &instance.value,
                );
            }
            self.check_round_trip(&instance);
        }
        self.coverage(&generator);
    }

    fn write_ours(&mut self, check: &Check<'_>) {
        let mut generator = Generator::new(
            check.ours,
            &check.our_heights,
            self.part.ours,
            &format!("{} ours", self.name),
            check.rounds,
            Nulls::AsDeclared,
        );
        for node in check.ours.reach(self.part.ours) {
            if let Some(theirs) = check.free.get(&node) {
                let name = format!("{} {}", self.name, check.ours.nodes[node].path);
                generator.delegate(
                    node,
                    check.their_generator(*theirs, &name, Nulls::AsDeclared),
                );
            }
        }
        generator.mark_added(&check.added);
        while let Some(instance) = generator.next() {
            self.counts.from_ours += 1;
            self.check_round_trip(&instance);
        }
        self.coverage(&generator);
    }

    /// Reads an instance as our type, writes it again, and compares the result.
    fn check_round_trip(&mut self, sent: &Instance) {
        let text = sent.value.to_string();
        let trip = match (self.part.trip)(&text) {
            Ok(trip) => trip,
            Err(error) => {
                let error = error.to_string();
                let error = error.split(" at line ").next().unwrap_or(&error);
                return self.add("not read", error, &sent.value);
            }
        };
        let back: Value = match serde_json::from_str(&trip.json) {
            Ok(back) => back,
            Err(error) => return self.add("not JSON", &error.to_string(), &sent.value),
        };
        if trip.unrecognized != sent.open {
            let what = if sent.open {
                "recognized an unknown value"
            } else {
                "not recognized"
            };
            self.add(what, "", &sent.value);
        }
        if let Some(difference) = difference(sent, &back) {
            let pointer = without_indexes(&difference.pointer);
            self.add(
                "not the same",
                &pointer,
                &Value::String(difference.to_string()),
            );
        }
        if !sent.is_added {
            self.validate("not valid there", &back);
        }
    }

    fn validate(&mut self, kind: &str, value: &Value) {
        if self.validator.is_valid(value) {
            return;
        }
        let error = self.validator.iter_errors(value).next();
        let (path, message) = error
            .map(|error| {
                (
                    error.instance_path().to_string(),
                    error.masked().to_string(),
                )
            })
            .unwrap_or_default();
        let inside = value.pointer(&path).unwrap_or(value).clone();
        self.add(
            kind,
            &format!("{} {message}", without_indexes(&path)),
            &inside,
        );
    }

    fn coverage(&mut self, generator: &Generator<'_>) {
        self.counts.count(generator);
        for option in generator.missing() {
            self.findings
                .add("not covered", format!("{}: {option}", self.name));
        }
    }

    fn add(&mut self, kind: &str, what: &str, example: &Value) {
        let what = format!("{}: {}", self.name, shortened(what));
        self.findings
            .add_with(kind, what, || Some(shortened(&example.to_string())));
    }
}

fn without_indexes(pointer: &str) -> String {
    let step = |step: &str| {
        if !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit()) {
            "*".to_owned()
        } else {
            step.to_owned()
        }
    };
    pointer.split('/').map(step).collect::<Vec<_>>().join("/")
}

fn shortened(text: &str) -> String {
    const CHARS_MAX: usize = 400;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
