//! `raddle plugin list`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use raddle_config::{Configuration, InstalledPlugin};
use raddle_console::print_lines;
use raddle_plugin::{
    InspectedPlugin, McpCollision, PermissionApproval, PermissionStore, PluginTrust, plugin_trust,
};
use serde_json::{Value, json};

use super::report;
use crate::cli::PluginList;
use crate::home::Home;

/// An installed plugin, as its folder is now.
struct ListedPlugin {
    installed: InstalledPlugin,
    trust: PluginTrust,
    /// MCP server whose name the configuration uses for another one.
    collision: Option<McpCollision>,
    /// Approved permissions, if its files are trusted.
    approved: BTreeMap<String, PermissionApproval>,
}

pub(super) fn run(config: &Configuration, args: &PluginList) -> Result<ExitCode> {
    let home = Home::find()?;
    let installed = config.plugins().into_iter();
    let taken = config.mcp_servers().names();
    let plugins = installed.map(|it| ListedPlugin::read(it, &home.state, &taken));
    let plugins = plugins.collect::<Result<Vec<_>>>()?;
    if args.json {
        let list: Value = plugins.iter().map(ListedPlugin::json).collect();
        print_lines([list.to_string()])?;
        return Ok(ExitCode::SUCCESS);
    }
    print_lines(plugins.iter().flat_map(ListedPlugin::lines))?;
    if plugins.is_empty() {
        report("no plugin is installed; `raddle plugin add PATH` installs one");
    }
    Ok(ExitCode::SUCCESS)
}

impl ListedPlugin {
    fn read(installed: InstalledPlugin, home: &Path, taken: &[String]) -> Result<Self> {
        let trust = plugin_trust(&installed);
        let collision = match &trust {
            PluginTrust::Trusted(plugin) => plugin.mcp_collision(taken),
            PluginTrust::Untrusted(_) | PluginTrust::Unusable(_) => None,
        };
        let approved = match &trust {
            PluginTrust::Trusted(plugin) => {
                PermissionStore::of(home, &installed.id).approved(&plugin.hash.text)?
            }
            PluginTrust::Untrusted(_) | PluginTrust::Unusable(_) => BTreeMap::new(),
        };
        Ok(Self {
            installed,
            trust,
            collision,
            approved,
        })
    }

    /// Returns the state as a word for programs, and for people.
    fn state(&self) -> (&'static str, String) {
        if let Some(collision) = &self.collision {
            return ("unusable", format!("does not run: {collision}"));
        }
        match (&self.trust, self.installed.enabled) {
            (PluginTrust::Trusted(_), false) => ("disabled", "disabled".to_owned()),
            (PluginTrust::Trusted(_), true) => ("enabled", "enabled".to_owned()),
            (PluginTrust::Untrusted(reason), _) => ("untrusted", format!("does not run: {reason}")),
            (PluginTrust::Unusable(error), _) => ("unusable", format!("does not run: {error}")),
        }
    }

    fn inspected(&self) -> Option<&InspectedPlugin> {
        match &self.trust {
            PluginTrust::Trusted(plugin) => Some(plugin),
            PluginTrust::Untrusted(_) | PluginTrust::Unusable(_) => None,
        }
    }

    fn lines(&self) -> Vec<String> {
        let version = self
            .inspected()
            .map(|it| format!(" {}", it.manifest.version));
        let mut lines = vec![
            format!("{}{}", self.installed.id, version.unwrap_or_default()),
            format!("  folder: {}", self.installed.path.display()),
            format!("  state: {}", self.state().1),
        ];
        let tools = self.inspected().into_iter().flat_map(|it| it.tool_names());
        lines.extend(tools.map(|it| format!("  tool: {it}")));
        let skills = self.inspected().into_iter().flat_map(|it| &it.skills);
        lines.extend(skills.map(|it| format!("  skill: {}", it.name)));
        let servers = self.inspected().into_iter();
        let servers = servers.flat_map(|it| &it.manifest.mcp_servers);
        lines.extend(servers.map(|it| format!("  mcp server: {}", it.name)));
        let approved = self.approved.iter();
        lines.extend(approved.map(|(name, it)| format!("  approved: {name}, by {}", it.by)));
        lines
    }

    fn json(&self) -> Value {
        let (state, text) = self.state();
        json!({
            "id": self.installed.id,
            "path": self.installed.path,
            "enabled": self.installed.enabled,
            "version": self.inspected().map(|it| &it.manifest.version),
            "permissions": self.inspected().map(|it| &it.manifest.permissions),
            "approved": self.inspected().map(|_| &self.approved),
            "tools": self.inspected().map(InspectedPlugin::tool_names),
            "skills": self.inspected().map(|it| {
                it.skills.iter().map(|skill| &skill.name).collect::<Vec<_>>()
            }),
            "mcpServers": self.inspected().map(|it| {
                it.manifest.mcp_servers.iter().map(|server| &server.name).collect::<Vec<_>>()
            }),
            "state": state,
            "reason": matches!(state, "untrusted" | "unusable").then_some(text),
        })
    }
}
