//! Shapes: JSON Schema reduced to the few forms that both schemas use.
//!
//! A [`Graph`] holds one node per position of a schema. References are followed once, so a graph is
//! finite even where types are recursive. Every position where an instance can have several forms
//! is a [`ShapeChoice`]: the variants of a union, the values of an enum, the presence of a member.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

use crate::exceptions::{Exceptions, Kind};

pub type NodeId = usize;
pub type ChoiceId = usize;

pub struct Graph {
    pub nodes: Vec<ShapeNode>,
    pub choices: Vec<ShapeChoice>,
    definitions: Arc<Value>,
    by_reference: HashMap<String, NodeId>,
    by_path: HashMap<String, NodeId>,
}

pub struct ShapeNode {
    /// Path of the node, such as `ThreadItem[plan].text`.
    pub path: String,
    pub shape: Shape,
    /// Choice that decides its form, if there is one.
    pub choice: Option<ChoiceId>,
    /// Exception for this path, if there is one.
    pub exception: Option<usize>,
}

pub enum Shape {
    Any,
    Null,
    Boolean,
    Integer(Range),
    Number,
    Text {
        least: usize,
    },
    /// A string that must be a UUID although the schema does not say so.
    Uuid,
    Values(Vec<Value>),
    Nullable(NodeId),
    Array(NodeId),
    Map(NodeId),
    Object(Object),
    Union(Vec<NodeId>),
    /// A variant of a union that allows everything the other variants do not name.
    Open(NodeId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub least: i128,
    pub most: i128,
}

pub struct Object {
    pub members: Vec<Member>,
    /// Form of additional members, if the schema allows them.
    pub rest: Option<NodeId>,
    /// Whether additional members are forbidden.
    pub closed: bool,
}

pub struct Member {
    pub name: String,
    pub node: NodeId,
    /// Absent, a value, null: in this order. `None` for a required member.
    pub presence: Option<ChoiceId>,
    pub default: Option<Value>,
    pub experimental: bool,
}

pub struct ShapeChoice {
    pub path: String,
    pub options: Vec<String>,
}

/// Options of a member's presence, as indexes.
pub const ABSENT: usize = 0;
pub const VALUE: usize = 1;
pub const NULL: usize = 2;

/// Number of entries of a list or map, as labels of a choice.
const LENGTHS: [&str; 3] = ["empty", "one", "two"];

/// Forms of an unconstrained value, as labels of a choice.
pub const ANYTHING: [&str; 6] = ["null", "boolean", "number", "string", "array", "object"];

impl Graph {
    /// Creates a graph over a document's `definitions`. Types are read on demand.
    pub fn new(definitions: Value) -> Self {
        Self {
            nodes: Vec::new(),
            choices: Vec::new(),
            definitions: Arc::new(definitions),
            by_reference: HashMap::new(),
            by_path: HashMap::new(),
        }
    }

    /// Returns the node at a path, if a type that was read leads to it.
    pub fn at(&self, path: &str) -> Option<&ShapeNode> {
        self.by_path.get(path).map(|&id| &self.nodes[id])
    }

    /// Reads the type behind `#/definitions/…`.
    pub fn reference(&mut self, reference: &str, exceptions: &Exceptions) -> Result<NodeId> {
        if let Some(&id) = self.by_reference.get(reference) {
            return Ok(id);
        }
        let inside = reference
            .strip_prefix("#/definitions/")
            .with_context(|| format!("cannot follow {reference}"))?;
        let definitions = Arc::clone(&self.definitions);
        let schema = definitions
            .pointer(&format!("/{inside}"))
            .with_context(|| format!("nothing at {reference}"))?;
        // The two schemas store their types in different namespaces; paths omit them.
        let name = inside.rsplit('/').next().unwrap_or(inside);
        let id = self.reserve(name);
        self.by_reference.insert(reference.to_owned(), id);
        self.fill(id, schema, exceptions)?;
        Ok(id)
    }

    /// Reads a schema that has no name.
    pub fn schema(
        &mut self,
        path: &str,
        schema: &Value,
        exceptions: &Exceptions,
    ) -> Result<NodeId> {
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            return self.reference(reference, exceptions);
        }
        if let Some([only]) = schema
            .get("allOf")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
        {
            return self.schema(path, only, exceptions);
        }
        let id = self.reserve(path);
        self.fill(id, schema, exceptions)?;
        Ok(id)
    }

