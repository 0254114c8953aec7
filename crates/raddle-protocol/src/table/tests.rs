//! Attributes of the methods, as data. A method that gains or loses one changes a list here.

use super::ServedBy;
use crate::{METHODS, MethodRow};

/// Requests that an observer may send.
const READS: &[&str] = &[
    "account/rateLimits/read",
    "account/read",
    "app/list",
    "collaborationMode/list",
    "config/read",
    "configRequirements/read",
    "experimentalFeature/list",
    "fs/getMetadata",
    "fs/readDirectory",
    "fs/readFile",
    "fs/unwatch",
    "fs/watch",
    "fuzzyFileSearch",
    "fuzzyFileSearch/sessionStart",
    "fuzzyFileSearch/sessionStop",
    "fuzzyFileSearch/sessionUpdate",
    "hooks/list",
    "initialize",
    "mcpServerStatus/list",
    "model/list",
    "modelProvider/capabilities/read",
    "permissionProfile/list",
    "plugin/installed",
    "plugin/list",
    "plugin/read",
    "skills/list",
    "thread/backgroundTerminals/list",
    "thread/checkpoint/list",
    "thread/checkpoint/preview",
    "thread/diff/read",
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
    "thread/workspace/read",
    "threadSection/list",
    "turn/diff/read",
];

/// Requests that may be sent again without an idempotency key.
const REPEATABLE: &[&str] = &[
    "account/rateLimits/read",
    "account/read",
    "app/list",
    "collaborationMode/list",
    "config/read",
    "configRequirements/read",
    "experimentalFeature/list",
    "fs/getMetadata",
    "fs/readDirectory",
    "fs/readFile",
    "fuzzyFileSearch",
    "hooks/list",
    "mcpServer/resource/read",
    "mcpServerStatus/list",
    "model/list",
    "modelProvider/capabilities/read",
    "permissionProfile/list",
    "plugin/installed",
    "plugin/list",
    "plugin/read",
    "server/diagnostics",
    "skills/list",
    "thread/backgroundTerminals/list",
    "thread/checkpoint/list",
    "thread/checkpoint/preview",
    "thread/diff/read",
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
    "thread/workspace/read",
    "threadSection/list",
    "turn/diff/read",
];

/// Requests about a thread that the owner of the thread need not serve.
const SERVED_BY: &[(&str, ServedBy)] = &[
    ("thread/backgroundTerminals/clean", ServedBy::Subscription),
    ("thread/backgroundTerminals/list", ServedBy::Subscription),
    (
        "thread/backgroundTerminals/terminate",
        ServedBy::Subscription,
    ),
    ("thread/fork", ServedBy::Creator),
    ("thread/goal/get", ServedBy::AnyNode),
    ("thread/items/list", ServedBy::AnyNode),
    ("thread/items/read", ServedBy::AnyNode),
    ("thread/queue/list", ServedBy::AnyNode),
    ("thread/read", ServedBy::AnyNode),
    ("thread/start", ServedBy::Creator),
    ("thread/turns/list", ServedBy::AnyNode),
    ("thread/unsubscribe", ServedBy::Subscription),
    ("turn/settings/update", ServedBy::AnyNode),
    ("turn/start", ServedBy::Loaded),
];

/// Returns the names of some methods, sorted.
fn names(is_wanted: impl Fn(&MethodRow) -> bool) -> Vec<&'static str> {
    let rows = METHODS.iter().filter(|row| is_wanted(row));
    let mut names: Vec<&str> = rows.map(|row| row.name).collect();
    names.sort_unstable();
    names
}

#[test]
fn only_listed_methods_are_for_observers() {
    assert_eq!(names(|row| row.reads), READS);
}

#[test]
fn only_listed_methods_are_repeated_without_a_key() {
    assert_eq!(names(|row| row.repeatable), REPEATABLE);
}

#[test]
fn a_method_with_a_key_changes_something() {
    let unneeded = names(|row| row.has_idempotency_key && (row.reads || row.repeatable));
    assert_eq!(unneeded, Vec::<&str>::new());
}

#[test]
fn the_owner_of_a_thread_serves_all_but_listed_methods() {
    for row in METHODS {
        let listed = SERVED_BY.iter().find(|(name, _)| *name == row.name);
        let expected = match listed {
            Some((_, served_by)) => *served_by,
            None if row.lane.starts_with("thread") => ServedBy::Owner,
            None => ServedBy::AnyNode,
        };
        assert_eq!(row.served_by, expected, "{}", row.name);
    }
    for (name, _) in SERVED_BY {
        assert!(METHODS.iter().any(|row| row.name == *name), "{name}");
    }
}
