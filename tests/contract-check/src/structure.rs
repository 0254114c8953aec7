//! Comparison of the structure of both schemas: the same members, the same values, the same
//! variants.
//!
//! The instances show that both sides read and write common members alike. This comparison finds
//! members that only one side has, and members that are typed in the reference and untyped here.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::exceptions::{Exceptions, Kind};
use crate::findings::Findings;
use crate::shape::{Graph, Member, NodeId, Object, Range, Shape};

pub struct Structure<'a> {
    pub ours: &'a Graph,
    pub theirs: &'a Graph,
    /// Schema of the reference without its experimental part.
    pub stable: &'a Graph,
    pub exceptions: &'a Exceptions,
    pub findings: &'a mut Findings,
    /// Our members that accept any JSON, with the type that the reference expects and the exception
    /// that allows it.
    pub free: HashMap<NodeId, (NodeId, usize)>,
    /// Exceptions that were used, by our node.
    pub met: HashMap<NodeId, Vec<usize>>,
    /// Our variants that the reference does not have, and that an exception allows.
    pub added: HashSet<NodeId>,
    seen: HashSet<(NodeId, NodeId)>,
}

/// One form that a value may have. Forms with the same key are the same variant of a union.
#[derive(Clone, Copy)]
struct Form {
    node: NodeId,
    range: Option<Range>,
}

impl<'a> Structure<'a> {
    pub fn new(
        ours: &'a Graph,
        theirs: &'a Graph,
        stable: &'a Graph,
        exceptions: &'a Exceptions,
        findings: &'a mut Findings,
    ) -> Self {
        Self {
            ours,
            theirs,
            stable,
            exceptions,
            findings,
            free: HashMap::new(),
            met: HashMap::new(),
            added: HashSet::new(),
            seen: HashSet::new(),
        }
    }

    /// Compares one of our types with its counterpart, including all nested types.
    pub fn compare(&mut self, ours: NodeId, theirs: NodeId) {
        if !self.seen.insert((ours, theirs)) {
            return;
        }
        let our_forms = forms(self.ours, ours);
        let their_forms = forms(self.theirs, theirs);
        let path = self.ours.nodes[ours].path.clone();
        if let Some(free) = our_forms.get("any") {
            if !their_forms.contains_key("any") {
                self.opaque(free[0].node, theirs);
            }
            return;
        }
        for key in their_forms
            .keys()
            .filter(|key| !our_forms.contains_key(*key))
        {
            self.report(Kind::MissingValue, ours, format!("{path}[{key}]"));
        }
        for (key, our_arms) in &our_forms {
            match their_forms.get(key) {
                None => {
                    let what = format!("{path}[{key}]");
                    if self.exceptions.find(Kind::ExtraValue, &what).is_some() {
                        self.added.extend(our_arms.iter().map(|it| it.node));
                    }
                    self.report(Kind::ExtraValue, ours, what);
                }
                Some(their_arms) => self.compare_forms(our_arms, their_arms),
            }
        }
    }

    fn opaque(&mut self, ours: NodeId, theirs: NodeId) {
        let path = self.ours.nodes[ours].path.clone();
        match self.exceptions.find(Kind::Opaque, &path) {
            None => self.findings.add(Kind::Opaque.word(), path),
            Some(exception) => {
                self.free.insert(ours, (theirs, exception));
                self.met.entry(ours).or_default().push(exception);
            }
        }
    }

    /// Compares the variants of one key. Several variants can share a key: objects that differ in
    /// their required members. Their members are merged.
    fn compare_forms(&mut self, ours: &[Form], theirs: &[Form]) {
        let (our_first, their_first) = (ours[0], theirs[0]);
        match (
            &self.ours.nodes[our_first.node].shape,
            &self.theirs.nodes[their_first.node].shape,
        ) {
            (Shape::Array(one), Shape::Array(other)) | (Shape::Map(one), Shape::Map(other)) => {
                self.compare(*one, *other);
            }
            (Shape::Object(_), Shape::Object(_)) => self.compare_members(ours, theirs),
            _ if our_first.range != their_first.range => {
                let path = self.ours.nodes[our_first.node].path.clone();
                self.report(Kind::OtherForm, our_first.node, path);
            }
            _ => {}
        }
    }

