//! The agent's own tools: what a call of the model means, whether it may be, and how it is carried out.

mod recheck;

pub(crate) use recheck::Approvals;

use std::collections::BTreeSet;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use raddle_core::policy::{
    Act, ActKind, Amendment, DeadlineAction, ManagedLimits, Policy, Ruling, Verdict, proposed,
};
use raddle_core::ports::{
    AmendError, BackgroundTerminal, Blobs, BoxFuture, ReportSink, Rulebook, ToolIntent, ToolJob,
    ToolResult, ToolSpec, Tools, Webhook, WebhookDecision, WebhookRequest,
};
use raddle_core::{
    Admission, Ask, AskCommand, AskPatch, AskTool, Command, CommandRun, CommandSource, EndTool,
    Grant, ItemBody, ItemStatus, NamedTool, Output, Sandbox, Settings, ThreadId, Timestamp,
    ToolCall, TurnId, UpdatePlan,
};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use crate::by_name;
use crate::images::NewImage;
use crate::work::CALLS_MAX;

/// How long a tool may take to come to its end once it was told to.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// What the model is told of a tool that did not.
const GIVEN_UP: &str = "This call was ended by the user's interrupt before it was done. It may have taken \
                        effect in part; check before you repeat it.";

/// What it is told of one that failed inside.
const TOOL_FAILED: &str = "The tool failed inside; the server's log says more. It may have taken effect in part; check \
                    before you repeat the call.";

/// The longest arguments with which a call is asked about by its name: the question shows all of them.
const ARGUMENTS_BYTES_MAX: usize = 256 << 10;

/// What it is told where nobody knows the rules.
const NO_RULES: &str = "The rules cannot be read, so nothing is done.";

/// What becomes of a call, and what policy said of it.
pub(crate) struct Judgement {
    pub(crate) body: ItemBody,
    pub(crate) admission: Admission,
    pub(crate) ruling: Option<Ruling>,
    /// Whether policy says yes if nobody answers.
    pub(crate) approve_on_timeout: bool,
    /// Whether it must not run beside other calls.
    pub(crate) alone: bool,
}

impl Judgement {
    /// Nobody was asked about it.
    pub(crate) fn new(body: ItemBody, admission: Admission) -> Self {
        Self {
            body,
            admission,
            ruling: None,
            approve_on_timeout: false,
            alone: false,
        }
    }

    /// It came with too many others.
    pub(crate) fn too_many(call: &ToolCall) -> Self {
        let name = call.tool.clone();
        let why = format!(
            "This was not done: one answer may make {CALLS_MAX} calls, and those before it were made. Make it again \
             in the next one."
        );
        Self::new(ItemBody::Tool(NamedTool { name }), Admission::Deny(why))
    }

    /// Without rules nothing is done.
    fn no_rules(body: ItemBody) -> Self {
        Self::new(body, Admission::Deny(NO_RULES.to_owned()))
    }
}

/// The tools, and the rules for using them.
pub(crate) struct ToolGate {
    pub(crate) tools: Arc<dyn Tools>,
    pub(crate) rules: Arc<dyn Rulebook>,
    pub(crate) webhook: Arc<dyn Webhook>,
}

impl ToolGate {
    /// What the model is told of them.
    pub(crate) fn specs(&self, settings: &Settings) -> Vec<Arc<ToolSpec>> {
        match settings.no_environment {
            true => Vec::new(),
            false => self.tools.specs(settings),
        }
    }

