//! The environment variables of the agent's commands, in `[shell_environment_policy]`.

use std::collections::BTreeMap;

use raddle_core::policy::command_variables;

use crate::effective::EffectiveConfig;
use crate::keys::VARIABLES_TABLE;
use crate::setting_error::{SettingError, quoted};

/// The member with the variables to set.
const SET: &str = "set";

/// Returns the variables to set, or says which of them cannot be set.
pub fn variables(config: &EffectiveConfig<'_>) -> Result<BTreeMap<String, String>, SettingError> {
    let Some(table) = config.value(VARIABLES_TABLE) else {
        return Ok(BTreeMap::new());
    };
    let Some(table) = table.as_table() else {
        let what = format!("`{VARIABLES_TABLE}` must be a table");
        return Err(config.refused(what, &[VARIABLES_TABLE]));
    };
    let Some(set) = table.get(SET) else {
        return Ok(BTreeMap::new());
    };
    let Some(set) = set.as_table() else {
        let what = format!("`{VARIABLES_TABLE}.{SET}` must be a table of strings");
        return Err(config.refused(what, &[VARIABLES_TABLE, SET]));
    };
    let faulty = |name: &str, why: &str| {
        let what = format!("`{VARIABLES_TABLE}.{SET}.{}`: {why}", quoted(name));
        config.refused(what, &[VARIABLES_TABLE, SET, name])
    };
    let mut variables = BTreeMap::new();
    for (name, value) in set {
        let Some(value) = value.as_str() else {
            return Err(faulty(name, "a value must be a string"));
        };
        variables.insert(name.clone(), value.to_owned());
    }
    let checked = command_variables::check(&variables);
    checked.map_err(|(name, error)| faulty(name, &error.to_string()))?;
    Ok(variables)
}

/// Returns the variables to set, if a request's own `config` names any.
pub fn variables_of_request(
    config: &EffectiveConfig<'_>,
) -> Result<Option<BTreeMap<String, String>>, SettingError> {
    let is_named = config.names(VARIABLES_TABLE);
    is_named.then(|| variables(config)).transpose()
}
