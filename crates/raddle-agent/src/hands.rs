//! The agent's own tools: what a call of the model means, whether it may be, and how it is carried out.

use std::collections::BTreeSet;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use raddle_core::policy::{
    Act, ActKind, Amendment, AtDeadline, Policy, Ruling, Unattended, Verdict, proposed,
};
use raddle_core::ports::{
    AmendError, Blobs, Job, Meant, Ran, Reports, Rulebook, Terminal, ToolSpec, Tools, Waiting,
};
use raddle_core::{
    Admission, Ask, AskCommand, AskPatch, Call, Command, CommandRun, CommandSource, EndTool,
    ItemBody, ItemStatus, Output, Sandbox, Settings, ThreadId, Timestamp, Tool, TurnId, UpdatePlan,
};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use crate::images::Picture;

/// How long a tool may take to come to its end once it was told to.
const STOPPING: Duration = Duration::from_secs(2);

/// What the model is told of a tool that did not.
const GIVEN_UP: &str = "This call was ended by the user's interrupt before it was done. It may have taken \
                        effect in part; check before you repeat it.";

/// What it is told of one that failed inside.
const FELL: &str = "The tool failed inside; the server's log says more. It may have taken effect in part; check \
                    before you repeat the call.";

/// What becomes of a call, and what policy said of it.
pub(crate) struct Judged {
    pub(crate) body: ItemBody,
    pub(crate) admission: Admission,
    pub(crate) ruling: Option<Ruling>,
    /// Whether policy says yes if nobody answers.
    pub(crate) yes_in_the_end: bool,
    /// Whether it must not run beside other calls.
    pub(crate) alone: bool,
}

impl Judged {
    /// Nobody was asked about it.
    pub(crate) fn new(body: ItemBody, admission: Admission) -> Self {
        Self {
            body,
            admission,
            ruling: None,
            yes_in_the_end: false,
            alone: false,
        }
    }

    /// Without rules nothing is done.
    fn unruled(body: ItemBody) -> Self {
        let why = "The rules cannot be read, so nothing is done.".to_owned();
        Self::new(body, Admission::Deny(why))
    }
}

/// The tools, and the rules for using them.
pub(crate) struct Hands {
    pub(crate) tools: Arc<dyn Tools>,
    pub(crate) rules: Arc<dyn Rulebook>,
}

impl Hands {
    /// What the model is told of them.
    pub(crate) fn specs(&self, settings: &Settings) -> Vec<ToolSpec> {
        match settings.nowhere {
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
        call: &Call,
        now: Timestamp,
    ) -> Judged {
        let name = &call.tool;
        let meant = match settings.nowhere {
            true => None,
            false => self.tools.meant(thread, settings, call).await,
        };
        let Some((body, meant)) = meant else {
            let body = ItemBody::Tool(Tool { name: name.clone() });
            let why = format!("There is no tool named {name}.");
            return Judged::new(body, Admission::Deny(why));
        };
        let mut yes_in_the_end = false;
        let alone = matches!(
            &meant,
            Meant::Act(Act {
                kind: ActKind::Write { .. },
                ..
            })
        );
        let (admission, ruling) = match meant {
            Meant::Harmless => (Admission::Run, None),
            Meant::Refused(why) => (Admission::Deny(why), None),
            Meant::Plan { explanation, steps } => {
                (Admission::Plan(UpdatePlan { explanation, steps }), None)
            }
            Meant::Ask(ask) => {
                let Some(policy) = self.policy().await else {
                    return Judged::unruled(body);
                };
                // Nobody's answer stands for the user's, so in the end there is none.
                let expires_at = match policy.unattended() {
                    Unattended::Deny { after_ms } | Unattended::Allow { after_ms } => {
                        Some(after(now, after_ms))
                    }
                    Unattended::Park | Unattended::Webhook { .. } => None,
                };
                (Admission::Ask { ask, expires_at }, None)
            }
            Meant::Act(act) => {
                let Some(policy) = self.policy().await else {
                    return Judged::unruled(body);
                };
                let ruling = policy.judge(&act, settings, granted);
                let unattended = policy.unattended();
                let at_deadline = unattended.at_deadline(&ruling);
                let waits = unattended
                    .after_ms()
                    .filter(|_| matches!(at_deadline, AtDeadline::Accept | AtDeadline::Decline));
                let expires_at = waits.map(|ms| after(now, ms));
                // Without a fence nobody's silence is a yes.
                let is_fenced = matches!(
                    settings.sandbox,
                    Sandbox::ReadOnly { .. } | Sandbox::WorkspaceWrite { .. }
                );
                yes_in_the_end = at_deadline == AtDeadline::Accept && is_fenced;
                (admission(&act, &ruling, &body, expires_at), Some(ruling))
            }
        };
        Judged {
            body,
            admission,
            ruling,
            yes_in_the_end,
            alone,
        }
    }

    /// The rules as they are now.
    async fn policy(&self) -> Option<Arc<Policy>> {
        let rules = self.rules.clone();
        tokio::task::spawn_blocking(move || rules.policy())
            .await
            .ok()
    }
}

fn after(now: Timestamp, ms: u64) -> Timestamp {
    now.plus_ms(i64::try_from(ms).unwrap_or(i64::MAX))
}

fn admission(
    act: &Act,
    ruling: &Ruling,
    body: &ItemBody,
    expires_at: Option<Timestamp>,
) -> Admission {
    match ruling.verdict {
        Verdict::Allow => Admission::Run,
        Verdict::Deny => Admission::Deny(format!(
            "This was not done, because a rule forbids it ({}). {} Find another way, or ask the user.",
            ruling.rule, ruling.reason
        )),
        Verdict::Ask => Admission::Ask {
            ask: question(act, ruling, body),
            expires_at,
        },
    }
}

/// May this be?
fn question(act: &Act, ruling: &Ruling, body: &ItemBody) -> Ask {
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
        _ => Ask::Patch(AskPatch { reason, root: None }),
    }
}

