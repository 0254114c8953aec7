//! Creates the live threads, from a journal in the home and the configured models.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use raddle_agent::{Liveness, Options, Threads};
use raddle_config::CommandConfig;
use raddle_config::clock::now;
use raddle_core::policy::{Amendment, Layer, PathPattern, Policy};
use raddle_core::ports::{
    AmendError, AppendError, Blobs, BoxFuture, ForkError, ItemEntry, Journal, ListQuery, Page,
    PageQuery, Pages, ReadError, Rulebook, StoreTimeouts, Summary, TurnEntry,
};
use raddle_core::{Base, Blob, Class, Record, Recovery, Seq, Settings, ThreadId, TurnId};
use raddle_plugin::{
    InstalledHooks, McpRegistry, McpTools, NetworkAccess, PluginModels, PluginRegistry,
    PluginTools, ProcessStarter,
};
use raddle_providers::{ConfiguredModels, VendorClient};
use raddle_rpc::{Connection, DialError, PeerListener, dial};
use raddle_sandbox::{PolicyPath, SandboxService, Tier, egress};
use raddle_server::{AgentDeps, AgentParts, PeerCaller, PeerNode, Peers};
use raddle_store::{LocalJournal, MemoryJournal, NodeLock};
use raddle_tools::{
    BuiltInTools, CheckpointOptions, CheckpointedTools, CopyFolders, FileCheckpoints, HostsError,
    Operator,
};
use tokio::sync::{OnceCell, mpsc, watch};

use crate::rules::RuleStore;
use crate::webhook::HttpWebhook;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Creates the live threads of a home, of which `peers` are the other processes. Connections of these
/// go to `peer_connections`.
pub(crate) fn open(
    home: &Path,
    deps: AgentDeps,
    rules: RuleStore,
    recovery: Recovery,
    vendor_client: &VendorClient,
    peers: Arc<dyn Peers>,
    peer_connections: mpsc::Sender<Connection>,
) -> AgentParts {
    let command_rules = CommandRules::of(&deps, rules.clone());
    let commands = deps.commands.clone();
    let own = deps.hidden_paths.clone();
    let starter = starter_for(&deps, &command_rules);
    let built_in = tools_for(&deps, command_rules);
    let AgentDeps {
        providers,
        sandbox: sandbox_service,
        mcp,
        hooks,
        plugins,
        skills,
        ..
    } = deps;
    let plugins = PluginRegistry::new(plugins, starter.clone(), home);
    let mcp = McpRegistry::new(mcp, starter.clone(), home, plugins.mcp_servers());
    let hooks = InstalledHooks::new(hooks, starter, plugins.clone());
    let tools = McpTools::new(Arc::new(built_in.clone()), mcp.clone());
    let tools = PluginTools::new(Arc::new(tools), plugins.clone());
    let checkpoints = FileCheckpoints::new(CheckpointOptions {
        folder: checkpoints_folder(home),
        copies: copies_folder(home),
        too_wide: user_homes()
            .into_iter()
            .chain(own)
            .chain([copies_folder(home)])
            .collect(),
        holds: sandbox_service.holds().clone(),
        clock: now,
        is_enabled: Box::new(move || commands.has_checkpoints()),
    });
    let tools = CheckpointedTools::new(Arc::new(tools), built_in.turn_diffs(), checkpoints.clone());
    let models = ConfiguredModels::new(providers.clone(), vendor_client);
    let models = PluginModels::new(Arc::new(models), providers, plugins.clone());
    // Never the name of another process, not even of a dead one.
    let node = ThreadId::mint().to_string();
    let journal = Arc::new(LazyJournal::new(
        folder(home),
        node.clone(),
        peer_connections,
    ));
    let memory = Arc::new(MemoryJournal::new());
    let threads = Threads::new(Options {
        journal: journal.clone(),
        pages: journal.clone(),
        blobs: journal,
        memory: memory.clone(),
        memory_pages: memory.clone(),
        memory_blobs: memory,
        model: Arc::new(models),
        tools: Arc::new(tools),
        rules: Arc::new(TierLimitedRules {
            rules,
            sandbox: sandbox_service,
        }),
        webhook: Arc::new(HttpWebhook::default()),
        hooks: Arc::new(hooks),
        skills,
        plugins: Arc::new(plugins.clone()),
        clock: now,
        node,
        liveness: peers,
        recovery,
    });
    AgentParts {
        threads,
        mcp: Arc::new(mcp),
        plugins: Arc::new(plugins),
        copies: Arc::new(checkpoints.clone()),
        checkpoints: Arc::new(checkpoints),
        review_diffs: Arc::new(built_in),
    }
}

