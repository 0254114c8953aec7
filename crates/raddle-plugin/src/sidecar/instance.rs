//! One installed plugin: its process is started for a call, checked for health, stopped when
//! nobody uses it, and not started for a while after failures.

mod opened_call;
mod supervisor;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use raddle_console::sanitize;
use raddle_core::AskElicitation;
use raddle_core::ports::{BoxFuture, PluginActs};
use raddle_rpc::ErrorObject;
use raddle_sandbox::is_replaceable;
use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore, SemaphorePermit, watch};
use tokio::time::timeout;
use tracing::Instrument;

use self::opened_call::OpenedCall;
use self::supervisor::{EXIT_TIMEOUT, Supervisor};
use super::answer_channel::AnswerSender;
use super::conformance::health_violation;
use super::events::EventReceiver;
use super::folder_hash;
use super::host::PluginHost;
use super::inspection::InspectedPlugin;
use super::launch::{self, LaunchedPlugin, PluginStartError};
use super::manifest::Manifest;
use super::session::{PluginCallError, PluginSession};
use crate::backoff::Backoff;
use crate::log_file::LogFile;
use crate::mcp::CallUser;
use crate::process::{ProcessStarter, SandboxedProcess};
use crate::stderr_log::{StderrLog, StderrOrigin};

/// Limit: time of a call of a plugin's tool, without the time in which the user is asked; beyond
/// it, the call fails.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(120);

/// Limit: calls of one plugin by clients that are open at a time; beyond it, the call fails. The
/// other calls of a plugin are for threads.
const CLIENT_CALLS_MAX: usize = 16;

/// Limit: time in which a plugin answers `plugin/health`; beyond it, its process is ended, unless a
/// call is open.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest description of a failure. Parts of it come from the plugin.
const FAILURE_BYTES_MAX: usize = 4 << 10;

/// Reason why a call of a plugin has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PluginToolError {
    #[error("it was stopped")]
    Stopped,
    #[error("it did not answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    #[error(
        "the plugin is changed, disabled or removed; call the tool again if it is still offered"
    )]
    Replaced,
    #[error("the plugin failed before ({reason}), and can be started again in {} s", wait.as_secs() + 1)]
    BackingOff { reason: String, wait: Duration },
    #[error("the plugin does not start: {0}")]
    NotStarted(String),
    #[error("the plugin does not run: {0}")]
    NotLoaded(String),
    #[error("{CLIENT_CALLS_MAX} calls of clients are open; try again when one has ended")]
    TooManyClientCalls,
    #[error("the agent may write {} or the folders around it; move it", .0.display())]
    Writable(PathBuf),
    #[error(transparent)]
    Call(#[from] PluginCallError),
}

/// Reason why the process of a plugin does not run.
#[derive(Debug, thiserror::Error)]
enum StartFailure {
    #[error(transparent)]
    Start(#[from] PluginStartError),
    #[error("plugin/health failed: {error}{stderr}")]
    Health { error: String, stderr: String },
    #[error("its files changed while it started")]
    Modified,
}

/// A call of a plugin's method.
pub(super) struct PluginCall {
    pub(super) method: String,
    pub(super) arguments: Value,
    /// User behind the call; `None` if no question belongs to it.
    pub(super) user: Option<CallUser>,
    /// Acts in the thread that makes the call; `None` if no turn makes it.
    pub(super) acts: Option<Arc<dyn PluginActs>>,
    /// Longest time of the call, without the time in which the user is asked.
    pub(super) limit: Duration,
    /// Receives the answer of a model.
    pub(super) answer: Option<AnswerSender>,
    /// Receives the events of the plugin during the call.
    pub(super) events: EventReceiver,
    /// Completes once the call must stop.
    pub(super) stopped: BoxFuture<'static, ()>,
    /// Folders that the agent may write, with their real paths. No program is started from there.
    pub(super) writable: Vec<PathBuf>,
}

/// An installed plugin whose files are trusted.
pub(super) struct PluginInstance {
    pub(super) plugin: InspectedPlugin,
    manifest: Arc<Manifest>,
    host: Arc<PluginHost>,
    starter: ProcessStarter,
    log: LogFile,
    client_calls: Semaphore,
    /// Held while the process is started.
    starting: tokio::sync::Mutex<()>,
    state: Mutex<ProcessState>,
}

#[derive(Default)]
struct ProcessState {
    running: Option<Arc<RunningPlugin>>,
    backoff: Backoff,
    /// The last failure, and the time until which the plugin is not started.
    retry_at: Option<(String, Instant)>,
    is_stopped: bool,
}

/// The process of a plugin.
struct RunningPlugin {
    session: PluginSession,
    /// File of its program.
    program: PathBuf,
    /// Permissions for the hosts that it reaches.
    network: Vec<String>,
    last_used: Mutex<Instant>,
    /// Number of calls so far.
    calls: AtomicU64,
    /// Notified when its health must be checked at once.
    check: Notify,
    /// Reason why it must be ended, although calls may be open.
    failure: OnceLock<&'static str>,
    stop: watch::Sender<bool>,
    is_ended: watch::Sender<bool>,
}

impl RunningPlugin {
    fn new(session: PluginSession, program: PathBuf, network: Vec<String>) -> Self {
        Self {
            session,
            program,
            network,
            last_used: Mutex::new(Instant::now()),
            calls: AtomicU64::new(0),
            check: Notify::new(),
            failure: OnceLock::new(),
            stop: watch::Sender::new(false),
            is_ended: watch::Sender::new(false),
        }
    }

