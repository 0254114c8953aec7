//! Calls that read or change files: their intent, judged by the real paths, and their execution.

use std::path::{Path, PathBuf};
use std::time::Duration;

use raddle_core::policy::{Act, ActKind, approval_digest};
use raddle_core::ports::{ToolIntent, ToolJob, ToolResult};
use raddle_core::{
    FileChange, ImageView, ItemBody, ItemStatus, NamedTool, Output, Patch, Settings, ToolCall,
};
use raddle_sandbox::{HoldConflict, HoldError, LoweredRights, Policy};
use serde::Deserialize;

use crate::arguments;
use crate::command;
use crate::files::{
    ChangePlan, EditFile, FinalLink, ListFiles, ReadBytes, ReadFile, ResolvedPath, Roots,
    SearchFiles, ViewImage, WriteFile,
};
use crate::patch::{self, Section};
use crate::plugin_call::{self, Workspace};
use crate::shell;
use crate::tool_call_error::ToolCallError;
use crate::tool_deps::ToolDeps;

/// Wait of a change for files that an approved command holds: long enough for one that is about to
/// exit.
const HELD_WAIT: Duration = Duration::from_secs(2);

pub(crate) struct FileCall {
    op: FileOp,
    /// Base of relative paths.
    cwd: PathBuf,
    /// Whether a plugin makes the call: it reaches nothing outside of the workspace.
    is_plugins: bool,
}

enum FileOp {
    Read(ReadFile),
    ReadBytes(ReadBytes),
    List(ListFiles),
    ListEntries(ListFiles),
    Search(SearchFiles),
    View(ViewImage),
    Write(WriteFile),
    Edit(EditFile),
    Patch(String),
}

#[derive(Deserialize)]
struct ApplyPatch {
    #[serde(alias = "patch")]
    input: String,
}

impl FileCall {
    /// Parses a call of a file tool; returns `None` for other tools.
    pub(crate) fn of(settings: &Settings, call: &ToolCall) -> Option<Result<Self, ToolCallError>> {
        let op = match call.tool.as_str() {
            "read_file" => arguments::read(call).map(FileOp::Read),
            plugin_call::READ => arguments::read(call).map(FileOp::ReadBytes),
            plugin_call::LIST => arguments::read(call).map(FileOp::ListEntries),
            plugin_call::WRITE => arguments::read(call).map(FileOp::Write),
            "list_files" => arguments::read(call).map(FileOp::List),
            "search_files" => arguments::read(call).map(FileOp::Search),
            "view_image" => arguments::read(call).map(FileOp::View),
            "write_file" => arguments::read(call).map(FileOp::Write),
            "edit_file" => arguments::read(call).map(FileOp::Edit),
            "apply_patch" if call.freeform => Ok(FileOp::Patch(call.arguments.clone())),
            "apply_patch" => arguments::read(call).map(|it: ApplyPatch| FileOp::Patch(it.input)),
            _ => return None,
        };
        let cwd = PathBuf::from(&settings.cwd);
        let is_plugins = plugin_call::counterpart(&call.tool).is_some();
        Some(op.map(|op| Self {
            op,
            cwd,
            is_plugins,
        }))
    }

    /// Returns the call for a patch that was passed to a shell.
    pub(crate) fn patch(text: String, cwd: PathBuf) -> Self {
        Self {
            op: FileOp::Patch(text),
            cwd,
            is_plugins: false,
        }
    }

