//! One command from its start until its call is over.

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

use super::confinement::{check_folder, check_visible, confinement_of};
use super::output_listener::{ListenEnd, OnTimeout, OutputListener};
use super::programs::search_path;
use super::request::{CommandRequest, WaitMode, is_confined};
use super::terminals::{CommandOwner, RunningCommand};
use crate::registry::ToolDeps;
use crate::shell;
use crate::truncation::TruncatedOutput;

/// How long a sandboxed command waits for files that an approved command of another thread holds. It is
/// longer than that one waits for sandboxed commands.
const HELD_WAIT: Duration = Duration::from_secs(45);

/// What commands find in their environment besides what they inherit: no pager waits for a key, and nothing
/// is coloured that a model reads.
const VARIABLES: [(&str, &str); 4] = [
    ("NO_COLOR", "1"),
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
];

/// Further variables of commands that an agent runs outside the sandbox. Git ignores a folder that merely looks like a
/// repository: a sandboxed command could have made it so.
const VARIABLES_OUTSIDE: [(&str, &str); 3] = [
    ("GIT_CONFIG_COUNT", "1"),
    ("GIT_CONFIG_KEY_0", "safe.bareRepository"),
    ("GIT_CONFIG_VALUE_0", "explicit"),
];

impl CommandRequest {
    /// Runs it, if it is what was allowed.
    pub(crate) async fn run(self, inner: Arc<ToolDeps>, job: ToolJob) -> ToolResult {
        // Reading a hostile line takes a while: not on a thread that others wait for.
        let read = tokio::task::spawn_blocking(move || {
            let wish = self.resolve_links(&job.settings);
            (wish.item(), wish, job)
        });
        let Ok((item, wish, job)) = read.await else {
            let why = "This was not run: what it is made of cannot be read.";
            return refused(CommandRun::default(), why);
        };
        // First this: whatever runs beside it could change what the digest is of.
        if let Some(why) = inner.terminals.sandboxed_conflict(&wish.owner(&job, &item)) {
            return refused(item, &format!("This was not run: {why}"));
        }
        // A yes is for the files as they were then. Without a sandbox around the command, nothing in one may
        // write them from the last look until the command is over.
        let is_unfenced = wish.beyond || !is_confined(&job.settings);
        let is_exact = matches!(job.authorization, Some(Authorization::Exactly(_)));
        let holds = inner.sandbox.holds().clone();
        let listed = tokio::task::spawn_blocking(move || {
            let paths =
                (is_unfenced && is_exact).then(|| wish.subject(&job.settings, &holds).paths);
            (paths, wish, job)
        });
        let Ok((paths, wish, job)) = listed.await else {
            return refused(item, "This was not run: what it is made of cannot be read.");
        };
        let hold = match paths {
            Some(paths) => match hold(&inner.sandbox, &item.command, paths).await {
                Ok(hold) => Some(hold),
                Err(why) => return refused(item, &format!("This was not run: {why}")),
            },
            None => None,
        };
        let holds = inner.sandbox.holds().clone();
        let looked = tokio::task::spawn_blocking(move || {
            let subject = is_exact.then(|| wish.subject(&job.settings, &holds));
            // No approval is for a command without a digest.
            let (digest, paths) = subject.map_or_else(Default::default, |it| {
                (it.digest.unwrap_or_default(), it.paths)
            });
            let is_held = hold.as_ref().is_none_or(|it| it.covers(&paths));
            let may = is_held && job.allows(&wish.kind(), || digest);
            (may, wish, job, hold)
        });
        let Ok((may, wish, job, hold)) = looked.await else {
            return refused(item, "This was not run: what it is made of cannot be read.");
        };
        if !may {
            return refused(
                item,
                "This was not run: what it would do, or where, is no longer what was allowed. Call it again.",
            );
        }
        wish.run_holding(inner, job, item, hold).await
    }

    /// Itself, unless it is longer than what is shown to a user who is asked.
    pub(crate) fn check_length(self) -> Result<Self, String> {
        let line = shell::quoted(&self.words);
        match shell::is_shown_whole(&line) {
            true => Ok(self),
            false => Err(format!(
                "The command was not run: its {} bytes are too long to be shown whole to whoever is asked about it. Write \
                 them to a script file, and run that.",
                line.len()
            )),
        }
    }

    /// Runs it, whatever anyone says of it.
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
        let whose = self.owner(&job, &item);
        let is_users = job.item.is_users_command();
        let starting = self.start(&inner, job.settings.clone(), whose, is_users, hold);
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
        let left = listener.listen(time, then, &mut stopped).await;
        let cut = std::mem::replace(&mut listener.output, TruncatedOutput::new(0));
        drop(listener);
        ended(&inner, &running, item, left, cut, began)
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

