//! The hash of a hook: of its definition, and of the scripts that its command names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Hook;

/// Folders of the system's programs. Updates of the system change them, and only the administrator
/// can, so they are not part of a hash.
const SYSTEM_FOLDERS: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib64", "/nix/store"];

/// Limit: size of a script of a hook; beyond it, the hook does not run.
const SCRIPT_BYTES_MAX: u64 = 16 << 20;

/// Reason why a script cannot be hashed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ScriptError {
    #[error("{} cannot be read: {error}", path.display())]
    Read { path: PathBuf, error: io::Error },
    #[error("{} has more than {SCRIPT_BYTES_MAX} bytes", path.display())]
    TooLong { path: PathBuf },
}

/// Returns the hash of a hook.
pub(super) fn of(hook: &Hook) -> Result<String, ScriptError> {
    let mut files = BTreeMap::new();
    for path in scripts(&hook.command) {
        files.insert(path.display().to_string(), hash_of_file(&path)?);
    }
    // The members are in alphabetical order, so the text is the same in each build.
    let mut handler = json!({ "command": hook.command });
    if let Some(message) = &hook.status_message {
        handler["statusMessage"] = message.as_str().into();
    }
    handler["timeout"] = hook.timeout.as_secs().into();
    handler["type"] = "command".into();
    let mut identity = json!({ "event_name": hook.event.key() });
    if !files.is_empty() {
        identity["files"] = files
            .into_iter()
            .map(|(k, v)| (k, Value::from(v)))
            .collect();
    }
    identity["hooks"] = json!([handler]);
    if let Some(matcher) = &hook.matcher {
        identity["matcher"] = matcher.as_str().into();
    }
    Ok(format!("sha256:{}", hash(identity.to_string().as_bytes())))
}

fn hash(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}

fn hash_of_file(path: &Path) -> Result<String, ScriptError> {
    let read_error = |error| ScriptError::Read {
        path: path.to_owned(),
        error,
    };
    let metadata = fs::metadata(path).map_err(read_error)?;
    if metadata.len() > SCRIPT_BYTES_MAX {
        let path = path.to_owned();
        return Err(ScriptError::TooLong { path });
    }
    Ok(hash(&fs::read(path).map_err(read_error)?))
}

/// Returns the files that a command line names by absolute paths, except those of the system.
pub(super) fn scripts(command: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = words(command)
        .iter()
        .map(|word| PathBuf::from(expanded(word)))
        .filter(|path| path.is_absolute() && path.is_file())
        .filter(|path| !SYSTEM_FOLDERS.iter().any(|it| path.starts_with(it)))
        .collect();
    files.sort();
    files.dedup();
    files
}

/// Returns the program of a command line, if it is a path that depends on the working directory.
pub(super) fn relative_program(command: &str) -> Option<String> {
    let first = words(command).into_iter().next()?;
    let path = expanded(&first);
    let is_relative = path.contains('/') && !path.starts_with('/') && !path.starts_with('$');
    is_relative.then_some(first)
}

/// Replaces the home at the beginning of a word.
fn expanded(word: &str) -> String {
    let home = std::env::var("HOME").unwrap_or_default();
    for prefix in ["~/", "$HOME/", "${HOME}/"] {
        if let Some(rest) = word.strip_prefix(prefix) {
            return format!("{home}/{rest}");
        }
    }
    word.to_owned()
}

/// Splits a command line into words, as a shell does for plain text.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word) = (Vec::new(), String::new());
    let mut quote = None;
    let mut characters = command.chars();
    while let Some(it) = characters.next() {
        match (quote, it) {
            (Some(open), it) if it == open => quote = None,
            (None, '\'' | '"') => quote = Some(it),
            (None | Some('"'), '\\') => word.extend(characters.next()),
            (None, it) if it.is_whitespace() || "=;|&<>()`".contains(it) => {
                words.push(std::mem::take(&mut word));
            }
            (_, it) => word.push(it),
        }
    }
    words.push(word);
    words.retain(|it| !it.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_split_like_a_shell_does() {
        for (line, expected) in [
            ("/a/b c", &["/a/b", "c"][..]),
            ("'/a b/c' \"d e\" f\\ g", &["/a b/c", "d e", "f g"]),
            ("A=/x /y;/z|w>/v", &["A", "/x", "/y", "/z", "w", "/v"]),
            ("", &[]),
        ] {
            assert_eq!(words(line), expected, "{line}");
        }
    }

    #[test]
    fn a_program_relative_to_the_workspace_is_found() {
        for (line, expected) in [
            ("./check.sh", Some("./check.sh")),
            ("scripts/check.sh x", Some("scripts/check.sh")),
            ("/opt/check.sh ./x", None),
            ("~/check.sh", None),
            ("jq .", None),
        ] {
            assert_eq!(relative_program(line).as_deref(), expected, "{line}");
        }
    }
}
