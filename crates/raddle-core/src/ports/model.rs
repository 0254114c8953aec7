//! The model, as an agent sees it.

use std::sync::Arc;

use super::BoxFuture;
use crate::{
    ItemBody, ItemId, ItemPart, ModelEnd, Price, Purpose, Sealed, Settings, SharedEntry, ThreadId,
    ToolCall, Usage,
};

/// A model that can be asked.
pub trait Model: Send + Sync {
    /// Begins to answer. Dropping the answer ends the call, at the vendor's end too.
    fn call(&self, prompt: Prompt) -> Box<dyn ModelAnswer>;

    /// What the tokens of a call with these settings would cost, if that is known.
    fn price<'a>(&'a self, settings: &'a Settings) -> BoxFuture<'a, Option<Price>>;
}

/// An answer on its way.
pub trait ModelAnswer: Send {
    /// What is said next. After [`Said::Ended`] nobody asks again.
    fn next(&mut self) -> BoxFuture<'_, ModelEvent>;
}

/// What a model is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Prompt {
    /// For which thread.
    pub thread: ThreadId,
    /// With which settings.
    pub settings: Settings,
    /// To go on, or to condense.
    pub purpose: Purpose,
    /// What it is told before everything else.
    pub instructions: String,
    /// Which attempt at this it is, counted from 1.
    pub attempt: u32,
    /// What it may call.
    pub tools: Vec<Arc<ToolSpec>>,
    /// What came before.
    pub entries: Vec<SharedEntry>,
    /// A schema that the last message must fit.
    pub output_schema: Option<serde_json::Value>,
}

/// A tool, as a model is told of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// What it calls it.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// JSON Schema of its arguments.
    pub schema: serde_json::Value,
    /// How it is called with a text instead, for models that can and on wires that know that.
    pub freeform: Option<FreeformSpec>,
}

/// A tool that is given a text and no JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct FreeformSpec {
    /// What it is for, in place of the other description.
    pub description: String,
    /// What the text may say, as a grammar that Lark reads.
    pub grammar: String,
}

/// What a model says.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelEvent {
    /// An item begins.
    Started(ItemId, ItemBody),
    /// An item grows.
    Text(ItemId, ItemPart, String),
    /// An item ends, in this form.
    Completed(ItemId, ItemBody, Option<Sealed>),
    /// It wants a tool.
    Tool(ItemId, ToolCall),
    /// It has said everything.
    Ended(ModelEnd, Option<Usage>),
}
