//! The installed plugins of a process: those that are enabled and trusted, as their files are now.

mod offer;
mod shared_refresh;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use raddle_config::{InstalledPlugin, McpServer, PluginConfig};
use raddle_core::Settings;
use raddle_core::ports::{HookCall, HookEvent, PluginSkill, ToolSpec};
use tokio::sync::watch;
use tokio::time::Instant;

use self::shared_refresh::SharedRefresh;
use super::folder_hash::{self, FolderStamp};
use super::inspection::{InspectedPlugin, InspectionError};
use super::instance::PluginInstance;
use super::manifest::{MANIFEST_FILE, PluginHook, PluginTool};
use super::plugin_file::plugin_path;
use super::selected_hook::{SelectedHook, hook_keys};
use super::tool_name::{model_name, prefix_of};
use super::trust::{PluginTrust, plugin_trust};
use crate::log_file::{self, LogFile};
use crate::mcp::PluginServers;
use crate::process::ProcessStarter;

/// Time for which the folder of a plugin that does not run is not read again. It may be large.
const RETRY_PAUSE: Duration = Duration::from_secs(2);

/// The installed plugins. Cheap to clone.
#[derive(Clone)]
pub struct PluginRegistry {
    inner: Arc<Inner>,
}

struct Inner {
    config: PluginConfig,
    starter: ProcessStarter,
    home: PathBuf,
    plugins: Mutex<BTreeMap<String, LoadedPlugin>>,
    /// Names of the tools beyond the limits of a model call.
    unoffered: Mutex<BTreeSet<String>>,
    /// The MCP servers that the plugins define.
    mcp_servers: watch::Sender<Vec<Arc<McpServer>>>,
    /// Reads folders.
    refreshing: SharedRefresh,
}

/// An enabled plugin.
#[derive(Clone)]
struct LoadedPlugin {
    installed: InstalledPlugin,
    /// Stamp of the folder; `None` if it must be read again.
    stamp: Option<FolderStamp>,
    /// When it was read.
    read_at: Instant,
    /// Its hooks. Those of a plugin that does not run any more fail.
    hooks: Vec<PluginHook>,
    /// Names of the MCP servers of the configuration, if the plugin defines any.
    taken: Option<Vec<String>>,
    /// The plugin, or why it does not run.
    instance: Result<Arc<OfferedPlugin>, PluginLoadError>,
}

/// Reason why an enabled plugin does not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub(super) struct PluginLoadError {
    text: String,
    /// Whether clients are warned of it: the plugin is a trusted one, and does not run before its files
    /// or the configuration change.
    is_lasting: bool,
}

impl PluginLoadError {
    fn new(installed: &InstalledPlugin, error: impl Display, is_transient: bool) -> Self {
        Self {
            text: error.to_string(),
            is_lasting: installed.trusted_hash.is_some() && !is_transient,
        }
    }
}

/// A plugin whose tools are offered.
pub(super) struct OfferedPlugin {
    pub(super) instance: Arc<PluginInstance>,
    tools: Vec<OfferedTool>,
}

/// A tool of a plugin, as the model knows it.
#[derive(Clone)]
pub(super) struct OfferedTool {
    pub(super) tool: PluginTool,
    pub(super) spec: Arc<ToolSpec>,
    /// Length of the spec in a model call.
    spec_bytes: usize,
}

/// An enabled plugin as its folder was read.
enum ReadPlugin {
    /// It has not changed since it was loaded.
    Unchanged,
    Changed {
        stamp: Option<FolderStamp>,
        taken: Option<Vec<String>>,
        plugin: Result<Box<InspectedPlugin>, PluginLoadError>,
    },
}

impl PluginRegistry {
    /// Creates the registry; nothing is read or started yet. `home` contains the logs of plugins.
    pub fn new(config: PluginConfig, starter: ProcessStarter, home: &Path) -> Self {
        Self {
            inner: Arc::new(Inner {
                config,
                starter,
                home: home.to_owned(),
                plugins: Mutex::default(),
                unoffered: Mutex::default(),
                mcp_servers: watch::Sender::default(),
                refreshing: SharedRefresh::default(),
            }),
        }
    }