    /// Returns the item and the intent. It reads the disk, and may block on it.
    pub(crate) fn file_intent(
        &self,
        settings: &Settings,
        own: &[PathBuf],
        name: &str,
    ) -> (ItemBody, ToolIntent) {
        let name = name.to_owned();
        let shown = match &self.op {
            FileOp::View(it) => ItemBody::ImageView(ImageView {
                path: self.absolute(&it.path),
            }),
            _ => ItemBody::Tool(NamedTool { name }),
        };
        let roots = match self.roots(settings, own) {
            Ok(roots) => roots,
            Err(why) => return (shown, ToolIntent::Refused(why.to_string())),
        };
        if let Some(path) = self.reads() {
            let act = lowered(&roots).and_then(|_rights| {
                let (act, resolved) = read(&roots, path, settings)?;
                self.check_workspace(settings, own, [&resolved])?;
                Ok(act)
            });
            let intent = match act {
                Ok(act) => ToolIntent::Act(act),
                Err(why) => ToolIntent::Refused(why.to_string()),
            };
            return (shown, intent);
        }
        let reads = self.read_for_change(&roots);
        // An error of the plan, or a plan without changes, reveals contents of the file.
        let planned = self.check_target(&roots, settings, own).and_then(|()| {
            let (planned, _) = self.planned(&roots)?;
            let targets = planned.files.iter().map(|it| &it.target);
            self.check_workspace(settings, own, targets)?;
            Ok(planned)
        });
        match planned {
            Ok(planned) => {
                let changes = planned.changes();
                let act = write(&planned, reads, settings);
                (ItemBody::Patch(Patch { changes }), ToolIntent::Act(act))
            }
            // The error of a mismatch reveals contents of the file, so the read is judged first.
            Err(_) if !reads.is_empty() => (shown, ToolIntent::Act(mismatch_act(reads, settings))),
            Err(why) => (shown, ToolIntent::Refused(why.to_string())),
        }
    }

    /// Rejects the file that a plugin wants to write, if it is outside of the workspace.
    fn check_target(
        &self,
        roots: &Roots,
        settings: &Settings,
        own: &[PathBuf],
    ) -> Result<(), ToolCallError> {
        let FileOp::Write(it) = &self.op else {
            return Ok(());
        };
        let resolved = roots.resolve(Path::new(&it.path), FinalLink::Follow);
        self.check_workspace(settings, own, [&resolved.map_err(ToolCallError::new)?])
    }

