//! The methods that an observer may use.

/// The methods that only read. A new method is for drivers until it is listed here.
const READ_ONLY_METHODS: &[&str] = &[
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

/// Whether a method only reads, so that observers may use it.
pub(super) fn is_read_only(method: &str) -> bool {
    READ_ONLY_METHODS.binary_search(&method).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_only_methods_exist_and_are_sorted() {
        for name in READ_ONLY_METHODS {
            let is_method = raddle_protocol::METHODS.iter().any(|it| it.name == *name);
            assert!(is_method && is_read_only(name), "{name}");
        }
        assert!(!is_read_only("turn/start"));
    }
}
