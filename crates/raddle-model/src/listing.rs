//! The models that a vendor says it has.

use serde::Deserialize;

use crate::{CallError, Client, Endpoint, Limits, Wire};

/// The longest list in bytes, and in models.
const LIST_BYTES_MAX: usize = 16 << 20;
const MODELS_MAX: usize = 1000;

/// A model that a vendor has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// What to ask for.
    pub id: String,
    /// Its name for people, if it has another.
    pub name: Option<String>,
}

impl Client {
    /// Asks a vendor for its models: the first thousand of them.
    pub async fn models(
        &self,
        wire: Wire,
        endpoint: &Endpoint,
        limits: Limits,
    ) -> Result<Vec<Listed>, CallError> {
        let endpoint = match wire {
            Wire::Responses | Wire::Chat => endpoint.clone(),
            Wire::Messages => endpoint
                .with_usual("anthropic-version", "2023-06-01")
                .with_query("limit", "1000"),
            Wire::Gemini => endpoint.clone().with_query("pageSize", "1000"),
        };
        let list = self.get(&endpoint, "/models", LIST_BYTES_MAX, limits);
        read(wire, &list.await?).map_err(|error| endpoint.hide_in(error))
    }
}

/// A list, as any wire has it. llama.cpp has it in both ways at once.
#[derive(Deserialize)]
struct List {
    data: Option<Vec<Entry>>,
    models: Option<Vec<Entry>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    id: Option<String>,
    #[serde(alias = "display_name")]
    display_name: Option<String>,
    name: Option<String>,
    supported_generation_methods: Option<Vec<String>>,
}

fn read(wire: Wire, list: &[u8]) -> Result<Vec<Listed>, CallError> {
    let wrong = |what: &str| CallError::Malformed(format!("it is no list of models: {what}"));
    let list: List = serde_json::from_slice(list).map_err(|error| wrong(&error.to_string()))?;
    let list = list.data.or(list.models);
    let list = list.ok_or_else(|| wrong("there is no `data`"))?;
    let models = list.into_iter().filter_map(|entry| match wire {
        Wire::Gemini => gemini(entry),
        _ => Some(Listed {
            name: entry.display_name.or(entry.name),
            id: entry.id?,
        }),
    });
    Ok(models.take(MODELS_MAX).collect())
}

/// Gemini names a model by its path, and lists some that do not write.
fn gemini(entry: Entry) -> Option<Listed> {
    let methods = entry.supported_generation_methods;
    if methods.is_some_and(|it| !it.iter().any(|it| it == "generateContent")) {
        return None;
    }
    let path = entry.name?;
    Some(Listed {
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
                Wire::Responses,
                r#"{"object":"list","data":[{"id":"a","object":"model","created":1,"owned_by":"b"},{"object":"model"}]}"#,
                &[("a", None)][..],
            ),
            (
                Wire::Chat,
                r#"{"data":[{"id":"v/a","name":"V: A","context_length":9},{"id":"b"}]}"#,
                &[("v/a", Some("V: A")), ("b", None)],
            ),
            (
                Wire::Chat,
                r#"{"models":[{"name":"a.gguf","model":"a.gguf"}],"object":"list","data":[{"id":"a.gguf"}]}"#,
                &[("a.gguf", None)],
            ),
            (
                Wire::Messages,
                r#"{"data":[{"type":"model","id":"a","display_name":"A","created_at":"x"}],"has_more":false}"#,
                &[("a", Some("A"))],
            ),
            (
                Wire::Gemini,
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
            assert!(read(Wire::Chat, list.as_bytes()).is_err(), "{list}");
        }
    }
}
