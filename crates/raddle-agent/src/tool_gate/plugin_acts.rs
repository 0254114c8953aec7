//! Acts of a plugin in the thread whose call it answers: judged like calls of the model, and run by
//! the built-in tools.

use std::collections::BTreeSet;
use std::sync::Arc;

use raddle_core::ports::{
    ActApprover, BoxFuture, HookRuling, MODEL_CALL, Model, NoPluginActs, PluginAct, PluginActs,
    PluginEvent, QuestionSink, ReportSink, ToolJob, ToolResult,
};
use raddle_core::{
    Admission, Ask, Command, Grant, Item, ItemBody, ItemId, ItemStatus, NamedTool, Output,
    Settings, Timestamp, ToolCall, TurnId,
};
use tokio::sync::{Mutex, mpsc};

use super::plugin_model_calls::{BudgetReader, ModelCaller};
use super::{Approvals, Judgement, TaskReports, ToolGate, after};
use crate::hooks::HookRunner;

/// Result of an act whose call ended before it began.
const STOPPED: &str = "This was not done, because the call has ended.";

/// Acts of a plugin that answers one tool call.
pub(crate) struct TaskActs(pub(crate) Arc<CallContext>);

/// The call that a plugin answers.
pub(crate) struct CallContext {
    pub(crate) gate: Arc<ToolGate>,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) budgets: Arc<dyn BudgetReader>,
    /// Locked during a model call, so that the next one is checked against what it used.
    pub(crate) model_calls: Mutex<()>,
    pub(crate) hooks: HookRunner,
    pub(crate) turn: TurnId,
    pub(crate) is_ephemeral: bool,
    pub(crate) item: Item,
    /// Settings of the turn, without granted permissions.
    pub(crate) settings: Settings,
    /// The acts approved for the session.
    pub(crate) granted: BTreeSet<String>,
    /// Granted permissions beyond the sandbox.
    pub(crate) rights: Grant,
    pub(crate) questions: Arc<dyn QuestionSink>,
    pub(crate) reports: TaskReports,
    pub(crate) reporter: mpsc::Sender<Command>,
    pub(crate) clock: fn() -> Timestamp,
}

/// An act that may run.
struct AdmittedAct {
    call: ToolCall,
    body: ItemBody,
    /// Digest of the act, if the user approved it.
    approved: Option<String>,
}

impl PluginActs for TaskActs {
    fn run(&self, act: PluginAct) -> BoxFuture<'static, ToolResult> {
        let context = self.0.clone();
        Box::pin(async move { context.run(act).await })
    }
}

impl CallContext {
    async fn run(&self, act: PluginAct) -> ToolResult {
        let PluginAct {
            plugin,
            tool,
            arguments,
            approver,
            mut stopped,
        } = act;
        if tool == MODEL_CALL {
            let is_provider = self.settings.provider.as_deref() == Some(plugin.as_str());
            // A plugin that waits for the answer gives none.
            if is_provider {
                let body = ItemBody::Tool(NamedTool { name: tool });
                let output = Output::failure("the plugin itself is the model provider");
                return ToolResult::new(ItemStatus::Declined, body, output);
            }
            return self.call_model(tool, &arguments, stopped).await;
        }
        let call = ToolCall {
            id: ItemId::mint().to_string(),
            tool,
            arguments,
            freeform: false,
            alone: false,
        };
        let named = ItemBody::Tool(NamedTool {
            name: call.tool.clone(),
        });
        let refused = |status, why: String| {
            tracing::info!(why, "an act of a plugin was refused");
            ToolResult::new(status, named, Output::failure(why))
        };
        let admitted = tokio::select! {
            biased;
            () = &mut stopped => return refused(ItemStatus::Interrupted, STOPPED.to_owned()),
            admitted = self.admit(call, &*approver) => admitted,
        };
        let AdmittedAct {
            call,
            body,
            approved,
        } = match admitted {
            Ok(admitted) => admitted,
            Err(why) => return refused(ItemStatus::Declined, why),
        };
        self.reports.progress(summary(&call, &body));
        let job = ToolJob {
            thread: self.hooks.thread,
            turn: self.turn.clone(),
            is_ephemeral: self.is_ephemeral,
            item: Item {
                body,
                call: Some(call),
                ..self.item.clone()
            },
            settings: self.settings.clone(),
            hunks: Vec::new(),
            hunk_cwd: String::new(),
            authorization: None,
            reports: Box::new(ActReports(self.reporter.clone())),
            questions: self.questions.clone(),
            acts: Arc::new(NoPluginActs),
            stopped,
        };
        let approvals = Approvals {
            once: approved,
            session: self.granted.clone(),
            rights: self.rights.clone(),
        };
        let mut result = self.gate.run(job, approvals).await;
        if let Some(diff) = result.diff.take() {
            let _ = self.reporter.send(Command::UpdateDiff(diff)).await;
        }
        result
    }

    /// Calls the model of the thread. The user approved that for the plugin, so nothing is judged.
    async fn call_model(
        &self,
        tool: String,
        arguments: &str,
        mut stopped: BoxFuture<'static, ()>,
    ) -> ToolResult {
        let body = ItemBody::Tool(NamedTool { name: tool });
        let calling = tokio::select! {
            biased;
            () = &mut stopped => None,
            calling = self.model_calls.lock() => Some(calling),
        };
        if calling.is_none() {
            return ToolResult::new(ItemStatus::Interrupted, body, Output::failure(STOPPED));
        }
        self.reports.progress(MODEL_CALL.to_owned());
        let caller = ModelCaller {
            gate: &self.gate,
            model: &*self.model,
            budgets: &*self.budgets,
            thread: self.hooks.thread,
            item: &self.item.id,
            settings: &self.settings,
            reporter: &self.reporter,
        };
        match caller.call(arguments, stopped).await {
            Ok(answer) => {
                let output = Output::text(answer.to_string());
                ToolResult::new(ItemStatus::Completed, body, output)
            }
            Err(error) => {
                ToolResult::new(ItemStatus::Failed, body, Output::failure(error.to_string()))
            }
        }
    }

