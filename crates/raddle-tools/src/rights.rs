//! A tool with which the model asks for rights beyond the sandbox.

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

pub(crate) const NAME: &str = "request_permissions";

/// How many paths may be asked for at once.
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

/// The tool, where somebody can be asked and there is a fence to be widened.
pub(crate) fn spec(settings: &Settings) -> Option<ToolSpec> {
    let is_useful = is_confined(settings) && settings.approval != ApprovalPolicy::Never;
    let paths = json!({
        "type": "array", "items": { "type": "string" },
        "description": "Absolute paths of folders that are there, to be written with all below them.",
    });
    is_useful.then(|| ToolSpec {
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
    })
}

/// What a call asks for. It looks at the disk, so that the user is shown where a path really leads.
pub(crate) fn rights_intent(settings: &Settings, own: &[PathBuf], call: &ToolCall) -> ToolIntent {
    let it: RequestPermissions = match arguments::read(call) {
        Ok(it) => it,
        Err(why) => return ToolIntent::Refused(why),
    };
    if !is_confined(settings) {
        return ToolIntent::Refused(
            "There is no sandbox here, so nothing is to be asked for.".to_owned(),
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
    let wanted = Grant {
        write: match paths.collect() {
            Ok(paths) => paths,
            Err(why) => return ToolIntent::Refused(why),
        },
        network: it.permissions.network.and_then(|it| it.enabled) == Some(true),
        session: false,
    };
    if wanted.is_empty() {
        return ToolIntent::Refused(
            "Nothing was asked for. Name paths to write, or the network; everything can be read without."
                .to_owned(),
        );
    }
    ToolIntent::Ask(Ask::Permissions(AskPermissions {
        cwd: settings.cwd.clone(),
        reason: it.reason.as_deref().map(crate::shell::display_line),
        permissions: wanted.to_wire(),
    }))
}

/// Where a path really leads, if it may be asked for.
fn resolve(settings: &Settings, own: &[PathBuf], path: &str) -> Result<String, String> {
    let place = fs::canonicalize(Path::new(&settings.cwd).join(path)).map_err(|error| {
        format!("{path} cannot be asked for: {error}. Ask for a folder that is there.")
    })?;
    if !place.is_dir() {
        return Err(format!(
            "{path} is no folder. Ask for the folder that it is in."
        ));
    }
    if place.parent().is_none() {
        return Err(
            "The whole disk cannot be asked for. Name the folder that you need.".to_owned(),
        );
    }
    if own.iter().any(|own| place.starts_with(own)) {
        return Err(format!(
            "{path} is the server's own and cannot be asked for."
        ));
    }
    let is_kept = |name: &OsStr| {
        let mut kept = PROTECTED.iter();
        kept.any(|it| name.eq_ignore_ascii_case(it))
    };
    if place.iter().any(is_kept) {
        return Err(format!("{path} is protected and cannot be asked for."));
    }
    // A right to what a command can move away and put a link for would be a right to anything.
    if let Policy::Confined(rules) = command::policy(settings, own)? {
        let mut open = rules.write.iter().chain(&rules.scratch);
        if open.any(|it| fs::canonicalize(it).is_ok_and(|root| place.starts_with(root))) {
            return Err(format!(
                "{path} can be written already, so it need not be asked for."
            ));
        }
    }
    let place = place.into_os_string().into_string();
    place
        .map_err(|_| format!("{path} leads to a name that is not text, which cannot be asked for."))
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
    fn only_what_can_be_given_is_asked_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a place");
        for name in ["there", "own", "there/.git", "there/.Codex"] {
            fs::create_dir(root.join(name)).expect("a folder");
        }
        fs::write(root.join("file"), "").expect("a file");
        std::os::unix::fs::symlink(root.join("there"), root.join("link")).expect("a link");
        let own = [root.join("own")];
        let there = root.join("there").display().to_string();
        let asked = |permissions: Value, sandbox| {
            let call = ToolCall {
                id: "c".to_owned(),
                tool: NAME.to_owned(),
                arguments: json!({ "permissions": permissions }).to_string(),
                freeform: false,
                alone: false,
            };
            match rights_intent(&settings(&root, sandbox), &own, &call) {
                ToolIntent::Ask(Ask::Permissions(it)) => {
                    let wanted = Grant::of_wire(&it.permissions);
                    format!("{} {}", wanted.write.join(" "), wanted.network)
                }
                ToolIntent::Refused(why) => why,
                other => format!("{other:?}"),
            }
        };
        let write = |path: &str| json!({ "file_system": { "write": [path] } });
        for (permissions, wanted) in [
            (write(&there), format!("{there} false")),
            (write("there"), format!("{there} false")),
            (write("there/../there/."), format!("{there} false")),
            // The user is shown where it leads.
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
            let found = asked(permissions, Sandbox::default());
            assert!(found.starts_with(&wanted), "{found}, not {wanted}");
        }
        let open = Sandbox::ReadOnly {
            roots: vec![there.clone()],
            network: false,
        };
        let found = asked(write("there"), open);
        assert!(found.starts_with("there can be written already"), "{found}");
        let found = asked(write("there"), Sandbox::FullAccess);
        assert!(found.starts_with("There is no sandbox"), "{found}");
    }

    #[test]
    fn it_is_offered_where_somebody_can_be_asked() {
        let somewhere = Path::new("/w");
        let fenced = settings(somewhere, Sandbox::default());
        let open = settings(somewhere, Sandbox::FullAccess);
        let silent = Settings {
            approval: ApprovalPolicy::Never,
            ..fenced.clone()
        };
        for (settings, wanted) in [(fenced, true), (open, false), (silent, false)] {
            assert_eq!(spec(&settings).is_some(), wanted, "{settings:?}");
        }
    }
}