    /// Ends the process, although calls may be open.
    fn fail(&self, reason: &'static str) {
        let _ = self.failure.set(reason);
        self.check.notify_one();
    }

    fn touch(&self) {
        *lock(&self.last_used) = Instant::now();
    }

    fn is_ending(&self) -> bool {
        self.session.is_closed() || *self.stop.borrow()
    }

    /// Waits until the process has ended, and its failure is counted.
    async fn ended(&self) {
        // This value holds the sender, so it is open.
        let _ = self.is_ended.subscribe().wait_for(|it| *it).await;
    }
}

impl PluginInstance {
    /// Creates the instance; nothing is started yet. `home` contains the files of plugins.
    pub(super) fn new(
        plugin: InspectedPlugin,
        starter: ProcessStarter,
        log: LogFile,
        home: &Path,
    ) -> Arc<Self> {
        let host = Arc::new(PluginHost::new(&plugin, log.clone(), home));
        Arc::new(Self {
            manifest: host.manifest.clone(),
            host,
            plugin,
            starter,
            log,
            client_calls: Semaphore::new(CLIENT_CALLS_MAX),
            starting: tokio::sync::Mutex::default(),
            state: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, ProcessState> {
        lock(&self.state)
    }

    /// Reserves a call of a client. They must not take all calls of the plugin, because its hooks
    /// need some.
    pub(super) fn reserve_client_call(&self) -> Result<SemaphorePermit<'_>, PluginToolError> {
        let permit = self.client_calls.try_acquire();
        permit.map_err(|_| PluginToolError::TooManyClientCalls)
    }

    /// Stores the approval of a permission; see [`PluginHost::approve_asked`].
    pub(super) async fn approve_asked(
        &self,
        ask: &AskElicitation,
        by: &str,
    ) -> Result<bool, ErrorObject> {
        self.host.approve_asked(ask, by).await
    }

    /// Calls a method. The process is started if it does not run.
    pub(super) async fn call(
        self: &Arc<Self>,
        mut call: PluginCall,
    ) -> Result<Value, PluginToolError> {
        let writable = std::mem::take(&mut call.writable);
        // From now on the process is neither idle nor checked.
        let mut opened = OpenedCall::new(&self.host, call);
        let running = tokio::select! {
            biased;
            running = self.running(&writable) => running?,
            () = &mut opened.stopped => return Err(PluginToolError::Stopped),
        };
        opened.answered(&running).await
    }

    /// Returns the process, and starts it if it does not run.
    async fn running(
        self: &Arc<Self>,
        writable: &[PathBuf],
    ) -> Result<Arc<RunningPlugin>, PluginToolError> {
        // Other threads may use the same process, so this is checked for each call.
        self.refuse_folder(writable)?;
        let _starting = self.starting.lock().await;
        let network = self.host.approved_network().await;
        while let Some(running) = self.current()? {
            if self.has_other_network(&running, &network) {
                running.stop.send_replace(true);
            }
            if !running.is_ending() {
                refuse_program(&running.program, writable).await?;
                running.touch();
                return Ok(running);
            }
            running.ended().await;
        }
        match self.start(network, writable).await {
            Ok(running) => Ok(running),
            Err(failure) => {
                let text = failure.to_string();
                self.fail(&text);
                Err(PluginToolError::NotStarted(text))
            }
        }
    }

    /// Refuses the plugin if the agent may write its folder, or a part of it. All of these paths are
    /// real ones.
    fn refuse_folder(&self, writable: &[PathBuf]) -> Result<(), PluginToolError> {
        let folder = &self.plugin.folder;
        let overlaps = |it: &PathBuf| folder.starts_with(it) || it.starts_with(folder);
        match writable.iter().any(overlaps) {
            true => Err(PluginToolError::Writable(folder.clone())),
            false => Ok(()),
        }
    }

    /// Whether a process must be started again, because the hosts that it may reach have changed. A
    /// revoked host is taken from it at once; a new one waits for the end of other calls.
    fn has_other_network(&self, running: &RunningPlugin, network: &[String]) -> bool {
        let is_revoked = |it: &String| !network.contains(it);
        running.network.iter().any(is_revoked)
            || (running.network != network && self.host.calls.has_one_at_most())
    }

    /// Returns the process if there is one, or why none may be started.
    fn current(&self) -> Result<Option<Arc<RunningPlugin>>, PluginToolError> {
        let state = self.state();
        if state.is_stopped {
            return Err(PluginToolError::Replaced);
        }
        if state.running.is_some() {
            return Ok(state.running.clone());
        }
        match &state.retry_at {
            Some((reason, until)) if *until > Instant::now() => Err(PluginToolError::BackingOff {
                reason: reason.clone(),
                wait: until.saturating_duration_since(Instant::now()),
            }),
            _ => Ok(None),
        }
    }

    async fn start(
        self: &Arc<Self>,
        network: Vec<String>,
        writable: &[PathBuf],
    ) -> Result<Arc<RunningPlugin>, StartFailure> {
        let folder = &self.plugin.folder;
        let (hosts, writable) = (network.clone(), writable.to_owned());
        let launched = launch::start(&self.starter, folder, &self.manifest, hosts, writable);
        let launched = launched.await?;
        let LaunchedPlugin { process, program } = launched;
        let SandboxedProcess {
            input,
            stdout,
            stderr,
            guard,
            ..
        } = process;
        let origin = StderrOrigin::Plugin(Some(self.log.clone()));
        let mut stderr = StderrLog::follow(origin, self.manifest.id.clone(), stderr);
        let session = PluginSession::start(stdout, input, self.host.clone());
        if let Err(error) = self.check_health(&session).await {
            // A process that ends closes its output first; its stderr says why it ended.
            let _ = timeout(EXIT_TIMEOUT, stderr.ended()).await;
            let stderr = described(&stderr);
            return Err(StartFailure::Health { error, stderr });
        }
        // Its program may have been read after the files were compared with the trusted ones.
        if !self.is_unchanged().await {
            return Err(StartFailure::Modified);
        }
        let running = Arc::new(RunningPlugin::new(session, program, network));
        let mut state = self.state();
        if state.is_stopped {
            return Err(StartFailure::Modified);
        }
        state.running = Some(running.clone());
        drop(state);
        self.log.append("raddle: the plugin is started\n");
        let supervisor = Supervisor {
            instance: self.clone(),
            running: running.clone(),
            guard,
            stderr,
        };
        let span = tracing::info_span!(parent: None, "plugin", id = self.manifest.id);
        tokio::spawn(supervisor.run().instrument(span));
        Ok(running)
    }

    /// Whether the folder has the stamp of the trusted files.
    async fn is_unchanged(&self) -> bool {
        let folder = self.plugin.folder.clone();
        let stamp = tokio::task::spawn_blocking(move || folder_hash::stamp(&folder)).await;
        matches!(stamp, Ok(Ok(stamp)) if stamp == self.plugin.hash.stamp)
    }

    /// Calls `plugin/health`, and describes what is wrong with the response.
    async fn check_health(&self, session: &PluginSession) -> Result<(), String> {
        let params = json!({});
        let health = session.call("plugin/health", &params, HEALTH_TIMEOUT);
        let result = health.await.map_err(|error| error.to_string())?;
        match health_violation(&self.manifest, &result) {
            Some(violation) => Err(violation.message),
            None => Ok(()),
        }
    }

    /// Counts a failure, after which the plugin is not started for a while.
    fn fail(&self, reason: &str) {
        let mut reason = reason.to_owned();
        reason.truncate(reason.floor_char_boundary(FAILURE_BYTES_MAX));
        self.log.append(format!("raddle: {reason}\n"));
        let now = Instant::now();
        let mut state = self.state();
        let wait = state.backoff.fail(now);
        let is_open = state.backoff.is_open();
        state.running = None;
        state.retry_at = Some((reason.clone(), now + wait));
        drop(state);
        let plugin = &self.manifest.id;
        match is_open {
            true => tracing::warn!(
                plugin,
                reason,
                wait_s = wait.as_secs(),
                "a plugin has failed too often and is off; `raddle plugin logs` shows more"
            ),
            false => tracing::info!(plugin, reason, "a plugin has failed"),
        }
    }

    /// Stops the process, without waiting. No other is started.
    pub(super) fn stop(&self) {
        let mut state = self.state();
        state.is_stopped = true;
        self.host.stop();
        if let Some(running) = &state.running {
            running.stop.send_replace(true);
        }
    }
}

/// Refuses a program that the agent may replace. Links are followed.
async fn refuse_program(program: &Path, writable: &[PathBuf]) -> Result<(), PluginToolError> {
    let (path, writable) = (program.to_owned(), writable.to_owned());
    let is_replaceable = move || is_replaceable(&path, &writable);
    match tokio::task::spawn_blocking(is_replaceable).await {
        Ok(false) => Ok(()),
        Ok(true) | Err(_) => Err(PluginToolError::Writable(program.to_owned())),
    }
}

/// Returns the last lines of a stderr as a part of an error, which items show.
fn described(stderr: &StderrLog) -> String {
    match stderr.last_lines().trim() {
        "" => String::new(),
        text => format!("; it wrote: {}", sanitize(text)),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
