//! The model provider of a manifest: `[contributions.model_provider]`.

use toml::Table;

use super::{KeyFault, is_reserved, name, warn_of};

const KEY: &str = "contributions.model_provider";

/// Takes the method of the model provider out of the contributions.
pub(super) fn take(
    contributions: &mut Table,
    warnings: &mut Vec<String>,
) -> Result<Option<String>, KeyFault> {
    let mut keys = match contributions.remove("model_provider") {
        None => return Ok(None),
        Some(toml::Value::Table(keys)) => keys,
        Some(_) => {
            let example = "model_provider = { method = \"model/answer\" }";
            return Err(KeyFault::wrong(KEY, "a table", example));
        }
    };
    let method = name(&mut keys, "method", "\"model/answer\"").map_err(|it| it.inside(KEY))?;
    if is_reserved(&method) {
        let remedy = "name one of the plugin's own methods";
        return Err(KeyFault::new(
            KEY,
            format!("has the method `{method}`"),
            remedy,
        ));
    }
    warn_of(&keys, "contributions.model_provider.", warnings);
    Ok(Some(method))
}