/// Creates the MCP servers of the configuration alone, with the dependencies of live threads.
pub(crate) fn mcp_servers(home: &Path, deps: &AgentDeps, rules: RuleStore) -> McpRegistry {
    let (_, of_plugins) = watch::channel(Vec::new());
    McpRegistry::new(
        deps.mcp.clone(),
        process_starter(deps, rules),
        home,
        of_plugins,
    )
}

/// Creates the starter of MCP servers, hooks and plugins alone.
pub(crate) fn process_starter(deps: &AgentDeps, rules: RuleStore) -> ProcessStarter {
    starter_for(deps, &CommandRules::of(deps, rules))
}

/// Creates the built-in tools alone.
pub(crate) fn built_in_tools(deps: &AgentDeps, rules: RuleStore) -> BuiltInTools {
    tools_for(deps, CommandRules::of(deps, rules))
}

fn tools_for(deps: &AgentDeps, operator: Arc<CommandRules>) -> BuiltInTools {
    BuiltInTools::new(raddle_tools::Options {
        launcher: deps.launcher.clone(),
        sandbox: deps.sandbox.clone(),
        operator,
        own: deps.hidden_paths.clone(),
        path: deps.path.clone(),
    })
}

/// Creates the starter of MCP servers, hooks and plugins, which are processes in the sandbox.
fn starter_for(deps: &AgentDeps, operator: &Arc<CommandRules>) -> ProcessStarter {
    ProcessStarter {
        launcher: deps.launcher.clone(),
        sandbox: deps.sandbox.clone(),
        operator: operator.clone(),
        own: deps.hidden_paths.clone(),
        path: deps.path.clone(),
    }
}

/// The other processes of a home.
pub(crate) fn local_peers(home: &Path) -> Arc<dyn Peers> {
    let folder = folder(home);
    Arc::new(LocalPeers { folder })
}

/// The folder of a home's threads.
fn folder(home: &Path) -> PathBuf {
    home.join("threads")
}

/// The user's home, by its name and by its real path.
fn user_homes() -> Vec<PathBuf> {
    let named = std::env::home_dir();
    let real = named.as_ref().and_then(|it| it.canonicalize().ok());
    named.into_iter().chain(real).collect()
}

/// The folder of a home's checkpoints.
pub(crate) fn checkpoints_folder(home: &Path) -> PathBuf {
    home.join("checkpoints")
}

/// The folders of a home's copies of workspaces.
pub(crate) fn copy_folders(home: &Path) -> CopyFolders {
    CopyFolders {
        checkpoints: checkpoints_folder(home),
        copies: copies_folder(home),
    }
}

/// The folder of a home's copies of workspaces. It is beside the home, because commands do not see
/// what is in it. No link leads to it, because one could be replaced.
fn copies_folder(home: &Path) -> PathBuf {
    let real = PolicyPath::of(home).map_or_else(|_| home.to_owned(), |it| it.real);
    let mut folder = real.into_os_string();
    folder.push("-copies");
    folder.into()
}

/// The configuration and the rules for commands.
struct CommandRules {
    commands: CommandConfig,
    rules: RuleStore,
}

impl CommandRules {
    fn of(deps: &AgentDeps, rules: RuleStore) -> Arc<Self> {
        let commands = deps.commands.clone();
        Arc::new(Self { commands, rules })
    }
}

