//! Requests on this wire.

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Request on this wire. The vendor decides what is not set.
#[derive(Clone, Debug, Default)]
pub struct ResponsesRequest {
    /// The vendor's id of the model.
    pub model: String,
    /// Instructions that precede the input.
    pub instructions: String,
    /// The history, as items of this wire. They are encoded already: a history is long, and every
    /// call sends all of it.
    pub input: Vec<Arc<RawValue>>,
    /// The tools that the model may call, as this wire describes them.
    pub tools: Vec<Arc<RawValue>>,
    /// The choice of tools: `auto`, `none`, `required`, or an object that names a tool.
    pub tool_choice: Option<Value>,
    /// Whether the model may call several tools at once.
    pub parallel_tool_calls: Option<bool>,
    /// The effort of the thinking.
    pub effort: Option<String>,
    /// The style of the summary of its thinking.
    pub summary: Option<String>,
    /// The verbosity of the answer.
    pub verbosity: Option<String>,
    /// A schema that the answer must match.
    pub output_schema: Option<Value>,
    /// The vendor's service tier.
    pub service_tier: Option<String>,
    /// Calls with the same key share the vendor's prompt cache.
    pub prompt_cache_key: Option<String>,
}

/// The body of a request. The members that change least come first, so that vendors find a cached
/// prefix.
#[derive(Serialize)]
struct ResponsesBody<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'a str,
    tools: Vec<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    input: Vec<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<ReasoningConfig<'a>>,
    #[serde(skip_serializing_if = "<[&str]>::is_empty")]
    include: &'a [&'a str],
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<TextConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_tier: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
    store: bool,
    stream: bool,
}

#[derive(Serialize)]
struct ReasoningConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'a str>,
}

#[derive(Serialize)]
struct TextConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    verbosity: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Value>,
}

impl ResponsesRequest {
    /// Encodes the request as JSON.
    pub(super) fn body(&self) -> Result<Vec<u8>, serde_json::Error> {
        let effort = self.effort.as_deref();
        // The vendor has no value "none" for the summary; the member is omitted instead.
        let summary = self.summary.as_deref().filter(|it| *it != "none");
        let thinks = effort.is_some() || summary.is_some();
        let format = self.output_schema.as_ref().map(|schema| {
            json!({ "type": "json_schema", "name": "answer", "schema": schema, "strict": true })
        });
        let verbosity = self.verbosity.as_deref();
        let body = ResponsesBody {
            model: &self.model,
            instructions: &self.instructions,
            tools: self.tools.iter().map(|it| &**it).collect(),
            tool_choice: self.tool_choice.as_ref(),
            parallel_tool_calls: self.parallel_tool_calls,
            input: self.input.iter().map(|it| &**it).collect(),
            reasoning: thinks.then_some(ReasoningConfig { effort, summary }),
            // The vendor stores nothing, so its thinking must come back to us, sealed. A model that
            // does not think rejects a request for it.
            include: if thinks {
                &["reasoning.encrypted_content"]
            } else {
                &[]
            },
            text: (verbosity.is_some() || format.is_some())
                .then_some(TextConfig { verbosity, format }),
            service_tier: self.service_tier.as_deref(),
            prompt_cache_key: self.prompt_cache_key.as_deref(),
            store: false,
            stream: true,
        };
        serde_json::to_vec(&body)
    }
}