    fn compare_members(&mut self, ours: &[Form], theirs: &[Form]) {
        let (our_graph, their_graph) = (self.ours, self.theirs);
        let our_members = members(our_graph, ours);
        let their_members = members(their_graph, theirs);
        let node = ours[0].node;
        let path = &our_graph.nodes[node].path;
        for (name, (_, theirs)) in &their_members {
            match our_members.get(name) {
                None => self.report(Kind::MissingMember, node, format!("{path}.{name}")),
                Some((_, ours)) => self.compare(ours.node, theirs.node),
            }
        }
        for (name, (_, member)) in &our_members {
            let Some((their_path, _)) = their_members.get(name) else {
                self.report(Kind::ExtraMember, node, format!("{path}.{name}"));
                continue;
            };
            if let Some(stable) = self.stable_object(their_path) {
                let stable = stable.members.iter().any(|member| member.name == *name);
                if stable == member.experimental {
                    self.report(Kind::Gate, node, format!("{path}.{name}"));
                }
            }
        }
    }

    fn stable_object(&self, path: &str) -> Option<&'a Object> {
        match &self.stable.at(path)?.shape {
            Shape::Object(object) => Some(object),
            _ => None,
        }
    }

    fn report(&mut self, kind: Kind, node: NodeId, path: String) {
        match self.exceptions.find(kind, &path) {
            Some(exception) => self.met.entry(node).or_default().push(exception),
            None => self.findings.add(kind.word(), path),
        }
    }
}

/// Returns the members of objects by name, each with the path of its object.
fn members<'g>(graph: &'g Graph, forms: &[Form]) -> BTreeMap<&'g str, (&'g str, &'g Member)> {
    let mut by_name = BTreeMap::new();
    for form in forms {
        let node = &graph.nodes[form.node];
        let Shape::Object(object) = &node.shape else {
            continue;
        };
        for member in &object.members {
            by_name
                .entry(member.name.as_str())
                .or_insert((node.path.as_str(), member));
        }
    }
    by_name
}

/// Returns the forms of a value except null: the instances show whether it may be null.
fn forms(graph: &Graph, node: NodeId) -> BTreeMap<String, Vec<Form>> {
    let mut by_key: BTreeMap<String, Vec<Form>> = BTreeMap::new();
    let mut add =
        |key: String, node, range| by_key.entry(key).or_default().push(Form { node, range });
    let mut queue = vec![node];
    let mut seen = HashSet::new();
    while let Some(id) = queue.pop() {
        if !seen.insert(id) {
            continue;
        }
        match &graph.nodes[id].shape {
            // The values of an open variant are not a form of their own.
            Shape::Null | Shape::Open(_) => {}
            Shape::Nullable(inner) => queue.push(*inner),
            Shape::Union(arms) => queue.extend(arms.iter().rev()),
            Shape::Any => add("any".to_owned(), id, None),
            Shape::Boolean => add("boolean".to_owned(), id, None),
            Shape::Integer(range) => add("integer".to_owned(), id, Some(*range)),
            Shape::Number => add("number".to_owned(), id, None),
            Shape::Uuid => add("string".to_owned(), id, None),
            Shape::Text { least } => {
                let range = Range {
                    least: *least as i128,
                    most: i128::MAX,
                };
                add("string".to_owned(), id, Some(range));
            }
            Shape::Values(values) => {
                for value in values {
                    add(
                        value
                            .as_str()
                            .map_or_else(|| value.to_string(), str::to_owned),
                        id,
                        None,
                    );
                }
            }
            Shape::Array(_) => add("array".to_owned(), id, None),
            Shape::Map(_) => add("map".to_owned(), id, None),
            Shape::Object(object) => add(tag(graph, object), id, None),
        }
    }
    by_key
}

/// Returns the label that distinguishes an object from its siblings: the value of its tag, or its
/// only member.
fn tag(graph: &Graph, object: &Object) -> String {
    let required = object
        .members
        .iter()
        .filter(|member| member.presence.is_none());
    for member in required {
        if let Shape::Values(values) = &graph.nodes[member.node].shape
            && let [serde_json::Value::String(tag)] = values.as_slice()
        {
            return format!("{}={tag}", member.name);
        }
    }
    match object.members.as_slice() {
        [only] if object.closed => format!("{{{}}}", only.name),
        _ => "object".to_owned(),
    }
}
