//! `approval_policy`: one word, or for each kind of question whether people are asked it.

use raddle_protocol::AskForApproval;
use serde_json::{Value, json};

use super::{EffectiveConfig, layers};
use crate::wire_error::WireError;

pub(crate) const KEY: &str = "approval_policy";

/// A word that configurations for Codex may still have. Nobody knows beforehand what will fail, so it is for the agent to
/// ask.
const ON_FAILURE: &str = "on-failure";

/// What must be in its place, for people.
pub(super) const EXPECTED_VALUE: &str = "one of untrusted, on-request, never, or a table `granular` that says true or false \
    for sandbox_approval, rules and mcp_elicitations, and if wanted for request_permissions and skill_approval";

/// What a configuration says of it; nothing if that is none that can be.
pub(super) fn read(value: &toml::Value) -> Option<AskForApproval> {
    let said = layers::to_json(value);
    if said == ON_FAILURE {
        return Some(AskForApproval::OnRequest);
    }
    let policy: AskForApproval = serde_json::from_value(said.clone()).ok()?;
    match &policy {
        AskForApproval::Unrecognized(_) => None,
        // A kind that nobody knows is a mistake, and would leave one unsaid that was meant.
        AskForApproval::Granular(kinds) => {
            let known = serde_json::to_value(kinds).ok()?;
            let mut kinds = said["granular"].as_object()?.keys();
            kinds.all(|it| known.get(it).is_some()).then_some(policy)
        }
        _ => Some(policy),
    }
}

/// What the configuration says of it, or why that cannot be.
pub(crate) fn of_config(said: &EffectiveConfig<'_>) -> Result<Option<AskForApproval>, WireError> {
    let Some(value) = said.value(KEY) else {
        return Ok(None);
    };
    let wrong = || said.refused(format!("`{KEY}` must be {EXPECTED_VALUE}"), &[KEY]);
    read(value).ok_or_else(wrong).map(Some)
}

/// What it must be, for editors.
pub(super) fn schema() -> Value {
    let words = AskForApproval::KNOWN.iter().filter(|it| **it != "granular");
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
        { "enum": words.collect::<Vec<_>>() },
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
    fn words_and_kinds_are_read_and_nothing_else() {
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
            let found = read(&table["x"]);
            assert_eq!(found.is_some(), is_read, "{text}: {found:?}");
        }
    }
}
