//! Permission profiles: named sandboxes. Three are built in; the configuration adds more under
//! `[permissions.NAME]`.
//!
//! A profile that no sandbox here can enforce is rejected. It is never replaced by a wider one.

use raddle_core::PermissionProfile;
use raddle_protocol::{ReadOnlySandboxPolicy, SandboxPolicy, WorkspaceWriteSandboxPolicy};

use crate::effective::EffectiveConfig;
use crate::sandbox_mode;
use crate::setting_error::{SettingError, quoted};

/// The built-in profiles, with a description of each for people.
const BUILT_IN: [(&str, &str); 3] = [
    (READ_ONLY, "Reads files, changes nothing."),
    (WORKSPACE, "Changes files in the workspace."),
    (FULL_ACCESS, "No sandbox at all."),
];

const READ_ONLY: &str = ":read-only";
const WORKSPACE: &str = ":workspace";
const FULL_ACCESS: &str = ":danger-full-access";

/// The table of the configuration with further profiles.
const TABLE: &str = "permissions";

/// The configuration key of the default profile of threads.
const DEFAULT: &str = "default_permissions";

/// The configuration key of a mode, in place of a profile.
const MODE: &str = "sandbox_mode";

/// Limit: permission profiles that extend each other; beyond it, the server rejects the request
/// with -32600.
const EXTENDS_MAX: usize = 8;

/// A sandbox, and the profile that it was made from.
#[derive(Debug)]
pub struct SandboxChoice {
    /// Sandbox of the tools.
    pub policy: SandboxPolicy,
    /// The profile, unless a mode names the sandbox.
    pub profile: Option<PermissionProfile>,
}

/// Returns the sandbox of a profile.
pub fn of_profile(config: &EffectiveConfig<'_>, id: &str) -> Result<SandboxChoice, SettingError> {
    let profile = |extends: Option<&str>| {
        Some(PermissionProfile {
            id: id.to_owned(),
            extends: extends.map(str::to_owned),
        })
    };
    if id == FULL_ACCESS {
        return Ok(SandboxChoice {
            policy: SandboxPolicy::DangerFullAccess,
            profile: profile(None),
        });
    }
    let access = access(config, id, &mut Vec::new())?;
    let extends = table(config, id).and_then(|it| it.get("extends")?.as_str());
    Ok(SandboxChoice {
        policy: access
            .policy()
            .map_err(|what| invalid_profile(config, id, &what))?,
        profile: profile(extends),
    })
}

/// Returns the sandbox of the given mode, else the configured one: that of the default profile, or
/// of the mode if a stronger layer sets that.
pub fn of_config(
    config: &EffectiveConfig<'_>,
    mode: Option<&str>,
) -> Result<SandboxChoice, SettingError> {
    let default_profile = config.value(DEFAULT).filter(|_| mode.is_none());
    let is_weaker = config.strength(DEFAULT) < config.strength(MODE);
    match default_profile.filter(|_| !is_weaker) {
        Some(default_profile) => of_default(config, default_profile),
        None => of_mode(config, mode),
    }
}

/// Rejects an invalid mode of the configuration, even where a request or a profile overrides it:
/// the mistake would otherwise go unnoticed.
pub fn check_mode(config: &EffectiveConfig<'_>) -> Result<(), SettingError> {
    sandbox_mode::policy(config, None).map(drop)
}

/// Returns the sandboxes that the request's own configuration names, each with its key.
pub fn of_request(
    config: &EffectiveConfig<'_>,
) -> Result<Vec<(&'static str, SandboxChoice)>, SettingError> {
    let mut choices = Vec::new();
    if let Some(default_profile) = config.value(DEFAULT).filter(|_| config.names(DEFAULT)) {
        choices.push((DEFAULT, of_default(config, default_profile)?));
    }
    if config.names(MODE) {
        choices.push((MODE, of_mode(config, None)?));
    }
    Ok(choices)
}

fn of_mode(
    config: &EffectiveConfig<'_>,
    mode: Option<&str>,
) -> Result<SandboxChoice, SettingError> {
    Ok(SandboxChoice {
        policy: sandbox_mode::policy(config, mode)?,
        profile: None,
    })
}

