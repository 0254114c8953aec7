//! The model, as an agent sees it.

use std::sync::Arc;

use super::Waiting;
use crate::{
    Call, ItemBody, ItemId, ModelEnd, Part, Piece, Price, Purpose, Sealed, Settings, ThreadId,
    Usage,
};

/// A model that can be asked.
pub trait Model: Send + Sync {
    /// Begins to answer. Dropping the answer ends the call, at the vendor's end too.
    fn call(&self, prompt: Prompt) -> Box<dyn Answer>;

    /// What the tokens of a call with these settings would cost, if that is known.
    fn price<'a>(&'a self, settings: &'a Settings) -> Waiting<'a, Option<Price>>;
}

/// An answer on its way.
pub trait Answer: Send {
    /// What is said next. After [`Said::Ended`] nobody asks again.
    fn next(&mut self) -> Waiting<'_, Said>;
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
    pub entries: Vec<Piece>,
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
    pub freeform: Option<Freeform>,
}

/// A tool that is given a text and no JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Freeform {
    /// What it is for, in place of the other description.
    pub description: String,
    /// What the text may say, as a grammar that Lark reads.
    pub grammar: String,
}

/// What a model says.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// An item begins.
    Started(ItemId, ItemBody),
    /// An item grows.
    Text(ItemId, Part, String),
    /// An item ends, in this form.
    Completed(ItemId, ItemBody, Option<Sealed>),
    /// It wants a tool.
    Tool(ItemId, Call),
    /// It has said everything.
    Ended(ModelEnd, Option<Usage>),
}
