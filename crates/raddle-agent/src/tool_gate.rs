//! The tool gate: interprets the model's tool calls, applies the policy, and runs them.

mod hook_ruling;
mod plugin_acts;
mod plugin_model_calls;
mod recheck;

pub(crate) use plugin_acts::{CallContext, TaskActs};
pub(crate) use plugin_model_calls::{BudgetReader, BudgetState};
pub(crate) use recheck::Approvals;

use std::collections::BTreeSet;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use raddle_core::policy::{
    Act, ActKind, Amendment, DeadlineAction, ManagedLimits, Policy, Ruling, Verdict, proposed,
};
use raddle_core::ports::{
    AmendError, BackgroundTerminal, BoxFuture, Hooks, PluginEvent, ReportSink, Requirement,
    Rulebook, ToolIntent, ToolJob, ToolResult, ToolSpec, Tools, Webhook, WebhookDecision,
    WebhookError, WebhookRequest,
};
use raddle_core::{
    Admission, Ask, AskCommand, AskPatch, AskTool, Command, CommandRun, CommandSource, EndTool,
    Grant, ItemBody, ItemId, ItemStatus, NamedTool, Output, Sandbox, Settings, ThreadId, Timestamp,
    ToolCall, TurnId, UpdatePlan,
};
use raddle_protocol::{McpToolCallProgressNotification, Notification};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use crate::hooks::HookRunner;
use crate::images::NewImage;
use crate::thread_blobs::ThreadBlobs;
use crate::tool_name_rules;
use crate::work::CALLS_MAX;

/// Time for a tool to end after it was asked to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Output for the model if a tool did not stop in time.
const NOT_STOPPED: &str = "This call was ended by the user's interrupt before it was done. It may have taken \
                        effect in part; check before you repeat it.";

/// Output for the model if a tool panicked.
const TOOL_FAILED: &str = "The tool failed with an internal error; the server's log says more. It may have taken effect in part; check \
                    before you repeat the call.";

/// Limit: arguments of a tool call that needs an approval by name; beyond it, the call is rejected,
/// and the model is notified.
///
/// The request shows all arguments.
const ARGUMENTS_BYTES_MAX: usize = 256 << 10;

/// Number of files that the reason of an approval request names. It counts the others.
const NAMED_FILES: usize = 8;

/// Output for the model if the rules cannot be read.
const NO_RULES: &str = "The rules cannot be read, so nothing is done.";

/// Decision about a call, with the ruling of the policy.
pub(crate) struct Judgement {
    pub(crate) body: ItemBody,
    pub(crate) admission: Admission,
    pub(crate) ruling: Option<Ruling>,
    /// Whether the policy approves the call if the request times out.
    pub(crate) approve_on_timeout: bool,
    /// Whether it must not run concurrently with other calls.
    pub(crate) alone: bool,
}

impl Judgement {
    /// A decision without a ruling.
    pub(crate) fn new(body: ItemBody, admission: Admission) -> Self {
        Self {
            body,
            admission,
            ruling: None,
            approve_on_timeout: false,
            alone: false,
        }
    }

    /// Denies a call beyond the limit of one model response.
    pub(crate) fn too_many(call: &ToolCall) -> Self {
        let name = call.tool.clone();
        let why = format!(
            "This was not done: one answer may make {CALLS_MAX} calls, and those before it were made. Make it again \
             in the next one."
        );
        Self::new(ItemBody::Tool(NamedTool { name }), Admission::Deny(why))
    }

    /// Denies a call because the rules cannot be read.
    fn no_rules(body: ItemBody) -> Self {
        Self::new(body, Admission::Deny(NO_RULES.to_owned()))
    }
}

/// The built-in tools, and the rules for using them.
pub(crate) struct ToolGate {
    pub(crate) tools: Arc<dyn Tools>,
    pub(crate) rules: Arc<dyn Rulebook>,
    pub(crate) webhook: Arc<dyn Webhook>,
    pub(crate) hooks: Arc<dyn Hooks>,
}

