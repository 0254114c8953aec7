//! Which requests may be sent again when nobody knows whether they were done.

/// Requests that only look, or that come to the same however often they are made.
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

/// Whether a request of this name changes nothing by being made twice.
pub(crate) fn is_read_only(method: &str) -> bool {
    READ_ONLY.contains(&method)
}

#[cfg(test)]
mod tests {
    use raddle_protocol::METHODS;

    use super::*;

    #[test]
    fn every_look_is_a_method() {
        for look in READ_ONLY {
            assert!(METHODS.iter().any(|row| row.name == *look), "{look}");
        }
        assert!(!is_read_only("turn/start") && !is_read_only("fs/writeFile"));
    }
}
