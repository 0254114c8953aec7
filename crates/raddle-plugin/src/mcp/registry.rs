//! The MCP servers of a process: one instance per configuration, folders and sandbox.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use data_encoding::HEXLOWER;
use futures_util::future::join_all;
use raddle_config::{McpConfig, McpProblem, McpServer, McpServers as McpSections, McpTransport};
use raddle_core::Settings;
use raddle_core::ports::{
    BoxFuture, McpAuth, McpError, McpListener, McpLogin, McpServerSnapshot, McpServerState,
    McpServers,
};
use raddle_model::ModelClient;
use rmcp::model::{PaginatedRequestParams, ReadResourceRequestParams};
use rmcp::{Peer, RoleClient};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

use super::call::Call;
use super::connection::ConnectError;
use super::instance::{Instance, InstanceState, Session};
use super::launch::{LaunchDeps, LaunchError};
use super::login;
use super::tool_name::restraining_names;
use super::tool_table::McpTool;
use crate::process::{NetworkAccess, ProcessStarter};

/// How long a client that asks for the state of servers waits for those that start, and for lists
/// of resources.
const SNAPSHOT_WAIT: Duration = Duration::from_secs(5);

/// Resources of a server that a snapshot contains.
const RESOURCES_PAGES_MAX: usize = 5;

/// The MCP servers that enabled and trusted plugins define, as they are now.
pub type PluginServers = watch::Receiver<Vec<Arc<McpServer>>>;

/// The MCP servers of this process. Cheap to clone.
#[derive(Clone)]
pub struct McpRegistry {
    inner: Arc<Inner>,
}

struct Inner {
    deps: Arc<LaunchDeps>,
    /// The servers of the plugins that are enabled and trusted.
    of_plugins: PluginServers,
    instances: Mutex<HashMap<InstanceKey, Arc<Instance>>>,
    listener: Arc<OnceLock<McpListener>>,
}

impl fmt::Debug for McpRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("McpRegistry")
    }
}

/// Everything that two threads must have in common to share an instance.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct InstanceKey {
    server: Arc<McpServer>,
    /// Real paths of the folders, and the sandbox; empty for a server that has no process here.
    scope: String,
}

impl InstanceKey {
    fn of(server: &Arc<McpServer>, settings: &Settings) -> Self {
        let scope = match server.transport {
            McpTransport::Http { .. } => String::new(),
            McpTransport::Stdio { .. } => {
                let roots: Vec<&str> = settings.roots.iter().map(|it| settings.real(it)).collect();
                let folders = settings.sandbox.folders().map(|it| settings.real(it));
                let folders: Vec<&str> = folders.collect();
                let cwd = settings.real(&settings.cwd);
                json!([cwd, roots, folders, settings.sandbox]).to_string()
            }
        };
        Self {
            server: server.clone(),
            scope,
        }
    }
}

/// A tool of a connected server.
#[derive(Clone)]
pub(crate) struct ConnectedTool {
    pub(crate) instance: Arc<Instance>,
    pub(crate) session: Arc<Session>,
    pub(crate) tool: Arc<McpTool>,
}

impl McpRegistry {
    /// Creates the registry; nothing is started yet.
    ///
    /// `home` contains the logins at servers, and a cache folder for each server. `of_plugins` are
    /// the servers that plugins define.
    pub fn new(
        config: McpConfig,
        starter: ProcessStarter,
        home: &Path,
        of_plugins: PluginServers,
    ) -> Self {
        let deps = LaunchDeps {
            config,
            starter,
            client: ModelClient::new(),
            cache: home.join("mcp"),
            home: home.to_owned(),
        };
        Self {
            inner: Arc::new(Inner {
                deps: Arc::new(deps),
                of_plugins,
                instances: Mutex::default(),
                listener: Arc::default(),
            }),
        }
    }

    fn instances(&self) -> MutexGuard<'_, HashMap<InstanceKey, Arc<Instance>>> {
        let instances = self.inner.instances.lock();
        instances.unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the servers of plugins to those of the configuration. None replaces one of these.
    fn with_plugins(&self, config: &McpSections) -> Vec<Arc<McpServer>> {
        let mut servers = config.servers.clone();
        let of_plugins = self.inner.of_plugins.borrow();
        if !of_plugins.is_empty() {
            let names = config.names();
            let added = of_plugins.iter().filter(|it| !names.contains(&it.name));
            servers.extend(added.cloned());
            servers.sort_by(|first, second| first.name.cmp(&second.name));
        }
        servers
    }

