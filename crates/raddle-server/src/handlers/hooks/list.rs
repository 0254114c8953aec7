//! `hooks/list`: the hooks that apply in some folders. Only the operator's files and installed
//! plugins define hooks, so they are the same in every folder.

use std::path::PathBuf;
use std::sync::Arc;

use raddle_config::{Hook, HookConfig, HookSet, HookTrust};
use raddle_core::ports::{HookLayer, PluginHookSummary, PluginSnapshot};
use raddle_protocol::methods::HooksList;
use raddle_protocol::{
    CommandHookMetadata, HookErrorInfo, HookEventName, HookMetadata, HookSource, HookTrustStatus,
    HooksListEntry, HooksListResponse, McpToolHookMetadata,
};

use crate::call::Request;
use crate::services::{ServerState, files, threads};
use crate::wire_error::WireError;

pub(crate) async fn handle(
    state: Arc<ServerState>,
    request: Request<HooksList>,
) -> Result<HooksListResponse, WireError> {
    let Request { params, session } = request;
    let mut folders = params.cwds;
    files::check_cwds(&folders)?;
    match params.thread_id {
        Some(_) if !folders.is_empty() => {
            return Err(WireError::Refused("specify either threadId or cwds".into()));
        }
        Some(id) => {
            let peek = state.threads.peek(id).await;
            let peek = peek.map_err(|error| threads::refused(id, error))?;
            folders.push(peek.thread.settings().cwd.clone());
        }
        None if folders.is_empty() => {
            folders.push(std::env::current_dir()?.display().to_string());
        }
        None => {}
    }
    let plugins = state.plugins.snapshots().await;
    let permit = state.home.acquire_shared().await?;
    let read = move || {
        let set = HookConfig::of(&state.config).load();
        entry(&set, &plugins, &state.hidden_paths())
    };
    let found = match session.is_observer() {
        // An observer reads no files of the user.
        true => entry(&HookSet::default(), &[], &[]),
        false => permit.run(read).await?,
    };
    let entries = folders.into_iter().map(|cwd| HooksListEntry {
        cwd,
        ..found.clone()
    });
    Ok(HooksListResponse {
        data: entries.collect(),
    })
}

/// Returns the entry of any folder.
fn entry(set: &HookSet, plugins: &[PluginSnapshot], hidden: &[PathBuf]) -> HooksListEntry {
    let errors = set.errors.iter().map(|it| HookErrorInfo {
        message: it.message.clone(),
        path: it.path.display().to_string(),
    });
    let mut warnings = set.warnings.clone();
    for hook in &set.hooks {
        let scripts = hook.scripts().into_iter();
        let mut unseen = scripts.filter(|it| hidden.iter().any(|folder| it.starts_with(folder)));
        if let Some(script) = unseen.next() {
            warnings.push(format!(
                "the hook `{}` fails in the sandbox: {} is in a folder of Raddle, which is hidden \
                 there; move the script to another folder",
                hook.key,
                script.display()
            ));
        }
    }
    let mut hooks: Vec<HookMetadata> = set.hooks.iter().map(metadata).collect();
    for plugin in plugins.iter().filter(|it| it.is_enabled) {
        match &plugin.manifest {
            Ok(manifest) => {
                for hook in &manifest.hooks {
                    hooks.push(plugin_metadata(plugin, hook, hooks.len(), set));
                }
            }
            Err(reason) if plugin.has_failing_hooks => warnings.push(format!(
                "the plugin `{}` does not run; its hooks fail: {reason}",
                plugin.id
            )),
            Err(_) => {}
        }
    }
    HooksListEntry {
        cwd: String::new(),
        errors: errors.collect(),
        hooks,
        warnings,
    }
}

fn metadata(hook: &Hook) -> HookMetadata {
    HookMetadata::Command(CommandHookMetadata {
        command: hook.command.clone(),
        current_hash: hook.current_hash.clone(),
        display_order: hook.display_order,
        enabled: hook.enabled,
        event_name: HookEventName::from(hook.event.wire_name()),
        is_managed: hook.layer == HookLayer::System,
        key: hook.key.clone(),
        source: match hook.layer {
            HookLayer::System => HookSource::System,
            HookLayer::User => HookSource::User,
            HookLayer::Plugin => HookSource::Plugin,
        },
        source_path: hook.source_path.display().to_string(),
        timeout_sec: hook.timeout.as_secs(),
        trust_status: match hook.trust() {
            HookTrust::Managed => HookTrustStatus::Managed,
            HookTrust::Trusted => HookTrustStatus::Trusted,
            HookTrust::Modified => HookTrustStatus::Modified,
            HookTrust::Untrusted => HookTrustStatus::Untrusted,
        },
        run_async: false,
        additional_context_limit: None,
        environment_id: None,
        matcher: hook.matcher.clone(),
        plugin_id: None,
        status_message: hook.status_message.clone(),
    })
}

/// Returns the entry of a hook of a plugin that runs. Clients see its tools as those of an MCP
/// server, and its hooks likewise.
fn plugin_metadata(
    plugin: &PluginSnapshot,
    hook: &PluginHookSummary,
    position: usize,
    set: &HookSet,
) -> HookMetadata {
    let is_managed = plugin.is_managed;
    HookMetadata::McpTool(McpToolHookMetadata {
        server: plugin.id.clone(),
        tool: hook.method.clone(),
        current_hash: plugin.trusted_hash.clone().unwrap_or_default(),
        display_order: i64::try_from(position).unwrap_or(i64::MAX),
        enabled: is_managed || !set.is_disabled(&hook.key),
        event_name: HookEventName::from(hook.event.wire_name()),
        is_managed,
        key: hook.key.clone(),
        source: HookSource::Plugin,
        source_path: hook.manifest_path.clone(),
        timeout_sec: hook.timeout.as_secs(),
        trust_status: match is_managed {
            true => HookTrustStatus::Managed,
            false => HookTrustStatus::Trusted,
        },
        additional_context_limit: None,
        environment_id: None,
        matcher: hook.matcher.clone(),
        plugin_id: Some(plugin.id.clone()),
        status_message: None,
    })
}
