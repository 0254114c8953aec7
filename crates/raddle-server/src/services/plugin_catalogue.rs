//! The installed plugins, on the wire: one marketplace, which is the user's configuration.

use raddle_config::skills::is_enabled;
use raddle_core::ports::{ManifestSummary, PluginSnapshot};
use raddle_protocol::{
    HookEventName, LocalPluginSource, MarketplaceInterface, PluginAuthPolicy, PluginAvailability,
    PluginDetail, PluginHookSummary, PluginInstallPolicy, PluginInterface, PluginMarketplaceEntry,
    PluginReadParams, PluginSource, PluginSummary, SkillSummary,
};

use super::ServerState;
use crate::wire_error::WireError;

/// Name of the marketplace.
const MARKETPLACE: &str = "local";

/// Name of the marketplace for people.
const MARKETPLACE_LABEL: &str = "Local";

/// Returns the marketplace with all installed plugins; none if no plugin is installed.
pub(crate) async fn marketplaces(state: &ServerState) -> Vec<PluginMarketplaceEntry> {
    let plugins = state.plugins.snapshots().await;
    if plugins.is_empty() {
        return Vec::new();
    }
    vec![PluginMarketplaceEntry {
        name: MARKETPLACE.to_owned(),
        interface: Some(MarketplaceInterface {
            display_name: Some(MARKETPLACE_LABEL.to_owned()),
        }),
        path: Some(marketplace_path(state)),
        plugins: plugins.into_iter().map(summary).collect(),
    }]
}

/// Returns the details of a plugin.
pub(crate) async fn detail(
    state: &ServerState,
    params: &PluginReadParams,
) -> Result<PluginDetail, WireError> {
    let path = marketplace_path(state);
    let asked = params.remote_marketplace_name.as_ref();
    let asked = asked.or(params.marketplace_path.as_ref().filter(|it| **it != path));
    if let Some(asked) = asked {
        let what = format!("there is no marketplace `{asked}`; use one of plugin/list");
        return Err(WireError::Refused(what.into()));
    }
    let name = &params.plugin_name;
    let plugins = state.plugins.snapshots().await;
    let Some(plugin) = plugins.into_iter().find(|it| it.id == *name) else {
        let what = format!("no plugin has the name `{name}`; use one of plugin/list");
        return Err(WireError::Refused(what.into()));
    };
    let config = state.config.state();
    let manifest = plugin.manifest.as_ref().ok();
    let mcp_servers = manifest
        .map(|it| it.mcp_servers.clone())
        .unwrap_or_default();
    let hooks = manifest.iter().flat_map(|it| &it.hooks);
    let hooks = hooks.map(|it| PluginHookSummary {
        event_name: HookEventName::from(it.event.wire_name()),
        key: it.key.clone(),
    });
    let hooks = hooks.collect();
    let skills = manifest.iter().flat_map(|it| &it.skills);
    let skills = skills.map(|it| SkillSummary {
        name: it.name.clone(),
        description: it.description.clone(),
        enabled: plugin.is_enabled && is_enabled(&config, &it.name, &it.path),
        interface: None,
        path: Some(it.path.clone()),
        short_description: None,
    });
    Ok(PluginDetail {
        skills: skills.collect(),
        description: Some(description(&plugin)),
        summary: summary(plugin),
        marketplace_name: MARKETPLACE.to_owned(),
        marketplace_path: Some(path),
        apps: Vec::new(),
        app_templates: Vec::new(),
        hooks,
        mcp_servers,
        onboarding_skill: None,
        scheduled_tasks: None,
        share_url: None,
    })
}

/// Returns the file that names the installed plugins.
fn marketplace_path(state: &ServerState) -> String {
    state.config.user_file().display().to_string()
}

fn summary(plugin: PluginSnapshot) -> PluginSummary {
    let short_description = Some(short_description(&plugin));
    let PluginSnapshot {
        id,
        folder,
        is_enabled,
        trusted_hash: _,
        is_removable,
        is_managed: _,
        has_failing_hooks: _,
        manifest,
    } = plugin;
    let version = manifest.as_ref().ok().map(|it| it.version.clone());
    let is_enabled = is_enabled && manifest.is_ok();
    PluginSummary {
        name: id.clone(),
        id,
        // A plugin that does not run is used by no thread.
        enabled: is_enabled,
        installed: true,
        auth_policy: PluginAuthPolicy::OnUse,
        install_policy: match is_removable {
            true => PluginInstallPolicy::Available,
            false => PluginInstallPolicy::InstalledByDefault,
        },
        source: PluginSource::Local(LocalPluginSource { path: folder }),
        availability: PluginAvailability::Available,
        disabled_reason: None,
        eligible_plan_types: None,
        install_policy_source: None,
        installed_at: None,
        interface: Some(PluginInterface {
            capabilities: manifest.map(|it| it.permissions).unwrap_or_default(),
            short_description,
            ..PluginInterface::default()
        }),
        keywords: Vec::new(),
        local_version: version.clone(),
        must_show_installation_interstitial: None,
        remote_plugin_id: None,
        share_context: None,
        version,
    }
}

/// Describes a plugin in one line.
fn short_description(plugin: &PluginSnapshot) -> String {
    match &plugin.manifest {
        Ok(manifest) => tools(manifest),
        Err(reason) => {
            let line = reason.lines().next().unwrap_or_default();
            format!("does not run: {line}")
        }
    }
}

/// Describes the parts of a plugin that have no place of their own on the wire.
fn description(plugin: &PluginSnapshot) -> String {
    match &plugin.manifest {
        Ok(manifest) => {
            let permissions = match manifest.permissions.is_empty() {
                true => "nothing".to_owned(),
                false => manifest.permissions.join(", "),
            };
            format!("{}; may ask for: {permissions}", tools(manifest))
        }
        Err(reason) => format!("does not run: {reason}"),
    }
}

fn tools(manifest: &ManifestSummary) -> String {
    match manifest.tools.is_empty() {
        true => "no tools".to_owned(),
        false => format!("tools: {}", manifest.tools.join(", ")),
    }
}
