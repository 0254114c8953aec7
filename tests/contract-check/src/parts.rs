//! Parts that are checked against the reference: each side of each row of the tables, and each item
//! type.

use std::collections::BTreeMap;

use anyhow::Result;
use raddle_protocol::{
    METHODS, NOTIFICATIONS, RoundTrip, SERVER_REQUESTS, Stability, ThreadItem, Tier, round_trip,
};
use serde_json::{Value, json};

use crate::bundle::Bundle;
use crate::exceptions::{Exceptions, Kind};
use crate::findings::Findings;
use crate::generate::Nulls;
use crate::shape::{Graph, NodeId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    Method,
    Notification,
    ServerRequest,
    Item,
}

/// A row of the page: a method, notification, server request or item type.
#[derive(Debug)]
pub struct ContractRow {
    pub group: Group,
    pub name: &'static str,
    pub tier: Tier,
    pub experimental: bool,
    pub parts: Vec<ContractPart>,
}

/// A type to check: the params or the result of a row, or an item.
#[derive(Debug)]
pub struct ContractPart {
    pub side: &'static str,
    pub theirs: NodeId,
    pub ours: NodeId,
    /// Schema of the part in the reference.
    pub schema: Value,
    pub trip: fn(&str) -> Result<RoundTrip, serde_json::Error>,
    pub nulls: Nulls,
}

impl ContractPart {
    /// Allows null for all optional members. Clients may send null for every member that they may
    /// omit, even where the reference's schema does not say so.
    fn sent_by_clients(self) -> Self {
        Self {
            nulls: Nulls::Everywhere,
            ..self
        }
    }
}

/// The three schemas, and the differences found so far.
pub struct Sources<'a> {
    pub reference: &'a Bundle,
    pub stable_reference: &'a Bundle,
    pub our_bundle: &'a Bundle,
    pub theirs: &'a mut Graph,
    pub stable: &'a mut Graph,
    pub ours: &'a mut Graph,
    pub exceptions: &'a Exceptions,
    pub findings: &'a mut Findings,
}

type Trip = fn(&str) -> Result<RoundTrip, serde_json::Error>;