impl ToolGate {
    /// Specifications of the tools for the model.
    pub(crate) fn specs(&self, settings: &Settings) -> Vec<Arc<ToolSpec>> {
        match settings.no_environment {
            true => Vec::new(),
            false => self.tools.specs(settings),
        }
    }

    /// Waits for the tools without which a turn must not begin.
    pub(crate) async fn requirement(&self, settings: &Settings) -> Requirement {
        match settings.no_environment {
            true => Requirement::None,
            false => self.tools.requirement(settings).await,
        }
    }

    /// Starts what the tools of a thread need, in the background.
    pub(crate) fn prepare(&self, settings: &Settings) {
        if !settings.no_environment {
            self.tools.prepare(settings);
        }
    }

    /// Judges a call in a thread with these settings. `granted` holds the acts approved for the
    /// session.
    pub(crate) async fn judge(
        &self,
        thread: ThreadId,
        settings: &Settings,
        granted: &BTreeSet<String>,
        call: &ToolCall,
        now: Timestamp,
    ) -> Judgement {
        let name = &call.tool;
        let intent = match settings.no_environment {
            true => None,
            false => self.tools.intent(thread, settings, call).await,
        };
        let Some((body, intent)) = intent else {
            let body = ItemBody::Tool(NamedTool { name: name.clone() });
            let why = format!("There is no tool named {name}.");
            return Judgement::new(body, Admission::Deny(why));
        };
        let Some(policy) = self.policy().await else {
            return Judgement::no_rules(body);
        };
        let names = self.tools.names(settings, call);
        let by_name = |body, admission| {
            let call_and_names = (call, names.as_slice());
            tool_name_rules::judge(
                &policy,
                settings,
                granted,
                call_and_names,
                (body, admission),
                now,
            )
        };
        let unattended = policy.unattended();
        let expires_at = unattended.after_ms().map(|ms| after(now, ms));
        let alone = matches!(&intent, ToolIntent::Act(act) if is_alone(&act.kind));
        match intent {
            ToolIntent::Harmless => by_name(body, Admission::Run),
            ToolIntent::Refused(why) => Judgement::new(body, Admission::Deny(why)),
            ToolIntent::Plan { explanation, steps } => {
                by_name(body, Admission::Plan(UpdatePlan { explanation, steps }))
            }
            ToolIntent::Ask(ask) => {
                if let Ask::Permissions(it) = &ask
                    && let Some(judgement) = tool_name_rules::judge_permissions(
                        &policy,
                        settings,
                        call,
                        (body.clone(), &it.permissions),
                    )
                {
                    return judgement;
                }
                // Only the user can answer, so at the deadline there is no answer.
                by_name(body, Admission::Ask { ask, expires_at })
            }
            ToolIntent::Act(act) => {
                let ruling = tool_name_rules::of_act(&policy, settings, granted, &names, &act);
                let at_deadline = unattended.at_deadline(&ruling);
                // Without a sandbox a timeout never approves. An MCP server may have effects elsewhere.
                let is_sandboxed = matches!(
                    settings.sandbox,
                    Sandbox::ReadOnly { .. } | Sandbox::WorkspaceWrite { .. }
                ) && !matches!(act.kind, ActKind::McpTool { .. });
                Judgement {
                    admission: admission(&act, &ruling, &body, call, expires_at),
                    body,
                    ruling: Some(ruling),
                    approve_on_timeout: at_deadline == DeadlineAction::Accept && is_sandboxed,
                    alone,
                }
            }
        }
    }

    /// Judges a call of a tool that is not built in.
    pub(crate) async fn judge_others(
        &self,
        settings: &Settings,
        granted: &BTreeSet<String>,
        call: &ToolCall,
        (body, admission): (ItemBody, Admission),
        now: Timestamp,
    ) -> Judgement {
        let Some(policy) = self.policy().await else {
            return Judgement::no_rules(body);
        };
        tool_name_rules::judge(
            &policy,
            settings,
            granted,
            (call, std::slice::from_ref(&call.tool)),
            (body, admission),
            now,
        )
    }

