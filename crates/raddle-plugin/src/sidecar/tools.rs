//! The tools of plugins beside all others, behind the same port.

use std::sync::Arc;
use std::time::Instant;

use raddle_core::policy::{Act, ActKind, McpRisk, ParsedScript, approval_digest};
use raddle_core::ports::{
    BackgroundTerminal, BoxFuture, Requirement, ToolIntent, ToolJob, ToolResult, ToolSpec, Tools,
};
use raddle_core::{
    CommandRun, ItemBody, ItemStatus, McpCall, NamedTool, Output, Settings, ThreadId, ToolCall,
    TurnId,
};
use rmcp::model::CallToolResult;
use serde_json::{Value, json};

use super::events::{EventOwner, EventReceiver};
use super::instance::{CALL_TIMEOUT, PluginCall, PluginToolError};
use super::registry::{OfferedPlugin, OfferedTool, PluginRegistry};
use super::tool_name::PREFIX;
use crate::mcp::{CallFailure, CallUser, is_server_call, tool_result};

/// The tools of plugins, and all others.
#[derive(Clone)]
pub struct PluginTools {
    others: Arc<dyn Tools>,
    registry: PluginRegistry,
}

impl PluginTools {
    /// Adds the tools of plugins to others.
    pub fn new(others: Arc<dyn Tools>, registry: PluginRegistry) -> Self {
        Self { others, registry }
    }

    /// Whether a call is one of a plugin's tool. Without plugins, clients may use such names.
    fn is_plugin_call(&self, call: &ToolCall) -> bool {
        call.tool.starts_with(PREFIX) && !call.freeform && !self.registry.is_empty()
    }

    /// Reads plugins that have changed before a call that may be one of theirs.
    async fn refresh_for(&self, call: &ToolCall) {
        let is_of_server = || self.registry.has_mcp_servers() && is_server_call(call);
        if call.tool.starts_with(PREFIX) || is_of_server() {
            self.registry.refresh().await;
        }
    }

    fn intent_of(&self, call: &ToolCall) -> (ItemBody, ToolIntent) {
        let refused = |why: String| {
            let name = call.tool.clone();
            (ItemBody::Tool(NamedTool { name }), ToolIntent::Refused(why))
        };
        let Some((plugin, tool)) = self.registry.tool(&call.tool) else {
            return refused(self.registry.missing(&call.tool));
        };
        let arguments = match call.object() {
            Ok(arguments) => arguments,
            Err(why) => {
                return refused(format!(
                    "The tool {} was not called, because its arguments cannot be read: {why}. Call \
                     it again with a JSON object that fits its schema.",
                    call.tool
                ));
            }
        };
        let act = act(&plugin, &tool, &arguments);
        let body = ItemBody::Mcp(McpCall {
            server: plugin.instance.plugin.manifest.id.clone(),
            tool: tool.tool.name.clone(),
            arguments,
            result: None,
            error: None,
            duration_ms: None,
        });
        (body, ToolIntent::Act(act))
    }

    async fn run_call(self, job: ToolJob, call: ToolCall) -> ToolResult {
        let ItemBody::Mcp(item) = job.item.body.clone() else {
            return cannot(job.item.body, "There is no call to carry out.".to_owned());
        };
        self.registry.refresh().await;
        let (Some((plugin, tool)), Ok(arguments)) = (self.registry.tool(&call.tool), call.object())
        else {
            let why = self.registry.missing(&call.tool);
            return cannot(job.item.body, why);
        };
        let act = act(&plugin, &tool, &arguments);
        if !job.allows(&act.kind, || act.digest.clone()) {
            let why =
                "This was not done: the tool is no longer the one that was allowed. Call it again.";
            return cannot(job.item.body, why.to_owned());
        }
        let reports = job.reports;
        let plugin_call = PluginCall {
            method: tool.tool.method.clone(),
            arguments,
            user: Some(CallUser {
                thread: job.thread,
                questions: job.questions.clone(),
            }),
            acts: Some(job.acts),
            limit: CALL_TIMEOUT,
            answer: None,
            events: EventReceiver {
                owner: EventOwner::Thread(job.thread),
                listener: Box::new(move |event| reports.plugin_event(event)),
            },
            writable: self.registry.writable(job.settings).await,
            stopped: job.stopped,
        };
        let began = Instant::now();
        let outcome = plugin.instance.call(plugin_call).await;
        let outcome = outcome.map_err(failure).and_then(|it| call_result(&it));
        tool_result(item, outcome, began.elapsed())
    }
}