fn of_default(
    config: &EffectiveConfig<'_>,
    default_profile: &toml::Value,
) -> Result<SandboxChoice, SettingError> {
    let Some(id) = default_profile.as_str() else {
        let what = format!("`{DEFAULT}` must be the name of a permission profile");
        return Err(config.refused(what, &[DEFAULT]));
    };
    of_named_profile(config, id)
}

/// Returns the sandbox of a profile that a request or the configuration names. Rejects options of a
/// mode in the same request.
pub fn of_named_profile(
    config: &EffectiveConfig<'_>,
    id: &str,
) -> Result<SandboxChoice, SettingError> {
    if config.names("sandbox_workspace_write") && !config.names(MODE) {
        let what = format!(
            "`sandbox_workspace_write` is about `{MODE}`, and the permission profile `{}` is in force; \
             name `{MODE}` too, or leave it out",
            quoted(id)
        );
        return Err(SettingError::Refused(what));
    }
    of_profile(config, id)
}

/// Returns the ids of all profiles, the built-in ones first.
pub fn ids(config: &EffectiveConfig<'_>) -> Vec<String> {
    let configured = config.value(TABLE).and_then(toml::Value::as_table);
    let configured = configured.into_iter().flat_map(toml::Table::keys);
    // A configured profile with such a name would hide a built-in one.
    let configured = configured.filter(|it| !it.starts_with(':')).cloned();
    let built_in = BUILT_IN.iter().map(|(id, _)| (*id).to_owned());
    built_in.chain(configured).collect()
}

/// Returns the description of a profile, for people.
pub fn description<'a>(config: &'a EffectiveConfig<'_>, id: &str) -> Option<&'a str> {
    let built_in = BUILT_IN.iter().find(|(name, _)| *name == id);
    let configured = || table(config, id)?.get("description")?.as_str();
    built_in.map(|it| it.1).or_else(configured)
}

/// Returns the table of a configured profile.
fn table<'a>(config: &'a EffectiveConfig<'_>, id: &str) -> Option<&'a toml::Table> {
    let is_built_in = id.starts_with(':');
    let table = config.value(TABLE)?.as_table()?.get(id)?.as_table();
    table.filter(|_| !is_built_in)
}

fn invalid_profile(config: &EffectiveConfig<'_>, id: &str, what: &str) -> SettingError {
    config.refused(
        format!("the permission profile `{id}`: {what}"),
        &[TABLE, id],
    )
}

/// Access level of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Read,
    Write,
}

impl Level {
    fn of(value: &toml::Value) -> Option<Self> {
        match value.as_str()? {
            "read" => Some(Self::Read),
            "write" => Some(Self::Write),
            _ => None,
        }
    }
}

/// Access that a profile grants, before it is known whether a sandbox can enforce it.
#[derive(Clone, Debug, Default)]
struct ProfileAccess {
    /// Access to every file.
    root: Option<Level>,
    workspace: Option<Level>,
    tmp: Option<Level>,
    tmpdir: Option<Level>,
    paths: Vec<(String, Level)>,
    network: bool,
}

/// Returns the access that a profile grants, including what it inherits.
fn access(
    config: &EffectiveConfig<'_>,
    id: &str,
    extended_by: &mut Vec<String>,
) -> Result<ProfileAccess, SettingError> {
    let read_only = ProfileAccess {
        root: Some(Level::Read),
        ..ProfileAccess::default()
    };
    match id {
        READ_ONLY => return Ok(read_only),
        WORKSPACE => {
            let write = Some(Level::Write);
            return Ok(ProfileAccess {
                workspace: write,
                tmp: write,
                tmpdir: write,
                ..read_only
            });
        }
        FULL_ACCESS => {
            let extending = extended_by.last().map_or("", String::as_str);
            let what = format!("it cannot extend `{FULL_ACCESS}`; choose that profile itself");
            return Err(invalid_profile(config, extending, &what));
        }
        _ => {}
    }
    let Some(profile_table) = table(config, id) else {
        return Err(SettingError::UnknownProfile {
            id: quoted(id).into_owned(),
            known: ids(config),
        });
    };
    if extended_by.len() == EXTENDS_MAX || extended_by.iter().any(|it| it == id) {
        let chain = extended_by.join(" -> ");
        let what = format!("profiles extend each other in a circle: {chain} -> {id}");
        return Err(invalid_profile(config, id, &what));
    }
    extended_by.push(id.to_owned());
    let mut access = match profile_table.get("extends") {
        None => ProfileAccess::default(),
        Some(toml::Value::String(base)) => self::access(config, base, extended_by)?,
        Some(_) => {
            return Err(invalid_profile(
                config,
                id,
                "`extends` must be the name of a profile",
            ));
        }
    };
    access
        .read(profile_table)
        .map_err(|what| invalid_profile(config, id, &what))?;
    Ok(access)
}

