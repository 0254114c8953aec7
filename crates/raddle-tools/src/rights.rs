//! `request_permissions`: the model asks for rights outside the sandbox.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use raddle_core::ports::{ToolIntent, ToolSpec};
use raddle_core::{ApprovalPolicy, Ask, AskPermissions, Grant, Settings, ToolCall};
use raddle_sandbox::{PROTECTED, Policy};
use serde::Deserialize;
use serde_json::json;

use crate::arguments;
use crate::command::{self, is_confined};
use crate::tool_call_error::ToolCallError;

pub(crate) const NAME: &str = "request_permissions";

/// Limit: folders that one call requests to write; beyond it, the call is rejected, and the model
/// is notified.
const PATHS_MAX: usize = 20;

#[derive(Deserialize)]
struct RequestPermissions {
    reason: Option<String>,
    permissions: Permissions,
}

#[derive(Deserialize)]
struct Permissions {
    network: Option<Network>,
    file_system: Option<FileSystem>,
}

#[derive(Deserialize)]
struct Network {
    enabled: Option<bool>,
}

#[derive(Deserialize)]
struct FileSystem {
    write: Option<Vec<String>>,
}

/// Whether the thread has a sandbox, and the user can be asked to widen it.
pub(crate) fn is_offered(settings: &Settings) -> bool {
    is_confined(settings) && settings.approval != ApprovalPolicy::Never
}

/// Specification of the tool for the model.
pub(crate) fn spec() -> ToolSpec {
    let paths = json!({
        "type": "array", "items": { "type": "string" },
        "description": "Absolute paths of folders that are there, to be written with all below them.",
    });
    ToolSpec {
        name: NAME.to_owned(),
        description: "Asks the user to widen the sandbox for the commands to come: to write at more paths, or to use \
                      the network. The answer says what was granted, which may be less. Ask for as little as you need."
            .to_owned(),
        freeform: None,
        schema: json!({
            "type": "object",
            "properties": {
                "reason": { "type": "string", "description": "What for, in a few words for the user." },
                "permissions": {
                    "type": "object",
                    "properties": {
                        "network": {
                            "type": "object", "properties": { "enabled": { "type": "boolean" } },
                            "additionalProperties": false,
                        },
                        "file_system": {
                            "type": "object", "properties": { "write": paths }, "additionalProperties": false,
                        },
                    },
                    "additionalProperties": false,
                },
            },
            "required": ["permissions"], "additionalProperties": false,
        }),
    }
}

/// Returns the intent of a call. It reads the disk, to show the user the real paths.
pub(crate) fn rights_intent(settings: &Settings, own: &[PathBuf], call: &ToolCall) -> ToolIntent {
    let it: RequestPermissions = match arguments::read(call) {
        Ok(it) => it,
        Err(why) => return ToolIntent::Refused(why.to_string()),
    };
    if !is_confined(settings) {
        return ToolIntent::Refused(
            "This thread has no sandbox, so there are no permissions to request. Run the command."
                .to_owned(),
        );
    }
    let named = it.permissions.file_system.and_then(|it| it.write);
    let named = named.unwrap_or_default();
    if named.len() > PATHS_MAX {
        return ToolIntent::Refused(format!(
            "At most {PATHS_MAX} paths can be asked for at once."
        ));
    }
    let paths = named.iter().map(|path| resolve(settings, own, path));
    let grant = Grant {
        write: match paths.collect::<Result<_, ToolCallError>>() {
            Ok(paths) => paths,
            Err(why) => return ToolIntent::Refused(why.to_string()),
        },
        network: it.permissions.network.and_then(|it| it.enabled) == Some(true),
        session: false,
    };
    if grant.is_empty() {
        return ToolIntent::Refused(
            "Nothing was asked for. Name paths to write, or the network; everything can be read without."
                .to_owned(),
        );
    }
    ToolIntent::Ask(Ask::Permissions(AskPermissions {
        cwd: settings.cwd.clone(),
        reason: it.reason.as_deref().map(crate::shell::display_line),
        permissions: grant.to_wire(),
    }))
}