    /// What a call means in a thread with these settings, in which these acts have a yes for the session.
    pub(crate) async fn judge(
        &self,
        thread: ThreadId,
        settings: &Settings,
        granted: &BTreeSet<String>,
        call: &ToolCall,
        now: Timestamp,
    ) -> Judgement {
        let name = &call.tool;
        let meant = match settings.no_environment {
            true => None,
            false => self.tools.intent(thread, settings, call).await,
        };
        let Some((body, meant)) = meant else {
            let body = ItemBody::Tool(NamedTool { name: name.clone() });
            let why = format!("There is no tool named {name}.");
            return Judgement::new(body, Admission::Deny(why));
        };
        let Some(policy) = self.policy().await else {
            return Judgement::no_rules(body);
        };
        let names = self.tools.names(settings, call);
        let by_name = |body, admission| {
            let known = (call, names.as_slice());
            by_name::judge(&policy, settings, granted, known, (body, admission), now)
        };
        let unattended = policy.unattended();
        let expires_at = unattended.after_ms().map(|ms| after(now, ms));
        let alone = matches!(&meant, ToolIntent::Act(act) if is_alone(&act.kind));
        match meant {
            ToolIntent::Harmless => by_name(body, Admission::Run),
            ToolIntent::Refused(why) => Judgement::new(body, Admission::Deny(why)),
            ToolIntent::Plan { explanation, steps } => {
                by_name(body, Admission::Plan(UpdatePlan { explanation, steps }))
            }
            ToolIntent::Ask(ask) => {
                if let Ask::Permissions(it) = &ask
                    && let Some(judged) =
                        by_name::rights(&policy, settings, call, (body.clone(), &it.permissions))
                {
                    return judged;
                }
                // Nobody's answer stands for the user's, so in the end there is none.
                by_name(body, Admission::Ask { ask, expires_at })
            }
            ToolIntent::Act(act) => {
                let ruling = by_name::of_act(&policy, settings, granted, &names, &act);
                let at_deadline = unattended.at_deadline(&ruling);
                // Without a fence nobody's silence is a yes.
                let is_fenced = matches!(
                    settings.sandbox,
                    Sandbox::ReadOnly { .. } | Sandbox::WorkspaceWrite { .. }
                );
                Judgement {
                    admission: admission(&act, &ruling, &body, call, expires_at),
                    body,
                    ruling: Some(ruling),
                    approve_on_timeout: at_deadline == DeadlineAction::Accept && is_fenced,
                    alone,
                }
            }
        }
    }

    /// What becomes of a call of a tool that is not one of ours.
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
        by_name::judge(
            &policy,
            settings,
            granted,
            (call, std::slice::from_ref(&call.tool)),
            (body, admission),
            now,
        )
    }

    /// These settings with the fence as wide as given rights make it, as far as the rules still let them.
    pub(crate) async fn widened(&self, settings: &Settings, rights: &Grant) -> Settings {
        // Most threads were given none, and then the rules need not be read for it.
        if rights.is_empty() {
            return settings.clone();
        }
        match self.policy().await {
            Some(policy) => policy.managed.widened(settings, rights),
            None => settings.clone(),
        }
    }

    /// What the operator holds fast now.
    pub(crate) async fn managed_limits(&self) -> ManagedLimits {
        let policy = self.policy().await;
        policy.map(|it| it.managed.clone()).unwrap_or_default()
    }

    /// The rules as they are now.
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

/// Whether other calls of the same answer could get in its way: what is written is written on top of what is
/// there, and what goes beyond the fence is what was allowed, and not what a call beside it made of it.
fn is_alone(kind: &ActKind) -> bool {
    match kind {
        ActKind::Write { .. } => true,
        ActKind::Command { beyond, .. } => *beyond,
        ActKind::Read { .. } | ActKind::Connect { .. } | ActKind::Tool { .. } => false,
    }
}

/// What the model is told of an act that is denied.
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
        Verdict::Ask => match unshown(body, call) {
            Some(why) => Admission::Deny(why),
            None => Admission::Ask {
                ask: question(act, ruling, body, call),
                expires_at,
            },
        },
    }
}

