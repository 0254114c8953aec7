//! Runs one command, from its start until its call has ended.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use raddle_core::ports::{Authorization, ToolJob, ToolResult};
use raddle_core::{Command, CommandRun, CommandSource, ItemBody, ItemStatus, Output, Settings};
use raddle_sandbox::{
    ConfinedProcess, FileHold, HoldConflict, HoldError, Launch, Notice, SandboxService, Stdio,
    TerminalSize, environment,
};

use super::confinement::{check_folder, check_start_folder, check_visible, confinement_of};
use super::output_listener::{ListenEnd, OnTimeout, OutputListener};
use super::programs::search_path;
use super::request::{CommandRequest, WaitMode, is_confined};
use super::terminals::{CommandOwner, RunningCommand};
use crate::shell;
use crate::tool_call_error::ToolCallError;
use crate::tool_deps::ToolDeps;
use crate::truncation::TruncatedOutput;

/// Limit: time a sandboxed command waits for files that an approved command holds; beyond it, it
/// may only read the folders around them, and the model is notified.
///
/// It exceeds the wait of an approved command for sandboxed ones.
const HELD_WAIT: Duration = Duration::from_secs(45);

/// Environment variables added to those that commands inherit. They disable pagers, which would
/// wait for a key, and colours, which a model would read.
const VARIABLES: [(&str, &str); 4] = [
    ("NO_COLOR", "1"),
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
];

/// Further variables of commands that an agent runs outside the sandbox. Git ignores a bare
/// repository in a folder: a sandboxed command could have created it.
const VARIABLES_OUTSIDE: [(&str, &str); 3] = [
    ("GIT_CONFIG_COUNT", "1"),
    ("GIT_CONFIG_KEY_0", "safe.bareRepository"),
    ("GIT_CONFIG_VALUE_0", "explicit"),
];

impl CommandRequest {
    /// Runs the command if it is exactly the one that was authorised.
    pub(crate) async fn run(self, inner: Arc<ToolDeps>, job: ToolJob) -> ToolResult {
        // Parsing a hostile line takes a while, so it must not block an async worker.
        let read_task = tokio::task::spawn_blocking(move || {
            let request = self.resolve_links(&job.settings);
            (request.item(), request, job)
        });
        let Ok((item, request, job)) = read_task.await else {
            let why = "This was not run: parsing the command failed.";
            return refused(CommandRun::default(), why);
        };
        // This check comes first: a command that runs alongside could change the files of the
        // digest.
        if let Err(why) = inner.terminals.check_sandboxed(&request.owner(&job, &item)) {
            return refused(item, &format!("This was not run: {why}"));
        }
        // An approval covers the files as they were then. Without a sandbox around the command, no
        // sandboxed command may write them from the last check until the command exits.
        let is_unconfined = request.beyond || !is_confined(&job.settings);
        let is_exact = matches!(job.authorization, Some(Authorization::Exactly(_)));
        let holds = inner.sandbox.holds().clone();
        let paths_task = tokio::task::spawn_blocking(move || {
            let paths =
                (is_unconfined && is_exact).then(|| request.subject(&job.settings, &holds).paths);
            (paths, request, job)
        });
        let Ok((paths, request, job)) = paths_task.await else {
            return refused(item, "This was not run: parsing the command failed.");
        };
        let hold = match paths {
            Some(paths) => match hold(&inner.sandbox, &item.command, paths).await {
                Ok(hold) => Some(hold),
                Err(why) => return refused(item, &format!("This was not run: {why}")),
            },
            None => None,
        };
        let holds = inner.sandbox.holds().clone();
        let check_task = tokio::task::spawn_blocking(move || {
            let subject = is_exact.then(|| request.subject(&job.settings, &holds));
            // No approval covers a command without a digest.
            let (digest, paths) = subject.map_or_else(Default::default, |it| {
                (it.digest.unwrap_or_default(), it.paths)
            });
            let is_held = hold.as_ref().is_none_or(|it| it.covers(&paths));
            let is_allowed = is_held && job.allows(&request.kind(), || digest);
            (is_allowed, request, job, hold)
        });
        let Ok((is_allowed, request, job, hold)) = check_task.await else {
            return refused(item, "This was not run: parsing the command failed.");
        };
        if !is_allowed {
            return refused(
                item,
                "This was not run: what it would do, or where, is no longer what was allowed. Call it again.",
            );
        }
        request.run_holding(inner, job, item, hold).await
    }