/// Resolves a path that may be requested, or returns the reason to refuse.
fn resolve(settings: &Settings, own: &[PathBuf], path: &str) -> Result<String, ToolCallError> {
    let resolved = fs::canonicalize(Path::new(&settings.cwd).join(path)).map_err(|error| {
        ToolCallError::new(format!(
            "{path} cannot be asked for: {error}. Ask for a folder that is there."
        ))
    })?;
    if !resolved.is_dir() {
        return Err(ToolCallError::new(format!(
            "{path} is no folder. Ask for the folder that it is in."
        )));
    }
    if resolved.parent().is_none() {
        return Err(ToolCallError::new(
            "The whole disk cannot be asked for. Name the folder that you need.",
        ));
    }
    if own.iter().any(|own| resolved.starts_with(own)) {
        return Err(ToolCallError::new(format!(
            "{path} is the server's own and cannot be asked for."
        )));
    }
    let is_protected = |name: &OsStr| {
        let mut protected = PROTECTED.iter();
        protected.any(|it| name.eq_ignore_ascii_case(it))
    };
    if resolved.iter().any(is_protected) {
        return Err(ToolCallError::new(format!(
            "{path} is protected and cannot be asked for."
        )));
    }
    // A grant for a path that a command can replace with a link would be a grant for any path.
    if let Policy::Confined(rules) = command::policy(settings, own)? {
        let mut open = rules.write.iter().chain(&rules.scratch);
        if open.any(|it| fs::canonicalize(it).is_ok_and(|root| resolved.starts_with(root))) {
            return Err(ToolCallError::new(format!(
                "{path} can be written already, so it need not be asked for."
            )));
        }
    }
    let resolved = resolved.into_os_string().into_string();
    resolved.map_err(|_| {
        ToolCallError::new(format!(
            "{path} leads to a name that is not text, which cannot be asked for."
        ))
    })
}

#[cfg(test)]
mod tests {
    use raddle_core::Sandbox;
    use serde_json::Value;

    use super::*;

    fn settings(cwd: &Path, sandbox: Sandbox) -> Settings {
        Settings {
            cwd: cwd.display().to_string(),
            sandbox,
            ..Settings::default()
        }
    }

    #[test]
    fn only_grantable_permissions_are_requested() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a place");
        for name in ["there", "own", "there/.git", "there/.Codex"] {
            fs::create_dir(root.join(name)).expect("a folder");
        }
        fs::write(root.join("file"), "").expect("a file");
        std::os::unix::fs::symlink(root.join("there"), root.join("link")).expect("a link");
        let own = [root.join("own")];
        let there = root.join("there").display().to_string();
        let request = |permissions: Value, sandbox| {
            let call = ToolCall {
                id: "c".to_owned(),
                tool: NAME.to_owned(),
                arguments: json!({ "permissions": permissions }).to_string(),
                freeform: false,
                alone: false,
            };
            match rights_intent(&settings(&root, sandbox), &own, &call) {
                ToolIntent::Ask(Ask::Permissions(it)) => {
                    let grant = Grant::of_wire(&it.permissions);
                    format!("{} {}", grant.write.join(" "), grant.network)
                }
                ToolIntent::Refused(why) => why,
                other => format!("{other:?}"),
            }
        };
        let write = |path: &str| json!({ "file_system": { "write": [path] } });
        for (permissions, expected) in [
            (write(&there), format!("{there} false")),
            (write("there"), format!("{there} false")),
            (write("there/../there/."), format!("{there} false")),
            // The user sees the target of the link.
            (write("link"), format!("{there} false")),
            (
                json!({ "network": { "enabled": true } }),
                " true".to_owned(),
            ),
            (write("/"), "The whole disk".to_owned()),
            (write("own"), "own is the server's own".to_owned()),
            (write("there/.git"), "there/.git is protected".to_owned()),
            (
                write("there/.Codex"),
                "there/.Codex is protected".to_owned(),
            ),
            (write("file"), "file is no folder".to_owned()),
            (write("nowhere"), "nowhere cannot be asked for".to_owned()),
            (json!({}), "Nothing was asked for".to_owned()),
            (
                json!({ "network": { "enabled": false } }),
                "Nothing was asked for".to_owned(),
            ),
            (
                json!({ "file_system": { "write": vec!["there"; 21] } }),
                "At most 20 paths".to_owned(),
            ),
        ] {
            let actual = request(permissions, Sandbox::default());
            assert!(actual.starts_with(&expected), "{actual}, not {expected}");
        }
        let open = Sandbox::ReadOnly {
            roots: vec![there.clone()],
            network: false,
            reads: None,
        };
        let actual = request(write("there"), open);
        assert!(
            actual.starts_with("there can be written already"),
            "{actual}"
        );
        let actual = request(write("there"), Sandbox::FullAccess);
        assert!(actual.starts_with("This thread has no sandbox"), "{actual}");
    }

    #[test]
    fn the_tool_is_offered_only_with_a_sandbox_and_approvals() {
        let somewhere = Path::new("/w");
        let confined = settings(somewhere, Sandbox::default());
        let open = settings(somewhere, Sandbox::FullAccess);
        let silent = Settings {
            approval: ApprovalPolicy::Never,
            ..confined.clone()
        };
        for (settings, expected) in [(confined, true), (open, false), (silent, false)] {
            assert_eq!(is_offered(&settings), expected, "{settings:?}");
        }
    }
}
