//! The layers as clients see them: with secrets redacted.

use raddle_protocol::{ConfigLayer, ConfigLayerSource};

use crate::layers::{Layer, Layers, get};
use crate::redaction::{redacted_json, without_secrets};

impl Layers {
    /// Returns the layers for a client: strongest first, without an empty layer of the command
    /// line.
    pub(crate) fn for_client(&self) -> Vec<ConfigLayer> {
        let view = |layer: &Layer| ConfigLayer {
            name: layer.source.clone(),
            version: layer.version.clone(),
            config: redacted_json(&layer.table),
            disabled_reason: None,
        };
        let is_empty_command_line = |layer: &&Layer| {
            layer.source == ConfigLayerSource::SessionFlags && layer.table.is_empty()
        };
        self.each()
            .rev()
            .filter(|layer| !is_empty_command_line(layer))
            .map(view)
            .collect()
    }

    /// Returns a layer stronger than the user's that sets this value, and the redacted value.
    pub(crate) fn overriding_user(&self, path: &[String]) -> Option<(&Layer, toml::Value)> {
        let (layer, _) = self.winner(path).filter(|(layer, _)| {
            !matches!(
                layer.source,
                ConfigLayerSource::User(_) | ConfigLayerSource::System(_)
            )
        })?;
        let table = without_secrets(&layer.table);
        Some((layer, get(&table, path)?.clone()))
    }
}