    /// Rejects a command that is too long to show in full to the user who approves it.
    pub(crate) fn check_length(self) -> Result<Self, ToolCallError> {
        let line = shell::quoted(&self.words);
        match shell::is_shown_whole(&line) {
            true => Ok(self),
            false => Err(ToolCallError::new(format!(
                "The command was not run: its {} bytes are too long to be shown in full to the user who approves it. Write \
                 them to a script file, and run that.",
                line.len()
            ))),
        }
    }

    /// Runs the command without checking its authorisation.
    pub(super) async fn run_unchecked(
        self,
        inner: Arc<ToolDeps>,
        job: ToolJob,
        item: CommandRun,
    ) -> ToolResult {
        self.run_holding(inner, job, item, None).await
    }

    async fn run_holding(
        self,
        inner: Arc<ToolDeps>,
        job: ToolJob,
        item: CommandRun,
        hold: Option<FileHold>,
    ) -> ToolResult {
        let began = Instant::now();
        let owner = self.owner(&job, &item);
        let is_users = job.item.is_users_command();
        let starting = self.start(&inner, job.settings.clone(), owner, is_users, hold);
        let (running, notices) = match starting.await {
            Ok(started) => started,
            Err(why) => return refused(item, &format!("The command was not run. {why}")),
        };
        for warning in inner.notices.new_ones(job.thread, notices) {
            job.reports.report(Command::Warn(warning)).await;
        }
        let (time, then) = match self.time {
            WaitMode::Yields(time) => (time, OnTimeout::Detach),
            WaitMode::Ends(time) => (time, OnTimeout::End),
        };
        let ToolJob {
            item: shown,
            reports,
            mut stopped,
            ..
        } = job;
        let listener = OutputListener::new(running.clone(), &shown.id, &*reports, self.tokens);
        let Some(mut listener) = listener else {
            return refused(item, "The command was not run.");
        };
        let end = listener.listen(time, then, &mut stopped).await;
        let output = std::mem::replace(&mut listener.output, TruncatedOutput::new(0));
        drop(listener);
        let printed = self.is_plugins.then(|| output.clone().finish().0);
        let mut result = listen_result(&inner, &running, item, end, output, began);
        // The item shows what the reports contain, but a plugin has no item of its own.
        if let (Some(_), ItemBody::Command(item)) = (&printed, &mut result.body) {
            item.printed = printed;
        }
        result
    }

    fn owner(&self, job: &ToolJob, item: &CommandRun) -> CommandOwner {
        CommandOwner {
            thread: job.thread,
            turn: job.turn.clone(),
            item: job.item.id.clone(),
            command: item.command.clone(),
            cwd: item.cwd.clone(),
            beyond: self.beyond,
        }
    }

