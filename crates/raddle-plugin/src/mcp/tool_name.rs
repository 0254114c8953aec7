//! Names of MCP tools, as the model knows them.

use crate::vendor_name::{accepted, digested};

/// Prefix of the names of all MCP tools. No built-in tool begins with it.
pub(crate) const PREFIX: &str = "mcp__";

/// Longest name of a plugin's server that has no digest. It leaves room for names of tools.
const SERVER_NAME_BYTES_MAX: usize = 40;

/// Returns the model's name for a tool: `mcp__SERVER__TOOL`. A name that vendors do not accept is
/// shortened or cleaned, and then ends with a digest, so that two tools never share a name.
pub(crate) fn model_name(server: &str, tool: &str) -> String {
    let plain = format!("{PREFIX}{server}__{tool}");
    // Only the last `__` separates server and tool, so no tool has the name of another server's.
    match tool.starts_with('_') || tool.contains("__") {
        true => digested(&plain),
        false => accepted(plain),
    }
}

/// Returns the name of a plugin's server: `ID_NAME`, with `_` for the dots of the id. The name that
/// the plugin gives it has no `_`, so the last `_` separates the two. A name that would not be unique
/// or is too long ends with a digest.
pub(crate) fn plugin_server_name(id: &str, name: &str) -> String {
    let exact = format!("{id}_{name}");
    // The ids `a.b_c` and `a_b.c` would have the same names.
    match id.contains('_') || exact.len() > SERVER_NAME_BYTES_MAX {
        true => digested(&exact),
        false => exact.replace('.', "_"),
    }
}

/// Returns the name of a server's folder. The server's own name may contain slashes.
pub(crate) fn folder_name(server: &str) -> String {
    accepted(server.to_owned())
}

/// Returns the name that rules use for a tool: `SERVER.TOOL`. The name of a server with a dot is
/// quoted, so that the first dot outside of quotes separates it from the tool.
pub(crate) fn rule_name(server: &str, tool: &str) -> String {
    match server.contains(['.', '"']) {
        true => format!("{server:?}.{tool}"),
        false => plain_rule_name(server, tool),
    }
}

/// Returns all names by which a rule can restrain a tool.
pub(crate) fn restraining_names(server: &str, tool: &str) -> Vec<String> {
    let mut names = vec![
        model_name(server, tool),
        rule_name(server, tool),
        plain_rule_name(server, tool),
    ];
    names.dedup();
    names
}

/// Returns the name without quotes. It may also be that of a tool of another server, so no rule
/// allows a tool by it.
fn plain_rule_name(server: &str, tool: &str) -> String {
    format!("{server}.{tool}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor_name::NAME_BYTES_MAX;

    #[test]
    fn rule_names_of_two_tools_differ() {
        assert_eq!(rule_name("files", "read.file"), "files.read.file");
        assert_eq!(rule_name("git.hub", "x"), r#""git.hub".x"#);
        assert_ne!(rule_name("git.hub", "x"), rule_name("git", "hub.x"));
        assert_ne!(rule_name("\"a", "b\".c"), rule_name("a\".b", "c"));
        let names = ["mcp__git_hub__x_", r#""git.hub".x"#, "git.hub.x"];
        for (name, expected) in restraining_names("git.hub", "x").iter().zip(names) {
            assert!(name.starts_with(expected), "{name}");
        }
        assert_eq!(restraining_names("git", "x"), ["mcp__git__x", "git.x"]);
    }

    #[test]
    fn names_of_two_plugins_servers_differ() {
        assert_eq!(plugin_server_name("org.a", "files"), "org_a_files");
        let long = "x".repeat(60);
        let names = [
            plugin_server_name("org.a", "b"),
            plugin_server_name("org.a.b", "c"),
            plugin_server_name("org.a-b", "c"),
            plugin_server_name("org.a_b", "c"),
            plugin_server_name("org_a.b", "c"),
            plugin_server_name("org.a", &long),
            plugin_server_name(&format!("org.{long}"), "a"),
        ];
        for (at, name) in names.iter().enumerate() {
            assert!(name.len() <= NAME_BYTES_MAX, "{name}");
            assert!(!names[at + 1..].contains(name), "{name}");
        }
    }

    #[test]
    fn names_are_accepted_by_vendors_and_differ() {
        assert_eq!(model_name("files", "read_file"), "mcp__files__read_file");
        let dotted = model_name("files", "read.file");
        assert!(dotted.starts_with("mcp__files__read_file_"), "{dotted}");
        assert_ne!(dotted, model_name("files", "read:file"));
        assert_ne!(model_name("files", "a__b"), model_name("files__a", "b"));
        assert_ne!(model_name("files", "_b"), model_name("files_", "b"));
        let long = "x".repeat(100);
        let (first, second) = (model_name("a", &long), model_name("a", &format!("{long}y")));
        assert_ne!(first, second);
        for name in [
            dotted,
            first,
            second,
            model_name("a", ""),
            model_name("a", "ä\u{202e}\n"),
        ] {
            assert!(name.len() <= NAME_BYTES_MAX, "{name}");
            let is_accepted = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'-');
            assert!(name.bytes().all(is_accepted), "{name}");
        }
    }
}