impl Sources<'_> {
    /// Returns every row of our tables with its parts.
    pub fn rows(&mut self) -> Result<Vec<ContractRow>> {
        let mut rows = self.methods()?;
        rows.extend(self.notifications()?);
        rows.extend(self.server_requests()?);
        rows.extend(self.items()?);
        Ok(rows)
    }

    fn methods(&mut self) -> Result<Vec<ContractRow>> {
        let reference = self.reference.methods("ClientRequest")?;
        let stable = self.stable_reference.methods("ClientRequest")?;
        let mut rows = Vec::new();
        for row in METHODS {
            let experimental = row.stability == Stability::Experimental;
            let mut parts = Vec::new();
            let Some(params) = reference.get(row.name) else {
                self.report(Kind::ExtraMethod, row.name.to_owned());
                continue;
            };
            if stable.contains_key(row.name) == experimental {
                self.report(Kind::Gate, row.name.to_owned());
            }
            match row.params {
                Some(ours) => {
                    self.gated(row.name, params, row.gated, &stable);
                    let part = self.part("params", ours, params, row.shapes.params)?;
                    parts.extend(part.map(ContractPart::sent_by_clients));
                }
                None if params.is_null() || params["type"] == "null" => {}
                None if may_be_null(params) => {
                    self.report(Kind::MissingParams, row.name.to_owned());
                }
                None => self.findings.add("params are missing", row.name),
            }
            parts.extend(self.named_part("result", row.result, row.shapes.result)?);
            rows.push(ContractRow {
                group: Group::Method,
                name: row.name,
                tier: row.tier,
                experimental,
                parts,
            });
        }
        Ok(rows)
    }

    fn notifications(&mut self) -> Result<Vec<ContractRow>> {
        let reference = self.reference.methods("ServerNotification")?;
        let mut rows = Vec::new();
        for row in NOTIFICATIONS {
            let Some(params) = reference.get(row.name) else {
                self.report(Kind::ExtraNotification, row.name.to_owned());
                continue;
            };
            rows.push(ContractRow {
                group: Group::Notification,
                name: row.name,
                tier: row.tier,
                experimental: row.stability == Stability::Experimental,
                parts: self
                    .part("params", row.params, params, row.shapes.params)?
                    .into_iter()
                    .collect(),
            });
        }
        Ok(rows)
    }

    fn server_requests(&mut self) -> Result<Vec<ContractRow>> {
        let reference = self.reference.methods("ServerRequest")?;
        let mut rows = Vec::new();
        for row in SERVER_REQUESTS {
            let Some(params) = reference.get(row.name) else {
                self.findings.add("not in the reference", row.name);
                continue;
            };
            let mut parts = Vec::new();
            parts.extend(self.part("params", row.params, params, row.shapes.params)?);
            let result = self.named_part("result", row.result, row.shapes.result)?;
            parts.extend(result.map(ContractPart::sent_by_clients));
            rows.push(ContractRow {
                group: Group::ServerRequest,
                name: row.name,
                tier: Tier::Core,
                experimental: false,
                parts,
            });
        }
        Ok(rows)
    }

    /// Returns each item type separately, with one variant of the union on both sides.
    fn items(&mut self) -> Result<Vec<ContractRow>> {
        let theirs = arms(&self.reference.definitions["v2"]["ThreadItem"]);
        let ours = arms(&self.our_bundle.resolve("ThreadItem"));
        for name in theirs
            .keys()
            .filter(|name| !ThreadItem::KNOWN.contains(&name.as_str()))
        {
            self.report(Kind::MissingValue, format!("ThreadItem[type={name}]"));
        }
        let mut rows = Vec::new();
        for name in ThreadItem::KNOWN {
            let (Some(schema), Some(our_schema)) = (theirs.get(*name), ours.get(*name)) else {
                self.findings
                    .add("not in the reference", format!("item {name}"));
                continue;
            };
            let part = ContractPart {
                side: "item",
                theirs: self.theirs.schema("ThreadItem", schema, self.exceptions)?,
                ours: self
                    .ours
                    .schema("ThreadItem", our_schema, self.exceptions)?,
                schema: schema.clone(),
                trip: round_trip::<ThreadItem>,
                nulls: Nulls::AsDeclared,
            };
            rows.push(ContractRow {
                group: Group::Item,
                name,
                tier: Tier::Core,
                experimental: false,
                parts: vec![part],
            });
        }
        Ok(rows)
    }

    /// Returns a part whose schema the reference gives beside the method's name.
    fn part(
        &mut self,
        side: &'static str,
        ours: &str,
        schema: &Value,
        trip: Trip,
    ) -> Result<Option<ContractPart>> {
        let named = schema["$ref"].as_str().and_then(|it| it.rsplit('/').next());
        if named.is_some_and(|name| name != ours) {
            self.findings.add(
                "goes by another name",
                format!("{ours}, there {}", named.unwrap_or_default()),
            );
        }
        // Needed so that the comparison of structures finds its stable members.
        if let Some(reference) = self.stable_reference.reference(ours) {
            self.stable.reference(&reference, self.exceptions)?;
        }
        let Some(our_reference) = self.our_bundle.reference(ours) else {
            self.findings.add("not in our schema", ours);
            return Ok(None);
        };
        Ok(Some(ContractPart {
            side,
            theirs: self.theirs.schema(ours, schema, self.exceptions)?,
            ours: self.ours.reference(&our_reference, self.exceptions)?,
            schema: schema.clone(),
            trip,
            nulls: Nulls::AsDeclared,
        }))
    }

    /// Returns a part that the reference does not associate with a method, by the name of its type.
    fn named_part(
        &mut self,
        side: &'static str,
        name: &str,
        trip: Trip,
    ) -> Result<Option<ContractPart>> {
        let Some(reference) = self.reference.reference(name) else {
            self.findings.add("not in the reference", name);
            return Ok(None);
        };
        self.part(side, name, &json!({ "$ref": reference }), trip)
    }

    /// Checks that the params which require an opt-in are those that only the complete schema has.
    fn gated(
        &mut self,
        method: &str,
        schema: &Value,
        gated: &[&str],
        stable: &BTreeMap<String, Value>,
    ) {
        let Some(stable_schema) = stable.get(method) else {
            return;
        };
        let all = members(self.reference, schema);
        let open = members(self.stable_reference, stable_schema);
        for name in all.iter().filter(|name| !open.contains(name)) {
            if !gated.contains(&name.as_str()) {
                self.report(Kind::Gate, format!("{method} {name}"));
            }
        }
        for name in gated {
            if open.iter().any(|open| open == name) || !all.iter().any(|it| it == name) {
                self.report(Kind::Gate, format!("{method} {name}"));
            }
        }
    }

    fn report(&mut self, kind: Kind, path: String) {
        if self.exceptions.find(kind, &path).is_none() {
            self.findings.add(kind.word(), path);
        }
    }
}

/// Whether a schema is a choice with null.
fn may_be_null(schema: &Value) -> bool {
    let arms = schema["anyOf"].as_array();
    arms.is_some_and(|arms| arms.iter().any(|arm| arm["type"] == "null"))
}

/// Returns the names of an object schema's own members.
fn members(bundle: &Bundle, schema: &Value) -> Vec<String> {
    let name = schema["$ref"].as_str().and_then(|it| it.rsplit('/').next());
    let object = name.map_or_else(|| schema.clone(), |name| bundle.resolve(name));
    let names = object["properties"].as_object();
    names
        .into_iter()
        .flat_map(|it| it.keys().cloned())
        .collect()
}

/// Splits a tagged union: for each tag, returns the same schema with that variant only.
fn arms(schema: &Value) -> BTreeMap<String, Value> {
    let mut variants = BTreeMap::new();
    for arm in schema["oneOf"].as_array().into_iter().flatten() {
        if let Some(tag) = arm["properties"]["type"]["enum"][0].as_str() {
            let mut one = schema.clone();
            one["oneOf"] = json!([arm]);
            variants.insert(tag.to_owned(), one);
        }
    }
    variants
}