    /// Starts it in its fence, which may have something to say.
    async fn start(
        &self,
        inner: &ToolDeps,
        settings: Settings,
        whose: CommandOwner,
        is_users: bool,
        hold: Option<FileHold>,
    ) -> Result<(Arc<RunningCommand>, Vec<Notice>), String> {
        let path = inner.path.get().await;
        let (own, operator) = (inner.own.clone(), inner.operator.clone());
        let holds = inner.sandbox.holds().clone();
        let beyond = self.beyond;
        // A yes to a program's name is none to a program that commands in the sandbox can write.
        let names = match beyond && is_confined(&settings) && !is_users {
            true => Some(self.names()),
            false => None,
        };
        let planned = tokio::task::spawn_blocking(move || {
            check_folder(&settings)?;
            let (path, more) = match names {
                Some(names) => {
                    let path = search_path(&settings, &names, path, &holds)?;
                    (Some(path), &VARIABLES_OUTSIDE[..])
                }
                None => (path, &[][..]),
            };
            let env = variables(path, more);
            if beyond {
                let held = raddle_sandbox::Confinement {
                    policy: raddle_sandbox::Policy::FullAccess,
                    network: None,
                    accepts_second: false,
                };
                return Ok((held, env));
            }
            confinement_of(&settings, &own, &*operator).map(|it| (it, env))
        });
        let (held, env) = planned.await.map_err(|error| error.to_string())??;
        let mut words = self.words.iter().map(Into::into);
        let launch = Launch {
            program: words.next().unwrap_or_default(),
            args: words.collect(),
            cwd: self.cwd.clone(),
            env,
        };
        check_visible(&held, &self.cwd)?;
        // A hold of this thread's own goes only when the thread ends its command.
        let wait = match inner.terminals.has_hold(whose.thread) {
            true => Duration::ZERO,
            false => HELD_WAIT,
        };
        let (mut inside, conflicts) = confine(&inner.sandbox, launch, held, wait).await?;
        let notices = std::mem::take(&mut inside.confined.notices);
        let stdio = match self.tty {
            true => Stdio::Terminal(TerminalSize::default()),
            // A model has nothing more to say to it.
            false => Stdio::Joined,
        };
        let opened = inner.launcher.open(stdio);
        let (process, start) = opened.map_err(|error| error.to_string())?;
        let mut life = process.exit;
        let running = inner.terminals.add(whose, process.input, process.control)?;
        let started = async {
            let started = start
                .confined(&inside.confined)
                .map_err(|it| it.to_string());
            started?;
            life.started().await.map_err(|error| error.to_string())
        };
        match started.await {
            Ok(pid) => {
                running.is_process(pid);
                running.keep(hold);
                running.note(narrowed(&conflicts));
            }
            Err(why) => {
                inner.terminals.remove(running.id);
                return Err(why);
            }
        }
        let watching = running
            .clone()
            .watch(life, process.stdout, process.stderr, inside);
        tokio::spawn(watching);
        Ok((running, notices))
    }
}

/// The environment of a command with these variables more, whose `PATH` is this one, if not the server's own.
fn variables(path: Option<OsString>, more: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    let set = VARIABLES.iter().chain(more);
    let set = set.map(|(name, value)| ((*name).to_owned(), Some((*value).to_owned())));
    let mut env = environment::of(std::env::vars_os(), &set.collect());
    if let Some(path) = path {
        env.retain(|(name, _)| name != "PATH");
        env.push(("PATH".into(), path));
    }
    env
}

/// A hold on the files that a yes is about.
pub(super) async fn hold(
    fences: &SandboxService,
    command: &str,
    paths: Vec<PathBuf>,
) -> Result<FileHold, String> {
    let held = fences.holds().hold(command.to_owned(), paths).await;
    held.map_err(|error| match error {
        HoldError::Busy(HoldConflict { path, about }) => {
            tracing::info!(path = %path.display(), about, "an approved command waited in vain for a sandboxed one");
            format!(
                "a command in the sandbox, of another thread or client, still runs and may write {}, which the yes to \
                 this one is about: {}. Wait until it is over, or ask the user to end it, and call again.",
                path.display(),
                shell::display_line(&about)
            )
        }
        HoldError::Io(_) => format!("{error}."),
    })
}

/// What the model is told of a command that could only read where it should write.
fn narrowed(conflicts: &[HoldConflict]) -> Option<String> {
    let it = conflicts.first()?;
    tracing::info!(path = %it.path.display(), about = it.about, "a sandboxed command may only read where files are held");
    Some(format!(
        "The folder around {} was read-only for this command: a command that the user approved runs outside the sandbox \
         and its files must not change until it has ended: {}. End it first if you must write there; files that it does \
         not name can be written with the tools for files.\n",
        it.path.display(),
        shell::display_line(&it.about)
    ))
}

async fn confine(
    fences: &SandboxService,
    launch: Launch,
    held: raddle_sandbox::Confinement,
    wait: Duration,
) -> Result<(ConfinedProcess, Vec<HoldConflict>), String> {
    let ready = fences.plan_within(launch, held, wait).await;
    let ready = ready.map_err(|error| error.to_string())?;
    let conflicts = ready.conflicts().to_vec();
    let inside = tokio::task::spawn_blocking(move || ready.wrap()).await;
    let inside = inside.map_err(|error| error.to_string())?;
    let inside = inside.map_err(|error| error.to_string())?;
    Ok((inside, conflicts))
}

/// What came of a call that started a command, or listened to one.
pub(super) fn ended(
    inner: &ToolDeps,
    running: &RunningCommand,
    item: CommandRun,
    left: ListenEnd,
    cut: TruncatedOutput,
    began: Instant,
) -> ToolResult {
    let took = began.elapsed();
    let code = match left {
        ListenEnd::Exited(code) => code,
        ListenEnd::Running | ListenEnd::Stopped | ListenEnd::TimedOut => None,
    };
    let (status, how) = match left {
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
            "Process was lost, and how it ended is not known".to_owned(),
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
    if left != ListenEnd::Running {
        inner.terminals.remove(running.id);
    }
    let tokens = cut.tokens();
    let (text, full) = cut.finish();
    let text = format!(
        "Wall time: {:.4} seconds\n{how}\n{}Original token count: {tokens}\nOutput:\n{}",
        took.as_secs_f64(),
        running.noted().unwrap_or_default(),
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
            duration_ms: i64::try_from(took.as_millis()).ok(),
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

/// Nothing was done, and this is why.
pub(super) fn refused(item: CommandRun, why: &str) -> ToolResult {
    let body = ItemBody::Command(item);
    ToolResult::new(ItemStatus::Failed, body, Output::failure(why))
}