impl Operator for CommandRules {
    fn hosts(&self) -> Result<egress::EgressRules, HostsError> {
        let hosts = self.commands.hosts()?;
        let layers = [Layer::Managed, Layer::User];
        let closed = self.rules.policy().closed_hosts(&layers);
        hosts
            .without(closed.iter().map(String::as_str))
            .map_err(HostsError::Rules)
    }

    fn accepts_second(&self) -> bool {
        self.commands.accepts_second()
    }

    fn allows_login_shell(&self) -> bool {
        self.commands.allows_login_shell()
    }

    fn closed_below(&self, folder: &str) -> Vec<PathPattern> {
        self.rules.policy().closed_below(folder)
    }
}

impl raddle_plugin::Operator for CommandRules {
    fn network(&self) -> NetworkAccess {
        if self.rules.policy().managed.network_off {
            return NetworkAccess::None;
        }
        match (Operator::hosts(self), self.commands.lists_hosts()) {
            (Ok(_), false) => NetworkAccess::Open,
            (Ok(hosts), true) => NetworkAccess::Listed(hosts),
            (Err(error), _) => {
                tracing::warn!(%error, "MCP servers have no network");
                NetworkAccess::None
            }
        }
    }

    fn hosts(&self) -> Option<egress::EgressRules> {
        let hosts = Operator::hosts(self);
        let log = |error: &HostsError| tracing::warn!(%error, "hooks have no network");
        hosts.inspect_err(log).ok()
    }

    fn accepts_second(&self) -> bool {
        self.commands.accepts_second()
    }

    fn objection(&self, words: &[String]) -> Option<String> {
        let script = raddle_tools::shell::parse_words(words);
        self.rules.policy().objection_to_configured(&script)
    }

    fn objection_to_settings(&self, settings: &Settings) -> Option<String> {
        self.rules.policy().managed.objection(settings)
    }

    fn workspaces(&self, settings: &Settings) -> Vec<PathBuf> {
        raddle_tools::workspaces(settings)
    }
}

/// The rules, limited by the tier of this machine's sandbox: in tier B commands can write more than
/// they should, so no rule of the user leads out of the sandbox.
struct TierLimitedRules {
    rules: RuleStore,
    sandbox: SandboxService,
}

impl Rulebook for TierLimitedRules {
    fn policy(&self) -> Arc<Policy> {
        let policy = self.rules.policy();
        let is_second = match self.sandbox.measurement() {
            Some(it) => it.sandbox.tier() == Tier::B,
            None => self.sandbox.is_pending(),
        };
        match is_second {
            true => Arc::new(policy.without_escalation()),
            false => policy,
        }
    }

    fn amend(&self, amendment: Amendment) -> BoxFuture<'_, Result<(), AmendError>> {
        self.rules.amend(amendment)
    }
}

/// A journal that is opened on first use: many clients never need it, and `initialize` should not
/// wait for a disk.
struct LazyJournal {
    folder: PathBuf,
    node: String,
    peer_connections: mpsc::Sender<Connection>,
    cell: OnceCell<OpenJournal>,
}

/// An open journal, and the lock that marks this node as alive, taken before the first write.
struct OpenJournal {
    journal: LocalJournal,
    _alive: Option<NodeLock>,
}

impl OpenJournal {
    fn new(
        folder: PathBuf,
        node: &str,
        peer_connections: mpsc::Sender<Connection>,
    ) -> Result<Self, ReadError> {
        let options = raddle_store::Options { folder };
        let journal = LocalJournal::open(&options)?;
        // Before other processes can see this node. A node that cannot write owns no thread, and no
        // peer connects to it.
        if journal.is_writable() {
            open_peer_listener(&options.folder, node, peer_connections);
        }
        let alive = journal.is_writable().then(|| {
            let lock = NodeLock::take(&options.folder, node);
            lock.map_err(|error| ReadError::Unavailable(error.to_string()))
        });
        Ok(Self {
            journal,
            _alive: alive.transpose()?,
        })
    }
}

