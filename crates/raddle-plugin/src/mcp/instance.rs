//! One instance of an MCP server: started in the background, restarted when it fails, stopped when
//! nobody uses it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use raddle_config::McpServer;
use raddle_core::Settings;
use raddle_core::ports::{McpListener, McpServerState};
use rmcp::{Peer, RoleClient};
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, sleep_until, timeout};
use tracing::Instrument;

use super::call::OpenCalls;
use super::connection::{ConnectError, Connection, OpenProcess, connect};
use super::elicitation::{CallElicitations, CallUser, Elicitations, OpenRead};
use super::handler::Handler;
use super::launch::LaunchDeps;
use super::tool_changes;
use super::tool_table::ToolTable;
use crate::backoff::Backoff;

/// Limit: time without a model call or a tool call after which an MCP server is stopped; beyond
/// it, the next use starts the server again.
const IDLE_MAX: Duration = Duration::from_secs(600);

/// Longest description of a failure. Parts of it come from the server.
const ERROR_BYTES_MAX: usize = 4 << 10;

/// How often it is checked whether calls run, before a restart.
const CALLS_CHECK: Duration = Duration::from_millis(100);

/// Shortest time between two requests of a list of tools that changed. Changes in between lead to
/// one request.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);

/// How often the idle time is checked.
const IDLE_CHECK: Duration = Duration::from_secs(30);

/// State of an instance.
#[derive(Clone, Debug)]
pub(crate) enum InstanceState {
    /// It is being started.
    Starting,
    /// It is connected.
    Ready(Arc<Session>),
    /// It is about to start again in another sandbox. Its tools are those of this session, and
    /// calls wait.
    Restarting(Arc<Session>),
    /// It failed with this error, and is started again later.
    Failed(Arc<Failure>),
    /// It was stopped.
    Stopped,
}

/// Failure of an instance.
#[derive(Debug, Default)]
pub(crate) struct Failure {
    /// Description for the user and the model.
    pub(crate) text: String,
    /// Whether the server requires a login.
    pub(crate) needs_login: bool,
    /// Remedy for the user.
    pub(crate) advice: &'static str,
}

/// A connected server.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) tools: ToolTable,
    /// Name and version of the server, as it reports them.
    pub(crate) info: Option<Value>,
    /// Whether the server has resources.
    pub(crate) has_resources: bool,
}

/// One instance of an MCP server, shared by all threads with the same folders and sandbox.
pub(crate) struct Instance {
    pub(crate) server: Arc<McpServer>,
    pub(crate) calls: Arc<OpenCalls>,
    pub(crate) elicitations: Arc<Elicitations>,
    state: watch::Sender<InstanceState>,
    last_used: Mutex<Instant>,
    stop: watch::Sender<bool>,
    /// Notified when a failed server must be started again at once.
    retry: Notify,
    listener: Arc<OnceLock<McpListener>>,
}

impl Instance {
    fn new(server: Arc<McpServer>, listener: Arc<OnceLock<McpListener>>) -> Self {
        Self {
            elicitations: Elicitations::new(server.name.clone()),
            server,
            calls: Arc::default(),
            state: watch::Sender::new(InstanceState::Starting),
            last_used: Mutex::new(Instant::now()),
            stop: watch::Sender::new(false),
            retry: Notify::new(),
            listener,
        }
    }

    /// Starts an instance in the background.
    pub(crate) fn start(
        deps: Arc<LaunchDeps>,
        server: Arc<McpServer>,
        settings: Settings,
        listener: Arc<OnceLock<McpListener>>,
    ) -> Arc<Self> {
        let instance = Arc::new(Self::new(server, listener));
        let span = tracing::info_span!(parent: None, "mcp_server", server = instance.server.name);
        let supervisor = Supervisor {
            instance: instance.clone(),
            deps,
            settings: Arc::new(settings),
            backoff: Backoff::default(),
        };
        tokio::spawn(supervisor.run().instrument(span));
        instance
    }

    /// Returns the current state.
    pub(crate) fn state(&self) -> InstanceState {
        self.state.borrow().clone()
    }

