//! What a model is asked, in this wire's words.

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// What a model is asked, in this wire's words. What is not said is left to the vendor.
#[derive(Clone, Debug, Default)]
pub struct ResponsesRequest {
    /// The model.
    pub model: String,
    /// What it should know before everything else.
    pub instructions: String,
    /// What was said so far, as this wire's items. They are written already: a history is long, and all of it
    /// is sent with every call.
    pub input: Vec<Arc<RawValue>>,
    /// What it may call, as this wire describes tools.
    pub tools: Vec<Arc<RawValue>>,
    /// Whether it must call, or what: `auto`, `none`, `required`, or an object that names a tool.
    pub tool_choice: Option<Value>,
    /// Whether it may call several at once.
    pub parallel_tool_calls: Option<bool>,
    /// How hard it should think.
    pub effort: Option<String>,
    /// How its thinking is summed up.
    pub summary: Option<String>,
    /// How much it should say.
    pub verbosity: Option<String>,
    /// A schema that its answer must fit.
    pub output_schema: Option<Value>,
    /// The vendor's tier.
    pub service_tier: Option<String>,
    /// Calls with the same key share what the vendor has read before.
    pub prompt_cache_key: Option<String>,
}

/// The body of a request. Its members stand in an order that lets vendors find what they have read
/// before: what changes least comes first.
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
    /// The request as bytes.
    pub(super) fn body(&self) -> Result<Vec<u8>, String> {
        let effort = self.effort.as_deref();
        // In the vendor's words "none" is no word for a summary, but the lack of one.
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
            // The vendor stores nothing, so its thinking must come back to us, sealed. A model that does
            // not think refuses to be asked for it.
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
        serde_json::to_vec(&body).map_err(|error| error.to_string())
    }
}
