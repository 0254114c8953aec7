//! JSON Schemas of every type that the tables name, and of all types they refer to.

use std::collections::{BTreeMap, BTreeSet};

use schemars::generate::{Contract, SchemaSettings};
use serde_json::{Map, Value};

use super::envelope;
use crate::{METHODS, MethodRow, NOTIFICATIONS, RequestId, SERVER_REQUESTS, Stability};

/// Prefix of a reference from one schema to another.
pub(super) const REFERENCE: &str = "#/definitions/";

/// Schema keyword on members that require `experimentalApi`.
pub(super) const MARK: &str = "x-experimental";

/// How to treat experimental methods and members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    /// Omits experimental methods and members.
    Stable,
    /// Includes experimental methods and members like the others.
    Experimental,
    /// Includes them, and keeps the mark on experimental members.
    Marked,
}

impl View {
    pub(super) fn new(experimental: bool) -> Self {
        if experimental {
            Self::Experimental
        } else {
            Self::Stable
        }
    }

    /// Returns the methods to include.
    ///
    /// Only methods can be omitted. Notifications cannot: the reference lists them all in its
    /// stable output too, and a client that did not opt in never receives the experimental ones.
    pub(super) fn methods(self) -> impl Iterator<Item = &'static MethodRow> {
        METHODS
            .iter()
            .filter(move |row| self != Self::Stable || row.stability == Stability::Stable)
    }
}

/// Schemas by type name.
#[derive(Debug)]
pub(super) struct Catalog {
    types: BTreeMap<String, Value>,
}

impl Catalog {
    /// Collects the schemas of all types, as the server reads or as it writes them. The two differ
    /// only in which members are required.
    pub(super) fn new(contract: Contract, view: View) -> Self {
        let mut settings = SchemaSettings::draft07();
        settings.contract = contract;
        let mut generator = settings.into_generator();
        generator.subschema_for::<RequestId>();
        let methods = METHODS.iter().map(|row| row.shapes);
        let notifications = NOTIFICATIONS.iter().map(|row| row.shapes);
        let server_requests = SERVER_REQUESTS.iter().map(|row| row.shapes);
        for shapes in methods.chain(notifications).chain(server_requests) {
            (shapes.describe)(&mut generator);
        }
        let mut types: BTreeMap<_, _> = generator.take_definitions(true).into_iter().collect();
        for schema in types.values_mut() {
            match view {
                View::Stable => remove_marked(schema),
                View::Experimental => remove_marks(schema),
                View::Marked => {}
            }
        }
        types.extend(envelope::types(view));
        Self { types }
    }

    /// Returns the schema of a type that the tables name or refer to.
    pub(super) fn schema(&self, name: &str) -> &Value {
        &self.types[name]
    }

    /// Returns the types that the given types refer to, directly or indirectly. A given type is
    /// included only if a reference leads back to it.
    pub(super) fn reachable<'a>(
        &self,
        from: impl IntoIterator<Item = &'a str>,
    ) -> BTreeSet<String> {
        let mut reachable = BTreeSet::new();
        let mut open: Vec<String> = Vec::new();
        for name in from {
            references(self.schema(name), &mut |it| open.push(it.to_owned()));
        }
        while let Some(name) = open.pop() {
            if reachable.insert(name.clone()) {
                references(self.schema(&name), &mut |it| open.push(it.to_owned()));
            }
        }
        reachable
    }

    /// Returns the given types and all types they refer to.
    pub(super) fn closure(&self, of: &BTreeSet<&str>) -> BTreeSet<String> {
        let mut names = self.reachable(of.iter().copied());
        names.extend(of.iter().map(|name| (*name).to_owned()));
        names
    }
}

/// The catalog for authors of clients: each type as described by the side that sends it.
///
/// Types that the server sends are described as the server writes them, so a member that is always
/// written is required. Types that only clients send are described as the server reads them, so a
/// member that may be omitted is optional. A type that both sides send counts as sent by the
/// server: a client that writes all its members is understood too.
#[derive(Debug)]
pub(super) struct Types {
    read: Catalog,
    written: Catalog,
    from_server: BTreeSet<String>,
}