    /// Changes the state, and passes it to the listener.
    fn set_state(&self, state: InstanceState) {
        let seen = match &state {
            InstanceState::Starting | InstanceState::Restarting(_) => {
                Some(McpServerState::Starting)
            }
            InstanceState::Ready(_) => Some(McpServerState::Ready),
            InstanceState::Failed(error) => Some(McpServerState::Failed(error.text.clone())),
            InstanceState::Stopped => None,
        };
        self.state.send_replace(state);
        if let (Some(listener), Some(seen)) = (self.listener.get(), seen) {
            listener(&self.server.name, &seen);
        }
    }

    /// Returns the session of a server that is connected or about to start again.
    pub(crate) fn session(&self) -> Option<Arc<Session>> {
        match self.state() {
            InstanceState::Ready(session) | InstanceState::Restarting(session) => Some(session),
            InstanceState::Starting | InstanceState::Failed(_) | InstanceState::Stopped => None,
        }
    }

    /// Waits until the server is no longer starting, and returns its state.
    pub(crate) async fn settled(&self) -> InstanceState {
        let mut receiver = self.state.subscribe();
        let is_settled = |it: &InstanceState| {
            !matches!(it, InstanceState::Starting | InstanceState::Restarting(_))
        };
        let settled = receiver.wait_for(is_settled);
        match settled.await {
            Ok(state) => state.clone(),
            Err(_) => InstanceState::Stopped,
        }
    }

    /// Waits for the result of a start: of the one that runs, or of a new one after a failure.
    pub(crate) async fn started(&self) -> InstanceState {
        let mut receiver = self.state.subscribe();
        if matches!(*receiver.borrow_and_update(), InstanceState::Failed(_)) {
            self.retry.notify_one();
            let _ = receiver.changed().await;
        }
        self.settled().await
    }

    /// Whether it was stopped, and so cannot be used any more.
    pub(crate) fn is_stopped(&self) -> bool {
        *self.stop.borrow() || matches!(*self.state.borrow(), InstanceState::Stopped)
    }