    /// Starts the command in its sandbox, and returns the sandbox's notices.
    async fn start(
        &self,
        inner: &ToolDeps,
        settings: Settings,
        owner: CommandOwner,
        is_users: bool,
        hold: Option<FileHold>,
    ) -> Result<(Arc<RunningCommand>, Vec<Notice>), ToolCallError> {
        let path = inner.path.get().await;
        let (own, operator) = (inner.own.clone(), inner.operator.clone());
        let holds = inner.sandbox.holds().clone();
        let beyond = self.beyond;
        // An approval of a program's name does not cover a program that sandboxed commands can
        // write.
        let names = match beyond && is_confined(&settings) && !is_users {
            true => Some(self.names()),
            false => None,
        };
        let set = self.variables(&settings);
        let cwd = self.cwd.clone();
        let plan_task = tokio::task::spawn_blocking(move || {
            check_folder(&settings)?;
            check_start_folder(&settings, &cwd)?;
            let (path, more) = match names {
                Some(names) => {
                    let path = search_path(&settings, &names, path, &holds)?;
                    (Some(path), &VARIABLES_OUTSIDE[..])
                }
                None => (path, &[][..]),
            };
            let env = variables(path, set, more);
            if beyond {
                let confinement = raddle_sandbox::Confinement {
                    policy: raddle_sandbox::Policy::FullAccess,
                    network: None,
                    accepts_second_tier: false,
                };
                return Ok((confinement, env));
            }
            confinement_of(&settings, &own, &*operator).map(|it| (it, env))
        });
        let (confinement, env) = plan_task.await.map_err(ToolCallError::new)??;
        let mut words = self.words.iter().map(Into::into);
        let launch = Launch {
            program: words.next().unwrap_or_default(),
            args: words.collect(),
            cwd: self.cwd.clone(),
            env,
        };
        check_visible(&confinement, &self.cwd)?;
        // A hold of this thread is released only when the thread ends its own command.
        let wait = match inner.terminals.has_hold(owner.thread) {
            true => Duration::ZERO,
            false => HELD_WAIT,
        };
        let (mut sandboxed, conflicts) = confine(&inner.sandbox, launch, confinement, wait).await?;
        let notices = std::mem::take(&mut sandboxed.confined.notices);
        let stdio = match self.tty {
            true => Stdio::Terminal(TerminalSize::default()),
            // Without a terminal the model cannot write to its input.
            false => Stdio::Joined,
        };
        let opened = inner.launcher.open(stdio);
        let (process, start) = opened.map_err(ToolCallError::new)?;
        let mut exit = process.exit;
        let running = inner.terminals.add(owner, process.input, process.control)?;
        let started = async {
            let started = start.confined(&sandboxed.confined);
            started.map_err(ToolCallError::new)?;
            exit.started().await.map_err(ToolCallError::new)
        };
        match started.await {
            Ok(pid) => {
                running.set_pid(pid);
                running.add_hold(hold);
                running.set_note(narrowed_note(&conflicts));
            }
            Err(why) => {
                inner.terminals.remove(running.id);
                return Err(why);
            }
        }
        let watching = running
            .clone()
            .watch(exit, process.stdout, process.stderr, sandboxed);
        tokio::spawn(watching);
        Ok((running, notices))
    }
}

/// Returns the environment of a command with the variables of its thread (`set`) and further ones
/// (`more`), which take precedence. `path` replaces `PATH`, if it is not the server's own.
pub(super) fn variables(
    path: Option<OsString>,
    set: BTreeMap<String, String>,
    more: &[(&str, &str)],
) -> Vec<(OsString, OsString)> {
    let own = VARIABLES.iter().chain(more);
    let own = own.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let changes = set.into_iter().chain(own);
    let changes = changes.map(|(name, value)| (name, Some(value)));
    let mut env = environment::of(std::env::vars_os(), &changes.collect());
    if let Some(path) = path {
        env.retain(|(name, _)| name != "PATH");
        env.push(("PATH".into(), path));
    }
    env
}

/// Holds the files that an approval covers.
pub(super) async fn hold(
    sandbox: &SandboxService,
    command: &str,
    paths: Vec<PathBuf>,
) -> Result<FileHold, ToolCallError> {
    let result = sandbox.holds().hold(command.to_owned(), paths).await;
    result.map_err(|error| match error {
        HoldError::Busy(HoldConflict { path, about }) => {
            tracing::info!(?path, about, "an approved command timed out waiting for a sandboxed command");
            ToolCallError::new(format!(
                "a command in the sandbox, of another thread or client, still runs and may write {}, which the approval of \
                 this command covers: {}. Wait until it is over, or ask the user to end it, and call again.",
                path.display(),
                shell::display_line(&about)
            ))
        }
        HoldError::Io(_) => ToolCallError::new(format!("{error}.")),
    })
}