/// Returns the act of a call. It is judged like one of an MCP tool.
fn act(plugin: &OfferedPlugin, tool: &OfferedTool, arguments: &Value) -> Act {
    let inspected = &plugin.instance.plugin;
    let identity = format!("plugin {} {}", inspected.manifest.id, inspected.hash.text);
    let definition = json!({
        "name": tool.tool.name,
        "description": tool.tool.description,
        "inputSchema": tool.tool.input_schema,
        "method": tool.tool.method,
    });
    Act {
        kind: ActKind::McpTool {
            name: tool.spec.name.clone(),
            risk: McpRisk::Unknown,
        },
        digest: approval_digest::mcp_call(&identity, &definition, arguments),
        reason: None,
    }
}

fn failure(error: PluginToolError) -> CallFailure {
    CallFailure {
        is_stopped: matches!(error, PluginToolError::Stopped),
        text: error.to_string(),
    }
}

/// Returns the result of a call in the form of MCP: a string as it is, and all else as JSON.
fn call_result(result: &Value) -> Result<CallToolResult, CallFailure> {
    let text = match result {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let whole = json!({
        "content": [{ "type": "text", "text": text }],
        "structuredContent": result.is_object().then_some(result),
    });
    serde_json::from_value(whole).map_err(|error| CallFailure {
        text: format!("its result cannot be used: {error}"),
        is_stopped: false,
    })
}

/// Returns the failed result of a call that was not run.
fn cannot(body: ItemBody, why: String) -> ToolResult {
    ToolResult::new(ItemStatus::Failed, body, Output::failure(why))
}

impl Tools for PluginTools {
    fn specs(&self, settings: &Settings) -> Vec<Arc<ToolSpec>> {
        let mut specs = self.others.specs(settings);
        specs.extend(self.registry.specs());
        specs
    }

    fn prepare(&self, settings: &Settings) {
        self.others.prepare(settings);
    }

    fn requirement<'a>(&'a self, settings: &'a Settings) -> BoxFuture<'a, Requirement> {
        Box::pin(async move {
            // The tools of this turn are those of the plugins as they are now.
            let has_plugins = self.registry.refresh().await;
            match self.others.requirement(settings).await {
                Requirement::None if has_plugins => Requirement::Met,
                requirement => requirement,
            }
        })
    }

    fn intent<'a>(
        &'a self,
        thread: ThreadId,
        settings: &'a Settings,
        call: &'a ToolCall,
    ) -> BoxFuture<'a, Option<(ItemBody, ToolIntent)>> {
        Box::pin(async move {
            self.refresh_for(call).await;
            match self.is_plugin_call(call) {
                true => Some(self.intent_of(call)),
                false => self.others.intent(thread, settings, call).await,
            }
        })
    }

    fn user_command(&self, settings: &Settings, line: &str) -> CommandRun {
        self.others.user_command(settings, line)
    }

    fn script(&self, words: &[String]) -> ParsedScript {
        self.others.script(words)
    }

    fn names(&self, settings: &Settings, call: &ToolCall) -> Vec<String> {
        match self.is_plugin_call(call) {
            true => vec![call.tool.clone()],
            false => self.others.names(settings, call),
        }
    }

    fn run(&self, job: ToolJob) -> BoxFuture<'static, ToolResult> {
        let call = job.item.call.clone();
        let this = self.clone();
        Box::pin(async move {
            match call {
                Some(call) if this.is_plugin_call(&call) => this.run_call(job, call).await,
                Some(call) => {
                    this.refresh_for(&call).await;
                    this.others.run(job).await
                }
                None => this.others.run(job).await,
            }
        })
    }

    fn end_turn(&self, thread: ThreadId, turn: TurnId) -> BoxFuture<'static, Vec<String>> {
        self.others.end_turn(thread, turn)
    }

    fn terminals(&self, thread: ThreadId) -> Vec<BackgroundTerminal> {
        self.others.terminals(thread)
    }

    fn end_terminal(&self, thread: ThreadId, id: Option<&str>) -> bool {
        self.others.end_terminal(thread, id)
    }
}
