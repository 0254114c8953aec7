//! Requests that are safe to retry when their outcome is unknown.

/// Read-only or naturally idempotent requests.
const READ_ONLY: &[&str] = &[
    "thread/resume",
    "thread/unsubscribe",
    "thread/list",
    "thread/loaded/list",
    "thread/read",
    "thread/turns/list",
    "thread/items/list",
    "thread/items/read",
    "thread/search",
    "thread/goal/get",
    "thread/queue/list",
    "thread/backgroundTerminals/list",
    "threadSection/list",
    "skills/list",
    "hooks/list",
    "fs/readFile",
    "fs/getMetadata",
    "fs/readDirectory",
    "model/list",
    "modelProvider/capabilities/read",
    "config/read",
    "configRequirements/read",
    "account/read",
    "fuzzyFileSearch",
    "server/diagnostics",
    "experimentalFeature/list",
    "permissionProfile/list",
    "collaborationMode/list",
    "mcpServerStatus/list",
    "mcpServer/resource/read",
];

/// Whether executing this method twice has no further effect.
pub(crate) fn is_read_only(method: &str) -> bool {
    READ_ONLY.contains(&method)
}

#[cfg(test)]
mod tests {
    use raddle_protocol::METHODS;

    use super::*;

    #[test]
    fn every_read_only_request_is_a_method() {
        for method in READ_ONLY {
            assert!(METHODS.iter().any(|row| row.name == *method), "{method}");
        }
        assert!(!is_read_only("turn/start") && !is_read_only("fs/writeFile"));
    }
}
