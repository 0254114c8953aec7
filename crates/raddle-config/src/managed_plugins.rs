//! The plugins that the administrator installed: no other file changes them.

use raddle_protocol::ConfigLayerSource;

use crate::keys::PLUGINS_TABLE;
use crate::layers::{Layer, Layers};

fn system_layer(layers: &Layers) -> Option<&Layer> {
    let mut all = layers.each();
    all.find(|it| matches!(it.source, ConfigLayerSource::System(_)))
}

/// Returns the table of plugins in the administrator's file.
pub(crate) fn managed_table(layers: &Layers) -> Option<&toml::Value> {
    system_layer(layers)?.table.get(PLUGINS_TABLE)
}

/// Whether the administrator installed a plugin.
pub(crate) fn is_managed(layers: &Layers, id: &str) -> bool {
    let entry = managed_table(layers).and_then(|it| it.get(id));
    let path = entry.and_then(|it| it.get("path"));
    path.is_some_and(toml::Value::is_str)
}

/// Explains that only the administrator's file changes a plugin; `None` if the administrator did not
/// install it.
pub(crate) fn managed_refusal(layers: &Layers, id: &str) -> Option<String> {
    let file = system_layer(layers).filter(|_| is_managed(layers, id))?;
    Some(format!(
        "the administrator installed the plugin `{id}`; only {} can change it",
        file.describe()
    ))
}

/// Explains why a value with this path would have no effect in the user's file; `None` if it is not
/// one of a plugin that the administrator installed.
pub(crate) fn edit_refusal(layers: &Layers, path: &[String]) -> Option<String> {
    match path {
        [table, id, ..] if table == PLUGINS_TABLE => managed_refusal(layers, id),
        _ => None,
    }
}

/// Returns the keys of a plugin's entry.
pub(crate) fn path_of(id: &str) -> [String; 2] {
    [PLUGINS_TABLE.to_owned(), id.to_owned()]
}
