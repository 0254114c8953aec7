//! The port behind the tools: one turn of a thread.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use super::CallContext;

/// Runs turns for the tools. The binary implements it as a client of the server.
pub trait TurnRunner: Send + Sync + 'static {
    /// Runs one turn to its end, and interrupts it when the call is cancelled.
    fn run(
        &self,
        request: TurnRequest,
        context: CallContext,
    ) -> impl Future<Output = TurnReport> + Send;
}

/// The turn that a call asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnRequest {
    /// Thread of the turn.
    pub thread: ThreadTarget,
    /// Input of the user.
    pub prompt: String,
}

/// Thread in which a turn runs.
#[derive(Clone, Debug, PartialEq)]
pub enum ThreadTarget {
    /// A new thread.
    New(Box<NewThread>),
    /// The thread with this id, as the client wrote it.
    Existing(String),
}

/// Settings of a new thread. Those that are not set come from the configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewThread {
    /// The model, or `PROVIDER/MODEL`.
    pub model: Option<String>,
    /// Working folder; a relative one is relative to that of the process.
    pub cwd: Option<PathBuf>,
    /// When to ask for approval: a value of `approval_policy`.
    pub approval_policy: Option<String>,
    /// Sandbox mode: a value of `sandbox_mode`.
    pub sandbox: Option<String>,
    /// Instructions in place of those of the model.
    pub base_instructions: Option<String>,
    /// Instructions in addition.
    pub developer_instructions: Option<String>,
    /// Configuration values by their keys.
    pub config: Option<BTreeMap<String, Value>>,
}

/// Outcome of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnReport {
    /// Id of the thread, if there is one to continue.
    pub thread_id: Option<String>,
    /// Last message of the agent, or the reason of the failure.
    pub text: String,
    /// Whether the turn did not complete.
    pub is_error: bool,
}
