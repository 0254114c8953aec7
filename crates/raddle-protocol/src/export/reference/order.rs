//! Order of the params on a page: required and common ones first, and those without effect last.

/// Params that most clients send, in the order of a page. They follow the required ones.
const COMMON: &[&str] = &[
    "cwd",
    "model",
    "modelProvider",
    "effort",
    "approvalPolicy",
    "sandbox",
    "sandboxPolicy",
    "permissions",
    "developerInstructions",
    "config",
    "outputSchema",
    "ephemeral",
    "afterSeq",
    "excludeTurns",
    "clientRequestId",
    "cursor",
    "limit",
];

/// Params that clients of Codex send, and that the server accepts and ignores, by type. No other
/// crate reads them.
const IGNORED: &[(&str, &[&str])] = &[
    ("ConfigBatchWriteParams", &["reloadUserConfig"]),
    ("ModelListParams", &["includeHidden"]),
    ("SkillsListParams", &["forceReload"]),
    ("ThreadListParams", &["useStateDbOnly"]),
    (
        "ThreadSettingsUpdateParams",
        &["disabledPluginIds", "multiAgentMode"],
    ),
    (
        "ThreadStartParams",
        &[
            "allowProviderModelFallback",
            "daybreakEnabled",
            "experimentalRawEvents",
            "mockExperimentalField",
            "multiAgentMode",
            "projectId",
            "selectedCapabilityRoots",
            "serviceName",
            "sessionStartSource",
        ],
    ),
    (
        "TurnStartParams",
        &[
            "additionalContext",
            "cyberAccessProgram",
            "disabledPluginIds",
            "multiAgentMode",
            "parentTurnId",
            "responsesapiClientMetadata",
            "responsesapiClientMetadataPatch",
            "serviceTierForTurn",
            "toolOutput",
            "turnTrigger",
        ],
    ),
    (
        "TurnSteerParams",
        &[
            "additionalContext",
            "responsesapiClientMetadata",
            "responsesapiClientMetadataPatch",
        ],
    ),
];

/// Returns the params of this type that the server ignores.
pub(super) fn ignored(type_name: &str) -> &'static [&'static str] {
    let found = IGNORED.iter().find(|(name, _)| *name == type_name);
    found.map_or(&[], |(_, members)| *members)
}

/// Returns the position of a param among those that are neither required nor ignored.
pub(super) fn position(member: &str) -> usize {
    let found = COMMON.iter().position(|name| *name == member);
    found.unwrap_or(COMMON.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::catalog::{Types, View, members};

    #[test]
    fn every_listed_param_exists() {
        let types = Types::new(View::Marked);
        for (name, ignored) in IGNORED {
            let schema = types.schema(name).as_object().expect("an object");
            let members = members(schema);
            for param in *ignored {
                assert!(
                    members.iter().any(|(name, _)| name == param),
                    "{name} has no {param}"
                );
            }
        }
    }
}