    /// Judges an act, and asks the user where that needs an approval. Fails with the reason for the
    /// plugin.
    async fn admit(
        &self,
        call: ToolCall,
        approver: &dyn ActApprover,
    ) -> Result<AdmittedAct, String> {
        let settings = self.gate.widened(&self.settings, &self.rights).await;
        if settings.no_environment {
            return Err("The thread has no workspace.".to_owned());
        }
        let (call, judgement) = self.judge(&settings, call).await;
        let Judgement {
            body,
            admission,
            ruling,
            ..
        } = judgement;
        let approved = match admission {
            Admission::Run => None,
            Admission::Ask {
                ask: ask @ (Ask::Command(_) | Ask::Patch(_) | Ask::Tool(_)),
                ..
            } => {
                let approval = approver.approve(question(&ask, &call, &body)).await;
                let principal = approval.map_err(|why| {
                    format!("This was not done: it needs an approval, and {why}.")
                })?;
                tracing::info!(
                    principal,
                    tool = call.tool,
                    "an act of a plugin was approved"
                );
                ruling.map(|it| it.digest)
            }
            Admission::Deny(why) => return Err(why),
            // A question to the user is no approval.
            Admission::Ask { .. } | Admission::Client | Admission::Plan(_) | Admission::Goal(_) => {
                return Err(format!("A plugin cannot call {}.", call.tool));
            }
        };
        Ok(AdmittedAct {
            call,
            body,
            approved,
        })
    }

    /// Judges an act by the policy, then by the hooks, which make its ruling stricter. Hooks may
    /// change the call.
    async fn judge(&self, settings: &Settings, mut call: ToolCall) -> (ToolCall, Judgement) {
        let mut judgement = self.judge_by_policy(settings, &call).await;
        if matches!(judgement.admission, Admission::Deny(_)) {
            return (call, judgement);
        }
        let names = self.gate.tools.names(settings, &call);
        let before = self
            .hooks
            .before_tool(settings, (&call, &judgement.body), names.clone());
        let decision = before.await;
        if let Some(changed) = decision.changed {
            judgement = self.judge_by_policy(settings, &changed).await;
            call = changed;
        }
        judgement = self
            .tightened(settings, judgement, decision.ruling, &call)
            .await;
        if matches!(judgement.admission, Admission::Ask { .. }) {
            let requested =
                self.hooks
                    .approval_requested(settings, (&call, &judgement.body), names);
            let ruling = requested.await;
            judgement = self.tightened(settings, judgement, ruling, &call).await;
        }
        (call, judgement)
    }

    async fn judge_by_policy(&self, settings: &Settings, call: &ToolCall) -> Judgement {
        let (thread, now) = (self.hooks.thread, (self.clock)());
        self.gate
            .judge(thread, settings, &self.granted, call, now)
            .await
    }

    async fn tightened(
        &self,
        settings: &Settings,
        judgement: Judgement,
        ruling: HookRuling,
        call: &ToolCall,
    ) -> Judgement {
        let policy = self.gate.policy().await;
        let after_ms = policy.and_then(|it| it.unattended().after_ms());
        let expires_at = after_ms.map(|ms| after((self.clock)(), ms));
        judgement.tightened(ruling, call, settings, &self.granted, expires_at)
    }
}

/// Sends the warnings of an act to the task of its thread. The item of the call is the plugin's,
/// and shows no output of a command.
struct ActReports(mpsc::Sender<Command>);

impl ReportSink for ActReports {
    fn report(&self, command: Command) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            match command {
                Command::Warn(_) => self.0.send(command).await.is_ok(),
                _ => true,
            }
        })
    }

    fn progress(&self, _: String) {}

    fn plugin_event(&self, _: PluginEvent) -> bool {
        false
    }
}

/// Describes an act that needs an approval, in full.
fn question(ask: &Ask, call: &ToolCall, body: &ItemBody) -> String {
    let (what, reason) = match (ask, body) {
        (Ask::Command(it), _) => {
            let what = format!("run a command in {}:\n\n{}", it.cwd, it.command);
            (what, &it.reason)
        }
        (Ask::Patch(it), ItemBody::Patch(patch)) => {
            let changes = patch.changes.iter();
            let changes = changes.map(|it| format!("\n\n{}:\n{}", it.path, it.diff));
            let what = format!("change files:{}", changes.collect::<String>());
            (what, &it.reason)
        }
        (Ask::Tool(it), _) => (
            format!("call {} with {}", it.tool, call.arguments),
            &it.reason,
        ),
        _ => (format!("call {} with {}", call.tool, call.arguments), &None),
    };
    let reason = reason.as_deref().unwrap_or_default();
    format!("wants to {what}\n\n{reason}")
}

/// Describes an act in a line, for clients that show the progress of the call.
fn summary(call: &ToolCall, body: &ItemBody) -> String {
    let what = match body {
        ItemBody::Command(it) => it.command.clone(),
        ItemBody::Patch(it) => {
            let paths: Vec<&str> = it.changes.iter().map(|it| it.path.as_str()).collect();
            paths.join(", ")
        }
        _ => {
            let arguments = call.object().unwrap_or_default();
            arguments["path"].as_str().unwrap_or(".").to_owned()
        }
    };
    format!("{} {}", call.tool, what.escape_debug())
}
