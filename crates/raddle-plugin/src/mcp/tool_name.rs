//! Names of MCP tools, as the model knows them.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// Prefix of the names of all MCP tools. No built-in tool begins with it.
pub(crate) const PREFIX: &str = "mcp__";

/// Longest name that vendors accept.
const NAME_BYTES_MAX: usize = 64;

/// Hexadecimal digits of the digest at the end of a name that was changed.
const DIGEST_DIGITS: usize = 8;

/// Returns the model's name for a tool: `mcp__SERVER__TOOL`. A name that vendors do not accept is
/// shortened or cleaned, and then ends with a digest, so that two tools never share a name.
pub(crate) fn model_name(server: &str, tool: &str) -> String {
    accepted(format!("{PREFIX}{server}__{tool}"))
}

/// Returns the name of a server's folder. The server's own name may contain slashes.
pub(crate) fn folder_name(server: &str) -> String {
    accepted(server.to_owned())
}

/// Returns a text if it consists of letters, digits, `_` and `-` and is not too long. Otherwise
/// returns it shortened and cleaned, with a digest at its end.
fn accepted(plain: String) -> String {
    let is_accepted = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-');
    if plain.len() <= NAME_BYTES_MAX && plain.chars().all(is_accepted) {
        return plain;
    }
    let digest = HEXLOWER.encode(&Sha256::digest(plain.as_bytes()));
    let clean: String = plain
        .chars()
        .map(|it| if is_accepted(it) { it } else { '_' })
        .take(NAME_BYTES_MAX - DIGEST_DIGITS - 1)
        .collect();
    format!("{clean}_{}", &digest[..DIGEST_DIGITS])
}

/// Returns the name that rules use for a tool: `SERVER.TOOL`.
pub(crate) fn rule_name(server: &str, tool: &str) -> String {
    format!("{server}.{tool}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_accepted_by_vendors_and_differ() {
        assert_eq!(model_name("files", "read_file"), "mcp__files__read_file");
        let dotted = model_name("files", "read.file");
        assert!(dotted.starts_with("mcp__files__read_file_"), "{dotted}");
        assert_ne!(dotted, model_name("files", "read:file"));
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
