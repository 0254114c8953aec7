//! The acts of a plugin in the thread whose call it answers.

use std::sync::Arc;

use super::{BoxFuture, ToolResult};
use crate::{ItemBody, ItemStatus, NamedTool, Output};

/// Name of the act that calls the model of the thread. Its result is the JSON
/// `{"text": …, "usage": {…}}`.
pub const MODEL_CALL: &str = "host/model_call";

/// Acts of a plugin in the thread whose tool call it answers.
///
/// Each is judged like a call of the model, by the same policy, and runs in the same sandbox. The
/// user's permission for the plugin is not checked here.
pub trait PluginActs: Send + Sync {
    /// Judges an act and runs it. After `stopped` completes it ends soon; a command that it
    /// started is ended.
    fn run(&self, act: PluginAct) -> BoxFuture<'static, ToolResult>;
}

/// An act of a plugin.
pub struct PluginAct {
    /// Id of the plugin.
    pub plugin: String,
    /// Name of the tool, which is the host's method.
    pub tool: String,
    /// Its arguments, as JSON.
    pub arguments: String,
    /// Asks the user where the policy requires an approval.
    pub approver: Arc<dyn ActApprover>,
    /// Completes once the act must stop.
    pub stopped: BoxFuture<'static, ()>,
}

/// Asks the user for the approval of acts.
pub trait ActApprover: Send + Sync {
    /// Asks whether the plugin may do this, and returns the principal that approved it. `what`
    /// continues a sentence about the plugin, and shows the act in full.
    fn approve(&self, what: String) -> BoxFuture<'_, Result<String, NotApproved>>;
}

/// Reason why an act is not approved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotApproved(pub String);

/// No thread: every act is refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPluginActs;

impl PluginActs for NoPluginActs {
    fn run(&self, act: PluginAct) -> BoxFuture<'static, ToolResult> {
        let body = ItemBody::Tool(NamedTool { name: act.tool });
        let output = Output::failure("There is no thread to act in.");
        let result = ToolResult::new(ItemStatus::Failed, body, output);
        Box::pin(std::future::ready(result))
    }
}
