//! The installed plugins, as clients see them.

use std::fmt;
use std::path::Path;

use raddle_config::InstalledPlugin;
use raddle_core::AskElicitation;
use raddle_core::ports::{
    BoxFuture, ManifestSummary, NotApproved, PluginHookSummary, PluginRequest, PluginRequestError,
    PluginSkill, PluginSnapshot, Plugins,
};
use serde_json::{Value, json};

use super::events::{EventOwner, EventReceiver};
use super::host::StateStore;
use super::inspection::InspectionError;
use super::instance::{CALL_TIMEOUT, PluginCall, PluginToolError};
use super::manifest::{MANIFEST_FILE, Manifest};
use super::permission_store::PermissionStore;
use super::plugin_file::PluginFileError;
use super::registry::PluginRegistry;
use super::selected_hook::{HOOK_TIMEOUT, hook_keys};
use super::skills;
use super::tool_name::{model_name, prefix_of};
use super::trust::UntrustedReason;

impl fmt::Debug for PluginRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PluginRegistry")
    }
}

impl Plugins for PluginRegistry {
    fn snapshots(&self) -> BoxFuture<'_, Vec<PluginSnapshot>> {
        Box::pin(async move {
            if !self.refresh().await && self.config().is_known_empty() {
                return Vec::new();
            }
            let this = self.clone();
            let snapshots = tokio::task::spawn_blocking(move || {
                let installed = this.config().refresh().into_iter();
                installed.map(|it| this.snapshot(it)).collect()
            });
            snapshots.await.unwrap_or_default()
        })
    }

    fn reload(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.refresh().await;
        })
    }

    fn forget<'a>(&'a self, plugin: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let (home, id) = (self.home().to_owned(), plugin.to_owned());
            let forget = tokio::task::spawn_blocking(move || forget_plugin(&home, &id));
            let outcome = match forget.await {
                Ok(outcome) => outcome.map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            if let Err(error) = outcome {
                tracing::warn!(plugin, error, "files of a removed plugin stay");
            }
        })
    }

    fn approve<'a>(
        &'a self,
        ask: &'a AskElicitation,
        by: &'a str,
    ) -> BoxFuture<'a, Result<(), NotApproved>> {
        Box::pin(self.approve_permission(ask, by))
    }

    fn skills(&self) -> Vec<PluginSkill> {
        self.trusted_skills()
    }

    fn skill_text(&self, path: &str) -> Option<String> {
        let is_trusted = || self.trusted_skills().iter().any(|it| it.path == path);
        let text = is_trusted().then(|| skills::text(Path::new(path)).ok())?;
        // It may have been read after the files were compared with the trusted ones.
        text.filter(|_| is_trusted())
    }

    fn rule_names<'a>(&'a self, plugin: &'a str, method: &'a str) -> BoxFuture<'a, Vec<String>> {
        Box::pin(async move {
            self.refresh().await;
            let mut names = vec![format!("{}{method}", prefix_of(plugin))];
            if let Some(Ok(loaded)) = self.by_id(plugin) {
                let tools = loaded.instance.plugin.manifest.tools.iter();
                let tools = tools.filter(|it| it.method == method);
                names.extend(tools.map(|it| model_name(plugin, &it.name)));
            }
            names
        })
    }

    fn call(&self, call: PluginRequest) -> BoxFuture<'_, Result<Value, PluginRequestError>> {
        Box::pin(self.call_method(call))
    }
}

impl PluginRegistry {
    async fn approve_permission(&self, ask: &AskElicitation, by: &str) -> Result<(), NotApproved> {
        self.refresh().await;
        let plugin = ask
            .permission
            .as_ref()
            .and_then(|it| self.by_id(&it.plugin));
        let approved = match plugin {
            Some(Ok(loaded)) => loaded.instance.approve_asked(ask, by).await,
            Some(Err(_)) | None => Ok(false),
        };
        match approved {
            Ok(true) => Ok(()),
            Ok(false) => {
                let why = "the plugin is changed, disabled or removed";
                Err(NotApproved(why.to_owned()))
            }
            Err(error) => Err(NotApproved(error.message.into_owned())),
        }
    }

