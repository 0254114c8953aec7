//! `raddle plugin add`, `enable`, `disable`, `trust` and `remove`.

use std::process::ExitCode;

use anyhow::{Result, anyhow, bail, ensure};
use raddle_config::{Configuration, InstalledPlugin, WrittenValue};
use raddle_plugin::{InspectedPlugin, PermissionStore, forget_plugin};

use super::report;
use crate::cli::PluginAdd;
use crate::config;
use crate::home::Home;

pub(super) fn add(config: &Configuration, args: &PluginAdd) -> Result<ExitCode> {
    let plugin = InspectedPlugin::read(&args.folder)?;
    let id = &plugin.manifest.id;
    refuse_managed(config, id)?;
    if let Some(installed) = config.plugins().iter().find(|it| it.id == *id) {
        match installed.path == plugin.folder {
            true => bail!(
                "the plugin `{id}` is installed already; `raddle plugin trust {id}` trusts its \
                 files as they are now"
            ),
            false => bail!(
                "a plugin with the id `{id}` is installed from {}; remove it first with `raddle \
                 plugin remove {id}`, or change `id` in the manifest",
                installed.path.display()
            ),
        }
    }
    let shown = plugin.folder.display();
    ensure!(
        plugin.folder.to_str().is_some(),
        "the path {shown} is no text, so config.toml cannot contain it; rename the folder"
    );
    if let Some(collision) = plugin.mcp_collision(&config.mcp_servers().names()) {
        bail!("the plugin `{id}` cannot be installed: {collision}");
    }
    // The user may have removed an earlier installation by hand, whose files stay.
    forget_plugin(&Home::find()?.state, id)?;
    let written = config.install_plugin(&InstalledPlugin {
        id: id.clone(),
        path: plugin.folder.clone(),
        enabled: true,
        trusted_hash: Some(plugin.hash.text.clone()),
        is_managed: false,
    });
    let written = written.map_err(|error| config::not_written(config, error))?;
    permissions(id)?.approve_network(&plugin)?;
    for line in description(&plugin) {
        report(&line);
    }
    finish(&written, &format!("installed the plugin `{id}`"))
}

pub(super) fn trust(config: &Configuration, id: &str) -> Result<ExitCode> {
    refuse_managed(config, id)?;
    let plugin = InspectedPlugin::read(&installed(config, id)?.path)?;
    ensure!(
        plugin.manifest.id == id,
        "the plugin in {} has the id `{}` now; remove `{id}`, and add the folder again",
        plugin.folder.display(),
        plugin.manifest.id
    );
    if let Some(collision) = plugin.mcp_collision(&config.mcp_servers().names()) {
        bail!("the plugin `{id}` cannot be trusted: {collision}");
    }
    let written = config.trust_plugin(id, &plugin.hash.text);
    let written = written.map_err(|error| config::not_written(config, error))?;
    // Approvals are for the files that were trusted before.
    permissions(id)?.keep_only(&plugin.hash.text)?;
    permissions(id)?.approve_network(&plugin)?;
    for line in description(&plugin) {
        report(&line);
    }
    finish(&written, &format!("wrote the trust in the plugin `{id}`"))
}

pub(super) fn enable(config: &Configuration, id: &str, is_enabled: bool) -> Result<ExitCode> {
    refuse_managed(config, id)?;
    installed(config, id)?;
    let written = config.enable_plugin(id, is_enabled);
    let written = written.map_err(|error| config::not_written(config, error))?;
    let what = if is_enabled { "enabled" } else { "disabled" };
    finish(&written, &format!("{what} the plugin `{id}`"))
}

pub(super) fn remove(config: &Configuration, id: &str) -> Result<ExitCode> {
    refuse_managed(config, id)?;
    let plugin = installed(config, id)?;
    ensure!(
        config.is_users_plugin(id),
        "the plugin `{id}` is installed in {}, not in {}; remove it there",
        config.plugin_origin(id).unwrap_or_default(),
        config.user_file().display()
    );
    let written = config.remove_plugin(id);
    let written = written.map_err(|error| config::not_written(config, error))?;
    forget_plugin(&Home::find()?.state, id)?;
    report(&format!("the folder {} stays", plugin.path.display()));
    finish(&written, &format!("removed the plugin `{id}`"))
}

/// Refuses a plugin that the administrator installed. The user's file cannot change it.
fn refuse_managed(config: &Configuration, id: &str) -> Result<()> {
    match config.managed_plugin_refusal(id) {
        Some(refusal) => Err(anyhow!(refusal)),
        None => Ok(()),
    }
}

/// Returns the approved permissions of a plugin.
fn permissions(id: &str) -> Result<PermissionStore> {
    Ok(PermissionStore::of(&Home::find()?.state, id))
}

/// Returns an installed plugin.
pub(super) fn installed(config: &Configuration, id: &str) -> Result<InstalledPlugin> {
    let plugins = config.plugins();
    if let Some(plugin) = plugins.iter().find(|it| it.id == id) {
        return Ok(plugin.clone());
    }
    let ids: Vec<&str> = plugins.iter().map(|it| it.id.as_str()).collect();
    Err(match ids.is_empty() {
        true => anyhow!(
            "no plugin has the id `{id}`, and none is installed; `raddle plugin add PATH` installs \
             one"
        ),
        false => anyhow!("no plugin has the id `{id}`; use one of {}", ids.join(", ")),
    })
}

/// Describes what the user trusts.
fn description(plugin: &InspectedPlugin) -> Vec<String> {
    let InspectedPlugin {
        folder,
        manifest,
        skills,
        hash,
    } = plugin;
    let permissions = manifest.permissions.iter();
    let hosts = permissions
        .clone()
        .filter_map(|it| it.strip_prefix("network:"));
    let hosts: Vec<&str> = hosts.collect();
    let asked = permissions.filter(|it| !it.starts_with("network:"));
    let asked: Vec<&str> = asked.map(String::as_str).collect();
    let asked = match asked.is_empty() {
        true => "none".to_owned(),
        false => asked.join(", "),
    };
    let mut lines = vec![
        format!(
            "{} {} in {}",
            manifest.id,
            manifest.version,
            folder.display()
        ),
        format!("  runs: {}", manifest.entrypoint.join(" ")),
        format!("  may ask for: {asked}"),
    ];
    if !hosts.is_empty() {
        lines.push(format!("  may connect to: {}", hosts.join(", ")));
    }
    if !skills.is_empty() {
        let names: Vec<&str> = skills.iter().map(|it| it.name.as_str()).collect();
        lines.push(format!("  skills: {}", names.join(", ")));
    }
    lines.extend([format!("  trusted: {} files, {}", hash.files, hash.text)]);
    let warnings = manifest.warnings.iter();
    lines.extend(warnings.map(|it| format!("  warning: {it}")));
    lines
}

fn finish(written: &WrittenValue, done: &str) -> Result<ExitCode> {
    report(&format!("{done} in {}", written.file));
    if let Some(by) = &written.overridden {
        report(&format!(
            "warning: {by} has another value, which takes precedence"
        ));
    }
    Ok(ExitCode::SUCCESS)
}