impl Types {
    pub(super) fn new(view: View) -> Self {
        let written = Catalog::new(Contract::Serialize, view);
        let mut server: BTreeSet<&str> = view.methods().map(|row| row.result).collect();
        server.extend(NOTIFICATIONS.iter().map(|row| row.params));
        server.extend(SERVER_REQUESTS.iter().map(|row| row.params));
        server.extend([envelope::SERVER_REQUEST, envelope::SERVER_NOTIFICATION]);
        Self {
            from_server: written.closure(&server),
            read: Catalog::new(Contract::Deserialize, view),
            written,
        }
    }

    pub(super) fn schema(&self, name: &str) -> &Value {
        if self.from_server.contains(name) {
            self.written.schema(name)
        } else {
            self.read.schema(name)
        }
    }

    pub(super) fn closure(&self, of: &BTreeSet<&str>) -> BTreeSet<String> {
        self.read.closure(of)
    }

    pub(super) fn reachable<'a>(
        &self,
        from: impl IntoIterator<Item = &'a str>,
    ) -> BTreeSet<String> {
        self.read.reachable(from)
    }
}

/// Returns the name of the type that this schema refers to.
pub(super) fn reference(schema: &Map<String, Value>) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix(REFERENCE)
}

/// Calls the callback with every type name below `schema`.
pub(super) fn references(schema: &Value, visit: &mut impl FnMut(&str)) {
    match schema {
        Value::Object(object) => {
            if let Some(name) = reference(object) {
                visit(name);
            }
            object.values().for_each(|it| references(it, visit));
        }
        Value::Array(array) => array.iter().for_each(|it| references(it, visit)),
        _ => {}
    }
}

/// Returns the members of an object in the order of the Rust type, except that the tag of a union
/// variant comes first.
pub(super) fn members(object: &Map<String, Value>) -> Vec<(&str, &Value)> {
    let Some(Value::Object(properties)) = object.get("properties") else {
        return Vec::new();
    };
    let mut members: Vec<_> = properties
        .iter()
        .map(|(name, it)| (name.as_str(), it))
        .collect();
    members.sort_by_key(|(_, member)| tag(member).is_none());
    members
}

/// Returns the only possible value of a member, if there is exactly one.
pub(super) fn tag(member: &Value) -> Option<&str> {
    match member.get("enum")?.as_array()?.as_slice() {
        [only] => only.as_str(),
        _ => None,
    }
}

/// Returns the values of a keyword that takes a list; empty if it is absent.
pub(super) fn list<'a>(schema: &'a Map<String, Value>, keyword: &str) -> &'a [Value] {
    match schema.get(keyword) {
        Some(Value::Array(values)) => values,
        _ => &[],
    }
}

/// Returns the description of a schema.
pub(super) fn description(schema: &Value) -> Option<&str> {
    schema.get("description").and_then(Value::as_str)
}

/// Returns whether the `required` list of the object names the member.
pub(super) fn is_required(object: &Map<String, Value>, member: &str) -> bool {
    list(object, "required").iter().any(|name| name == member)
}

pub(super) fn is_marked(schema: &Value) -> bool {
    schema.get(MARK) == Some(&Value::Bool(true))
}

fn remove_marked(schema: &mut Value) {
    if let Some(object) = schema.as_object_mut() {
        let mut removed = Vec::new();
        if let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) {
            properties.retain(|name, member| {
                let keep = !is_marked(member);
                if !keep {
                    removed.push(name.clone());
                }
                keep
            });
        }
        if let Some(required) = object.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|name| !removed.iter().any(|it| name == it));
        }
    }
    each_below(schema, remove_marked);
}

fn remove_marks(schema: &mut Value) {
    if let Some(object) = schema.as_object_mut() {
        object.remove(MARK);
    }
    each_below(schema, remove_marks);
}

fn each_below(schema: &mut Value, change: fn(&mut Value)) {
    match schema {
        Value::Object(object) => object.values_mut().for_each(change),
        Value::Array(array) => array.iter_mut().for_each(change),
        _ => {}
    }
}