impl ProfileAccess {
    /// Merges in the values of a table.
    fn read(&mut self, table: &toml::Table) -> Result<(), String> {
        for (key, value) in table {
            match (key.as_str(), value) {
                ("extends", _) | ("description", toml::Value::String(_)) => {}
                ("filesystem", toml::Value::Table(entries)) => {
                    for (path, value) in entries {
                        self.read_path_entry(path, value)?;
                    }
                }
                ("network", toml::Value::Table(network)) => self.read_network(network)?,
                _ => {
                    return Err(format!(
                        "`{key}` is not supported here; it may have `extends`, `description`, and the tables \
                         `filesystem` and `network`"
                    ));
                }
            }
        }
        Ok(())
    }

    fn read_path_entry(&mut self, path_name: &str, value: &toml::Value) -> Result<(), String> {
        let level = level(path_name, value)?;
        match path_name {
            ":root" => self.root = Some(level),
            // Already readable where the whole disk is.
            ":minimal" if level == Level::Read => {}
            ":project_roots" | ":workspace_roots" => self.workspace = Some(level),
            ":slash_tmp" => self.tmp = Some(level),
            ":tmpdir" => self.tmpdir = Some(level),
            absolute if absolute.starts_with('/') => {
                self.paths.retain(|(it, _)| it != absolute);
                self.paths.push((absolute.to_owned(), level));
            }
            _ => {
                return Err(format!(
                    "`{path_name}` is not supported here; name :root, :project_roots, :slash_tmp, :tmpdir or an \
                     absolute path"
                ));
            }
        }
        Ok(())
    }

