//! Calls that plugins make through the host: they reach the workspace of the thread, and nothing
//! else.

use std::path::{Path, PathBuf};

use raddle_core::Settings;

use crate::tool_call_error::ToolCallError;

/// Reads a part of a file.
pub(crate) const READ: &str = "host/workspace_read";

/// Lists a folder.
pub(crate) const LIST: &str = "host/workspace_list";

/// Writes a file.
pub(crate) const WRITE: &str = "host/workspace_write";

/// Runs a command.
pub(crate) const COMMAND: &str = "host/command_run";

/// Returns the tool whose rules apply to a plugin's call too; `None` if it is none.
pub(crate) fn counterpart(tool: &str) -> Option<&'static str> {
    Some(match tool {
        READ => "read_file",
        LIST => "list_files",
        WRITE => "write_file",
        COMMAND => "exec_command",
        _ => return None,
    })
}

/// The folders of a thread, by their real paths.
pub(crate) struct Workspace {
    folders: Vec<PathBuf>,
    /// The server's own folders.
    own: Vec<PathBuf>,
}

impl Workspace {
    /// Returns the workspace of a thread. It may block on the disk.
    pub(crate) fn of(settings: &Settings, own: &[PathBuf]) -> Self {
        let named = std::iter::once(&settings.cwd).chain(&settings.roots);
        let folders = named.map(|it| PathBuf::from(settings.real(it)));
        // The whole disk is no workspace.
        let folders = folders.filter(|it| it.is_absolute() && it.parent().is_some());
        Self {
            folders: folders.collect(),
            own: own
                .iter()
                .filter_map(|it| std::fs::canonicalize(it).ok())
                .collect(),
        }
    }

    /// Rejects a real path outside of the workspace. Without a sandbox nothing else hides the
    /// server's own folders.
    pub(crate) fn check(&self, plain: &Path) -> Result<(), ToolCallError> {
        let is_in = |folder: &&PathBuf| plain.starts_with(folder);
        let Some(folder) = self.folders.iter().find(is_in) else {
            return Err(ToolCallError::new(format!(
                "{} is not in the workspace of the thread, so a plugin cannot use it.",
                plain.display()
            )));
        };
        let is_own = |own: &PathBuf| plain.starts_with(own) && !folder.starts_with(own);
        match self.own.iter().any(is_own) {
            true => Err(ToolCallError::new(format!(
                "{} belongs to the server itself, so a plugin cannot use it.",
                plain.display()
            ))),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use raddle_core::policy::ActKind;
    use raddle_core::ports::ToolIntent;
    use raddle_core::{Sandbox, ToolCall};
    use serde_json::{Value, json};

    use super::*;
    use crate::file_call::FileCall;

    fn intent(settings: &Settings, own: &[PathBuf], tool: &str, arguments: &Value) -> ToolIntent {
        let call = ToolCall {
            id: "c1".to_owned(),
            tool: tool.to_owned(),
            arguments: arguments.to_string(),
            freeform: false,
            alone: false,
        };
        let it = FileCall::of(settings, &call).expect("a tool of ours");
        match it {
            Ok(it) => it.file_intent(settings, own, tool).1,
            Err(why) => ToolIntent::Refused(why.to_string()),
        }
    }

    #[test]
    fn a_plugin_reaches_the_workspace_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let top = folder.path().canonicalize().expect("its plain path");
        for name in ["work/src", "work/own", "more", "private"] {
            std::fs::create_dir_all(top.join(name)).expect("a folder");
        }
        for name in ["work/a", "work/own/key", "more/b", "private/diary"] {
            std::fs::write(top.join(name), "x").expect("a file");
        }
        symlink("../private", top.join("work/way")).expect("a link");
        symlink("/etc/passwd", top.join("work/users")).expect("a link");
        symlink("a", top.join("work/alias")).expect("a link");
        let at = |name: &str| top.join(name).display().to_string();
        let own = [top.join("work/own")];
        for sandbox in [Sandbox::default(), Sandbox::FullAccess] {
            let settings = Settings {
                cwd: at("work"),
                roots: vec![at("more")],
                sandbox: sandbox.clone(),
                ..Settings::default()
            };
            for (path, real) in [
                ("a", Some("work/a")),
                ("src/../a", Some("work/a")),
                ("alias", Some("work/a")),
                ("../more/b", Some("more/b")),
                (at("more/b").as_str(), Some("more/b")),
                ("../private/diary", None),
                ("way/diary", None),
                ("users", None),
                ("/etc/passwd", None),
                (at("private/diary").as_str(), None),
                ("src/../../private/diary", None),
                ("way/new", None),
                ("", None),
                ("a\0", None),
            ] {
                let about = format!("{path:?} {sandbox:?}");
                let read = json!({ "path": path });
                let read = intent(&settings, &own, READ, &read);
                let write = json!({ "path": path, "content": "y" });
                let write = intent(&settings, &own, WRITE, &write);
                match (real, read, write) {
                    (Some(real), ToolIntent::Act(read), ToolIntent::Act(write)) => {
                        let path = at(real);
                        assert_eq!(read.kind, ActKind::Read { path: path.clone() }, "{about}");
                        let ActKind::Write { paths, .. } = write.kind else {
                            panic!("{about}");
                        };
                        assert!(paths.contains(&path), "{about}: {paths:?}");
                    }
                    (None, ToolIntent::Refused(_), ToolIntent::Refused(_)) => {}
                    others => panic!("{about}: {others:?}"),
                }
            }
            // The same content as in a file outside, which a plugin must not learn.
            for path in ["way/diary", "../private/diary"] {
                let write = json!({ "path": path, "content": "x" });
                let intent = intent(&settings, &own, WRITE, &write);
                assert!(
                    matches!(intent, ToolIntent::Refused(_)),
                    "{path}: {intent:?}"
                );
            }
            // The server's own files are refused at once, or when they are opened.
            let key = json!({ "path": "own/key" });
            let is_refused = matches!(intent(&settings, &own, READ, &key), ToolIntent::Refused(_));
            assert!(is_refused, "{sandbox:?}");
            for path in ["..", "/", "way"] {
                let intent = intent(&settings, &own, LIST, &json!({ "path": path }));
                assert!(
                    matches!(intent, ToolIntent::Refused(_)),
                    "{path}: {intent:?}"
                );
            }
            let intent = intent(&settings, &own, LIST, &json!({}));
            assert!(matches!(intent, ToolIntent::Act(_)), "{intent:?}");
        }
        let whole = Settings {
            cwd: "/".to_owned(),
            sandbox: Sandbox::FullAccess,
            ..Settings::default()
        };
        let intent = intent(&whole, &[], READ, &json!({ "path": "etc/passwd" }));
        assert!(matches!(intent, ToolIntent::Refused(_)), "{intent:?}");
    }
}
