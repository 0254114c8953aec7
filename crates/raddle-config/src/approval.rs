//! `approval_policy`: one word, or a flag for each kind of question whether to ask the user.

use raddle_protocol::AskForApproval;
use serde_json::{Value, json};

use crate::layers;

/// The key of the approval policy.
pub const APPROVAL_POLICY: &str = "approval_policy";

/// A value that configurations for Codex may still have. The server cannot predict failures, so the
/// agent decides when to ask.
const ON_FAILURE: &str = "on-failure";

/// The expected value, for error messages.
pub(crate) const EXPECTED_VALUE: &str = "one of untrusted, on-request, never, or a table `granular` with true or false \
    for sandbox_approval, rules and mcp_elicitations, and optionally for request_permissions and skill_approval";

/// Parses a configured value; none if it is invalid.
pub(crate) fn read(value: &toml::Value) -> Option<AskForApproval> {
    let json = layers::to_json(value);
    if json == ON_FAILURE {
        return Some(AskForApproval::OnRequest);
    }
    let policy: AskForApproval = serde_json::from_value(json.clone()).ok()?;
    match &policy {
        AskForApproval::Unrecognized(_) => None,
        // An unknown kind is a mistake: the intended kind would be missing.
        AskForApproval::Granular(kinds) => {
            let known = serde_json::to_value(kinds).ok()?;
            let mut kinds = json["granular"].as_object()?.keys();
            kinds.all(|it| known.get(it).is_some()).then_some(policy)
        }
        _ => Some(policy),
    }
}

/// Returns the JSON schema of the value, for editors.
pub(crate) fn schema() -> Value {
    let names = AskForApproval::KNOWN.iter().filter(|it| **it != "granular");
    let kinds = [
        "sandbox_approval",
        "rules",
        "mcp_elicitations",
        "request_permissions",
        "skill_approval",
    ];
    let members = kinds.map(|it| (it.to_owned(), json!({ "type": "boolean" })));
    let granular = json!({
        "type": "object",
        "properties": Value::Object(members.into_iter().collect()),
        "required": kinds[..3],
        "additionalProperties": false,
    });
    json!({ "anyOf": [
        { "enum": names.collect::<Vec<_>>() },
        {
            "type": "object",
            "properties": { "granular": granular },
            "required": ["granular"],
            "additionalProperties": false,
        },
    ] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_words_and_kinds_are_accepted() {
        let kinds = "sandbox_approval = true, rules = false, mcp_elicitations = false";
        for (text, is_read) in [
            ("'untrusted'".to_owned(), true),
            ("'on-request'".to_owned(), true),
            ("'never'".to_owned(), true),
            (format!("{{ granular = {{ {kinds} }} }}"), true),
            (
                format!("{{ granular = {{ {kinds}, skill_approval = true }} }}"),
                true,
            ),
            ("'on-failure'".to_owned(), true),
            ("'sometimes'".to_owned(), false),
            ("'granular'".to_owned(), false),
            ("'Never'".to_owned(), false),
            ("''".to_owned(), false),
            ("true".to_owned(), false),
            ("{}".to_owned(), false),
            ("{ never = true }".to_owned(), false),
            (format!("{{ {kinds} }}"), false),
            ("{ granular = { rules = true } }".to_owned(), false),
            (
                format!("{{ granular = {{ {kinds}, skills = true }} }}"),
                false,
            ),
            (
                format!("{{ granular = {{ {kinds} }}, never = true }}"),
                false,
            ),
        ] {
            let table: toml::Table = format!("x = {text}").parse().expect("TOML");
            let policy = read(&table["x"]);
            assert_eq!(policy.is_some(), is_read, "{text}: {policy:?}");
        }
    }
}