    fn plugins(&self) -> MutexGuard<'_, BTreeMap<String, LoadedPlugin>> {
        let plugins = self.inner.plugins.lock();
        plugins.unwrap_or_else(PoisonError::into_inner)
    }

    fn unoffered(&self) -> MutexGuard<'_, BTreeSet<String>> {
        let unoffered = self.inner.unoffered.lock();
        unoffered.unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the MCP servers that the plugins define, as they are after each refresh.
    pub fn mcp_servers(&self) -> PluginServers {
        self.inner.mcp_servers.subscribe()
    }

    /// Whether any plugin defines an MCP server.
    pub(super) fn has_mcp_servers(&self) -> bool {
        !self.inner.mcp_servers.borrow().is_empty()
    }

    /// Whether no plugin is enabled.
    pub(super) fn is_empty(&self) -> bool {
        self.plugins().is_empty()
    }

    /// Returns the folders that an agent with these settings may write, also with their real paths.
    pub(super) async fn writable(&self, settings: Settings) -> Vec<PathBuf> {
        let operator = self.inner.starter.operator.clone();
        let folders = tokio::task::spawn_blocking(move || {
            let mut folders = operator.workspaces(&settings);
            let real = folders
                .iter()
                .filter_map(|it| std::fs::canonicalize(it).ok());
            folders.extend(real.collect::<Vec<_>>());
            folders
        });
        // Without an answer, no folder is known not to be writable.
        folders.await.unwrap_or_else(|_| vec![PathBuf::from("/")])
    }

    /// Reads the configuration and the folders of plugins that have changed. Plugins that may no
    /// longer run are stopped. Returns whether there are or were any.
    pub(super) async fn refresh(&self) -> bool {
        if self.inner.config.is_known_empty() && self.is_empty() {
            return false;
        }
        self.inner.refreshing.run(self.reread()).await
    }

    async fn reread(&self) -> bool {
        let now = Instant::now();
        let known = self.plugins().clone();
        let config = self.inner.config.clone();
        let read = tokio::task::spawn_blocking(move || {
            let enabled = config.refresh().into_iter().filter(|it| it.enabled);
            let taken = config.mcp_server_names();
            let read = enabled.map(|installed| {
                let known = known.get(&installed.id);
                let plugin = read_plugin(&installed, known, &taken, now);
                (installed, plugin)
            });
            read.collect::<Vec<_>>()
        });
        let Ok(read) = read.await else { return true };
        let mut old = self.plugins().clone();
        let mut new = BTreeMap::new();
        for (installed, plugin) in read {
            let id = installed.id.clone();
            match (plugin, old.remove(&id)) {
                (ReadPlugin::Unchanged, Some(loaded)) => {
                    new.insert(id, loaded);
                }
                // It is still there, because nothing else changes the table.
                (ReadPlugin::Unchanged, None) => {}
                (
                    ReadPlugin::Changed {
                        stamp,
                        taken,
                        plugin,
                    },
                    replaced,
                ) => {
                    let old_reason = replaced.as_ref().and_then(|it| it.instance.as_ref().err());
                    if let Err(reason) = &plugin
                        && old_reason != Some(reason)
                    {
                        tracing::warn!(plugin = id, %reason, "a plugin does not run");
                    }
                    let hooks = match &plugin {
                        Ok(plugin) => plugin.manifest.hooks.clone(),
                        Err(_) => replaced
                            .as_ref()
                            .map(|it| it.hooks.clone())
                            .unwrap_or_default(),
                    };
                    stop(replaced);
                    let loaded = LoadedPlugin {
                        hooks,
                        instance: plugin.map(|it| self.offered(*it)),
                        installed,
                        stamp,
                        read_at: now,
                        taken,
                    };
                    new.insert(id, loaded);
                }
            }
        }
        let has_changed = !old.is_empty();
        old.into_values().for_each(|it| stop(Some(it)));
        let has_plugins = !new.is_empty();
        let offered = new.values().filter_map(|it| it.instance.as_ref().ok());
        let servers = offered.flat_map(|it| it.instance.plugin.mcp_servers());
        let servers: Vec<Arc<McpServer>> = servers.collect();
        let tools = tools_of(&new).map(|it| (it.spec.name.as_str(), it.spec_bytes));
        self.set_unoffered(offer::unoffered(tools));
        *self.plugins() = new;
        // Servers that are no longer among them are stopped.
        self.inner.mcp_servers.send_if_modified(|old| {
            let is_changed = *old != servers;
            *old = servers;
            is_changed
        });
        has_plugins || has_changed
    }

    /// Returns the skills of the plugins that are enabled and trusted, as their files are now, in the
    /// order of ids and names. It may block on the disk.
    pub(super) fn trusted_skills(&self) -> Vec<PluginSkill> {
        if self.is_known_empty() {
            return Vec::new();
        }
        let known = self.plugins().clone();
        let enabled = self.inner.config.refresh().into_iter();
        let enabled = enabled.filter(|it| it.enabled);
        let taken = self.inner.config.mcp_server_names();
        let now = Instant::now();
        let skills = enabled.flat_map(|installed| {
            let known = known.get(&installed.id);
            match (read_plugin(&installed, known, &taken, now), known) {
                (ReadPlugin::Unchanged, Some(loaded)) => match &loaded.instance {
                    Ok(offered) => offered.instance.plugin.skills.clone(),
                    Err(_) => Vec::new(),
                },
                // The plugin is loaded when it is next used.
                (ReadPlugin::Changed { plugin: Ok(it), .. }, _) => it.skills,
                (ReadPlugin::Changed { .. } | ReadPlugin::Unchanged, _) => Vec::new(),
            }
        });
        skills.collect()
    }

    /// Returns the configuration of plugins.
    pub(super) fn config(&self) -> &PluginConfig {
        &self.inner.config
    }

    /// Returns the folder that contains the files of plugins.
    pub(super) fn home(&self) -> &Path {
        &self.inner.home
    }

    /// Returns an enabled plugin, or why it does not run; `None` if it is not loaded as it is
    /// installed now.
    pub(super) fn enabled(
        &self,
        installed: &InstalledPlugin,
    ) -> Option<Result<Arc<OfferedPlugin>, PluginLoadError>> {
        let plugins = self.plugins();
        let loaded = plugins.get(&installed.id);
        let loaded = loaded.filter(|it| it.installed == *installed)?;
        Some(loaded.instance.clone())
    }

    /// Whether an enabled plugin does not run, and hooks that it had before fail.
    pub(super) fn has_failing_hooks(&self, installed: &InstalledPlugin) -> bool {
        let plugins = self.plugins();
        let loaded = plugins.get(&installed.id);
        let loaded = loaded.filter(|it| it.installed == *installed);
        loaded.is_some_and(|it| it.instance.is_err() && !it.hooks.is_empty())
    }

    /// Returns the enabled plugin with this id, or why it does not run.
    pub(super) fn by_id(&self, id: &str) -> Option<Result<Arc<OfferedPlugin>, PluginLoadError>> {
        self.plugins().get(id).map(|it| it.instance.clone())
    }

    fn offered(&self, plugin: InspectedPlugin) -> Arc<OfferedPlugin> {
        let id = &plugin.manifest.id;
        let tools = plugin.manifest.tools.iter().map(|tool| {
            let spec = ToolSpec {
                name: model_name(id, &tool.name),
                description: tool.description.clone(),
                schema: tool.input_schema.clone(),
                freeform: None,
            };
            OfferedTool {
                spec_bytes: offer::spec_bytes(&spec),
                spec: Arc::new(spec),
                tool: tool.clone(),
            }
        });
        let tools = tools.collect();
        let log = LogFile::open(log_path(&self.inner.home, id));
        let (starter, home) = (self.inner.starter.clone(), &self.inner.home);
        let instance = PluginInstance::new(plugin, starter, log, home);
        Arc::new(OfferedPlugin { instance, tools })
    }

    /// Stores which tools are beyond the limits. They are logged when they change.
    fn set_unoffered(&self, names: BTreeSet<String>) {
        let mut unoffered = self.unoffered();
        if *unoffered != names && !names.is_empty() {
            let (count, first) = (names.len(), names.first());
            tracing::warn!(
                count,
                first,
                "tools of plugins are not offered, because there are too many or they are too long"
            );
        }
        *unoffered = names;
    }

    /// Returns the tools that are offered, in the order of ids and manifests.
    pub(super) fn specs(&self) -> Vec<Arc<ToolSpec>> {
        let (plugins, unoffered) = (self.plugins(), self.unoffered());
        let specs = tools_of(&plugins).map(|it| it.spec.clone());
        specs.filter(|it| !unoffered.contains(&it.name)).collect()
    }

    /// Returns the tool that the model knows by this name. It may be one that is not offered.
    pub(super) fn tool(&self, name: &str) -> Option<(Arc<OfferedPlugin>, OfferedTool)> {
        let plugins = self.plugins();
        let mut offered = plugins.values().filter_map(|it| it.instance.as_ref().ok());
        offered.find_map(|plugin| {
            let tool = plugin.tools.iter().find(|it| it.spec.name == name)?;
            Some((plugin.clone(), tool.clone()))
        })
    }

    /// Whether it is known without waiting for the disk that no plugin is enabled.
    pub(crate) fn is_known_empty(&self) -> bool {
        self.inner.config.is_known_empty() && self.is_empty()
    }

    /// Returns the ids of the enabled plugins that were trusted and do not run, as of the last refresh,
    /// and why each does not run. Failures that may end without a change are not among them.
    pub(crate) fn not_running(&self) -> Vec<(String, String)> {
        let plugins = self.plugins();
        let failed = plugins.iter().filter_map(|(id, plugin)| {
            let error = plugin.instance.as_ref().err()?;
            error.is_lasting.then(|| (id.clone(), error.text.clone()))
        });
        failed.collect()
    }

    fn has_hooks(&self, call: &HookCall) -> bool {
        let plugins = self.plugins();
        let mut hooks = plugins.values().flat_map(|it| &it.hooks);
        hooks.any(|it| it.selects(call))
    }

    /// Returns the hooks of plugins that run on an event, in the order of ids and manifests.
    pub(crate) async fn hooks(&self, call: &HookCall) -> Vec<SelectedHook> {
        // All plugins are compared when a turn begins; later, only before a hook is called.
        let begins_turn = matches!(
            call.event,
            HookEvent::SessionStart | HookEvent::UserPromptSubmit
        );
        let is_loaded = !begins_turn && self.inner.refreshing.has_completed();
        if is_loaded && !self.has_hooks(call) {
            return Vec::new();
        }
        if !self.refresh().await {
            return Vec::new();
        }
        if !self.has_hooks(call) {
            return Vec::new();
        }
        let plugins: Vec<LoadedPlugin> = self.plugins().values().cloned().collect();
        let writable = self.writable(call.settings.clone()).await;
        let all = plugins.iter().flat_map(|plugin| {
            let keys = hook_keys(&plugin.installed.id, &plugin.hooks);
            let hooks = plugin.hooks.iter().zip(keys);
            hooks.map(move |(hook, key)| (plugin, key, hook))
        });
        let selected = all.enumerate().filter(|(_, (.., hook))| hook.selects(call));
        let selected = selected.map(|(position, (plugin, key, hook))| {
            let instance = plugin.instance.as_ref().map(|it| it.instance.clone());
            let plugin = &plugin.installed;
            SelectedHook {
                plugin: plugin.id.clone(),
                manifest_path: plugin.path.join(MANIFEST_FILE),
                key,
                is_managed: plugin.is_managed,
                position,
                instance: instance.map_err(ToString::to_string),
                hook: hook.clone(),
                thread: call.thread,
                writable: writable.clone(),
            }
        });
        selected.collect()
    }

    /// Returns the plugin with this id and its method for model calls, if it is a model provider.
    pub(super) fn model_provider(&self, id: &str) -> Option<(Arc<OfferedPlugin>, String)> {
        let plugins = self.plugins();
        let plugin = plugins.get(id)?.instance.as_ref().ok()?;
        let method = plugin.instance.plugin.manifest.model_provider.clone()?;
        Some((plugin.clone(), method))
    }

    /// Explains to the model why there is no tool with this name.
    pub(super) fn missing(&self, name: &str) -> String {
        let plugins = self.plugins();
        let mut failed = plugins.iter().filter_map(|(id, it)| {
            let reason = it.instance.as_ref().err()?;
            name.starts_with(&prefix_of(id)).then_some((id, reason))
        });
        match failed.next() {
            Some((id, reason)) => format!("The plugin {id} does not run: {reason}"),
            None => {
                let unoffered = offer::explanation(&self.unoffered());
                format!("There is no tool named {name}.{unoffered}")
            }
        }
    }
}