/// Accepts connections of other processes of the home. Without it, their requests for our threads
/// fail, and nothing else.
fn open_peer_listener(folder: &Path, node: &str, peer_connections: mpsc::Sender<Connection>) {
    let opened = NodeLock::socket_path(folder, node)
        .map_err(io::Error::other)
        .and_then(|path| PeerListener::open(&path));
    match opened {
        Ok(listener) => drop(tokio::spawn(listener.serve(VERSION, peer_connections))),
        Err(error) => tracing::warn!(%error, "other processes of this home cannot connect"),
    }
}

impl LazyJournal {
    fn new(folder: PathBuf, node: String, peer_connections: mpsc::Sender<Connection>) -> Self {
        Self {
            folder,
            node,
            peer_connections,
            cell: OnceCell::new(),
        }
    }

    async fn opened(&self) -> Result<&LocalJournal, ReadError> {
        let open = || async {
            let (folder, node) = (self.folder.clone(), self.node.clone());
            let peer_connections = self.peer_connections.clone();
            let opened = tokio::task::spawn_blocking(move || {
                OpenJournal::new(folder, &node, peer_connections)
            });
            opened.await.map_err(stopped)?
        };
        let opened = self.cell.get_or_try_init(open).await.map_err(advised)?;
        Ok(&opened.journal)
    }
}

/// Adds the remedy to the error of a home that cannot be used.
fn advised(error: ReadError) -> ReadError {
    match error {
        ReadError::Unusable(what) => ReadError::Unusable(format!(
            "{what}; give this user write access to that folder, or name another home with RADDLE_HOME"
        )),
        error => error,
    }
}

fn stopped(error: tokio::task::JoinError) -> ReadError {
    ReadError::Unavailable(error.to_string())
}

/// The other processes of this home.
#[derive(Debug)]
struct LocalPeers {
    folder: PathBuf,
}

impl Peers for LocalPeers {
    fn alive(&self) -> BoxFuture<'_, Vec<PeerNode>> {
        let folder = self.folder.clone();
        Box::pin(async move {
            let nodes = tokio::task::spawn_blocking(move || NodeLock::alive(&folder));
            let alive = nodes.await.map_err(io::Error::other);
            let names = alive
                .and_then(|it| it.map_err(io::Error::other))
                .unwrap_or_default();
            names.into_iter().map(|name| PeerNode { name }).collect()
        })
    }

    fn dial<'a>(
        &'a self,
        node: &'a str,
        caller: PeerCaller<'a>,
    ) -> BoxFuture<'a, Result<Connection, DialError>> {
        Box::pin(async move {
            let path = NodeLock::socket_path(&self.folder, node).map_err(io::Error::other)?;
            dial(&path, VERSION, caller.principal).await
        })
    }
}

impl Liveness for LocalPeers {
    fn is_alive<'a>(&'a self, node: &'a str) -> BoxFuture<'a, Result<bool, ReadError>> {
        let (folder, node) = (self.folder.clone(), node.to_owned());
        Box::pin(async move {
            let liveness = tokio::task::spawn_blocking(move || NodeLock::is_alive(&folder, &node));
            let alive = liveness.await.map_err(stopped)?;
            alive.map_err(|error| ReadError::Unavailable(error.to_string()))
        })
    }
}

/// Maps an error from opening the journal to one for writing, of which nothing was stored.
fn closed(error: ReadError) -> AppendError {
    match error {
        ReadError::Unavailable(what) => AppendError::Unavailable(what),
        ReadError::Newer(what) => AppendError::Newer(what),
        error => AppendError::ReadOnly(error.to_string()),
    }
}