    /// Returns all servers, sorted by name.
    fn servers(&self) -> Vec<Arc<McpServer>> {
        self.with_plugins(&self.inner.deps.config.current())
    }

    /// Returns the instance of each enabled server for threads with these settings, in the order
    /// of names. Those that do not run are started in the background.
    pub(crate) fn of_thread(&self, settings: &Settings) -> Vec<Arc<Instance>> {
        let servers = self.servers();
        if servers.is_empty() {
            return Vec::new();
        }
        // Rights that the user grants are for commands. A server would have to start again.
        let settings = &settings.without_grants();
        let mut instances = self.instances();
        instances.retain(|_, it| !it.is_stopped());
        let enabled = servers.iter().filter(|it| it.enabled);
        let of_server = enabled.map(|server| {
            let key = InstanceKey::of(server, settings);
            let instance = instances.entry(key).or_insert_with(|| {
                let listener = self.inner.listener.clone();
                let deps = self.inner.deps.clone();
                let instance = Instance::start(deps, server.clone(), settings.clone(), listener);
                if server.plugin.is_some() {
                    let of_plugins = self.inner.of_plugins.clone();
                    tokio::spawn(stop_when_withdrawn(instance.clone(), of_plugins));
                }
                instance
            });
            instance.touch();
            instance.clone()
        });
        of_server.collect()
    }

    /// Returns the problems of the required servers whose sections are invalid.
    pub(crate) fn required_problems(&self) -> Vec<McpProblem> {
        let problems = self.inner.deps.config.current().problems;
        problems.into_iter().filter(|it| it.required).collect()
    }

    /// Starts an instance that no thread shares, also of a server that is not enabled.
    pub(crate) fn start_alone(
        &self,
        server: &Arc<McpServer>,
        settings: &Settings,
    ) -> Arc<Instance> {
        let (deps, listener) = (self.inner.deps.clone(), Arc::default());
        Instance::start(deps, server.clone(), settings.clone(), listener)
    }

    /// Returns the instances for threads with these settings. Without settings, one that runs is
    /// returned for each server; those that do not run are started for no folder in particular.
    fn of(&self, settings: Option<&Settings>) -> Vec<Arc<Instance>> {
        if let Some(settings) = settings {
            return self.of_thread(settings);
        }
        let current = self.servers();
        let is_running = |server: &Arc<McpServer>| {
            let instances = self.instances();
            let mut running = instances.iter().filter(|(_, it)| !it.is_stopped());
            let found = running.find(|(key, _)| key.server == *server);
            found.map(|(_, it)| it.clone())
        };
        let enabled = current.iter().filter(|it| it.enabled);
        let running: Option<Vec<Arc<Instance>>> = enabled.map(is_running).collect();
        running.unwrap_or_else(|| {
            let cwd = std::env::current_dir().unwrap_or_else(|_| "/".into());
            self.of_thread(&Settings {
                cwd: cwd.to_string_lossy().into_owned(),
                ..Settings::default()
            })
        })
    }

    /// Returns the instances that run for threads with one of these settings, one of each server.
    fn existing(&self, threads: &[Settings]) -> Vec<Arc<Instance>> {
        let servers = self.servers();
        let instances = self.instances();
        let of_server = |server: &Arc<McpServer>| {
            let keys = threads
                .iter()
                .map(|it| InstanceKey::of(server, &it.without_grants()));
            let mut existing = keys.filter_map(|it| instances.get(&it));
            existing.find(|it| !it.is_stopped()).cloned()
        };
        servers.iter().filter_map(of_server).collect()
    }

    /// Returns the tool that the model knows by this name.
    pub(crate) fn tool(&self, settings: &Settings, name: &str) -> Option<ConnectedTool> {
        let instances = self.of_thread(settings).into_iter();
        let mut tools = instances.filter_map(|instance| {
            let session = instance.session()?;
            let tool = session.tools.of_model_name(name)?.clone();
            Some(ConnectedTool {
                instance,
                session,
                tool,
            })
        });
        tools.next()
    }