    async fn call_method(&self, call: PluginRequest) -> Result<Value, PluginRequestError> {
        let PluginRequest {
            plugin,
            method,
            params,
            thread,
            settings,
            connection,
            events,
        } = call;
        self.refresh().await;
        let loaded = match self.by_id(&plugin) {
            None => return Err(PluginRequestError::UnknownPlugin(plugin)),
            Some(Err(error)) => {
                let reason = error.to_string();
                return Err(PluginRequestError::NotRunning { plugin, reason });
            }
            Some(Ok(loaded)) => loaded,
        };
        if !loaded.instance.plugin.manifest.declares(&method) {
            return Err(PluginRequestError::UnknownMethod { plugin, method });
        }
        let arguments = match params {
            None | Some(Value::Null) => json!({}),
            Some(params @ Value::Object(_)) => params,
            Some(_) => return Err(PluginRequestError::BadParams),
        };
        let writable = match settings {
            Some(settings) => self.writable(settings).await,
            // No agent takes part in the call.
            None => Vec::new(),
        };
        let call = PluginCall {
            method,
            arguments,
            user: None,
            acts: None,
            limit: CALL_TIMEOUT,
            answer: None,
            events: EventReceiver {
                owner: EventOwner::Client { connection, thread },
                listener: events,
            },
            stopped: Box::pin(std::future::pending()),
            writable,
        };
        let result = async {
            let _permit = loaded.instance.reserve_client_call()?;
            loaded.instance.call(call).await
        };
        let result: Result<_, PluginToolError> = result.await;
        result.map_err(|error| PluginRequestError::Failed {
            plugin,
            error: error.to_string(),
        })
    }

    /// Returns the state of a plugin. It may block on the disk.
    fn snapshot(&self, installed: InstalledPlugin) -> PluginSnapshot {
        let manifest = match self.enabled(&installed) {
            Some(Ok(plugin)) => {
                let plugin = &plugin.instance.plugin;
                Ok(summary(
                    &installed.path,
                    &plugin.manifest,
                    plugin.skills.clone(),
                ))
            }
            Some(Err(error)) => Err(error.to_string()),
            None => unloaded(&installed),
        };
        PluginSnapshot {
            is_removable: self.config().is_users(&installed.id),
            is_managed: installed.is_managed,
            has_failing_hooks: self.has_failing_hooks(&installed),
            folder: installed.path.display().to_string(),
            is_enabled: installed.enabled,
            trusted_hash: installed.trusted_hash,
            id: installed.id,
            manifest,
        }
    }
}

/// Removes the approvals and the state of a plugin. The log stays. Blocks on the disk.
pub fn forget_plugin(home: &Path, id: &str) -> Result<(), PluginFileError> {
    PermissionStore::of(home, id).remove()?;
    StateStore::of(home, id).remove()
}

/// Reads the manifest of a plugin that does not run. Its files need no trust for that.
fn unloaded(installed: &InstalledPlugin) -> Result<ManifestSummary, String> {
    let (id, path) = (installed.id.clone(), installed.path.clone());
    if path.is_relative() {
        return Err(InspectionError::Relative { path }.to_string());
    }
    let manifest = Manifest::read(&path).map_err(|error| error.to_string())?;
    if manifest.id != id {
        let found = manifest.id;
        return Err(UntrustedReason::OtherId { id, found }.to_string());
    }
    let skills = skills::read(&path, &manifest).map_err(|error| error.to_string())?;
    Ok(summary(&path, &manifest, skills))
}

fn summary(folder: &Path, manifest: &Manifest, skills: Vec<PluginSkill>) -> ManifestSummary {
    let keys = hook_keys(&manifest.id, &manifest.hooks);
    let hooks = manifest.hooks.iter().zip(keys);
    let hooks = hooks.map(|(hook, key)| PluginHookSummary {
        key,
        event: hook.event,
        matcher: (!hook.matcher.is_empty()).then(|| hook.matcher.clone()),
        method: hook.method.clone(),
        manifest_path: folder.join(MANIFEST_FILE).display().to_string(),
        timeout: HOOK_TIMEOUT,
    });
    ManifestSummary {
        version: manifest.version.clone(),
        permissions: manifest.permissions.clone(),
        tools: manifest.tools.iter().map(|it| it.name.clone()).collect(),
        skills,
        hooks: hooks.collect(),
        mcp_servers: manifest
            .mcp_servers
            .iter()
            .map(|it| it.name.clone())
            .collect(),
    }
}