    /// Rejects real paths outside of the workspace in a plugin's call. Rules on the act of the call
    /// are about the same paths, so it runs only while they stay the same.
    fn check_workspace<'a>(
        &self,
        settings: &Settings,
        own: &[PathBuf],
        paths: impl IntoIterator<Item = &'a ResolvedPath>,
    ) -> Result<(), ToolCallError> {
        if !self.is_plugins {
            return Ok(());
        }
        let workspace = Workspace::of(settings, own);
        let mut paths = paths.into_iter();
        paths.try_for_each(|it| workspace.check(&it.plain))
    }

    /// Returns the real paths of the files that it reads in order to change or move them.
    fn read_for_change(&self, roots: &Roots) -> Vec<String> {
        let paths = match &self.op {
            FileOp::Edit(it) => vec![it.path.clone()],
            FileOp::Patch(text) => {
                let sections = patch::parse(text).unwrap_or_default().into_iter();
                let read = sections.filter_map(|it| match it {
                    Section::Update { path, .. } => Some(path),
                    Section::Add { .. } | Section::Delete { .. } => None,
                });
                read.collect()
            }
            _ => Vec::new(),
        };
        // A link that is moved counts as itself and as its target.
        let resolved_paths = paths.iter().flat_map(|path| {
            let both = [FinalLink::Follow, FinalLink::Keep];
            both.map(|last| roots.resolve(Path::new(path), last))
        });
        let mut reads: Vec<String> = Vec::new();
        for resolved in resolved_paths.flatten() {
            let path = resolved.plain.display().to_string();
            if !reads.contains(&path) {
                reads.push(path);
            }
        }
        reads
    }

    /// Returns the path that it reads, if it only reads.
    fn reads(&self) -> Option<&str> {
        let path = match &self.op {
            FileOp::Read(it) => Some(it.path.as_str()),
            FileOp::ReadBytes(it) => Some(it.path.as_str()),
            FileOp::View(it) => Some(it.path.as_str()),
            FileOp::List(it) | FileOp::ListEntries(it) => it.path.as_deref(),
            FileOp::Search(it) => it.path.as_deref(),
            FileOp::Write(_) | FileOp::Edit(_) | FileOp::Patch(_) => return None,
        };
        Some(path.unwrap_or("."))
    }

    fn absolute(&self, path: &str) -> String {
        let path = match path {
            "" | "." => self.cwd.clone(),
            path => self.cwd.join(path),
        };
        path.display().to_string()
    }

    fn roots(&self, settings: &Settings, own: &[PathBuf]) -> Result<Roots, ToolCallError> {
        let policy = command::policy(settings, own)?;
        let roots = Roots::new(&self.cwd, &policy).map_err(ToolCallError::new)?;
        Ok(roots.named(&settings.real_paths))
    }

    fn plan(&self, roots: &Roots) -> Result<ChangePlan, ToolCallError> {
        match &self.op {
            FileOp::Write(it) => it.plan(roots).map_err(ToolCallError::new),
            FileOp::Edit(it) => it.plan(roots).map_err(ToolCallError::new),
            FileOp::Patch(text) => patch::plan(roots, text).map_err(ToolCallError::new),
            FileOp::Read(_)
            | FileOp::ReadBytes(_)
            | FileOp::List(_)
            | FileOp::ListEntries(_)
            | FileOp::Search(_)
            | FileOp::View(_) => Err(ToolCallError::new("This call writes nothing.")),
        }
    }

    /// Plans the change with the rights of a sandboxed command, and returns those rights. A change
    /// outside the sandbox needs an approval, and then has the rights of the server, like a
    /// command.
    fn planned(&self, roots: &Roots) -> Result<(ChangePlan, Option<LoweredRights>), ToolCallError> {
        let rights = lowered(roots)?;
        let planned = self.plan(roots);
        if rights.is_none() || planned.as_ref().is_ok_and(|it| !it.is_beyond()) {
            return Ok((planned?, rights));
        }
        drop(rights);
        match self.plan(roots) {
            Ok(second_plan) if second_plan.is_beyond() => Ok((second_plan, None)),
            // It does not leave the sandbox, so the first error stands.
            second_plan => Err(planned.and(second_plan).err().unwrap_or_else(|| {
                ToolCallError::new("The files changed while they were looked at. Call again.")
            })),
        }
    }

    /// Runs the call if it is exactly what was authorised. It may block on the disk.
    pub(crate) fn run(&self, inner: &ToolDeps, job: ToolJob) -> ToolResult {
        let body = job.item.body.clone();
        match self.reads() {
            Some(path) => {
                let roots = self.roots(&job.settings, &inner.own);
                let act = roots.and_then(|it| {
                    let _rights = lowered(&it)?;
                    Ok((read(&it, path, &job.settings)?, it))
                });
                match act {
                    Ok(((act, resolved), roots))
                        if job.allows(&act.kind, || act.digest.clone()) =>
                    {
                        let closed = match &act.kind {
                            ActKind::Read { path } => inner.operator.closed_below(path),
                            _ => Vec::new(),
                        };
                        self.read(&roots.without(closed), &resolved, body)
                    }
                    Ok(_) => failed(
                        body,
                        "Nothing was read: the path leads elsewhere than when it was allowed. Call again.",
                    ),
                    Err(why) => failed(body, &why.to_string()),
                }
            }
            None => self.write(inner, &job, body),
        }
    }

    /// Reads the resolved path, without resolving again: the path may have changed since it was
    /// judged.
    fn read(&self, roots: &Roots, resolved: &ResolvedPath, body: ItemBody) -> ToolResult {
        let _rights = match lowered(roots) {
            Ok(rights) => rights,
            Err(why) => return failed(body, &why.to_string()),
        };
        let output = match &self.op {
            FileOp::Read(it) => it.run_at(roots, resolved),
            FileOp::ReadBytes(it) => it.run_at(roots, resolved).map(|it| it.to_string()),
            FileOp::List(it) => it.run_at(roots, resolved),
            FileOp::ListEntries(it) => it.entries_at(roots, resolved).map(|it| it.to_string()),
            FileOp::Search(it) => it.run_at(roots, resolved),
            FileOp::View(it) => {
                return match it.run_at(roots, resolved) {
                    Ok(picture) => {
                        let output = Output::text(format!("The picture {}.", picture.path));
                        ToolResult {
                            pictures: vec![picture.bytes],
                            ..ToolResult::new(ItemStatus::Completed, body, output)
                        }
                    }
                    Err(error) => failed(body, &error.to_string()),
                };
            }
            FileOp::Write(_) | FileOp::Edit(_) | FileOp::Patch(_) => Ok(String::new()),
        };
        match output {
            Ok(text) => ToolResult::new(ItemStatus::Completed, body, Output::text(text)),
            Err(error) => failed(body, &error.to_string()),
        }
    }

    fn write(&self, inner: &ToolDeps, job: &ToolJob, body: ItemBody) -> ToolResult {
        let roots = match self.roots(&job.settings, &inner.own) {
            Ok(roots) => roots,
            Err(why) => return failed(body, &why.to_string()),
        };
        let reads = self.read_for_change(&roots);
        let planned = self.planned(&roots);
        let act = match &planned {
            Ok((planned, _)) => write(planned, reads, &job.settings),
            Err(_) => mismatch_act(reads, &job.settings),
        };
        if !job.allows(&act.kind, || act.digest.clone()) {
            return failed(
                body,
                "Nothing was written: what would change is no longer what was allowed. Look again, and call again.",
            );
        }
        let (planned, _rights) = match planned {
            Ok(planned) => planned,
            Err(why) => return failed(body, &why.to_string()),
        };
        let (planned, report) = match job.hunks.as_slice() {
            [] => (planned, None),
            decisions => match planned.accepted(&job.hunk_cwd, shown_changes(&body), decisions) {
                Ok(accepted) => (accepted.plan, Some(accepted.report)),
                Err(why) => return failed(body, &format!("Nothing was written: {why}.")),
            },
        };
        // Files that an approved command outside the sandbox names must stay as approved while it
        // runs.
        let paths: Vec<PathBuf> = planned.paths().iter().map(PathBuf::from).collect();
        let holds = inner.sandbox.holds();
        // Programs in these folders are not trusted in any thread.
        if let Ok(Policy::Confined(rules)) = command::policy(&job.settings, &inner.own)
            && let Err(error) = holds.written().add(&[rules.write, rules.scratch].concat())
        {
            return failed(body, &format!("Nothing was written: {error}."));
        }
        let _claim = match holds.claim_files("a change of files", &paths, HELD_WAIT) {
            Ok(claim) => claim,
            Err(HoldError::Busy(HoldConflict { path, about })) => {
                let why = format!(
                    "Nothing was written: {} is held. A command that the user approved runs outside the sandbox, and its \
                     files must not change until it has ended: {}. End it or wait for it, and call again.",
                    path.display(),
                    shell::display_line(&about)
                );
                return failed(body, &why);
            }
            Err(error) => return failed(body, &format!("Nothing was written: {error}.")),
        };
        match planned.apply(&roots) {
            Ok(applied) => {
                let changes = applied.changes;
                let body = ItemBody::Patch(Patch { changes });
                let diff = inner.diffs.changed(job, &planned);
                let report = report.map(|it| format!("\n{it}"));
                let output = applied.summary + &report.unwrap_or_default();
                ToolResult {
                    diff: Some(diff),
                    ..ToolResult::new(ItemStatus::Completed, body, Output::text(output))
                }
            }
            Err(error) => failed(body, &error.to_string()),
        }
    }
}