    /// Extends the sandbox of the settings by the granted permissions that the rules still allow.
    pub(crate) async fn widened(&self, settings: &Settings, rights: &Grant) -> Settings {
        // Most threads have no grants; then the rules need not be read.
        if rights.is_empty() {
            return settings.clone();
        }
        match self.policy().await {
            Some(policy) => policy.managed.widened(settings, rights),
            None => settings.clone(),
        }
    }

    /// The operator's current limits.
    pub(crate) async fn managed_limits(&self) -> ManagedLimits {
        let policy = self.policy().await;
        policy.map(|it| it.managed.clone()).unwrap_or_default()
    }

    /// Returns the current rules; `None` if they cannot be read.
    pub(crate) async fn policy(&self) -> Option<Arc<Policy>> {
        let rules = self.rules.clone();
        tokio::task::spawn_blocking(move || rules.policy())
            .await
            .ok()
    }
}

pub(crate) fn after(now: Timestamp, ms: u64) -> Timestamp {
    now.plus_ms(i64::try_from(ms).unwrap_or(i64::MAX))
}

/// Whether other calls of the same response could interfere. A write builds on the current content.
/// An act outside the sandbox must be exactly what was approved, unaffected by a concurrent call.
fn is_alone(kind: &ActKind) -> bool {
    match kind {
        ActKind::Write { .. } => true,
        ActKind::Command { beyond, .. } => *beyond,
        ActKind::Read { .. }
        | ActKind::Connect { .. }
        | ActKind::Tool { .. }
        | ActKind::McpTool { .. } => false,
    }
}

/// Output for the model if an act is denied.
fn forbidden(ruling: &Ruling) -> String {
    format!(
        "This was not done, because a rule forbids it ({}). {} Find another way, or ask the user.",
        ruling.rule, ruling.reason
    )
}

fn admission(
    act: &Act,
    ruling: &Ruling,
    body: &ItemBody,
    call: &ToolCall,
    expires_at: Option<Timestamp>,
) -> Admission {
    match ruling.verdict {
        Verdict::Allow => Admission::Run,
        Verdict::Deny => denied(ruling),
        Verdict::Ask => match not_displayable(body, call) {
            Some(why) => Admission::Deny(why),
            None => Admission::Ask {
                ask: question(act, ruling, body, call),
                expires_at,
            },
        },
    }
}

/// Returns the reason why a call cannot be displayed in full for approval, if it cannot.
pub(crate) fn not_displayable(body: &ItemBody, call: &ToolCall) -> Option<String> {
    let (what, instead) = match body {
        // The command tool rejects commands that are too long to display.
        ItemBody::Command(_) => return None,
        ItemBody::Patch(it) => {
            let truncated = it.changes.iter().find(|it| it.is_cut())?;
            (
                format!("the change of {}", truncated.path),
                "Make it in smaller steps.",
            )
        }
        _ if call.arguments.len() > ARGUMENTS_BYTES_MAX => (
            format!("its {} bytes of arguments", call.arguments.len()),
            "Call it with less.",
        ),
        _ => return None,
    };
    Some(format!(
        "This was not done: it needs an approval, and {what} cannot be shown in full. {instead}"
    ))
}

pub(crate) fn denied(ruling: &Ruling) -> Admission {
    Admission::Deny(forbidden(ruling))
}

