//! All tools, with a look at the workspace before and after each one that may write.

use std::collections::BTreeSet;
use std::fmt;
use std::future::pending;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use raddle_core::policy::ParsedScript;
use raddle_core::ports::{
    BackgroundTerminal, BoxFuture, CheckpointError, ReportSink, Requirement, ToolIntent, ToolJob,
    ToolResult, ToolSpec, Tools,
};
use raddle_core::{
    ChangeKind, Command, CommandRun, ItemBody, ItemStatus, Output, Patch, Settings, ThreadId,
    ToolCall, TurnId,
};
use raddle_workspace::WorkspacePath;
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::tracked_folder::{Scope, TurnKey};
use super::{FileCheckpoints, TrackedTool};
use crate::mutex::locked;
use crate::turn_diffs::{TurnDiffs, truncated};

/// Output of a call that was interrupted before its tool began.
const STOPPED: &str = "Interrupted before it began.";

/// Duration of a look at the workspace above which clients are told.
const QUIET_TIME: Duration = Duration::from_secs(1);

const LONG_LOOK: &str = "Reading the files of the workspace, to show and undo changes";

/// Tools with checkpoints. Cheap to clone.
#[derive(Clone)]
pub struct CheckpointedTools {
    tools: Arc<dyn Tools>,
    checkpoints: FileCheckpoints,
    /// The changes of file tools outside the workspace.
    diffs: Arc<TurnDiffs>,
    /// Threads that were warned that their files are not tracked.
    warned: Arc<Mutex<BTreeSet<ThreadId>>>,
}

impl fmt::Debug for CheckpointedTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CheckpointedTools")
    }
}

impl CheckpointedTools {
    /// Puts checkpoints around tools. `diffs`: those of the built-in tools.
    pub fn new(tools: Arc<dyn Tools>, diffs: Arc<TurnDiffs>, checkpoints: FileCheckpoints) -> Self {
        Self {
            tools,
            checkpoints,
            diffs,
            warned: Arc::default(),
        }
    }

    async fn run_tracked(self, mut job: ToolJob) -> ToolResult {
        let (thread, turn) = (job.thread, job.turn.clone());
        let is_enabled = (self.checkpoints.inner.options.is_enabled)();
        let Some(root) = tracked_root(&job).filter(|_| is_enabled) else {
            return self.tools.run(job).await;
        };
        let key = (thread, turn.clone());
        let files = match &job.item.body {
            ItemBody::Patch(patch) => Some(file_paths(patch, &job.settings)),
            _ => None,
        };
        let mut stopped = std::mem::replace(&mut job.stopped, Box::pin(pending()));
        let begun = tokio::select! {
            biased;
            begun = self.begin(key, root, files, &*job.reports) => Some(begun),
            () = &mut stopped => None,
        };
        job.stopped = stopped;
        let Some(begun) = begun else {
            let output = Output::failure(STOPPED.to_owned());
            return ToolResult::new(ItemStatus::Interrupted, job.item.body, output);
        };
        let running = match begun {
            Ok(Some(running)) => running,
            Ok(None) => return self.run_outside(job).await,
            Err(error) => {
                self.warn(thread, &job.settings.cwd, &*job.reports, &error)
                    .await;
                return self.tools.run(job).await;
            }
        };
        let root = running.root().to_owned();
        let cwd = PathBuf::from(&job.settings.cwd);
        let mut result = self.tools.run(job).await;
        let ended = SystemTime::now();
        let is_background = !self.tools.terminals(thread).is_empty();
        let noted = self
            .checkpoints
            .blocking(move |_| running.end(ended, is_background));
        match noted.await {
            Ok(within) => {
                let text = self.joined_diff(&(thread, turn.clone()), &within, &[&root, &cwd]);
                result.diff = self.diffs.changed_text(thread, &turn, truncated(text));
            }
            Err(error) => tracing::warn!(%error, "the changes of a tool are not known"),
        }
        result
    }

