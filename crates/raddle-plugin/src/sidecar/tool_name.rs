//! Names of plugins' tools, as the model and rules know them.

use crate::vendor_name::{accepted, digested};

/// Prefix of the names of all tools of plugins. No built-in tool begins with it, and no MCP tool.
pub(super) const PREFIX: &str = "plugin__";

/// Returns the name of a tool: `plugin__ID__TOOL`, with `_` for the dots of the id. The name of a
/// tool never contains `__` and never begins with `_`, so the last `__` separates the two. A name
/// that would not be unique or is too long ends with a digest.
pub(super) fn model_name(id: &str, tool: &str) -> String {
    let exact = format!("{PREFIX}{id}__{tool}");
    // The ids `a.b_c` and `a_b.c` would have the same names.
    if id.contains('_') {
        return digested(&exact);
    }
    let plain = format!("{}{tool}", prefix_of(id));
    match accepted(plain.clone()) == plain {
        true => plain,
        false => digested(&exact),
    }
}

/// Returns the beginning of the names of a plugin's tools that have no digest.
pub(super) fn prefix_of(id: &str) -> String {
    format!("{PREFIX}{}__", id.replace('.', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_two_tools_differ() {
        assert_eq!(model_name("org.a", "b"), "plugin__org_a__b");
        assert_eq!(model_name("local.my-x", "b-c"), "plugin__local_my-x__b-c");
        let long = "x".repeat(80);
        let names = [
            model_name("a.b", "c"),
            model_name("a.b.c", "d"),
            model_name("a.b_c", "d"),
            model_name("a_b.c", "d"),
            model_name("a-b.c", "d"),
            model_name("a.b", &long),
            model_name("a.b", &format!("{long}y")),
            model_name(&format!("a.{long}"), "y"),
        ];
        for (at, name) in names.iter().enumerate() {
            assert!(name.len() <= 64 && name.starts_with(PREFIX), "{name}");
            assert!(!names[at + 1..].contains(name), "{name}");
        }
    }
}