/// Lowers the rights to those of a sandboxed command, while the result is held.
fn lowered(roots: &Roots) -> Result<Option<LoweredRights>, ToolCallError> {
    let rights = roots.rights();
    rights.map_err(|error| {
        ToolCallError::new(format!(
            "The limits of the sandbox cannot be applied: {error}. Use a command instead."
        ))
    })
}

/// Returns the act of reading the resolved path: rules apply to the real file, not to its name.
fn read(
    roots: &Roots,
    path: &str,
    settings: &Settings,
) -> Result<(Act, ResolvedPath), ToolCallError> {
    let resolved = roots.resolve(Path::new(path), FinalLink::Follow);
    let resolved = resolved.map_err(ToolCallError::new)?;
    let path = resolved.plain.display().to_string();
    let act = Act {
        digest: approval_digest::read(&path, &settings.sandbox),
        reason: None,
        kind: ActKind::Read { path },
    };
    Ok((act, resolved))
}

/// Returns the act of writing the plan.
fn write(planned: &ChangePlan, reads: Vec<String>, settings: &Settings) -> Act {
    let beyond = planned.is_beyond();
    Act {
        digest: approval_digest::write(&planned.digest(), &settings.sandbox, beyond, &reads),
        reason: None,
        kind: ActKind::Write {
            paths: planned.paths(),
            reads,
            beyond,
        },
    }
}