/// Why nobody is asked about a call, if nobody is: it cannot be shown whole.
pub(crate) fn unshown(body: &ItemBody, call: &ToolCall) -> Option<String> {
    let (what, instead) = match body {
        // The tool for commands refuses what is too long to be shown.
        ItemBody::Command(_) => return None,
        ItemBody::Patch(it) => {
            let cut = it.changes.iter().find(|it| it.is_cut())?;
            (
                format!("the change of {}", cut.path),
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
        "This was not done: someone must be asked about it, and {what} cannot be shown whole. {instead}"
    ))
}

pub(crate) fn denied(ruling: &Ruling) -> Admission {
    Admission::Deny(forbidden(ruling))
}

/// May this be?
fn question(act: &Act, ruling: &Ruling, body: &ItemBody, call: &ToolCall) -> Ask {
    // What the agent says of it comes after what is so.
    let reason = Some(match &act.why {
        Some(why) => format!("{} The agent says: {why}", ruling.reason),
        None => ruling.reason.clone(),
    });
    match (&act.kind, body) {
        (ActKind::Command { script, beyond, .. }, ItemBody::Command(it)) => {
            Ask::Command(AskCommand {
                // Whoever says yes to typing must see what is typed.
                command: match it.source {
                    CommandSource::Typed => script.line.clone(),
                    _ => it.command.clone(),
                },
                cwd: it.cwd.clone(),
                reason,
                actions: it.actions.clone(),
                // A rule that comes of an answer does not lead out of the sandbox, so it would be no help.
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

/// Takes the reports of a tool to the task of its thread.
pub(crate) struct TaskReports(pub(crate) mpsc::Sender<Command>);

impl ReportSink for TaskReports {
    fn report(&self, command: Command) -> BoxFuture<'_, bool> {
        Box::pin(async move { self.0.send(command).await.is_ok() })
    }
}

/// Carries out a job, if it may be, and reports its end. A tool that does not end although it was stopped is
/// given up.
pub(crate) async fn carry_out(
    hands: Arc<ToolGate>,
    blobs: Arc<dyn Blobs>,
    (job, yes): (ToolJob, Approvals),
    mut stop: watch::Receiver<()>,
    reports: mpsc::Sender<Command>,
) {
    let (item, body) = (job.item.id.clone(), job.item.body.clone());
    let given_up = async {
        while stop.changed().await.is_ok() {}
        sleep(STOP_TIMEOUT).await;
    };
    let ran = tokio::select! {
        biased;
        ran = hands.run(job, yes) => ran,
        () = given_up => {
            ToolResult::new(ItemStatus::Interrupted, body, Output::failure(GIVEN_UP))
        }
    };
    let output = kept(&*blobs, ran.output, ran.pictures, ran.full).await;
    let diff = ran.diff.map(Command::UpdateDiff);
    let stopped = ran.status == ItemStatus::Interrupted;
    let end = Command::EndTool(Box::new(EndTool {
        item,
        status: ran.status,
        body: ran.body,
        output,
    }));
    // Once its last tool has ended, a turn that is to stop is over and takes no more.
    let (first, second) = match stopped {
        true => (diff, Some(end)),
        false => (Some(end), diff),
    };
    for command in first.into_iter().chain(second) {
        let _ = reports.send(command).await;
    }
}

/// Keeps what is too large for a record beside the journal, and only names it.
async fn kept(
    blobs: &dyn Blobs,
    mut output: Output,
    pictures: Vec<Vec<u8>>,
    full: Option<String>,
) -> Output {
    for bytes in pictures {
        let image = match NewImage::of(bytes) {
            Ok(picture) => picture.keep(blobs).await.map_err(|error| error.to_string()),
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
            // The model was told all it needs.
            Err(error) => tracing::warn!(%error, "the full output of a tool was not kept"),
        }
    }
    output
}

/// The end of a tool that failed inside.
pub(crate) fn tool_failed(item: raddle_core::ItemId, body: ItemBody) -> Command {
    Command::EndTool(Box::new(EndTool {
        item,
        status: ItemStatus::Failed,
        body,
        output: Output::failure(TOOL_FAILED),
    }))
}

/// No tools: whatever the model calls, it is told that there is nothing of that name.
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
        let ran = ToolResult::new(ItemStatus::Failed, job.item.body, output);
        Box::pin(ready(ran))
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

/// Nobody far away: whatever is put to it, there is no answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWebhook;

impl Webhook for NoWebhook {
    fn send(&self, _: WebhookRequest) -> BoxFuture<'static, Result<WebhookDecision, String>> {
        Box::pin(ready(Err("there is nobody to ask".to_owned())))
    }
}

/// Rules that nobody writes down: these, and nothing is added to them.
#[derive(Clone, Debug, Default)]
pub struct FixedRules(pub Arc<Policy>);

impl Rulebook for FixedRules {
    fn policy(&self) -> Arc<Policy> {
        self.0.clone()
    }

    fn amend(&self, _: Amendment) -> BoxFuture<'_, Result<(), AmendError>> {
        let why = "these rules are not kept anywhere".to_owned();
        Box::pin(ready(Err(AmendError::Unwritable(why))))
    }
}