    /// Marks the instance as used now.
    pub(crate) fn touch(&self) {
        *self
            .last_used
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Stops the instance, and waits until its process has ended.
    pub(crate) async fn stop(&self) {
        self.stop.send_replace(true);
        self.stopped().await;
    }

    /// Waits until the instance is stopped.
    pub(crate) async fn stopped(&self) {
        let mut receiver = self.state.subscribe();
        let _ = receiver
            .wait_for(|it| matches!(it, InstanceState::Stopped))
            .await;
    }

    /// Adds a call, which keeps the instance from being stopped while idle. Returns the session
    /// for it, or `None` if the server is not connected, or is about to stop or start again.
    pub(crate) fn open_call(
        &self,
        user: Option<CallUser>,
    ) -> Option<(Arc<Session>, CallElicitations)> {
        let call = self.elicitations.add_call(user);
        // A stop or a restart that was decided before does not wait for the call.
        let session = self.usable_session()?;
        Some((session, call))
    }

    /// Adds a read, like [`Instance::open_call`].
    pub(crate) fn open_read(&self) -> Option<(Arc<Session>, OpenRead)> {
        let read = self.elicitations.add_read();
        let session = self.usable_session()?;
        Some((session, read))
    }

    /// Returns the session of a server that is connected, and not about to stop or start again.
    fn usable_session(&self) -> Option<Arc<Session>> {
        match self.state() {
            InstanceState::Ready(session) if !self.is_stopped() => Some(session),
            _ => None,
        }
    }

    /// Decides to stop if nothing uses the instance. Returns whether it did.
    fn stop_if_idle(&self) -> bool {
        let last_used = *self
            .last_used
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // A call whose server waits for the user is not open on the connection.
        let stop = || {
            self.stop.send_replace(true);
        };
        last_used.elapsed() > IDLE_MAX && self.elicitations.if_unused(stop)
    }

    /// Waits until it must stop: on request, or because nobody uses it.
    async fn must_stop(&self) {
        let mut stop = self.stop.subscribe();
        let idle = async {
            while !self.stop_if_idle() {
                sleep(IDLE_CHECK).await;
            }
        };
        tokio::select! {
            _ = stop.wait_for(|it| *it) => {}
            () = idle => {
                tracing::info!("an MCP server that nobody uses is stopped");
            }
        }
    }
}

/// Reason why a connection is no longer used.
enum ServeEnd {
    /// The instance must stop.
    Stopped,
    /// The process must be started again in another sandbox.
    Outdated,
    /// The connection failed.
    Failed(Failure),
}

/// The task behind an instance.
struct Supervisor {
    instance: Arc<Instance>,
    deps: Arc<LaunchDeps>,
    settings: Arc<Settings>,
    backoff: Backoff,
}

impl Supervisor {
    async fn run(mut self) {
        let instance = self.instance.clone();
        let mut must_stop = std::pin::pin!(instance.must_stop());
        // Each start is announced once, also if it has to begin again in another sandbox.
        instance.set_state(InstanceState::Starting);
        loop {
            let tools_changed = Arc::new(Notify::new());
            let connected = tokio::select! {
                biased;
                () = &mut must_stop => break,
                connected = self.connect(&tools_changed) => connected,
            };
            let error = match connected {
                Err(ConnectError::Outdated) => continue,
                Err(error) => {
                    let mut text = error.to_string();
                    text.truncate(text.floor_char_boundary(ERROR_BYTES_MAX));
                    Failure {
                        needs_login: matches!(error, ConnectError::NeedsLogin { .. }),
                        advice: error.advice(),
                        text,
                    }
                }
                Ok((connection, session)) => {
                    tracing::info!(
                        tools = session.tools.all().count(),
                        "an MCP server is connected"
                    );
                    let peer = session.peer.clone();
                    instance.set_state(InstanceState::Ready(Arc::new(session)));
                    let ended = self.serve(connection, &peer, &tools_changed, must_stop.as_mut());
                    match ended.await {
                        ServeEnd::Stopped => break,
                        ServeEnd::Outdated => continue,
                        ServeEnd::Failed(error) => error,
                    }
                }
            };
            let wait = self.backoff.fail(Instant::now());
            tracing::warn!(
                error = error.text,
                wait_s = wait.as_secs(),
                "an MCP server is not connected"
            );
            instance.set_state(InstanceState::Failed(Arc::new(error)));
            tokio::select! {
                biased;
                () = &mut must_stop => break,
                () = instance.retry.notified() => {}
                () = sleep(wait) => {}
            }
            instance.set_state(InstanceState::Starting);
        }
        instance.set_state(InstanceState::Stopped);
    }

    async fn connect(
        &self,
        tools_changed: &Arc<Notify>,
    ) -> Result<(Connection, Session), ConnectError> {
        let server = &self.instance.server;
        let handler = Handler {
            server: server.name.as_str().into(),
            calls: self.instance.calls.clone(),
            elicitations: self.instance.elicitations.clone(),
            tools_changed: tools_changed.clone(),
            log: Arc::default(),
            output: None,
        };
        let limit = server.startup_timeout;
        let deadline = tokio::time::Instant::now() + limit;
        let connection = connect(&self.deps, server, &self.settings, handler, deadline).await?;
        let peer = connection.service.peer().clone();
        let info = peer.peer_info();
        let capabilities = info.as_ref().map(|it| &it.capabilities);
        let tools = match capabilities.is_none_or(|it| it.tools.is_some()) {
            true => self.list_tools(&connection).await?,
            false => ToolTable::default(),
        };
        let session = Session {
            has_resources: capabilities.is_some_and(|it| it.resources.is_some()),
            info: info
                .as_ref()
                .and_then(|it| serde_json::to_value(&it.server_info).ok()),
            peer,
            tools,
        };
        Ok((connection, session))
    }