    /// Returns why a thread may not use a server now, if it is one of a plugin. Unlike its process,
    /// the check considers the rights that the user has granted since.
    pub(crate) async fn objection(
        &self,
        server: &Arc<McpServer>,
        settings: &Settings,
    ) -> Option<LaunchError> {
        server.plugin.as_ref()?;
        let (deps, server, settings) = (self.inner.deps.clone(), server.clone(), settings.clone());
        let checked = tokio::task::spawn_blocking(move || {
            let plugin = server.plugin.as_ref()?;
            deps.writable_beside(plugin, &settings).err()
        });
        checked.await.unwrap_or(Some(LaunchError::Internal))
    }

    /// Returns the connected instance of a server.
    async fn connected(
        &self,
        settings: Option<&Settings>,
        server: &str,
    ) -> Result<(Arc<Instance>, Arc<Session>), McpError> {
        let mut instances = self.of(settings).into_iter();
        let instance = instances.find(|it| it.server.name == server);
        let instance = instance.ok_or_else(|| McpError::UnknownServer(server.to_owned()))?;
        let error = match instance.settled().await {
            InstanceState::Ready(session) => return Ok((instance, session)),
            InstanceState::Failed(error) => error.text.clone(),
            InstanceState::Starting | InstanceState::Restarting(_) | InstanceState::Stopped => {
                "it was stopped".to_owned()
            }
        };
        Err(McpError::NotConnected {
            server: server.to_owned(),
            error,
        })
    }

    /// Uses the connected instance of a server. One that is stopped or started again meanwhile is
    /// waited for.
    async fn connected_for<T>(
        &self,
        settings: Option<&Settings>,
        server: &str,
        open: impl Fn(&Instance) -> Option<(Arc<Session>, T)>,
    ) -> Result<(Arc<Instance>, Arc<Session>, T), McpError> {
        loop {
            let (instance, _) = self.connected(settings, server).await?;
            if let Some((session, opened)) = open(&instance) {
                return Ok((instance, session, opened));
            }
            // The supervisor of the instance may run on this thread.
            tokio::task::yield_now().await;
        }
    }
}

impl McpRegistry {
    /// Stops the instances of a server. The next use starts them again.
    async fn restart(&self, server: &Arc<McpServer>) {
        let stopped: Vec<Arc<Instance>> = {
            let mut instances = self.instances();
            let stopped = instances.extract_if(|key, _| key.server == *server);
            stopped.map(|(_, it)| it).collect()
        };
        for instance in stopped {
            instance.stop().await;
        }
    }

    async fn snapshot(
        &self,
        server: &McpServer,
        state: Option<InstanceState>,
        deadline: Instant,
    ) -> McpServerSnapshot {
        let mut snapshot = McpServerSnapshot::empty(server.name.clone());
        snapshot.plugin = server.plugin.as_ref().map(|it| it.id.clone());
        let deps = &self.inner.deps;
        let needs_login =
            matches!(&state, Some(InstanceState::Failed(failure)) if failure.needs_login);
        snapshot.auth = match login::has_token(server) {
            true => McpAuth::BearerToken,
            false if login::is_logged_in(&deps.home, server, deps.client.clone()).await => {
                McpAuth::LoggedIn
            }
            false if needs_login => McpAuth::NotLoggedIn,
            false => McpAuth::Unsupported,
        };
        add_state(&mut snapshot, server, state, deadline).await;
        snapshot
    }
}

/// Stops an instance once its plugin no longer defines the server: it was disabled, removed or
/// changed.
async fn stop_when_withdrawn(instance: Arc<Instance>, mut of_plugins: PluginServers) {
    let withdrawn = async {
        let is_withdrawn = |all: &Vec<Arc<McpServer>>| !all.contains(&instance.server);
        let _ = of_plugins.wait_for(is_withdrawn).await;
    };
    tokio::select! {
        () = withdrawn => instance.stop().await,
        () = instance.stopped() => {}
    }
}

