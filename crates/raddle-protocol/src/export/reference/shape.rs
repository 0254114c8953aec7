//! Types as Markdown: their description, and their members, values or variants.

use serde_json::{Map, Value};

use super::order;
use crate::export::catalog::{description, is_marked, is_required, list, members, reference, tag};

type Link<'a> = &'a dyn Fn(&str) -> String;

/// Describes a type; headings inside it start at `level`.
pub(super) fn describe(schema: &Value, level: usize, link: Link) -> String {
    let mut text = String::new();
    if let Some(description) = description(schema) {
        text += description;
        text += "\n\n";
    }
    let Value::Object(object) = schema else {
        return text + "Any JSON.\n";
    };
    let arms = [list(object, "oneOf"), list(object, "anyOf")].concat();
    let members = members(object);
    if !members.is_empty() {
        text += &member_table(object, &members, link);
    }
    if !arms.is_empty() {
        let beside = if members.is_empty() {
            "One"
        } else {
            "\nBesides these, one"
        };
        text += &format!("{beside} of the following.\n");
        text += &arms_text(&arms, level, link);
    }
    if members.is_empty() && arms.is_empty() {
        text += &match words(schema, link).as_str() {
            "object" => String::from("An object without members.\n"),
            words => format!("Is {words}.\n"),
        };
    }
    text
}

/// Describes the params of a request, with the `ignored` ones in a folded table.
pub(super) fn describe_params(schema: &Value, ignored: &[&str], link: Link) -> String {
    let Some(object) = schema.as_object() else {
        return describe(schema, 3, link);
    };
    let has_arms = object.contains_key("oneOf") || object.contains_key("anyOf");
    let mut members = members(object);
    if members.is_empty() || has_arms {
        return describe(schema, 3, link);
    }
    members.sort_by_key(|(name, member)| {
        let is_optional = !is_required(object, name);
        (is_optional, order::position(name), is_marked(member))
    });
    let is_ignored = |(name, _): &(&str, &Value)| ignored.contains(name);
    let (folded, shown): (Vec<_>, Vec<_>) = members.into_iter().partition(is_ignored);
    let mut text = description(schema).map_or_else(String::new, |doc| format!("{doc}\n\n"));
    text += &member_table(object, &shown, link);
    if !folded.is_empty() {
        let table = member_table(object, &folded, link);
        let summary = "Accepted from clients of Codex and ignored";
        text += "\n<details>\n";
        text += &format!("<summary>{summary}</summary>\n\n{table}\n</details>\n");
    }
    text
}

/// Formats the variants: those with members get a heading each, the others a list.
fn arms_text(arms: &[Value], level: usize, link: Link) -> String {
    let has_members = |arm: &&Value| arm.get("properties").is_some();
    let (large, small): (Vec<_>, Vec<_>) = arms.iter().partition(has_members);
    let mut text = String::new();
    if !small.is_empty() {
        text += "\n";
    }
    for arm in small {
        text += &format!("- {}", words(arm, link));
        text += &description(arm).map_or_else(String::new, |doc| format!(": {}", one_line(doc)));
        text += "\n";
    }
    for arm in large {
        let name = arm.as_object().map(arm_name).unwrap_or_default();
        text += &format!(
            "\n{} `{name}`\n\n{}",
            "#".repeat(level),
            describe(arm, level + 1, link)
        );
    }
    text
}

/// Returns the tag of this variant, or the name of its first member.
fn arm_name(arm: &Map<String, Value>) -> String {
    let members = members(arm);
    let tag = members.iter().find_map(|(_, member)| tag(member));
    let name = tag.or_else(|| members.first().map(|(name, _)| *name));
    name.unwrap_or_default().to_owned()
}

fn member_table(object: &Map<String, Value>, members: &[(&str, &Value)], link: Link) -> String {
    let mut text = String::from("| Member | Type | | Meaning |\n|---|---|---|---|\n");
    for (name, member) in members {
        let words = words(member, link);
        let notes = notes(member, is_required(object, name));
        let doc = description(member).map(one_line).unwrap_or_default();
        text += &format!(
            "| `{name}` | {words} | {notes} | {} |\n",
            doc.replace('|', "\\|")
        );
    }
    text
}

fn notes(member: &Value, required: bool) -> String {
    let mut notes = vec![String::from(if required { "required" } else { "optional" })];
    if is_nullable(member) {
        notes.push(String::from("may be null"));
    }
    match member.get("default") {
        None | Some(Value::Null) => {}
        Some(value) => notes.push(format!("default `{value}`")),
    }
    if is_marked(member) {
        notes.push(String::from("**experimental**"));
    }
    notes.join(", ")
}

/// Returns whether null is allowed. A schema without constraints allows it too, but that is not
/// reported.
fn is_nullable(schema: &Value) -> bool {
    let Some(object) = schema.as_object() else {
        return false;
    };
    list(object, "type").iter().any(|kind| kind == "null")
        || list(object, "anyOf").iter().any(is_null)
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "null")
}

/// Returns a short description of a type. It omits null, which the next column shows.
fn words(schema: &Value, link: Link) -> String {
    let Value::Object(object) = schema else {
        return String::from("any JSON");
    };
    if let Some(name) = reference(object) {
        return link(name);
    }
    let values = list(object, "enum");
    if !values.is_empty() {
        let values: Vec<_> = values.iter().map(|value| format!("`{value}`")).collect();
        return values.join(" or ");
    }
    let arms = [
        list(object, "allOf"),
        list(object, "oneOf"),
        list(object, "anyOf"),
    ]
    .concat();
    if !arms.is_empty() {
        let arms = arms.iter().filter(|arm| !is_null(arm));
        return arms
            .map(|arm| words(arm, link))
            .collect::<Vec<_>>()
            .join(" or ");
    }
    let one;
    let kinds = match object.get("type") {
        Some(Value::Array(kinds)) => kinds.as_slice(),
        Some(kind) => {
            one = [kind.clone()];
            &one
        }
        None => return String::from("any JSON"),
    };
    let kinds = kinds.iter().filter_map(Value::as_str);
    let named = kinds.filter(|kind| *kind != "null").map(|kind| match kind {
        "array" => format!("list of {}", inner(object, "items", link)),
        "object" if object.contains_key("additionalProperties") => {
            format!("map of {}", inner(object, "additionalProperties", link))
        }
        kind => kind.to_owned(),
    });
    named.collect::<Vec<_>>().join(" or ")
}

fn inner(object: &Map<String, Value>, keyword: &str, link: Link) -> String {
    match object.get(keyword) {
        Some(schema) => words(schema, link),
        None => String::from("any JSON"),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
