//! What an observer may do.

/// The methods that only look. A new one is for drivers until it stands here.
const LOOKS: &[&str] = &[
    "account/read",
    "config/read",
    "configRequirements/read",
    "fs/getMetadata",
    "fs/readDirectory",
    "fs/readFile",
    "fs/unwatch",
    "fs/watch",
    "fuzzyFileSearch",
    "initialize",
    "model/list",
    "permissionProfile/list",
    "skills/list",
    "thread/backgroundTerminals/list",
    "thread/goal/get",
    "thread/items/list",
    "thread/items/read",
    "thread/list",
    "thread/loaded/list",
    "thread/queue/list",
    "thread/read",
    "thread/resume",
    "thread/search",
    "thread/turns/list",
    "thread/unsubscribe",
];

/// Whether a method only looks, so that observers may use it.
pub(super) fn only_looks(method: &str) -> bool {
    LOOKS.binary_search(&method).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_a_method_and_found() {
        for name in LOOKS {
            let is_method = raddle_protocol::METHODS.iter().any(|it| it.name == *name);
            assert!(is_method && only_looks(name), "{name}");
        }
        assert!(!only_looks("turn/start"));
    }
}