/// Returns a digest of everything that a server's configuration contains.
pub(crate) fn identity(server: &McpServer) -> String {
    let mut hasher = DigestHasher(Sha256::new());
    server.hash(&mut hasher);
    HEXLOWER.encode(&hasher.0.finalize())
}

/// Passes what is hashed to a digest.
struct DigestHasher(Sha256);

impl Hasher for DigestHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Not used: the digest is the result.
    fn finish(&self) -> u64 {
        0
    }
}

impl McpServers for McpRegistry {
    fn snapshots<'a>(
        &'a self,
        settings: Option<&'a Settings>,
    ) -> BoxFuture<'a, Vec<McpServerSnapshot>> {
        Box::pin(async move {
            let config = self.inner.deps.config.clone();
            let loaded = tokio::task::spawn_blocking(move || config.refresh()).await;
            let servers = match loaded {
                Ok(Ok(it)) => it,
                _ => self.inner.deps.config.current(),
            };
            let instances = &self.of(settings);
            let deadline = Instant::now() + SNAPSHOT_WAIT;
            let all = self.with_plugins(&servers);
            let snapshots = all.iter().map(|server| async move {
                let instance = instances.iter().find(|it| it.server.name == server.name);
                if let Some(instance) = instance {
                    let _ = timeout_at(deadline, instance.settled()).await;
                }
                let _read = instance.map(|it| it.elicitations.add_read());
                let state = instance.map(|it| it.state());
                self.snapshot(server, state, deadline).await
            });
            let mut snapshots = join_all(snapshots).await;
            for problem in servers.problems {
                let mut snapshot = McpServerSnapshot::empty(problem.name);
                snapshot.state = McpServerState::Failed(problem.text);
                snapshots.push(snapshot);
            }
            snapshots.sort_by(|first, second| first.name.cmp(&second.name));
            snapshots
        })
    }

    fn running<'a>(&'a self, threads: &'a [Settings]) -> BoxFuture<'a, Vec<McpServerSnapshot>> {
        Box::pin(async move {
            let instances = self.existing(threads);
            let deadline = Instant::now() + SNAPSHOT_WAIT;
            let snapshots = instances.iter().map(|it| async move {
                let _read = it.elicitations.add_read();
                self.snapshot(&it.server, Some(it.state()), deadline).await
            });
            let mut snapshots = join_all(snapshots).await;
            snapshots.sort_by(|first, second| first.name.cmp(&second.name));
            snapshots
        })
    }

    fn rule_names(&self, server: &str, tool: &str) -> Vec<String> {
        restraining_names(server, tool)
    }

    fn subscribe(&self, listener: McpListener) {
        let _ = self.inner.listener.set(listener);
    }

    fn reload(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let config = self.inner.deps.config.clone();
            let loaded = tokio::task::spawn_blocking(move || config.refresh()).await;
            let Ok(Ok(loaded)) = loaded else { return };
            let servers = self.with_plugins(&loaded);
            let is_current = |key: &InstanceKey| servers.contains(&key.server);
            let outdated: Vec<Arc<Instance>> = {
                let mut instances = self.instances();
                let outdated = instances.extract_if(|key, _| !is_current(key));
                outdated.map(|(_, it)| it).collect()
            };
            for instance in outdated {
                instance.stop().await;
            }
        })
    }

    fn read_resource<'a>(
        &'a self,
        settings: Option<&'a Settings>,
        server: &'a str,
        uri: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Value>, McpError>> {
        Box::pin(async move {
            let connected = self
                .connected_for(settings, server, Instance::open_read)
                .await?;
            let (instance, session, _read) = connected;
            let params = ReadResourceRequestParams::new(uri);
            let limit = instance.server.tool_timeout;
            let result = timeout(limit, session.peer.read_resource(params)).await;
            let result = result
                .map_err(|_| McpError::Failed(format!("no answer within {} s", limit.as_secs())))?;
            let result = result.map_err(|error| McpError::Failed(error.to_string()))?;
            let contents = result.contents.iter();
            Ok(contents
                .filter_map(|it| serde_json::to_value(it).ok())
                .collect())
        })
    }

    fn log_in<'a>(
        &'a self,
        server: &'a str,
        scopes: Vec<String>,
    ) -> BoxFuture<'a, Result<McpLogin, McpError>> {
        Box::pin(async move {
            let servers = self.inner.deps.config.current().servers;
            let found = servers.into_iter().find(|it| it.name == server);
            let found = found.ok_or_else(|| McpError::UnknownServer(server.to_owned()))?;
            let deps = &self.inner.deps;
            let operator = deps.starter.operator.clone();
            let network = tokio::task::spawn_blocking(move || operator.network()).await;
            if matches!(network, Ok(NetworkAccess::None) | Err(_)) {
                return Err(McpError::Failed(ConnectError::NetworkOff.to_string()));
            }
            let login = login::log_in(&deps.home, &found, scopes, deps.client.clone()).await?;
            let this = self.clone();
            Ok(McpLogin {
                page: login.page,
                end: Box::pin(async move {
                    login.end.await?;
                    this.restart(&found).await;
                    Ok(())
                }),
            })
        })
    }

    fn call_tool<'a>(
        &'a self,
        settings: &'a Settings,
        server: &'a str,
        tool: &'a str,
        arguments: Option<Value>,
    ) -> BoxFuture<'a, Result<Value, McpError>> {
        Box::pin(async move {
            let open = |instance: &Instance| instance.open_call(None);
            let connected = self.connected_for(Some(settings), server, open).await?;
            let (instance, session, elicitations) = connected;
            if let Some(objection) = self.objection(&instance.server, settings).await {
                return Err(McpError::Failed(objection.to_string()));
            }
            if session.tools.of_own_name(tool).is_none() {
                return Err(McpError::UnknownTool {
                    server: server.to_owned(),
                    tool: tool.to_owned(),
                });
            }
            let arguments = match arguments {
                None | Some(Value::Null) => None,
                Some(Value::Object(members)) => Some(members),
                Some(_) => return Err(McpError::BadArguments),
            };
            let call = Call {
                tool: tool.to_owned(),
                arguments,
                timeout: instance.server.tool_timeout,
                stopped: Box::pin(std::future::pending()),
                elicitations,
            };
            let result = call.send(&session.peer, &instance.calls, drop).await;
            let result = result.map_err(|error| McpError::Failed(error.to_string()))?;
            serde_json::to_value(result).map_err(|error| McpError::Failed(error.to_string()))
        })
    }
}

