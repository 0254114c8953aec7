//! Acts of a plugin under test: in a temporary workspace, in the sandbox, and without a policy.

use std::path::Path;
use std::sync::Arc;

use raddle_core::policy::{Act, ActKind};
use raddle_core::ports::{
    Authorization, BoxFuture, MODEL_CALL, NoPluginActs, PluginAct, PluginActs, PluginEvent,
    QuestionSink, ReportSink, ToolIntent, ToolJob, ToolResult, Tools,
};
use raddle_core::{
    Ask, Command, Item, ItemBody, ItemId, ItemStatus, NamedTool, Output, Resolution, Sandbox,
    Settings, ThreadId, Timestamp, ToolCall, TurnId,
};
use raddle_tools::BuiltInTools;
use serde_json::Value;

/// Answer to each model call of a plugin under test.
const TEST_ANSWER: &str =
    r#"{"text":"the answer of a test","usage":{"input_tokens":1,"output_tokens":1}}"#;

/// Acts in the workspace of a test.
pub(super) struct TestActs {
    tools: BuiltInTools,
    settings: Settings,
    thread: ThreadId,
}

impl TestActs {
    pub(super) fn new(tools: BuiltInTools, work: &Path) -> Self {
        Self {
            tools,
            settings: Settings {
                cwd: work.display().to_string(),
                sandbox: Sandbox::WorkspaceWrite {
                    roots: Vec::new(),
                    network: false,
                    without_tmp: true,
                    without_tmpdir: true,
                    reads: None,
                },
                ..Settings::default()
            },
            thread: ThreadId::mint(),
        }
    }
}

impl PluginActs for TestActs {
    fn run(&self, act: PluginAct) -> BoxFuture<'static, ToolResult> {
        if act.tool == MODEL_CALL {
            return Box::pin(std::future::ready(test_answer(act)));
        }
        let (tools, settings, thread) = (self.tools.clone(), self.settings.clone(), self.thread);
        Box::pin(async move { run(tools, settings, thread, act).await })
    }
}

/// Returns the answer of a test to a model call. There is no model.
fn test_answer(act: PluginAct) -> ToolResult {
    let arguments: Value = serde_json::from_str(&act.arguments).unwrap_or_default();
    let body = ItemBody::Tool(NamedTool { name: act.tool });
    let output = match arguments["prompt"].is_string() {
        true => Output::text(TEST_ANSWER),
        false => Output::failure("the params are invalid: `prompt` must be a string"),
    };
    let status = match output.failed {
        false => ItemStatus::Completed,
        true => ItemStatus::Failed,
    };
    ToolResult::new(status, body, output)
}

async fn run(
    tools: BuiltInTools,
    settings: Settings,
    thread: ThreadId,
    act: PluginAct,
) -> ToolResult {
    let call = ToolCall {
        id: ItemId::mint().to_string(),
        tool: act.tool,
        arguments: act.arguments,
        freeform: false,
        alone: false,
    };
    let named = ItemBody::Tool(NamedTool {
        name: call.tool.clone(),
    });
    let refused = |why: &str| ToolResult::new(ItemStatus::Failed, named, Output::failure(why));
    let (body, kind) = match tools.intent(thread, &settings, &call).await {
        Some((body, ToolIntent::Act(Act { kind, .. }))) => (body, kind),
        Some((_, ToolIntent::Refused(why))) => return refused(&why),
        _ => return refused("There is no such method."),
    };
    if let ActKind::Write { beyond: true, .. } | ActKind::Command { beyond: true, .. } = kind {
        return refused("It leaves the sandbox.");
    }
    let job = ToolJob {
        thread,
        turn: TurnId::mint(),
        is_ephemeral: true,
        item: Item {
            id: ItemId::mint(),
            status: ItemStatus::InProgress,
            body,
            call: Some(call),
            output: None,
            sealed: None,
            started_at: Timestamp::default(),
            completed_at: None,
        },
        settings,
        hunks: Vec::new(),
        hunk_cwd: String::new(),
        authorization: Some(Authorization::Kind(kind)),
        reports: Box::new(NoReports),
        questions: Arc::new(AbsentUser),
        acts: Arc::new(NoPluginActs),
        stopped: act.stopped,
    };
    tools.run(job).await
}

struct NoReports;

impl ReportSink for NoReports {
    fn report(&self, _: Command) -> BoxFuture<'_, bool> {
        Box::pin(std::future::ready(true))
    }

    fn progress(&self, _: String) {}

    fn plugin_event(&self, _: PluginEvent) -> bool {
        false
    }
}

struct AbsentUser;

impl QuestionSink for AbsentUser {
    fn ask(&self, _: Ask) -> BoxFuture<'static, Resolution> {
        Box::pin(std::future::ready(Resolution::Withdrawn {}))
    }
}