/// Builds the approval request for an act.
fn question(act: &Act, ruling: &Ruling, body: &ItemBody, call: &ToolCall) -> Ask {
    // The ruling comes first, then the agent's own explanation.
    let by_ruling = match &act.kind {
        ActKind::Write { paths, .. } if !paths.is_empty() => with_files(&ruling.reason, paths),
        _ => ruling.reason.clone(),
    };
    let reason = Some(match &act.reason {
        Some(why) => format!("{by_ruling} The agent says: {why}"),
        None => by_ruling,
    });
    match (&act.kind, body) {
        (ActKind::Command { script, beyond, .. }, ItemBody::Command(it)) => {
            Ask::Command(AskCommand {
                // An approval of typed input must show the input.
                command: match it.source {
                    CommandSource::Typed => script.line.clone(),
                    _ => it.command.clone(),
                },
                cwd: it.cwd.clone(),
                reason,
                actions: it.actions.clone(),
                // A rule from an approval never applies outside the sandbox, so it would not help.
                rule: match beyond {
                    true => Vec::new(),
                    false => proposed(script),
                },
            })
        }
        // Without files there is no change to show.
        (ActKind::Write { paths, .. }, _) if !paths.is_empty() => {
            Ask::Patch(AskPatch { reason, root: None })
        }
        _ => Ask::Tool(AskTool {
            tool: call.tool.clone(),
            reason,
        }),
    }
}

/// Adds the names of files to a reason: some clients show nothing else about a change of files.
fn with_files(reason: &str, paths: &[String]) -> String {
    let named = paths.iter().take(NAMED_FILES);
    let named: Vec<String> = named.map(|it| it.escape_debug().to_string()).collect();
    let others = match paths.len().saturating_sub(NAMED_FILES) {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    format!("{reason} Files: {}{others}.", named.join(", "))
}

/// Sends a tool's reports to the task of its thread.
#[derive(Clone)]
pub(crate) struct TaskReports {
    pub(crate) reporter: mpsc::Sender<Command>,
    pub(crate) notifier: mpsc::Sender<Box<Notification>>,
    pub(crate) thread: ThreadId,
    pub(crate) turn: TurnId,
    pub(crate) item: ItemId,
}

impl ReportSink for TaskReports {
    fn report(&self, command: Command) -> BoxFuture<'_, bool> {
        Box::pin(async move { self.reporter.send(command).await.is_ok() })
    }

    fn progress(&self, message: String) {
        let progress = McpToolCallProgressNotification {
            thread_id: self.thread,
            turn_id: self.turn.clone(),
            item_id: self.item.clone(),
            message,
        };
        let _ = self.notifier.try_send(Box::new(progress.into()));
    }

    fn plugin_event(&self, event: PluginEvent) -> bool {
        let notification = event.notification(Some(self.thread));
        self.notifier.try_send(Box::new(notification)).is_ok()
    }
}

/// Rechecks and runs a job, and reports its end. A tool that does not stop in time is abandoned.
pub(crate) async fn carry_out(
    gate: Arc<ToolGate>,
    blobs: ThreadBlobs,
    (job, approvals): (ToolJob, Approvals),
    hooks: HookRunner,
    mut stop: watch::Receiver<()>,
    reports: mpsc::Sender<Command>,
) {
    let (item, body) = (job.item.id.clone(), job.item.body.clone());
    let (call, settings) = (job.item.call.clone(), job.settings.clone());
    let stop_timeout = async {
        while stop.changed().await.is_ok() {}
        sleep(STOP_TIMEOUT).await;
    };
    let mut result = tokio::select! {
        biased;
        result = gate.run(job, approvals) => result,
        () = stop_timeout => {
            ToolResult::new(ItemStatus::Interrupted, body.clone(), Output::failure(NOT_STOPPED))
        }
    };
    // Hooks are about calls of the model.
    if let Some(call) = call {
        let names = gate.tools.names(&settings, &call);
        let stopped = async { while stop.changed().await.is_ok() {} };
        tokio::select! {
            biased;
            () = hooks.after_tool(&settings, (&call, &body), names, &mut result) => {}
            () = stopped => {}
        }
    }
    let output = store_large_output(&blobs, result.output, result.pictures, result.full).await;
    let diff = result.diff.map(Command::UpdateDiff);
    let stopped = result.status == ItemStatus::Interrupted;
    let end = Command::EndTool(Box::new(EndTool {
        item,
        status: result.status,
        body: result.body,
        output,
    }));
    // A stopping turn has ended once its last tool has ended, and accepts no further records.
    let (first, second) = match stopped {
        true => (diff, Some(end)),
        false => (Some(end), diff),
    };
    for command in first.into_iter().chain(second) {
        let _ = reports.send(command).await;
    }
}