    fn read_network(&mut self, table: &toml::Table) -> Result<(), String> {
        for (key, value) in table {
            match (key.as_str(), value) {
                ("enabled", toml::Value::Boolean(it)) => self.network = *it,
                ("enabled", _) => return Err("`network.enabled` must be true or false".to_owned()),
                _ => {
                    return Err(format!(
                        "`network.{key}` is not supported here; list hosts in [sandbox_network]"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Returns the sandbox that enforces the access, or why none does.
    fn policy(self) -> Result<SandboxPolicy, String> {
        let is_writable = |it: Option<Level>| it == Some(Level::Write);
        let writes = self.paths.iter().any(|it| it.1 == Level::Write)
            || is_writable(self.tmp)
            || is_writable(self.tmpdir);
        match (self.root, self.workspace) {
            (None, _) => Err(
                "reading cannot be limited here; set \":root\" = \"read\" under `filesystem`, or extend :read-only"
                    .to_owned(),
            ),
            (Some(Level::Write), _) if self.network => Ok(SandboxPolicy::DangerFullAccess),
            (Some(Level::Write), _) => Err(
                "every file may be written, so the network cannot be blocked; set `network.enabled`, or \
                 \":root\" = \"read\""
                    .to_owned(),
            ),
            (_, Some(Level::Write)) => {
                let read_only_path = self.paths.iter().find(|it| it.1 == Level::Read);
                if let Some((path, _)) = read_only_path {
                    return Err(format!(
                        "`{path}` may only be read, which cannot be enforced beside a writable workspace; \
                         leave it out, or extend :read-only"
                    ));
                }
                Ok(SandboxPolicy::WorkspaceWrite(WorkspaceWriteSandboxPolicy {
                    exclude_slash_tmp: !is_writable(self.tmp),
                    exclude_tmpdir_env_var: !is_writable(self.tmpdir),
                    network_access: self.network,
                    writable_roots: self.paths.into_iter().map(|it| it.0).collect(),
                }))
            }
            _ if writes => Err(
                "a path may be written and the workspace may not, which cannot be enforced here; add \
                 \":project_roots\" = \"write\", or write nothing"
                    .to_owned(),
            ),
            _ => Ok(SandboxPolicy::ReadOnly(ReadOnlySandboxPolicy {
                network_access: self.network,
            })),
        }
    }
}

fn level(path: &str, value: &toml::Value) -> Result<Level, String> {
    Level::of(value).ok_or_else(|| {
        format!(
            "`{path}` must be \"read\" or \"write\"; denied read access cannot be enforced here"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(text: &str) -> Result<SandboxPolicy, String> {
        let table: toml::Table = text.parse().expect("TOML");
        let mut access = ProfileAccess::default();
        if table.get("extends").and_then(toml::Value::as_str) == Some(WORKSPACE) {
            let write = Some(Level::Write);
            access = ProfileAccess {
                root: Some(Level::Read),
                workspace: write,
                tmp: write,
                tmpdir: write,
                ..access
            };
        }
        access.read(&table)?;
        access.policy()
    }

    #[test]
    fn a_profile_is_enforced_completely_or_rejected() {
        let workspace = |roots: &[&str], tmp: bool, network| {
            SandboxPolicy::WorkspaceWrite(WorkspaceWriteSandboxPolicy {
                exclude_slash_tmp: !tmp,
                exclude_tmpdir_env_var: !tmp,
                network_access: network,
                writable_roots: roots.iter().map(|it| (*it).to_owned()).collect(),
            })
        };
        let read_only =
            |network_access| SandboxPolicy::ReadOnly(ReadOnlySandboxPolicy { network_access });
        for (text, expected) in [
            ("filesystem = { ':root' = 'read' }", read_only(false)),
            (
                "filesystem = { ':root' = 'read' }\nnetwork.enabled = true",
                read_only(true),
            ),
            (
                "filesystem = { ':root' = 'read', '/x' = 'read' }",
                read_only(false),
            ),
            (
                "filesystem = { ':root' = 'read', ':project_roots' = 'write', '/x' = 'write' }",
                workspace(&["/x"], false, false),
            ),
            ("extends = ':workspace'", workspace(&[], true, false)),
            (
                "extends = ':workspace'\nfilesystem = { '/x' = 'write' }\nnetwork.enabled = true",
                workspace(&["/x"], true, true),
            ),
            (
                "extends = ':workspace'\nfilesystem = { ':project_roots' = 'read', ':slash_tmp' = 'read', ':tmpdir' = 'read' }",
                read_only(false),
            ),
            (
                "filesystem = { ':root' = 'write' }\nnetwork.enabled = true",
                SandboxPolicy::DangerFullAccess,
            ),
        ] {
            assert_eq!(policy(text), Ok(expected), "{text}");
        }
        for text in [
            "description = 'x'",
            "filesystem = { ':minimal' = 'read' }",
            "filesystem = { ':root' = 'write' }",
            "filesystem = { ':root' = 'read', '/x' = 'write' }",
            "filesystem = { ':root' = 'read', '/x' = 'none' }",
            "filesystem = { ':root' = 'read', '/x' = 'deny' }",
            "filesystem = { ':root' = 'read', 'x' = 'write', ':project_roots' = 'write' }",
            "extends = ':workspace'\nfilesystem = { '/x' = 'read' }",
            "extends = ':workspace'\nfilesystem = { '~/x' = 'write' }",
            "extends = ':workspace'\nfilesystem = { ':project_roots' = { '.' = 'write', 'secret' = 'none' } }",
            "extends = ':workspace'\nfilesystem = { ':project_roots' = { '.git' = 'read' } }",
            "extends = ':workspace'\nfilesystem = 'all'",
            "extends = ':workspace'\nnetwork = { enabled = true, domains = { 'example.com' = 'allow' } }",
            "extends = ':workspace'\nnetwork = { enabled = 1 }",
            "extends = ':workspace'\nlimits = 1",
        ] {
            let result = policy(text);
            assert!(result.is_err(), "{text}: {result:?}");
        }
    }
}
