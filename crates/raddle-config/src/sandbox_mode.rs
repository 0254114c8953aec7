//! `sandbox_mode`: the sandbox that a mode names, with the options of its table.

use std::path::Path;

use raddle_core::Sandbox;

use crate::effective::EffectiveConfig;
use crate::setting_error::SettingError;

/// The configuration key of the mode, and its values for people.
const KEY: &str = "sandbox_mode";
const VALUES: &str = "read-only, workspace-write or danger-full-access";

/// The table with the options of the mode `workspace-write`.
const TABLE: &str = "sandbox_workspace_write";

/// Returns the sandbox of the given mode, else of the configured one. Its options are the keys of
/// the mode's table.
pub(crate) fn sandbox(
    config: &EffectiveConfig<'_>,
    mode: Option<&str>,
) -> Result<Sandbox, SettingError> {
    let selected = match mode {
        Some(mode) => Some(mode),
        None => configured(config)?,
    };
    Ok(match selected.unwrap_or("read-only") {
        "danger-full-access" => Sandbox::FullAccess,
        "workspace-write" => Sandbox::WorkspaceWrite {
            without_tmp: flag(config, "exclude_slash_tmp")?,
            without_tmpdir: flag(config, "exclude_tmpdir_env_var")?,
            network: flag(config, "network_access")?,
            roots: roots(config)?,
            reads: None,
        },
        "read-only" => Sandbox::default(),
        other => {
            let what = format!("{KEY} is `{other}`, which is unknown; set it to {VALUES}");
            return Err(match mode {
                Some(_) => SettingError::Refused(what),
                None => config.refused(what, &[KEY]),
            });
        }
    })
}

/// Returns the configured mode. A value that is not a string is rejected: the default in its place
/// could be wider than the value means.
fn configured<'a>(config: &'a EffectiveConfig<'_>) -> Result<Option<&'a str>, SettingError> {
    match config.value(KEY) {
        None => Ok(None),
        Some(toml::Value::String(mode)) => Ok(Some(mode)),
        Some(other) => {
            let kind = other.type_str();
            let what = format!("{KEY} is of the type {kind}; set it to the string {VALUES}");
            Err(config.refused(what, &[KEY]))
        }
    }
}

fn in_table<'a>(
    config: &'a EffectiveConfig<'_>,
    key: &str,
) -> Result<Option<&'a toml::Value>, SettingError> {
    match config.value(TABLE) {
        None => Ok(None),
        Some(toml::Value::Table(table)) => Ok(table.get(key)),
        Some(_) => {
            let what = format!("{TABLE} in the configuration must be a table");
            Err(config.refused(what, &[TABLE]))
        }
    }
}

fn flag(config: &EffectiveConfig<'_>, key: &str) -> Result<bool, SettingError> {
    match in_table(config, key)? {
        None => Ok(false),
        Some(toml::Value::Boolean(it)) => Ok(*it),
        Some(_) => {
            let what = format!("{TABLE}.{key} in the configuration must be true or false");
            Err(config.refused(what, &[TABLE, key]))
        }
    }
}

fn roots(config: &EffectiveConfig<'_>) -> Result<Vec<String>, SettingError> {
    let invalid = || {
        let what =
            format!("{TABLE}.writable_roots in the configuration must be a list of absolute paths");
        config.refused(what, &[TABLE, "writable_roots"])
    };
    let Some(roots) = in_table(config, "writable_roots")? else {
        return Ok(Vec::new());
    };
    let roots = roots.as_array().ok_or_else(invalid)?.iter();
    let roots = roots.map(|it| it.as_str().filter(|it| Path::new(it).is_absolute()));
    roots
        .map(|it| it.map(str::to_owned).ok_or_else(invalid))
        .collect()
}