/// Takes the reports of a tool to the task of its thread.
pub(crate) struct ToTask(pub(crate) mpsc::Sender<Command>);

impl Reports for ToTask {
    fn report(&self, command: Command) -> Waiting<'_, bool> {
        Box::pin(async move { self.0.send(command).await.is_ok() })
    }
}

/// Carries out a job and reports its end. A tool that does not end although it was stopped is given up.
pub(crate) async fn carry_out(
    tools: Arc<dyn Tools>,
    blobs: Arc<dyn Blobs>,
    job: Job,
    mut stop: watch::Receiver<()>,
    reports: mpsc::Sender<Command>,
) {
    let (item, body) = (job.item.id.clone(), job.item.body.clone());
    let given_up = async {
        while stop.changed().await.is_ok() {}
        sleep(STOPPING).await;
    };
    let ran = tokio::select! {
        biased;
        ran = tools.run(job) => ran,
        () = given_up => {
            Ran::new(ItemStatus::Interrupted, body, Output::failure(GIVEN_UP))
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
        let image = match Picture::of(bytes) {
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
pub(crate) fn fell(item: raddle_core::ItemId, body: ItemBody) -> Command {
    Command::EndTool(Box::new(EndTool {
        item,
        status: ItemStatus::Failed,
        body,
        output: Output::failure(FELL),
    }))
}

/// No tools: whatever the model calls, it is told that there is nothing of that name.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTools;

impl Tools for NoTools {
    fn specs(&self, _: &Settings) -> Vec<ToolSpec> {
        Vec::new()
    }

    fn meant<'a>(
        &'a self,
        _: ThreadId,
        _: &'a Settings,
        _: &'a Call,
    ) -> Waiting<'a, Option<(ItemBody, Meant)>> {
        Box::pin(ready(None))
    }

    fn users(&self, settings: &Settings, line: &str) -> CommandRun {
        CommandRun {
            command: line.to_owned(),
            cwd: settings.cwd.clone(),
            ..CommandRun::default()
        }
    }

    fn run(&self, job: Job) -> Waiting<'static, Ran> {
        let output = Output::failure("No tool can be run here.");
        let ran = Ran::new(ItemStatus::Failed, job.item.body, output);
        Box::pin(ready(ran))
    }

    fn end_turn(&self, _: ThreadId, _: TurnId) -> Waiting<'static, Vec<String>> {
        Box::pin(ready(Vec::new()))
    }

    fn terminals(&self, _: ThreadId) -> Vec<Terminal> {
        Vec::new()
    }

    fn end_terminal(&self, _: ThreadId, _: Option<&str>) -> bool {
        false
    }
}

/// Rules that nobody writes down: these, and nothing is added to them.
#[derive(Clone, Debug, Default)]
pub struct FixedRules(pub Arc<Policy>);

impl Rulebook for FixedRules {
    fn policy(&self) -> Arc<Policy> {
        self.0.clone()
    }

    fn amend(&self, _: Amendment) -> Waiting<'_, Result<(), AmendError>> {
        let why = "these rules are not kept anywhere".to_owned();
        Box::pin(ready(Err(AmendError::Unwritable(why))))
    }
}