    /// Requests the tools of a server that has just connected.
    async fn list_tools(&self, connection: &Connection) -> Result<ToolTable, ConnectError> {
        let server = &self.instance.server;
        let process = connection.process.as_ref();
        tokio::select! {
            tools = ToolTable::request(server, connection.service.peer()) => Ok(tools?),
            () = outdated(process) => Err(ConnectError::Outdated),
            () = sleep_until(connection.deadline) => Err(ConnectError::TimedOut {
                limit: server.startup_timeout,
                stderr: process.map(|it| it.stderr_end()).unwrap_or_default(),
            }),
        }
    }

    /// Waits until the process must be started again: its sandbox no longer fits the files that
    /// approved commands hold, and no call runs. Meanwhile new calls wait.
    async fn must_restart(&self, process: Option<&OpenProcess>) {
        loop {
            outdated(process).await;
            let (Some(process), Some(session)) = (process, self.instance.session()) else {
                return;
            };
            self.instance
                .set_state(InstanceState::Restarting(session.clone()));
            loop {
                if !self.instance.elicitations.has_calls() {
                    return;
                }
                sleep(CALLS_CHECK).await;
                if process.fits().await {
                    break self.instance.set_state(InstanceState::Ready(session));
                }
            }
        }
    }

    /// Keeps a connection until it fails or the instance must stop.
    async fn serve(
        &self,
        connection: Connection,
        peer: &Peer<RoleClient>,
        tools_changed: &Notify,
        mut must_stop: std::pin::Pin<&mut impl Future<Output = ()>>,
    ) -> ServeEnd {
        let Connection {
            service, process, ..
        } = connection;
        let token = service.cancellation_token();
        let mut closed = std::pin::pin!(service.waiting());
        let following = async {
            tool_changes::follow(peer, tools_changed).await;
            std::future::pending::<()>().await;
        };
        let mut following = std::pin::pin!(following);
        let mut next_refresh = tokio::time::Instant::now();
        let mut outdated = Box::pin(self.must_restart(process.as_ref()));
        let mut end = loop {
            let refreshed = async {
                sleep_until(next_refresh).await;
                tools_changed.notified().await;
                self.refresh_tools(peer).await;
            };
            tokio::select! {
                biased;
                () = must_stop.as_mut() => break ServeEnd::Stopped,
                _ = &mut closed => break ServeEnd::Failed(Failure::default()),
                () = &mut outdated => break ServeEnd::Outdated,
                () = &mut following => {}
                () = refreshed => next_refresh = tokio::time::Instant::now() + REFRESH_INTERVAL,
            }
        };
        drop(outdated);
        // Closes its stdin.
        token.cancel();
        let stderr = process.as_ref().map(|it| it.stderr_end());
        if let Some(process) = process {
            process.end().await;
        }
        if let ServeEnd::Failed(failure) = &mut end {
            let stderr = stderr.unwrap_or_default();
            failure.text = format!("the connection was closed{stderr}");
            failure.advice = "run the command of the server yourself, and look at its output";
        }
        end
    }

    /// Requests the list of tools again, after the server announced a change.
    async fn refresh_tools(&self, peer: &Peer<RoleClient>) {
        let server = &self.instance.server;
        let request = ToolTable::request(server, peer);
        let tools = match timeout(server.startup_timeout, request).await {
            Ok(Ok(tools)) => tools,
            Ok(Err(error)) => return tracing::warn!(%error, "the changed tools are not listed"),
            Err(_) => return tracing::warn!("the changed tools are not listed in time"),
        };
        let InstanceState::Ready(old) = self.instance.state() else {
            return;
        };
        tracing::info!(
            tools = tools.all().count(),
            "the tools of an MCP server changed"
        );
        let session = Session {
            peer: peer.clone(),
            tools,
            info: old.info.clone(),
            has_resources: old.has_resources,
        };
        // It was connected before, so there is nothing to report.
        let state = InstanceState::Ready(Arc::new(session));
        self.instance.state.send_replace(state);
    }
}

/// Waits until a process must be started again in another sandbox.
async fn outdated(process: Option<&OpenProcess>) {
    match process {
        Some(process) => process.outdated().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