/// Stores large output as blobs that the record names.
async fn store_large_output(
    blobs: &ThreadBlobs,
    mut output: Output,
    pictures: Vec<Vec<u8>>,
    full: Option<String>,
) -> Output {
    for bytes in pictures {
        let image = match NewImage::of(bytes) {
            Ok(new_image) => new_image
                .keep(blobs)
                .await
                .map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match image {
            Ok(image) => output.images.push(image),
            Err(why) => output
                .text
                .push_str(&format!("\nAn image is not shown: {why}")),
        }
    }
    if let Some(full) = full {
        match blobs.put(full.into_bytes(), "text/plain".to_owned()).await {
            Ok(blob) => output.full = Some(blob),
            // The model's own output is complete, so only log it.
            Err(error) => tracing::warn!(%error, "the full output of a tool was not stored"),
        }
    }
    output
}

/// The end of a tool that panicked.
pub(crate) fn tool_failed(item: raddle_core::ItemId, body: ItemBody) -> Command {
    Command::EndTool(Box::new(EndTool {
        item,
        status: ItemStatus::Failed,
        body,
        output: Output::failure(TOOL_FAILED),
    }))
}

/// No tools: every call is denied as unknown.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTools;

impl Tools for NoTools {
    fn specs(&self, _: &Settings) -> Vec<Arc<ToolSpec>> {
        Vec::new()
    }

    fn intent<'a>(
        &'a self,
        _: ThreadId,
        _: &'a Settings,
        _: &'a ToolCall,
    ) -> BoxFuture<'a, Option<(ItemBody, ToolIntent)>> {
        Box::pin(ready(None))
    }

    fn user_command(&self, settings: &Settings, line: &str) -> CommandRun {
        CommandRun {
            command: line.to_owned(),
            cwd: settings.cwd.clone(),
            ..CommandRun::default()
        }
    }

    fn run(&self, job: ToolJob) -> BoxFuture<'static, ToolResult> {
        let output = Output::failure("No tool can be run here.");
        let result = ToolResult::new(ItemStatus::Failed, job.item.body, output);
        Box::pin(ready(result))
    }

    fn end_turn(&self, _: ThreadId, _: TurnId) -> BoxFuture<'static, Vec<String>> {
        Box::pin(ready(Vec::new()))
    }

    fn terminals(&self, _: ThreadId) -> Vec<BackgroundTerminal> {
        Vec::new()
    }

    fn end_terminal(&self, _: ThreadId, _: Option<&str>) -> bool {
        false
    }
}

/// No webhook: every request fails.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWebhook;

impl Webhook for NoWebhook {
    fn send(&self, _: WebhookRequest) -> BoxFuture<'static, Result<WebhookDecision, WebhookError>> {
        let error = WebhookError("no webhook is configured".to_owned());
        Box::pin(ready(Err(error)))
    }
}

/// A fixed set of rules that cannot be amended.
#[derive(Clone, Debug, Default)]
pub struct FixedRules(pub Arc<Policy>);

impl Rulebook for FixedRules {
    fn policy(&self) -> Arc<Policy> {
        self.0.clone()
    }

    fn amend(&self, _: Amendment) -> BoxFuture<'_, Result<(), AmendError>> {
        let why = "these rules are fixed and cannot be changed".to_owned();
        Box::pin(ready(Err(AmendError::Unwritable(why))))
    }
}