impl Journal for LazyJournal {
    fn append<'a>(
        &'a self,
        thread: ThreadId,
        after: Seq,
        records: &'a [Record],
        class: Class,
    ) -> BoxFuture<'a, Result<Seq, AppendError>> {
        Box::pin(async move {
            let journal = self.opened().await.map_err(closed)?;
            journal.append(thread, after, records, class).await
        })
    }

    fn take<'a>(
        &'a self,
        thread: ThreadId,
        former: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Seq, ReadError>> {
        Box::pin(async move { self.opened().await?.take(thread, former).await })
    }

    fn head(&self, thread: ThreadId) -> BoxFuture<'_, Result<Seq, ReadError>> {
        Box::pin(async move { self.opened().await?.head(thread).await })
    }

    fn read(
        &self,
        thread: ThreadId,
        after: Seq,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, ReadError>> {
        Box::pin(async move { self.opened().await?.read(thread, after, bytes_max).await })
    }

    fn base(
        &self,
        thread: ThreadId,
        at: Option<Seq>,
    ) -> BoxFuture<'_, Result<Option<Base>, ReadError>> {
        Box::pin(async move { self.opened().await?.base(thread, at).await })
    }

    fn save_base(&self, thread: ThreadId, base: Base) -> BoxFuture<'_, Result<(), AppendError>> {
        Box::pin(async move {
            let journal = self.opened().await.map_err(closed)?;
            journal.save_base(thread, base).await
        })
    }

    fn fork(&self, from: ThreadId, at: Seq, to: ThreadId) -> BoxFuture<'_, Result<Seq, ForkError>> {
        Box::pin(async move { self.opened().await?.fork(from, at, to).await })
    }

    fn delete(&self, thread: ThreadId) -> BoxFuture<'_, Result<(), AppendError>> {
        Box::pin(async move {
            let journal = self.opened().await.map_err(closed)?;
            journal.delete(thread).await
        })
    }

    fn forget(&self, thread: ThreadId, head: Seq) -> BoxFuture<'_, Result<(), AppendError>> {
        Box::pin(async move {
            let journal = self.opened().await.map_err(closed)?;
            journal.forget(thread, head).await
        })
    }

    /// Returns the limits of the local journal, which need not be open for that.
    fn timeouts(&self) -> StoreTimeouts {
        StoreTimeouts::LOCAL
    }
}

impl Pages for LazyJournal {
    fn list(&self, query: ListQuery) -> BoxFuture<'_, Result<Page<Summary>, ReadError>> {
        Box::pin(async move { self.opened().await?.list(query).await })
    }

    fn turns(
        &self,
        thread: ThreadId,
        query: PageQuery,
    ) -> BoxFuture<'_, Result<Page<TurnEntry>, ReadError>> {
        Box::pin(async move { self.opened().await?.turns(thread, query).await })
    }

    fn items(
        &self,
        thread: ThreadId,
        turn: Option<TurnId>,
        query: PageQuery,
    ) -> BoxFuture<'_, Result<Page<ItemEntry>, ReadError>> {
        Box::pin(async move { self.opened().await?.items(thread, turn, query).await })
    }

    fn search(
        &self,
        text: String,
        query: ListQuery,
    ) -> BoxFuture<'_, Result<Page<Summary>, ReadError>> {
        Box::pin(async move { self.opened().await?.search(text, query).await })
    }
}

impl Blobs for LazyJournal {
    fn put(
        &self,
        thread: ThreadId,
        bytes: Vec<u8>,
        media: String,
    ) -> BoxFuture<'_, Result<Blob, AppendError>> {
        Box::pin(async move {
            let journal = self.opened().await.map_err(closed)?;
            journal.put(thread, bytes, media).await
        })
    }

    fn get(&self, thread: ThreadId, blob: Blob) -> BoxFuture<'_, Result<Vec<u8>, ReadError>> {
        Box::pin(async move { self.opened().await?.get(thread, blob).await })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_link_leads_to_the_copies() {
        let top = tempfile::TempDir::new().expect("a folder");
        let top = top.path().canonicalize().expect("a path");
        std::fs::create_dir(top.join("real")).expect("a folder");
        std::os::unix::fs::symlink("real", top.join("link")).expect("a link");
        for (home, expected) in [
            ("real/home", "real/home-copies"),
            ("link/home", "real/home-copies"),
            ("link/new/home", "real/new/home-copies"),
            ("link", "real-copies"),
        ] {
            assert_eq!(copies_folder(&top.join(home)), top.join(expected), "{home}");
        }
    }
}
