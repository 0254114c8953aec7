//! The model, as the agent sees it.

use std::sync::Arc;

use super::BoxFuture;
use crate::{
    ItemId, ItemUpdate, ModelEnd, Price, Purpose, Settings, SharedEntry, ThreadId, ToolCall, Usage,
};

/// A model that can be called.
pub trait Model: Send + Sync {
    /// Starts an answer. Dropping the answer cancels the call, at the vendor too.
    fn call(&self, prompt: Prompt) -> Box<dyn ModelAnswer>;

    /// Returns the price of a call's tokens with these settings, if known.
    fn price<'a>(&'a self, settings: &'a Settings) -> BoxFuture<'a, Option<Price>>;
}

/// A streamed answer of the model.
pub trait ModelAnswer: Send {
    /// Returns the next event. It is not called again after [`ModelEvent::Ended`].
    fn next(&mut self) -> BoxFuture<'_, ModelEvent>;
}

/// Input of a model call.
#[derive(Clone, Debug, PartialEq)]
pub struct Prompt {
    /// Thread that the call belongs to.
    pub thread: ThreadId,
    /// Settings of the call.
    pub settings: Settings,
    /// Purpose: to continue, or to summarise.
    pub purpose: Purpose,
    /// System instructions, before everything else.
    pub instructions: String,
    /// Number of this attempt, from 1.
    pub attempt: u32,
    /// Tools that the model may call.
    pub tools: Vec<Arc<ToolSpec>>,
    /// History of the thread.
    pub entries: Vec<SharedEntry>,
    /// JSON Schema that the last message must match.
    pub output_schema: Option<serde_json::Value>,
}

/// Description of a tool for a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Name by which the model calls it.
    pub name: String,
    /// Purpose of the tool, for the model.
    pub description: String,
    /// JSON Schema of its arguments.
    pub schema: serde_json::Value,
    /// Free-form variant, for models and wires that support one.
    pub freeform: Option<FreeformSpec>,
}

/// A tool that takes text instead of JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct FreeformSpec {
    /// Purpose of the tool, in place of the other description.
    pub description: String,
    /// Grammar of the text, in Lark's syntax.
    pub grammar: String,
}

/// An event of a model's answer.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelEvent {
    /// The model writes an item, or a part of one.
    Item(ItemUpdate),
    /// The model calls a tool.
    Tool(ItemId, ToolCall),
    /// The answer has ended.
    Ended(ModelEnd, Option<Usage>),
}