/// Returns the act of a change that does not fit the files. Nothing is written.
fn mismatch_act(reads: Vec<String>, settings: &Settings) -> Act {
    Act {
        digest: approval_digest::mismatch(&reads, &settings.sandbox),
        reason: None,
        kind: ActKind::Write {
            paths: Vec::new(),
            reads,
            beyond: false,
        },
    }
}

/// Returns the changes that an item shows.
fn shown_changes(body: &ItemBody) -> &[FileChange] {
    match body {
        ItemBody::Patch(it) => &it.changes,
        _ => &[],
    }
}

fn failed(body: ItemBody, why: &str) -> ToolResult {
    ToolResult::new(ItemStatus::Failed, body, Output::failure(why))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use serde_json::json;

    use super::*;

    /// Rules apply to files, not to their names.
    #[test]
    fn a_read_is_judged_by_where_it_leads() {
        let folder = tempfile::tempdir().expect("a folder");
        let top = folder.path().canonicalize().expect("its plain path");
        let work = top.join("work");
        std::fs::create_dir_all(work.join("src")).expect("folders");
        std::fs::create_dir(top.join("private")).expect("a folder");
        std::fs::write(top.join("private/diary"), "x").expect("a file");
        symlink("../private", work.join("way")).expect("a link");
        let settings = Settings {
            cwd: work.display().to_string(),
            sandbox: raddle_core::Sandbox::default(),
            ..Settings::default()
        };
        let diary = top.join("private/diary").display().to_string();
        for path in [
            diary.as_str(),
            "../private/diary",
            "way/diary",
            "src/../way/../private/./diary",
        ] {
            let call = ToolCall {
                id: "c1".to_owned(),
                tool: "read_file".to_owned(),
                arguments: json!({ "path": path }).to_string(),
                freeform: false,
                alone: false,
            };
            let it = FileCall::of(&settings, &call).expect("a tool of ours");
            let (_, intent) = it
                .expect("arguments")
                .file_intent(&settings, &[], "read_file");
            let ToolIntent::Act(act) = intent else {
                panic!("{path}: {intent:?}");
            };
            let expected = ActKind::Read {
                path: diary.clone(),
            };
            assert_eq!(act.kind, expected, "{path}");
        }
    }

    /// The file that is read is the file that was judged, even if the path leads elsewhere by then.
    #[test]
    fn a_read_goes_where_it_was_judged_to_go() {
        let folder = tempfile::tempdir().expect("a folder");
        let top = folder.path().canonicalize().expect("its plain path");
        for (name, text) in [("open", "weft"), ("shut", "secret")] {
            std::fs::create_dir(top.join(name)).expect("a folder");
            std::fs::write(top.join(name).join("it"), text).expect("a file");
        }
        symlink("open", top.join("way")).expect("a link");
        let settings = Settings {
            cwd: top.display().to_string(),
            sandbox: raddle_core::Sandbox::FullAccess,
            ..Settings::default()
        };
        for (tool, path) in [
            ("read_file", "way/it"),
            ("list_files", "way"),
            ("search_files", "way"),
        ] {
            let call = ToolCall {
                id: "c1".to_owned(),
                tool: tool.to_owned(),
                arguments: json!({ "path": path, "pattern": "." }).to_string(),
                freeform: false,
                alone: false,
            };
            let call = match tool {
                "read_file" => ToolCall {
                    arguments: json!({ "path": path }).to_string(),
                    ..call
                },
                _ => call,
            };
            let it = FileCall::of(&settings, &call).expect("a tool of ours");
            let it = it.expect("arguments");
            let roots = it.roots(&settings, &[]).expect("roots");
            let (_, resolved) = read(&roots, path, &settings).expect("an act");
            std::fs::remove_file(top.join("way")).expect("no link");
            symlink("shut", top.join("way")).expect("another link");
            let name = tool.to_owned();
            let result = it.read(&roots, &resolved, ItemBody::Tool(NamedTool { name }));
            let output = format!("{:?}", result.output);
            assert!(
                !output.contains("secret") && !output.contains("shut"),
                "{tool}: {output}"
            );
            std::fs::remove_file(top.join("way")).expect("no link");
            symlink("open", top.join("way")).expect("the link");
        }
    }

    /// Creates a file with this mode; as root it belongs to another user.
    fn closed_file(path: &Path, mode: u32) {
        use std::os::unix::fs::{PermissionsExt as _, chown};
        std::fs::write(path, "secret\n").expect("a file");
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(path, mode).expect("a mode");
        // Only root can change the owner, and only for root it matters.
        let _ = chown(path, Some(65534), Some(65534));
    }

    fn file_call(settings: &Settings, tool: &str, arguments: serde_json::Value) -> FileCall {
        let call = ToolCall {
            id: "c1".to_owned(),
            tool: tool.to_owned(),
            arguments: arguments.to_string(),
            freeform: false,
            alone: false,
        };
        let it = FileCall::of(settings, &call).expect("a tool of ours");
        it.expect("arguments")
    }

    /// As root the server may read everything; a sandboxed command may not, and neither may the
    /// tools.
    #[test]
    fn files_are_read_with_the_rights_of_the_sandbox() {
        let folder = tempfile::tempdir().expect("a folder");
        let top = folder.path().canonicalize().expect("its plain path");
        closed_file(&top.join("it"), 0);
        std::fs::create_dir(top.join("below")).expect("a folder");
        let settings = Settings {
            cwd: top.display().to_string(),
            sandbox: raddle_core::Sandbox::WorkspaceWrite {
                roots: Vec::new(),
                network: false,
                without_tmp: true,
                without_tmpdir: true,
                reads: None,
            },
            ..Settings::default()
        };
        for (tool, arguments, path) in [
            ("read_file", json!({ "path": "it" }), "it"),
            ("view_image", json!({ "path": "it" }), "it"),
            (
                "search_files",
                json!({ "path": ".", "pattern": "secret" }),
                ".",
            ),
        ] {
            let it = file_call(&settings, tool, arguments);
            let roots = it.roots(&settings, &[]).expect("roots");
            let (_, resolved) = read(&roots, path, &settings).expect("an act");
            let name = tool.to_owned();
            let result = it.read(&roots, &resolved, ItemBody::Tool(NamedTool { name }));
            let output = format!("{:?}", result.output);
            assert!(
                !output.contains("secret\\n") && !output.contains("it:1"),
                "{tool}: {output}"
            );
            assert!(
                tool == "search_files" || output.contains("ermission denied"),
                "{tool}: {output}"
            );
        }
        let edit = json!({ "path": "it", "old": "secret", "new": "open" });
        let it = file_call(&settings, "edit_file", edit);
        let roots = it.roots(&settings, &[]).expect("roots");
        let error = it.planned(&roots).err().map(|it| it.to_string());
        let error = error.unwrap_or_default();
        assert!(error.contains("ermission denied"), "{error}");
    }

    /// A partial change reveals the old text, and a move copies it: rules on reading apply to both,
    /// even if the change does not fit.
    #[test]
    fn partial_changes_and_moves_count_as_reads() {
        let folder = tempfile::tempdir().expect("a folder");
        let top = folder.path().canonicalize().expect("its plain path");
        std::fs::write(top.join("it"), "secret\n").expect("a file");
        std::fs::write(top.join("other"), "x\n").expect("a file");
        symlink("it", top.join("way")).expect("a link");
        let settings = Settings {
            cwd: top.display().to_string(),
            sandbox: raddle_core::Sandbox::FullAccess,
            ..Settings::default()
        };
        let edit = |path: &str, old: &str, new: &str| {
            ("edit_file", json!({ "path": path, "old": old, "new": new }))
        };
        let patch = |text: &str| {
            let input = format!("*** Begin Patch\n{text}\n*** End Patch\n");
            ("apply_patch", json!({ "input": input }))
        };
        // A call, the names of the files that it reads, and whether it would write.
        for ((tool, arguments), expected, writes) in [
            (edit("it", "secret", "open"), &["it"][..], true),
            (edit("it", "guess", "open"), &["it"], false),
            (edit("it", "secret", "secret"), &["it"], false),
            (edit("it", "guess", "guess"), &["it"], false),
            (edit("way", "guess", "open"), &["it", "way"], false),
            (
                patch("*** Update File: it\n@@\n-secret\n+open"),
                &["it"],
                true,
            ),
            (
                patch("*** Update File: way\n@@\n-guess\n+open"),
                &["it", "way"],
                false,
            ),
            (
                patch("*** Update File: it\n*** Move to: new"),
                &["it"],
                true,
            ),
            (
                patch(
                    "*** Update File: it\n@@\n-secret\n+open\n*** Update File: other\n@@\n-y\n+z",
                ),
                &["it", "other"],
                false,
            ),
            (
                ("write_file", json!({ "path": "it", "content": "open" })),
                &[],
                true,
            ),
            (patch("*** Add File: it\n+open"), &[], true),
            (patch("*** Delete File: it"), &[], true),
        ] {
            let about = format!("{tool} {arguments}");
            let (_, intent) =
                file_call(&settings, tool, arguments).file_intent(&settings, &[], tool);
            let ToolIntent::Act(Act {
                kind: ActKind::Write { paths, reads, .. },
                ..
            }) = intent
            else {
                panic!("{about}: {intent:?}");
            };
            let expected: Vec<String> = expected
                .iter()
                .map(|it| top.join(it).display().to_string())
                .collect();
            assert_eq!(reads, expected, "{about}");
            assert_eq!(!paths.is_empty(), writes, "{about}");
        }
    }

    /// A change outside the sandbox needs an approval, and then has the rights of a command
    /// outside.
    #[test]
    fn changes_outside_the_sandbox_have_the_rights_of_the_server() {
        let folder = tempfile::tempdir().expect("a folder");
        let top = folder.path().canonicalize().expect("its plain path");
        let work = top.join("work");
        std::fs::create_dir(&work).expect("a folder");
        closed_file(&top.join("beyond"), 0o600);
        let settings = Settings {
            cwd: work.display().to_string(),
            sandbox: raddle_core::Sandbox::default(),
            ..Settings::default()
        };
        let path = top.join("beyond").display().to_string();
        let it = file_call(
            &settings,
            "write_file",
            json!({ "path": path, "content": "open" }),
        );
        let roots = it.roots(&settings, &[]).expect("roots");
        // A server that cannot read the file may not do so through the tool either.
        match (std::fs::read(&path), it.planned(&roots)) {
            (Ok(_), Ok((planned, rights))) => {
                assert!(planned.is_beyond() && rights.is_none());
                planned.apply(&roots).expect("written");
                assert_eq!(std::fs::read(&path).expect("a file"), b"open");
            }
            (Err(_), Err(_)) => {}
            (read, planned) => panic!("{read:?} and {:?}", planned.err()),
        }
    }
}