/// Adds the state of a server, and what it offers, to its snapshot.
async fn add_state(
    snapshot: &mut McpServerSnapshot,
    server: &McpServer,
    state: Option<InstanceState>,
    deadline: Instant,
) {
    match state {
        None if !server.enabled => snapshot.state = McpServerState::Disabled,
        None
        | Some(InstanceState::Starting | InstanceState::Restarting(_) | InstanceState::Stopped) => {
        }
        Some(InstanceState::Failed(error)) => {
            snapshot.state = McpServerState::Failed(error.text.clone());
        }
        Some(InstanceState::Ready(session)) => {
            snapshot.state = McpServerState::Ready;
            snapshot.info = session.info.clone();
            let tools = session.tools.all();
            let tools = tools.map(|it| (it.name.clone(), it.definition.clone()));
            snapshot.tools = tools.collect();
            if session.has_resources {
                let resources = timeout_at(deadline, resources(&session.peer)).await;
                let (resources, templates) = resources.unwrap_or_default();
                snapshot.resources = resources;
                snapshot.resource_templates = templates;
            }
        }
    }
}

/// Returns the first resources of a server, and the templates of resources.
pub(crate) async fn resources(peer: &Peer<RoleClient>) -> (Vec<Value>, Vec<Value>) {
    let mut resources = Vec::new();
    let mut cursor = None;
    for _ in 0..RESOURCES_PAGES_MAX {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let Ok(page) = peer.list_resources(Some(params)).await else {
            break;
        };
        resources.extend(
            page.resources
                .iter()
                .filter_map(|it| serde_json::to_value(it).ok()),
        );
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    let templates = match peer.list_resource_templates(None).await {
        Ok(page) => {
            let templates = page.resource_templates.iter();
            templates
                .filter_map(|it| serde_json::to_value(it).ok())
                .collect()
        }
        Err(_) => Vec::new(),
    };
    (resources, templates)
}