/// Returns the note for the model on a command that got read access where it should have write
/// access.
fn narrowed_note(conflicts: &[HoldConflict]) -> Option<String> {
    let it = conflicts.first()?;
    tracing::info!(path = ?it.path, about = it.about, "a sandboxed command has only read access where files are held");
    Some(format!(
        "The folder around {} was read-only for this command: a command that the user approved runs outside the sandbox \
         and its files must not change until it has ended: {}. End it first if you must write there; files that it does \
         not name can be written with the tools for files.\n",
        it.path.display(),
        shell::display_line(&it.about)
    ))
}

pub(super) async fn confine(
    sandbox: &SandboxService,
    launch: Launch,
    confinement: raddle_sandbox::Confinement,
    wait: Duration,
) -> Result<(ConfinedProcess, Vec<HoldConflict>), ToolCallError> {
    let plan = sandbox.plan_within(launch, confinement, wait).await;
    let plan = plan.map_err(ToolCallError::new)?;
    let conflicts = plan.conflicts().to_vec();
    let sandboxed = tokio::task::spawn_blocking(move || plan.wrap()).await;
    let sandboxed = sandboxed.map_err(ToolCallError::new)?;
    let sandboxed = sandboxed.map_err(ToolCallError::new)?;
    Ok((sandboxed, conflicts))
}

/// Returns the result of a call that started a command, or listened to one.
pub(super) fn listen_result(
    inner: &ToolDeps,
    running: &RunningCommand,
    item: CommandRun,
    end: ListenEnd,
    output: TruncatedOutput,
    began: Instant,
) -> ToolResult {
    let elapsed = began.elapsed();
    let code = match end {
        ListenEnd::Exited(code) => code,
        ListenEnd::Running | ListenEnd::Stopped | ListenEnd::TimedOut => None,
    };
    let (status, outcome) = match end {
        ListenEnd::Exited(Some(0)) => (
            ItemStatus::Completed,
            "Process exited with code 0".to_owned(),
        ),
        ListenEnd::Exited(Some(code)) => (
            ItemStatus::Failed,
            format!("Process exited with code {code}"),
        ),
        ListenEnd::Exited(None) => (
            ItemStatus::Failed,
            "Process was lost; its exit code is not known".to_owned(),
        ),
        ListenEnd::Running => (
            ItemStatus::Completed,
            format!("Process running with session ID {}", running.id),
        ),
        ListenEnd::Stopped => (
            ItemStatus::Interrupted,
            "Process was ended by the user's interrupt".to_owned(),
        ),
        ListenEnd::TimedOut => (
            ItemStatus::Failed,
            "Process was ended because its time was up".to_owned(),
        ),
    };
    if end != ListenEnd::Running {
        inner.terminals.remove(running.id);
    }
    let tokens = output.tokens();
    let (text, full) = output.finish();
    let text = format!(
        "Wall time: {:.4} seconds\n{outcome}\n{}Original token count: {tokens}\nOutput:\n{}",
        elapsed.as_secs_f64(),
        running.start_note().unwrap_or_default(),
        text
    );
    let failed = status != ItemStatus::Completed;
    ToolResult {
        status,
        body: ItemBody::Command(CommandRun {
            source: match item.source {
                CommandSource::Agent => CommandSource::Terminal,
                source => source,
            },
            terminal: Some(running.id.to_string()),
            exit_code: code,
            duration_ms: i64::try_from(elapsed.as_millis()).ok(),
            ..item
        }),
        output: Output {
            failed,
            ..Output::text(text)
        },
        diff: None,
        pictures: Vec::new(),
        full,
    }
}

/// Returns the failed result of a command that was not run.
pub(super) fn refused(item: CommandRun, why: &str) -> ToolResult {
    let body = ItemBody::Command(item);
    ToolResult::new(ItemStatus::Failed, body, Output::failure(why))
}
