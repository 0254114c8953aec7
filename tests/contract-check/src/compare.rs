//! Comparison of a sent value with its copy. It is strict, except where the wire allows several
//! spellings of one value: an optional member can be absent, null, or its default.

use std::fmt;

use serde_json::Value;

use crate::generate::{AbsentValue, Instance};

#[derive(Debug, PartialEq)]
pub struct Difference {
    pub pointer: String,
    pub kind: DifferenceKind,
}

#[derive(Debug, PartialEq)]
pub enum DifferenceKind {
    /// The member was sent, but is missing in the copy.
    Lost,
    /// The member was not sent, but is in the copy with a value other than its default.
    Invented(Value),
    /// The copy has a different value.
    Changed { sent: Value, back: Value },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            DifferenceKind::Lost => write!(f, "{} was lost", self.pointer),
            DifferenceKind::Invented(back) => {
                write!(f, "{} was not sent and came back as {back}", self.pointer)
            }
            DifferenceKind::Changed { sent, back } => {
                write!(
                    f,
                    "{} was sent as {sent} and came back as {back}",
                    self.pointer
                )
            }
        }
    }
}

/// Returns the first difference between an instance and its copy, if there is one.
pub fn difference(sent: &Instance, back: &Value) -> Option<Difference> {
    compare(sent, &sent.value, back, &mut String::new())
}

fn compare(
    instance: &Instance,
    sent: &Value,
    back: &Value,
    pointer: &mut String,
) -> Option<Difference> {
    let differ = |what| {
        Some(Difference {
            pointer: pointer.clone(),
            kind: what,
        })
    };
    match (sent, back) {
        (Value::Object(members), Value::Object(copies)) => {
            for (name, member) in members {
                let difference = match copies.get(name) {
                    Some(copy) => below(pointer, name, |at| compare(instance, member, copy, at)),
                    None => below(pointer, name, |at| lost(instance, member, at)),
                };
                if difference.is_some() {
                    return difference;
                }
            }
            let new = copies
                .iter()
                .filter(|(name, _)| !members.contains_key(*name));
            for (name, copy) in new {
                let difference = below(pointer, name, |at| invented(instance, copy, at));
                if difference.is_some() {
                    return difference;
                }
            }
            None
        }
        (Value::Array(entries), Value::Array(copies)) if entries.len() == copies.len() => {
            for (index, (entry, copy)) in entries.iter().zip(copies).enumerate() {
                let difference = below(pointer, &index.to_string(), |at| {
                    compare(instance, entry, copy, at)
                });
                if difference.is_some() {
                    return difference;
                }
            }
            None
        }
        (Value::Number(one), Value::Number(other)) if same_number(one, other) => None,
        (Value::Null, back) if instance.unstated.contains_key(pointer.as_str()) => {
            invented(instance, back, pointer)
        }
        (sent, back) if sent == back => None,
        (sent, back) => differ(DifferenceKind::Changed {
            sent: sent.clone(),
            back: back.clone(),
        }),
    }
}

fn lost(instance: &Instance, member: &Value, pointer: &str) -> Option<Difference> {
    if member.is_null() && instance.unstated.contains_key(pointer) {
        return None;
    }
    Some(Difference {
        pointer: pointer.to_owned(),
        kind: DifferenceKind::Lost,
    })
}

fn invented(instance: &Instance, copy: &Value, pointer: &str) -> Option<Difference> {
    let is_default = match instance.unstated.get(pointer) {
        Some(_) if copy.is_null() => true,
        Some(AbsentValue::Default(default)) => copy == default,
        Some(AbsentValue::Nothing) => {
            matches!(copy, Value::Bool(false)) || copy.as_array().is_some_and(Vec::is_empty)
        }
        Some(AbsentValue::Null) | None => false,
    };
    if is_default {
        return None;
    }
    Some(Difference {
        pointer: pointer.to_owned(),
        kind: DifferenceKind::Invented(copy.clone()),
    })
}

fn same_number(one: &serde_json::Number, other: &serde_json::Number) -> bool {
    // Compares whole numbers exactly: as floats, large neighbouring numbers would be equal.
    let whole = |number: &serde_json::Number| {
        let signed = number.as_i64().map(i128::from);
        signed.or_else(|| number.as_u64().map(i128::from))
    };
    match (whole(one), whole(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one.as_f64() == other.as_f64(),
    }
}

fn below<T>(pointer: &mut String, step: &str, then: impl FnOnce(&mut String) -> T) -> T {
    let length = pointer.len();
    pointer.push('/');
    pointer.push_str(step);
    let result = then(pointer);
    pointer.truncate(length);
    result
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sent(value: Value, unstated: &[(&str, AbsentValue)]) -> Instance {
        let unstated = unstated
            .iter()
            .map(|(pointer, it)| ((*pointer).to_owned(), it.clone()));
        Instance {
            value,
            unstated: unstated.collect(),
            open: false,
            is_added: false,
        }
    }

    #[test]
    fn a_lost_member_is_reported() {
        let sent = sent(json!({ "a": { "b": 1 }, "c": 2 }), &[]);
        let result = difference(&sent, &json!({ "a": {}, "c": 2 })).expect("a difference");
        assert_eq!(result.to_string(), "/a/b was lost");
    }

    #[test]
    fn a_changed_value_is_reported() {
        let sent = sent(json!({ "a": [1, 2] }), &[]);
        assert!(difference(&sent, &json!({ "a": [1, 3] })).is_some());
        assert!(difference(&sent, &json!({ "a": [1] })).is_some());
        assert!(difference(&sent, &json!({ "a": [1.0, 2] })).is_none());
    }

    #[test]
    fn absent_member_may_become_null_or_its_default_only() {
        let unstated = [
            ("/a", AbsentValue::Default(json!("agent"))),
            ("/b", AbsentValue::Nothing),
            ("/c", AbsentValue::Null),
        ];
        let sent = sent(json!({}), &unstated);
        assert!(difference(&sent, &json!({ "a": "agent", "b": [] })).is_none());
        assert!(difference(&sent, &json!({ "a": null, "b": false, "c": null })).is_none());
        assert!(difference(&sent, &json!({ "a": "user" })).is_some());
        assert!(difference(&sent, &json!({ "a": false })).is_some());
        assert!(difference(&sent, &json!({ "b": "text" })).is_some());
        assert!(difference(&sent, &json!({ "c": false })).is_some());
        assert!(difference(&sent, &json!({ "z": null })).is_some());
    }

    #[test]
    fn nulls_are_content_where_members_are_required() {
        let sent = sent(
            json!({ "env": { "A": null }, "cwd": null }),
            &[("/cwd", AbsentValue::Null)],
        );
        assert!(difference(&sent, &json!({ "env": { "A": null } })).is_none());
        let result = difference(&sent, &json!({ "env": {} })).expect("a difference");
        assert_eq!(result.kind, DifferenceKind::Lost);
    }

    #[test]
    fn large_numbers_are_distinguished() {
        let sent = sent(json!(18_446_744_073_709_551_615_u64), &[]);
        assert!(difference(&sent, &json!(18_446_744_073_709_551_614_u64)).is_some());
    }
}