    /// Returns the direct child nodes of a node.
    pub fn children(&self, id: NodeId) -> Vec<NodeId> {
        match &self.nodes[id].shape {
            Shape::Nullable(inner)
            | Shape::Array(inner)
            | Shape::Map(inner)
            | Shape::Open(inner) => {
                vec![*inner]
            }
            Shape::Union(arms) => arms.clone(),
            Shape::Object(object) => {
                let members = object.members.iter().map(|member| self.lead(member));
                members.chain(object.rest).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the node of a member that is present. For an optional member, null is an option of
    /// its presence and is not decided again at the node.
    pub fn lead(&self, member: &Member) -> NodeId {
        match self.nodes[member.node].shape {
            Shape::Nullable(inner) if member.presence.is_some() => inner,
            _ => member.node,
        }
    }

    /// Returns this node and all its descendants.
    pub fn reach(&self, root: NodeId) -> Vec<NodeId> {
        let mut seen = vec![false; self.nodes.len()];
        let mut reached = vec![root];
        seen[root] = true;
        let mut next = 0;
        while let Some(&id) = reached.get(next) {
            next += 1;
            for child in self.children(id) {
                if !std::mem::replace(&mut seen[child], true) {
                    reached.push(child);
                }
            }
        }
        reached
    }

    fn reserve(&mut self, path: &str) -> NodeId {
        let id = self.nodes.len();
        self.nodes.push(ShapeNode {
            path: path.to_owned(),
            shape: Shape::Null,
            choice: None,
            exception: None,
        });
        self.by_path.insert(path.to_owned(), id);
        id
    }

    fn choice(&mut self, path: &str, options: Vec<String>) -> ChoiceId {
        self.choices.push(ShapeChoice {
            path: path.to_owned(),
            options,
        });
        self.choices.len() - 1
    }

    fn fill(&mut self, id: NodeId, schema: &Value, exceptions: &Exceptions) -> Result<()> {
        let path = self.nodes[id].path.clone();
        let mut shape = self
            .read(&path, schema, exceptions)
            .with_context(|| path.clone())?;
        if let Some(exception) = exceptions.find(Kind::OpenArm, &path) {
            let inner = self.reserve(&format!("{path}*"));
            self.set_shape(inner, shape);
            shape = Shape::Open(inner);
            self.nodes[id].exception = Some(exception);
        }
        if let Shape::Text { .. } = shape
            && let Some(exception) = exceptions.find(Kind::ThreadId, &path)
        {
            shape = Shape::Uuid;
            self.nodes[id].exception = Some(exception);
        }
        self.set_shape(id, shape);
        Ok(())
    }

    fn set_shape(&mut self, id: NodeId, shape: Shape) {
        let path = self.nodes[id].path.clone();
        let options = match &shape {
            Shape::Any => words(&ANYTHING),
            Shape::Boolean => words(&["false", "true"]),
            Shape::Values(values) => values.iter().map(Value::to_string).collect(),
            Shape::Nullable(_) => words(&["null", "value"]),
            Shape::Array(_) | Shape::Map(_) => words(&LENGTHS),
            Shape::Union(arms) => arms
                .iter()
                .map(|&arm| self.nodes[arm].path.clone())
                .collect(),
            Shape::Object(object) if object.rest.is_some() => words(&["no more", "one more"]),
            _ => Vec::new(),
        };
        // A single option is not a choice: the tag of a variant, or a type that only refers to
        // another.
        if options.len() > 1 {
            self.nodes[id].choice = Some(self.choice(&path, options));
        }
        self.nodes[id].shape = shape;
    }

    fn read(&mut self, path: &str, schema: &Value, exceptions: &Exceptions) -> Result<Shape> {
        let schema = match schema {
            Value::Bool(true) => return Ok(Shape::Any),
            Value::Object(schema) => schema,
            _ => bail!("not a schema: {schema}"),
        };
        if schema.contains_key("$ref") || schema.contains_key("allOf") {
            let parts = schema
                .get("allOf")
                .and_then(Value::as_array)
                .map_or(1, Vec::len);
            if parts != 1 {
                bail!("cannot read an allOf of {parts}");
            }
            // The definition only refers to another. Its own node must exist, so it is a union of
            // one variant.
            let arm = self.schema(path, &Value::Object(schema.clone()), exceptions)?;
            return Ok(Shape::Union(vec![arm]));
        }
        for word in ["oneOf", "anyOf"] {
            if let Some(arms) = schema.get(word).and_then(Value::as_array) {
                return self.read_union(path, schema, word, arms, exceptions);
            }
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return self.read_values(path, values);
        }
        if let Some(value) = schema.get("const") {
            return Ok(Shape::Values(vec![value.clone()]));
        }
        match schema.get("type") {
            Some(Value::String(kind)) => self.read_type(path, schema, kind, exceptions),
            Some(Value::Array(kinds)) => self.read_types(path, schema, kinds, exceptions),
            None if schema.contains_key("properties") => self.read_object(path, schema, exceptions),
            None => Ok(Shape::Any),
            Some(other) => bail!("cannot read the type {other}"),
        }
    }

    fn read_union(
        &mut self,
        path: &str,
        schema: &Map<String, Value>,
        word: &str,
        arms: &[Value],
        exceptions: &Exceptions,
    ) -> Result<Shape> {
        let base = schema.contains_key("properties");
        let mut labels = HashMap::new();
        let mut nodes = Vec::new();
        let mut nullable = false;
        for arm in arms {
            if arm.get("type").and_then(Value::as_str) == Some("null") {
                nullable = true;
                continue;
            }
            let label = label(arm);
            let count = labels.entry(label.clone()).or_insert(0);
            *count += 1;
            let arm_path = match *count {
                1 => format!("{path}[{label}]"),
                again => format!("{path}[{label}#{again}]"),
            };
            let arm = if base {
                self.merged(schema, word, arm)?
            } else {
                arm.clone()
            };
            nodes.push(self.schema(&arm_path, &arm, exceptions)?);
        }
        self.union(path, nodes, nullable)
    }

    /// Merges a variant with the object that contains its union and has members of its own.
    fn merged(&self, schema: &Map<String, Value>, word: &str, arm: &Value) -> Result<Value> {
        let arm = match arm.get("$ref").and_then(Value::as_str) {
            Some(reference) => self
                .definitions
                .pointer(reference.trim_start_matches("#/definitions"))
                .with_context(|| format!("nothing at {reference}"))?,
            None => arm,
        };
        let mut merged = arm
            .as_object()
            .cloned()
            .context("an arm that is no object schema")?;
        let mut properties = object_at(schema, "properties");
        properties.extend(object_at(&merged, "properties"));
        let mut required = array_at(schema, "required");
        required.extend(array_at(&merged, "required"));
        merged.insert("type".into(), json!("object"));
        merged.insert("properties".into(), Value::Object(properties));
        merged.insert("required".into(), Value::Array(required));
        for (key, value) in schema {
            if key != word && !merged.contains_key(key) {
                merged.insert(key.clone(), value.clone());
            }
        }
        Ok(Value::Object(merged))
    }

    fn union(&mut self, path: &str, nodes: Vec<NodeId>, nullable: bool) -> Result<Shape> {
        match (nodes.as_slice(), nullable) {
            ([], true) => Ok(Shape::Null),
            ([], false) => bail!("a union without arms"),
            ([only], true) => Ok(Shape::Nullable(*only)),
            (_, false) => Ok(Shape::Union(nodes)),
            (_, true) => {
                let inner = self.reserve(&format!("{path}!"));
                self.set_shape(inner, Shape::Union(nodes));
                Ok(Shape::Nullable(inner))
            }
        }
    }

    fn read_values(&mut self, path: &str, values: &[Value]) -> Result<Shape> {
        let named: Vec<Value> = values
            .iter()
            .filter(|value| !value.is_null())
            .cloned()
            .collect();
        if named.len() == values.len() {
            return Ok(Shape::Values(named));
        }
        let inner = self.reserve(&format!("{path}!"));
        self.set_shape(inner, Shape::Values(named));
        Ok(Shape::Nullable(inner))
    }

    fn read_types(
        &mut self,
        path: &str,
        schema: &Map<String, Value>,
        kinds: &[Value],
        exceptions: &Exceptions,
    ) -> Result<Shape> {
        let mut nodes = Vec::new();
        let named: Vec<&str> = kinds
            .iter()
            .filter_map(Value::as_str)
            .filter(|kind| *kind != "null")
            .collect();
        for kind in &named {
            let mut one = schema.clone();
            one.insert("type".into(), json!(kind));
            // Beside other types, a bare object stands for any object, not for the empty one.
            if named.len() > 1 && *kind == "object" && !one.contains_key("properties") {
                one.entry("additionalProperties")
                    .or_insert(Value::Bool(true));
            }
            let kind_path = if named.len() == 1 {
                path.to_owned()
            } else {
                format!("{path}<{kind}>")
            };
            nodes.push(self.schema(&kind_path, &Value::Object(one), exceptions)?);
        }
        self.union(path, nodes, named.len() < kinds.len())
    }

    fn read_type(
        &mut self,
        path: &str,
        schema: &Map<String, Value>,
        kind: &str,
        exceptions: &Exceptions,
    ) -> Result<Shape> {
        Ok(match kind {
            "null" => Shape::Null,
            "boolean" => Shape::Boolean,
            "integer" => Shape::Integer(range(schema)?),
            "number" => Shape::Number,
            "string" => {
                let least = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0);
                Shape::Text {
                    least: usize::try_from(least)?,
                }
            }
            "array" => {
                let items = schema.get("items").unwrap_or(&Value::Bool(true));
                Shape::Array(self.schema(&format!("{path}[]"), items, exceptions)?)
            }
            "object" => return self.read_object(path, schema, exceptions),
            other => bail!("cannot read the type {other}"),
        })
    }

    fn read_object(
        &mut self,
        path: &str,
        schema: &Map<String, Value>,
        exceptions: &Exceptions,
    ) -> Result<Shape> {
        let properties = object_at(schema, "properties");
        let required = array_at(schema, "required");
        let rest = match schema.get("additionalProperties") {
            None | Some(Value::Bool(false)) => None,
            Some(rest) => Some(self.schema(&format!("{path}{{}}"), rest, exceptions)?),
        };
        if let (true, Some(values)) = (properties.is_empty(), rest) {
            return Ok(Shape::Map(values));
        }
        let mut members = Vec::new();
        for (name, property) in &properties {
            let member_path = format!("{path}.{name}");
            let node = self.schema(&member_path, property, exceptions)?;
            let presence = if required.iter().any(|it| it == name) {
                None
            } else {
                Some(self.choice(&member_path, words(&["absent", "value", "null"])))
            };
            members.push(Member {
                name: name.clone(),
                node,
                presence,
                default: property.get("default").cloned(),
                experimental: property.get("x-experimental") == Some(&Value::Bool(true)),
            });
        }
        let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
        Ok(Shape::Object(Object {
            members,
            rest,
            closed,
        }))
    }
}

/// Returns a label for a variant: its tag, its only member, the type it refers to, or its form.
fn label(arm: &Value) -> String {
    if let Some(reference) = arm.get("$ref").and_then(Value::as_str) {
        return reference.rsplit('/').next().unwrap_or(reference).to_owned();
    }
    if let Some([only]) = arm
        .get("allOf")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
    {
        return label(only);
    }
    if let Some(values) = arm.get("enum").and_then(Value::as_array) {
        return match values.as_slice() {
            [Value::String(only)] => only.clone(),
            _ => "values".to_owned(),
        };
    }
    let required: Vec<&str> = arm
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    for name in &required {
        if let Some([Value::String(tag)]) = arm["properties"][name]["enum"]
            .as_array()
            .map(Vec::as_slice)
        {
            return tag.clone();
        }
    }
    if !required.is_empty() {
        return format!("{{{}}}", required.join(","));
    }
    match &arm["type"] {
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => {
            let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
            kinds.join("|")
        }
        _ => "any".to_owned(),
    }
}

fn range(schema: &Map<String, Value>) -> Result<Range> {
    let (least, most) = match schema.get("format").and_then(Value::as_str) {
        Some("int8") => (i128::from(i8::MIN), i128::from(i8::MAX)),
        Some("int16") => (i128::from(i16::MIN), i128::from(i16::MAX)),
        Some("int32") => (i128::from(i32::MIN), i128::from(i32::MAX)),
        Some("int64") | None => (i128::from(i64::MIN), i128::from(i64::MAX)),
        Some("uint8") => (0, i128::from(u8::MAX)),
        Some("uint16") => (0, i128::from(u16::MAX)),
        Some("uint32") => (0, i128::from(u32::MAX)),
        Some("uint64" | "uint") => (0, i128::from(u64::MAX)),
        Some(other) => bail!("cannot read the format {other}"),
    };
    let bound = |key: &str| {
        schema
            .get(key)
            .and_then(Value::as_f64)
            .map(|bound| bound as i128)
    };
    Ok(Range {
        least: bound("minimum").map_or(least, |bound| bound.max(least)),
        most: bound("maximum").map_or(most, |bound| bound.min(most)),
    })
}

fn object_at(schema: &Map<String, Value>, key: &str) -> Map<String, Value> {
    schema
        .get(key)
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default()
}

fn array_at(schema: &Map<String, Value>, key: &str) -> Vec<Value> {
    schema
        .get(key)
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default()
}

fn words(labels: &[&str]) -> Vec<String> {
    labels.iter().map(|label| (*label).to_owned()).collect()
}