/// Returns the tools of plugins that run, in the order of ids and manifests.
fn tools_of(plugins: &BTreeMap<String, LoadedPlugin>) -> impl Iterator<Item = &OfferedTool> {
    let running = plugins.values().filter_map(|it| it.instance.as_ref().ok());
    running.flat_map(|it| &it.tools)
}

fn stop(plugin: Option<LoadedPlugin>) {
    if let Some(Ok(offered)) = plugin.map(|it| it.instance) {
        offered.instance.stop();
    }
}

/// Reads the folder of a plugin, if it has changed since it was loaded. `taken` are the names of MCP
/// servers that it cannot use. It may block on the disk.
fn read_plugin(
    installed: &InstalledPlugin,
    loaded: Option<&LoadedPlugin>,
    taken: &[String],
    now: Instant,
) -> ReadPlugin {
    let has_same_names = |it: &LoadedPlugin| it.taken.as_ref().is_none_or(|it| it == taken);
    let has_just_failed = |it: &LoadedPlugin| {
        it.instance.is_err() && now.saturating_duration_since(it.read_at) < RETRY_PAUSE
    };
    let is_paused =
        |it: &LoadedPlugin| it.installed == *installed && has_just_failed(it) && has_same_names(it);
    if loaded.is_some_and(is_paused) {
        return ReadPlugin::Unchanged;
    }
    // Before the files are read, so that a change in between is noticed the next time.
    let stamp = match folder_hash::stamp(&installed.path) {
        Err(error) if installed.path.is_absolute() => {
            let path = installed.path.clone();
            let error = InspectionError::Folder { path, error };
            let is_transient = error.is_transient();
            return ReadPlugin::Changed {
                stamp: None,
                taken: None,
                plugin: Err(PluginLoadError::new(installed, error, is_transient)),
            };
        }
        stamp => stamp.ok(),
    };
    let is_unchanged =
        |it: &LoadedPlugin| it.installed == *installed && it.stamp == stamp && has_same_names(it);
    if stamp.is_some() && loaded.is_some_and(is_unchanged) {
        return ReadPlugin::Unchanged;
    }
    let mut own_taken = None;
    let plugin = match plugin_trust(installed) {
        PluginTrust::Trusted(plugin) => {
            own_taken = (!plugin.manifest.mcp_servers.is_empty()).then(|| taken.to_vec());
            match plugin.mcp_collision(taken) {
                None => Ok(plugin),
                Some(collision) => Err(PluginLoadError::new(installed, collision, false)),
            }
        }
        PluginTrust::Untrusted(reason) => Err(PluginLoadError::new(installed, reason, false)),
        PluginTrust::Unusable(error) => {
            // It may be one of this moment, such as too many open files.
            let is_transient = error.is_transient();
            let stamp = stamp.filter(|_| !is_transient);
            let plugin = Err(PluginLoadError::new(installed, error, is_transient));
            return ReadPlugin::Changed {
                stamp,
                taken: None,
                plugin,
            };
        }
    };
    ReadPlugin::Changed {
        stamp,
        taken: own_taken,
        plugin,
    }
}

/// Returns the path of a plugin's log.
fn log_path(home: &Path, id: &str) -> PathBuf {
    plugin_path(home, id, "log")
}

/// Returns the log of a plugin: its stderr and the events of its process. It may block on the disk.
pub fn plugin_log(home: &Path, id: &str) -> std::io::Result<String> {
    log_file::read(&log_path(home, id))
}

#[cfg(test)]
mod tests;
