//! Permission profiles: named sandboxes. Three are built in; the configuration adds more under
//! `[permissions.NAME]`.
//!
//! A profile that no sandbox here can enforce is rejected. It is never replaced by a wider one.

use std::path::{Component, Path, PathBuf};

use raddle_core::{PermissionProfile, Sandbox};

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
    pub sandbox: Sandbox,
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
        reject_redefinition(config, id)?;
        return Ok(SandboxChoice {
            sandbox: Sandbox::FullAccess,
            profile: profile(None),
        });
    }
    let access = access(config, id, &mut Vec::new())?;
    let extends = table(config, id).and_then(|it| it.get("extends")?.as_str());
    Ok(SandboxChoice {
        sandbox: access
            .sandbox(raddle_sandbox::scratch_folders())
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
    sandbox_mode::sandbox(config, None).map(drop)
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
        sandbox: sandbox_mode::sandbox(config, mode)?,
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
    entry(config, id)?.as_table().filter(|_| !is_built_in)
}

/// Returns the value of the configuration under the name of a profile.
fn entry<'a>(config: &'a EffectiveConfig<'_>, id: &str) -> Option<&'a toml::Value> {
    config.value(TABLE)?.as_table()?.get(id)
}

/// Rejects a built-in profile that the configuration describes in another way: its restrictions
/// would not apply.
fn reject_redefinition(config: &EffectiveConfig<'_>, id: &str) -> Result<(), SettingError> {
    match entry(config, id) {
        None => Ok(()),
        Some(_) => Err(invalid_profile(
            config,
            id,
            "it is built in and cannot be changed; give your profile a name without `:`, and let it \
             extend this one",
        )),
    }
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
    /// Not even reading; only for `:root`.
    Deny,
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
    /// Whether the system's programs and settings are listed as readable.
    minimal: bool,
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
    if BUILT_IN.iter().any(|it| it.0 == id) {
        reject_redefinition(config, id)?;
    }
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
        return Err(match entry(config, id) {
            Some(_) if !id.starts_with(':') => invalid_profile(
                config,
                id,
                "it must be a table; write its keys under [permissions.NAME]",
            ),
            _ => SettingError::UnknownProfile {
                id: quoted(id).into_owned(),
                known: ids(config),
            },
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
                ("description", _) => return Err("`description` must be a string".to_owned()),
                ("filesystem", _) => {
                    return Err(
                        "`filesystem` must be a table of paths and access levels, such as { \":root\" = \"read\" }"
                            .to_owned(),
                    );
                }
                ("network", _) => {
                    return Err("`network` must be a table, such as { enabled = false }".to_owned());
                }
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
        let value = match (path_name, value) {
            // The same as the level alone.
            (":project_roots" | ":workspace_roots", toml::Value::Table(entries))
                if entries.len() == 1 =>
            {
                entries.get(".").unwrap_or(value)
            }
            _ => value,
        };
        let level = match (path_name, value.as_str()) {
            (":root", Some("deny")) => Level::Deny,
            _ => level(path_name, value)?,
        };
        match path_name {
            ":root" => self.root = Some(level),
            ":minimal" if level == Level::Read => self.minimal = true,
            ":project_roots" | ":workspace_roots" => self.workspace = Some(level),
            ":slash_tmp" => self.tmp = Some(level),
            ":tmpdir" => self.tmpdir = Some(level),
            absolute if absolute.starts_with('/') => {
                self.paths.retain(|(it, _)| it != absolute);
                self.paths.push((absolute.to_owned(), level));
            }
            _ => {
                return Err(format!(
                    "`{path_name}` is not supported here; name :root, :minimal, :project_roots, :slash_tmp, \
                     :tmpdir or an absolute path"
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
    ///
    /// `scratch`: the real paths of `/tmp` and of the folder that `TMPDIR` names.
    fn sandbox(self, scratch: &(PathBuf, Option<PathBuf>)) -> Result<Sandbox, String> {
        let is_writable = |it: Option<Level>| it == Some(Level::Write);
        let has_tmpdir = scratch.1.is_some();
        let writes = self.paths.iter().any(|it| it.1 == Level::Write)
            || is_writable(self.tmp)
            || is_writable(self.tmpdir) && has_tmpdir;
        let reads = self.reads(scratch)?;
        match (self.root, self.workspace) {
            (None, _) => Err(
                "it does not say what may be read; set \":root\" = \"read\" or \"deny\" under `filesystem`, or \
                 extend :read-only"
                    .to_owned(),
            ),
            (Some(Level::Write), _) if self.network => Ok(Sandbox::FullAccess),
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
                Ok(Sandbox::WorkspaceWrite {
                    roots: self.paths.into_iter().map(|it| it.0).collect(),
                    network: self.network,
                    without_tmp: !is_writable(self.tmp),
                    without_tmpdir: !is_writable(self.tmpdir),
                    reads,
                })
            }
            _ if writes => Err(
                "a path may be written and the workspace may not, which cannot be enforced here; add \
                 \":project_roots\" = \"write\", or write nothing"
                    .to_owned(),
            ),
            _ => Ok(Sandbox::ReadOnly {
                roots: Vec::new(),
                network: self.network,
                reads,
            }),
        }
    }

    /// Returns the list to which reads are limited; none if every file may be read. The workspace,
    /// the writable folders and the system's programs and settings are part of every such list.
    fn reads(
        &self,
        (tmp, tmpdir): &(PathBuf, Option<PathBuf>),
    ) -> Result<Option<Vec<String>>, String> {
        if self.root != Some(Level::Deny) {
            return Ok(None);
        }
        if !self.minimal {
            return Err(
                "the system's programs can always be read here; add \":minimal\" = \"read\" under `filesystem`"
                    .to_owned(),
            );
        }
        if self.workspace.is_none() {
            return Err(
                "the workspace can always be read here; add \":project_roots\" = \"read\" under `filesystem`"
                    .to_owned(),
            );
        }
        if let Some((path, _)) = self.paths.iter().find(|it| !is_below_root(&it.0)) {
            return Err(format!(
                "`{path}` may be the whole disk, and \":root\" is denied; name a folder, without `..`"
            ));
        }
        let may_read = |it: Option<Level>| it == Some(Level::Read);
        let tmp = Some(tmp).filter(|_| may_read(self.tmp));
        let tmpdir = tmpdir.as_ref().filter(|_| may_read(self.tmpdir));
        // A path that is not UTF-8 cannot be stored, and stays unreadable.
        let scratch = tmp.into_iter().chain(tmpdir).filter_map(|it| it.to_str());
        let paths = self.paths.iter().filter(|it| it.1 == Level::Read);
        let listed = paths.map(|it| it.0.as_str()).chain(scratch);
        Ok(Some(listed.map(str::to_owned).collect()))
    }
}

/// Whether a path is in the disk, and not the whole disk.
fn is_below_root(path: &str) -> bool {
    let path = Path::new(path);
    path.parent().is_some() && !path.components().any(|it| it == Component::ParentDir)
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

    fn sandbox(text: &str, tmpdir: Option<&str>) -> Result<Sandbox, String> {
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
        access.sandbox(&("/tmp".into(), tmpdir.map(PathBuf::from)))
    }

    #[test]
    fn a_profile_is_enforced_completely_or_rejected() {
        let workspace = |roots: &[&str], tmp: bool, network| Sandbox::WorkspaceWrite {
            roots: roots.iter().map(|it| (*it).to_owned()).collect(),
            network,
            without_tmp: !tmp,
            without_tmpdir: !tmp,
            reads: None,
        };
        let read_only = |network| Sandbox::ReadOnly {
            roots: Vec::new(),
            network,
            reads: None,
        };
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
                Sandbox::FullAccess,
            ),
        ] {
            assert_eq!(sandbox(text, Some("/var/t")), Ok(expected), "{text}");
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
            // Without the system's programs, or without the workspace.
            "filesystem = { ':root' = 'deny', ':project_roots' = 'read' }",
            "filesystem = { ':root' = 'deny', ':minimal' = 'read' }",
            "filesystem = { ':root' = 'deny', ':minimal' = 'write', ':project_roots' = 'read' }",
            "filesystem = { ':root' = 'deny', ':minimal' = 'deny', ':project_roots' = 'read' }",
            "filesystem = { ':root' = 'deny', ':minimal' = 'read', ':project_roots' = 'deny' }",
            "filesystem = { ':root' = 'none', ':minimal' = 'read', ':project_roots' = 'read' }",
            // The whole disk by another name.
            "filesystem = { ':root' = 'deny', ':minimal' = 'read', ':project_roots' = 'read', '/' = 'read' }",
            "filesystem = { ':root' = 'deny', ':minimal' = 'read', ':project_roots' = 'read', '/x/..' = 'read' }",
            // Denied parts of what may be read.
            "filesystem = { ':root' = 'deny', ':minimal' = 'read', ':project_roots' = 'read', '/x' = 'deny' }",
            "filesystem = { ':root' = 'deny', ':minimal' = 'read', ':project_roots' = { '.' = 'read', 'x' = 'deny' } }",
            "filesystem = { ':root' = 'deny', ':minimal' = 'read', ':project_roots' = { 'x' = 'read' } }",
            "filesystem = { ':root' = 'deny', ':minimal' = { '.' = 'read' }, ':project_roots' = 'read' }",
            "extends = ':workspace'\nfilesystem = { ':root' = 'deny', ':minimal' = 'read', ':slash_tmp' = 'deny' }",
            "extends = ':workspace'\nfilesystem = { ':root' = 'deny', ':minimal' = 'read', '/x' = 'read' }",
            // `TMPDIR` may be written, and the workspace may not.
            "filesystem = { ':root' = 'deny', ':minimal' = 'read', ':project_roots' = 'read', ':tmpdir' = 'write' }",
        ] {
            let result = sandbox(text, Some("/var/t"));
            assert!(result.is_err(), "{text}: {result:?}");
        }
    }

    #[test]
    fn reads_are_limited_to_the_listed_paths() {
        let texts = |paths: &[&str]| -> Vec<String> {
            let paths = paths.iter();
            paths.map(|it| (*it).to_owned()).collect()
        };
        let read_only = |reads: &[&str]| Sandbox::ReadOnly {
            roots: Vec::new(),
            network: false,
            reads: Some(texts(reads)),
        };
        let workspace = |without_tmp, reads: &[&str]| Sandbox::WorkspaceWrite {
            roots: Vec::new(),
            network: false,
            without_tmp,
            without_tmpdir: without_tmp,
            reads: Some(texts(reads)),
        };
        for (tmpdir, text, expected) in [
            (
                None,
                "filesystem = { ':root' = 'deny', ':minimal' = 'read', ':project_roots' = 'read' }",
                read_only(&[]),
            ),
            (
                None,
                "filesystem = { ':root' = 'deny', ':minimal' = 'read', ':project_roots' = 'read', '/x' = 'read' }",
                read_only(&["/x"]),
            ),
            (
                Some("/var/t"),
                "filesystem = { ':root' = 'deny', ':minimal' = 'read', ':project_roots' = 'read', ':slash_tmp' = 'read', ':tmpdir' = 'read' }",
                read_only(&["/tmp", "/var/t"]),
            ),
            (
                None,
                "extends = ':workspace'\nfilesystem = { ':root' = 'deny', ':minimal' = 'read' }",
                workspace(false, &[]),
            ),
            (
                Some("/var/t"),
                "filesystem = { ':root' = 'deny', ':minimal' = 'read', ':workspace_roots' = { '.' = 'write' }, ':slash_tmp' = 'read' }",
                workspace(true, &["/tmp"]),
            ),
            // Without `TMPDIR` there is nothing that `:tmpdir` could allow to write.
            (
                None,
                "extends = ':workspace'\nfilesystem = { ':root' = 'deny', ':minimal' = 'read', ':tmpdir' = 'write', ':slash_tmp' = 'read', ':workspace_roots' = { '.' = 'read' } }",
                read_only(&["/tmp"]),
            ),
        ] {
            assert_eq!(sandbox(text, tmpdir), Ok(expected), "{text}");
        }
    }
}