    /// Runs a file tool that writes nothing in the workspace. The diff of the turn has the changes of
    /// earlier tools there too.
    async fn run_outside(self, job: ToolJob) -> ToolResult {
        let key = (job.thread, job.turn.clone());
        let cwd = PathBuf::from(&job.settings.cwd);
        let root = PathBuf::from(job.settings.real(&job.settings.cwd));
        let mut result = self.tools.run(job).await;
        if let Some(text) = result.diff.take() {
            let lookup = key.clone();
            let within = self
                .checkpoints
                .blocking(move |inner| inner.current_diff(&lookup));
            let within = within.await.unwrap_or_default();
            let text = match within.is_empty() {
                true => text,
                false => self.joined_diff(&key, &within, &[&root, &cwd]),
            };
            result.diff = self.diffs.changed_text(key.0, &key.1, truncated(text));
        }
        result
    }

    /// Returns the diff of a turn: that of the workspace, and that of file tools outside these folders.
    fn joined_diff(&self, key: &TurnKey, within: &[u8], folders: &[&Path]) -> String {
        let outside = self.diffs.text_outside(key.0, &key.1, folders);
        String::from_utf8_lossy(within).into_owned() + &outside
    }

    /// Looks at the workspace, or at the named files there. Returns `None` if none of them is there.
    async fn begin(
        &self,
        key: TurnKey,
        root: PathBuf,
        files: Option<Vec<PathBuf>>,
        reports: &dyn ReportSink,
    ) -> Result<Option<RunningTool>, CheckpointError> {
        let checkpoints = self.checkpoints.clone();
        let begin = self.checkpoints.blocking(move |inner| {
            let Ok(real) = std::fs::canonicalize(&root) else {
                // The tool reports a missing folder.
                return Ok(None);
            };
            // Another folder is no workspace of the thread.
            if real != root {
                return Err(CheckpointError::Failed(format!(
                    "{} leads to {} now",
                    root.display(),
                    real.display()
                )));
            }
            if inner.is_too_wide(&root) {
                return Err(CheckpointError::Failed(format!(
                    "{} contains your home folder, or the files of Raddle",
                    root.display()
                )));
            }
            let scope = match files {
                Some(files) => {
                    let paths: BTreeSet<_> = files
                        .iter()
                        .filter_map(|it| path_within(&root, it))
                        .collect();
                    if paths.is_empty() {
                        return Ok(None);
                    }
                    Scope::Paths(paths)
                }
                None => Scope::Everything,
            };
            let tool = inner.begin(key, root, scope)?;
            Ok(Some(RunningTool {
                checkpoints,
                tool: Some(tool),
            }))
        });
        let mut begin = std::pin::pin!(begin);
        match timeout(QUIET_TIME, &mut begin).await {
            Ok(begun) => begun,
            Err(_) => {
                reports.progress(LONG_LOOK.to_owned());
                begin.await
            }
        }
    }

    /// Tells the user once per thread that the files are not tracked.
    async fn warn(
        &self,
        thread: ThreadId,
        cwd: &str,
        reports: &dyn ReportSink,
        error: &CheckpointError,
    ) {
        tracing::warn!(%thread, %error, "the files of a thread are not tracked");
        if locked(&self.warned).insert(thread) {
            let warning = format!(
                "Changes of commands in {cwd} are not tracked, so they are missing in diffs and cannot be undone: {error}."
            );
            reports.report(Command::Warn(warning)).await;
        }
    }
}

/// A tracked tool, whose end is noted also if its call is dropped.
struct RunningTool {
    checkpoints: FileCheckpoints,
    tool: Option<TrackedTool>,
}

impl RunningTool {
    fn root(&self) -> &Path {
        self.tool.as_ref().map_or(Path::new(""), |it| &it.root)
    }

    /// Notes the end, and returns the diff of the turn. Blocks on the disk.
    fn end(mut self, ended: SystemTime, is_background: bool) -> Result<Vec<u8>, CheckpointError> {
        match self.tool.take() {
            Some(tool) => self.checkpoints.inner.end(&tool, ended, is_background),
            None => Ok(Vec::new()),
        }
    }
}

impl Drop for RunningTool {
    fn drop(&mut self) {
        let (Some(tool), Ok(runtime)) = (self.tool.take(), Handle::try_current()) else {
            return;
        };
        let checkpoints = self.checkpoints.clone();
        runtime.spawn_blocking(move || {
            // A call is dropped only with its turn, whose end may have been noted before.
            let inner = &checkpoints.inner;
            let ended = inner.end(&tool, SystemTime::now(), false);
            let ended = ended.and_then(|_| inner.end_turn(&tool.key));
            if let Err(error) = ended {
                tracing::warn!(%error, "the changes of a stopped tool are not known");
            }
        });
    }
}

