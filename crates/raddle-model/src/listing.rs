//! Lists of a vendor's models.

use serde::Deserialize;

use crate::{CallError, CallTimeouts, Endpoint, ModelClient, WireFormat};

/// Limit: size of a vendor's list of models; beyond it, the list is ignored.
const LIST_BYTES_MAX: usize = 16 << 20;

/// Limit: models of a vendor's list; beyond it, further models are left out.
const MODELS_MAX: usize = 1000;

/// A model of a vendor's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedModel {
    /// The id for requests.
    pub id: String,
    /// The display name, if the vendor sends one.
    pub name: Option<String>,
}

impl ModelClient {
    /// Lists a vendor's models, up to the first thousand.
    pub async fn models(
        &self,
        wire: WireFormat,
        endpoint: &Endpoint,
        limits: CallTimeouts,
    ) -> Result<Vec<ListedModel>, CallError> {
        let endpoint = match wire {
            WireFormat::Responses | WireFormat::Chat => endpoint.clone(),
            WireFormat::Messages => endpoint
                .with_default_header("anthropic-version", "2023-06-01")
                .with_query("limit", "1000"),
            WireFormat::Gemini => endpoint.clone().with_query("pageSize", "1000"),
        };
        let list = self.get(&endpoint, "/models", LIST_BYTES_MAX, limits);
        read(wire, &list.await?).map_err(|error| endpoint.redact(error))
    }
}

/// A list in the form of any wire. llama.cpp sends both forms at once.
#[derive(Deserialize)]
struct List {
    data: Option<Vec<ListEntry>>,
    models: Option<Vec<ListEntry>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListEntry {
    id: Option<String>,
    #[serde(alias = "display_name")]
    display_name: Option<String>,
    name: Option<String>,
    supported_generation_methods: Option<Vec<String>>,
}

fn read(wire: WireFormat, list: &[u8]) -> Result<Vec<ListedModel>, CallError> {
    let malformed = |what: &str| CallError::Malformed(format!("invalid list of models: {what}"));
    let list: List = serde_json::from_slice(list).map_err(|error| malformed(&error.to_string()))?;
    let list = list.data.or(list.models);
    let list = list.ok_or_else(|| malformed("there is no `data`"))?;
    let models = list.into_iter().filter_map(|entry| match wire {
        WireFormat::Gemini => gemini(entry),
        _ => Some(ListedModel {
            name: entry.display_name.or(entry.name),
            id: entry.id?,
        }),
    });
    Ok(models.take(MODELS_MAX).collect())
}

/// Reads an entry of Gemini, which names a model by its path, and lists some that do not generate
/// text.
fn gemini(entry: ListEntry) -> Option<ListedModel> {
    let methods = entry.supported_generation_methods;
    if methods.is_some_and(|it| !it.iter().any(|it| it == "generateContent")) {
        return None;
    }
    let path = entry.name?;
    Some(ListedModel {
        id: path.strip_prefix("models/").unwrap_or(&path).to_owned(),
        name: entry.display_name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_every_wire() {
        for (wire, list, expected) in [
            (
                WireFormat::Responses,
                r#"{"object":"list","data":[{"id":"a","object":"model","created":1,"owned_by":"b"},{"object":"model"}]}"#,
                &[("a", None)][..],
            ),
            (
                WireFormat::Chat,
                r#"{"data":[{"id":"v/a","name":"V: A","context_length":9},{"id":"b"}]}"#,
                &[("v/a", Some("V: A")), ("b", None)],
            ),
            (
                WireFormat::Chat,
                r#"{"models":[{"name":"a.gguf","model":"a.gguf"}],"object":"list","data":[{"id":"a.gguf"}]}"#,
                &[("a.gguf", None)],
            ),
            (
                WireFormat::Messages,
                r#"{"data":[{"type":"model","id":"a","display_name":"A","created_at":"x"}],"has_more":false}"#,
                &[("a", Some("A"))],
            ),
            (
                WireFormat::Gemini,
                r#"{"models":[{"name":"models/a","displayName":"A","supportedGenerationMethods":["generateContent"]},
                    {"name":"models/e","supportedGenerationMethods":["embedContent"]},{"name":"models/b"}]}"#,
                &[("a", Some("A")), ("b", None)],
            ),
        ] {
            let models = read(wire, list.as_bytes()).expect("a list");
            let models: Vec<_> = models
                .iter()
                .map(|it| (&*it.id, it.name.as_deref()))
                .collect();
            assert_eq!(models, expected, "{wire:?}");
        }
        for list in ["", "{}", r#"{"data":3}"#, "<html>"] {
            assert!(read(WireFormat::Chat, list.as_bytes()).is_err(), "{list}");
        }
    }
}
