//! Questions to the user, as forms of elicitations.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// A question to the user.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    /// Text above the fields.
    pub message: String,
    /// Fields; all of them must be filled in.
    pub fields: Vec<FormField>,
}

/// A field of a form.
#[derive(Clone, Debug, PartialEq)]
pub struct FormField {
    /// Name of its value in the answer.
    pub name: String,
    /// Label for the user.
    pub title: String,
    /// Possible values; free text without any.
    pub choices: Vec<FormChoice>,
}

/// A possible value of a field.
#[derive(Clone, Debug, PartialEq)]
pub struct FormChoice {
    /// The value in the answer.
    pub value: String,
    /// Label for the user.
    pub title: String,
}

/// The user's answer to a form.
#[derive(Clone, Debug, PartialEq)]
pub enum FormAnswer {
    /// The values of the fields, by name. Fields may be missing, and values may be unknown.
    Submitted(BTreeMap<String, String>),
    /// The user refused.
    Declined,
    /// The user closed the form without a choice.
    Cancelled,
    /// The client cannot show forms, or failed to.
    Unavailable,
}

impl Form {
    /// Returns the params of `elicitation/create`.
    pub(crate) fn params(&self) -> Value {
        let schema = |field: &FormField| (field.name.clone(), field.schema());
        let properties: Map<String, Value> = self.fields.iter().map(schema).collect();
        let required: Vec<&str> = self.fields.iter().map(|it| it.name.as_str()).collect();
        json!({
            "message": self.message,
            "requestedSchema": {
                "type": "object",
                "properties": properties,
                "required": required,
            },
        })
    }
}

impl FormField {
    fn schema(&self) -> Value {
        if self.choices.is_empty() {
            return json!({ "type": "string", "title": self.title });
        }
        let values: Vec<&str> = self.choices.iter().map(|it| it.value.as_str()).collect();
        let titles: Vec<&str> = self.choices.iter().map(|it| it.title.as_str()).collect();
        // `enumNames` is the form of titles that clients of every revision know.
        json!({ "type": "string", "title": self.title, "enum": values, "enumNames": titles })
    }
}

impl FormAnswer {
    /// Reads the result of `elicitation/create`.
    pub(crate) fn read(result: &Value) -> Self {
        match result["action"].as_str() {
            Some("accept") => Self::Submitted(texts(&result["content"])),
            Some("decline") => Self::Declined,
            Some("cancel") => Self::Cancelled,
            _ => Self::of_codex(result),
        }
    }

    /// Reads the answer of a client that was written for Codex: a decision without an action.
    fn of_codex(result: &Value) -> Self {
        let decision = match result["decision"].as_str() {
            Some("approved") => "accept",
            Some("approved_for_session") => "acceptForSession",
            Some("abort") => return Self::Cancelled,
            Some(_) => return Self::Declined,
            None => return Self::Unavailable,
        };
        Self::Submitted([("decision".to_owned(), decision.to_owned())].into())
    }
}

/// Returns the members that are strings.
fn texts(content: &Value) -> BTreeMap<String, String> {
    let members = content.as_object().into_iter().flatten();
    let text = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
    members.filter_map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn submitted(decision: &str) -> FormAnswer {
        FormAnswer::Submitted([("decision".to_owned(), decision.to_owned())].into())
    }

    #[test]
    fn answers_are_read() {
        for (result, expected) in [
            (
                json!({ "action": "accept", "content": { "decision": "accept", "n": 1 } }),
                submitted("accept"),
            ),
            (
                json!({ "action": "accept" }),
                FormAnswer::Submitted(BTreeMap::new()),
            ),
            (
                json!({ "action": "decline", "content": { "decision": "accept" } }),
                FormAnswer::Declined,
            ),
            (json!({ "action": "cancel" }), FormAnswer::Cancelled),
            (json!({ "action": "other" }), FormAnswer::Unavailable),
            (json!({}), FormAnswer::Unavailable),
            (json!("accept"), FormAnswer::Unavailable),
            (json!({ "decision": "approved" }), submitted("accept")),
            (json!({ "decision": "denied" }), FormAnswer::Declined),
            (json!({ "decision": "abort" }), FormAnswer::Cancelled),
        ] {
            assert_eq!(FormAnswer::read(&result), expected, "{result}");
        }
    }
}