/// Returns the folder of a call that may change files there.
fn tracked_root(job: &ToolJob) -> Option<PathBuf> {
    let settings = &job.settings;
    let may_write = match &job.item.body {
        _ if job.is_ephemeral => false,
        ItemBody::Patch(_) => true,
        // The user's own command is a change of the user.
        ItemBody::Command(_) if job.item.is_users_command() => false,
        ItemBody::Command(_) => !settings.sandbox.is_read_only() || is_escalated(job),
        ItemBody::Mcp(_) => !settings.sandbox.is_read_only(),
        _ => false,
    };
    let root = Path::new(settings.real(&settings.cwd));
    (may_write && root.is_absolute()).then(|| root.to_owned())
}

/// Whether a call runs, or may run, outside the sandbox.
fn is_escalated(job: &ToolJob) -> bool {
    use raddle_core::policy::ActKind;
    use raddle_core::ports::Authorization;
    match &job.authorization {
        Some(Authorization::Kind(ActKind::Command { beyond, .. })) => *beyond,
        Some(Authorization::Kind(_)) => false,
        Some(Authorization::Exactly(_)) => true,
        None => false,
    }
}

/// Returns the absolute paths that a patch writes.
fn file_paths(patch: &Patch, settings: &Settings) -> Vec<PathBuf> {
    let cwd = Path::new(&settings.cwd);
    let paths = patch.changes.iter().flat_map(|change| {
        let moved_to = match &change.kind {
            ChangeKind::Update { moved_to } => moved_to.as_ref(),
            _ => None,
        };
        [Some(&change.path), moved_to].into_iter().flatten()
    });
    paths.map(|it| cwd.join(it)).collect()
}

/// Returns the path of a file in the workspace, by the real folders above it; `None` if it lies
/// elsewhere.
fn path_within(root: &Path, path: &Path) -> Option<WorkspacePath> {
    let mut missing = vec![path.file_name()?];
    let mut folder = path.parent()?;
    let real = loop {
        match std::fs::canonicalize(folder) {
            Ok(real) => break real,
            Err(_) => {
                missing.push(folder.file_name()?);
                folder = folder.parent()?;
            }
        }
    };
    let whole = missing.iter().rev().fold(real, |at, name| at.join(name));
    WorkspacePath::new(whole.strip_prefix(root).ok()?)
}

impl Tools for CheckpointedTools {
    fn specs(&self, settings: &Settings) -> Vec<Arc<ToolSpec>> {
        self.tools.specs(settings)
    }

    fn prepare(&self, settings: &Settings) {
        self.tools.prepare(settings);
    }

    fn requirement<'a>(&'a self, settings: &'a Settings) -> BoxFuture<'a, Requirement> {
        self.tools.requirement(settings)
    }

    fn intent<'a>(
        &'a self,
        thread: ThreadId,
        settings: &'a Settings,
        call: &'a ToolCall,
    ) -> BoxFuture<'a, Option<(ItemBody, ToolIntent)>> {
        self.tools.intent(thread, settings, call)
    }

    fn user_command(&self, settings: &Settings, line: &str) -> CommandRun {
        self.tools.user_command(settings, line)
    }

    fn script(&self, words: &[String]) -> ParsedScript {
        self.tools.script(words)
    }

    fn names(&self, settings: &Settings, call: &ToolCall) -> Vec<String> {
        self.tools.names(settings, call)
    }

    fn run(&self, job: ToolJob) -> BoxFuture<'static, ToolResult> {
        Box::pin(self.clone().run_tracked(job))
    }

    fn end_turn(&self, thread: ThreadId, turn: TurnId) -> BoxFuture<'static, Vec<String>> {
        let ending = self.tools.end_turn(thread, turn.clone());
        let checkpoints = self.checkpoints.clone();
        Box::pin(async move {
            let ended = ending.await;
            let noted = checkpoints
                .blocking(move |inner| inner.end_turn(&(thread, turn)))
                .await;
            if let Err(error) = noted {
                tracing::warn!(%thread, %error, "the last changes of a turn are not known");
            }
            ended
        })
    }

    fn terminals(&self, thread: ThreadId) -> Vec<BackgroundTerminal> {
        self.tools.terminals(thread)
    }

    fn end_terminal(&self, thread: ThreadId, id: Option<&str>) -> bool {
        self.tools.end_terminal(thread, id)
    }
}
