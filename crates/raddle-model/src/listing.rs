//! The models that a vendor says it has.

use serde::Deserialize;

use crate::{CallError, CallTimeouts, Endpoint, ModelClient, WireFormat};

/// The longest list in bytes, and in models.
const LIST_BYTES_MAX: usize = 16 << 20;
const MODELS_MAX: usize = 1000;

/// A model that a vendor has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedModel {
    /// What to ask for.
    pub id: String,
    /// Its name for people, if it has another.
    pub name: Option<String>,
}

impl ModelClient {
    /// Asks a vendor for its models: the first thousand of them.
    pub async fn models(
        &self,
        wire: WireFormat,
        endpoint: &Endpoint,
        limits: CallTimeouts,
    ) -> Result<Vec<ListedModel>, CallError> {
        let endpoint = match wire {
            WireFormat::Responses | WireFormat::Chat => endpoint.clone(),
            WireFormat::Messages => endpoint
                .with_usual("anthropic-version", "2023-06-01")
                .with_query("limit", "1000"),
            WireFormat::Gemini => endpoint.clone().with_query("pageSize", "1000"),
        };
        let list = self.get(&endpoint, "/models", LIST_BYTES_MAX, limits);
        read(wire, &list.await?).map_err(|error| endpoint.redact(error))
    }
}

/// A list, as any wire has it. llama.cpp has it in both ways at once.
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
    let wrong = |what: &str| CallError::Malformed(format!("it is no list of models: {what}"));
    let list: List = serde_json::from_slice(list).map_err(|error| wrong(&error.to_string()))?;
    let list = list.data.or(list.models);
    let list = list.ok_or_else(|| wrong("there is no `data`"))?;
    let models = list.into_iter().filter_map(|entry| match wire {
        WireFormat::Gemini => gemini(entry),
        _ => Some(ListedModel {
            name: entry.display_name.or(entry.name),
            id: entry.id?,
        }),
    });
    Ok(models.take(MODELS_MAX).collect())
}

/// Gemini names a model by its path, and lists some that do not write.
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
        for (wire, list, wanted) in [
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
            let read = read(wire, list.as_bytes()).expect("a list");
            let read: Vec<_> = read
                .iter()
                .map(|it| (&*it.id, it.name.as_deref()))
                .collect();
            assert_eq!(read, wanted, "{wire:?}");
        }
        for list in ["", "{}", r#"{"data":3}"#, "<html>"] {
            assert!(read(WireFormat::Chat, list.as_bytes()).is_err(), "{list}");
        }
    }
}
