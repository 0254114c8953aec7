//! Built-in tools: approved, run, stopped, and lost with their owner.

mod many;
mod plugin_acts;
mod questions;
mod recheck;

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use raddle_agent::{AgentError, FixedRules, Handle, NoWebhook, Subscriber, Threads};
use raddle_core::policy::{
    Act, ActKind, Amendment, Layer, ParsedScript, Policy, Rule, Subject, UnattendedPolicy, Verdict,
};
use raddle_core::ports::{
    AmendError, Authorization, BackgroundTerminal, BoxFuture, Journal, Rulebook, ToolIntent,
    ToolJob, ToolResult, ToolSpec, Tools, Webhook,
};
use raddle_core::{
    AnswerRequest, AppendText, Ask, AskElicitation, AskQuestions, ChangeKind, Command, CommandRun,
    CommandSource, ContextEntry, Event, FileChange, ItemBody, ItemPart, ItemStatus, Output, Patch,
    PluginPermission, RecordBody, RequestAnswer, RequestNumber, Resolution, RunShell, Seq,
    Settings, ThreadId, ToolCall, TurnId, proposed_hunks,
};
use tokio::sync::{Barrier, Notify, mpsc};

use crate::script::{ScriptLine, ScriptedAnswers};
use crate::{
    begin, client, execute, interrupt, journal, subscribe, threads_with, threads_with_webhook,
    turn, until,
};

/// Tools for tests. The argument says what a call does: `prints`, `waits` for the test, `gathers`
/// with seven others, `hangs` until it is stopped, `ignores` the stop too, `falls` (panics), or
/// `elicits` an answer of the user, which it no longer needs once the test says so.
/// `asks-permission` does the same for a permission of a plugin.
/// Arguments that begin with `writes` write, and `writes moved` would move a file. With `beyond` in
/// front, the call goes beyond the sandbox. `acts TOOL ARGUMENT` acts as a plugin does. The tool
/// `type` types its argument, and `ask` asks the user.
#[derive(Default)]
pub struct TestTools {
    runs: Mutex<Vec<String>>,
    started: Arc<Notify>,
    go: Arc<Notify>,
    ended: Mutex<Vec<TurnId>>,
    /// Number of writes so far: it changes what the next write would produce.
    written: AtomicUsize,
    gathered: Arc<ConcurrentCalls>,
}

/// Calls that run concurrently.
struct ConcurrentCalls {
    barrier: Barrier,
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Default for ConcurrentCalls {
    fn default() -> Self {
        Self {
            barrier: Barrier::new(8),
            now: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
        }
    }
}

impl TestTools {
    pub fn runs(&self) -> Vec<String> {
        self.runs.lock().expect("ran").clone()
    }

    /// Notes the hunks that a job is to write, as its tool finds them.
    fn write_hunks(&self, job: ToolJob) -> BoxFuture<'static, ToolResult> {
        let hunks = proposed_hunks(&job.hunk_cwd, &moved().changes);
        let decided = job.hunks.iter().map(|decision| {
            let hunk = hunks.iter().find(|it| it.id == decision.id);
            hunk.is_some_and(|_| decision.accept)
        });
        let decided: Vec<bool> = decided.collect();
        let run = format!("{decided:?} in {}", job.settings.cwd);
        self.runs.lock().expect("ran").push(run);
        let output = Output::text("did write");
        let result = ToolResult::new(ItemStatus::Completed, job.item.body, output);
        Box::pin(std::future::ready(result))
    }
}

/// A patch that moves one file and changes another.
fn moved() -> Patch {
    let change = |path: &str, moved_to: Option<&str>| FileChange {
        path: path.to_owned(),
        kind: ChangeKind::Update {
            moved_to: moved_to.map(str::to_owned),
        },
        diff: String::new(),
    };
    Patch {
        changes: vec![change("/w/a", Some("/home/b")), change("/w/c", None)],
    }
}

/// Describes how the question of a tool was resolved.
fn description(resolution: &Resolution) -> String {
    match resolution {
        Resolution::Answered { by, answer } => match &**answer {
            RequestAnswer::Elicitation { body } => format!("accepted {body}"),
            _ => format!("declined by {by}"),
        },
        Resolution::Expired {} => "expired".to_owned(),
        Resolution::Withdrawn {} => "withdrawn".to_owned(),
    }
}

impl Tools for TestTools {
    fn specs(&self, _: &Settings) -> Vec<Arc<ToolSpec>> {
        Vec::new()
    }

    fn intent<'a>(
        &'a self,
        _: ThreadId,
        _: &'a Settings,
        call: &'a ToolCall,
    ) -> BoxFuture<'a, Option<(ItemBody, ToolIntent)>> {
        let (line, beyond) = match call.arguments.strip_prefix("beyond ") {
            Some(line) => (line, true),
            None => (call.arguments.as_str(), false),
        };
        if call.tool == "ask" {
            let questions = Ask::Questions(AskQuestions {
                questions: Vec::new(),
                trust_folder: None,
            });
            let body = ItemBody::Command(CommandRun::default());
            let intent = Some((body, ToolIntent::Ask(questions)));
            return Box::pin(std::future::ready(intent));
        }
        let mut command = CommandRun {
            command: line.to_owned(),
            cwd: "/w".to_owned(),
            ..CommandRun::default()
        };
        if call.tool == "type" {
            command.command = "sh".to_owned();
            command.source = CommandSource::Typed;
        }
        let body = match line {
            "writes moved" => ItemBody::Patch(moved()),
            _ => ItemBody::Command(command),
        };
        let command = ActKind::Command {
            script: ParsedScript {
                line: line.to_owned(),
                commands: vec![vec![line.to_owned()]],
                plain: true,
            },
            cwd: "/w".to_owned(),
            beyond,
        };
        let written = self.written.load(Relaxed);
        let paths = vec!["/w/a".to_owned()];
        let (digest, kind) = match line.starts_with("writes") {
            true => (
                format!("digest of {line} after {written}"),
                ActKind::Write {
                    paths,
                    reads: Vec::new(),
                    beyond,
                },
            ),
            false => (format!("digest of {line}"), command),
        };
        let act = Act {
            digest,
            reason: None,
            kind,
        };
        let is_known = matches!(call.tool.as_str(), "do" | "type");
        let intent = is_known.then_some((body, ToolIntent::Act(act)));
        Box::pin(std::future::ready(intent))
    }

    fn user_command(&self, _: &Settings, line: &str) -> CommandRun {
        CommandRun {
            command: line.to_owned(),
            ..CommandRun::default()
        }
    }

    fn run(&self, job: ToolJob) -> BoxFuture<'static, ToolResult> {
        let it = match job.item.body.clone() {
            ItemBody::Command(it) => it,
            ItemBody::Patch(_) => return self.write_hunks(job),
            _ => panic!("no command"),
        };
        let what = it.command.clone();
        let digest = match &job.authorization {
            Some(Authorization::Exactly(digest)) => digest.clone(),
            Some(Authorization::Kind(_)) => "by policy".to_owned(),
            None => "by nobody".to_owned(),
        };
        if what.starts_with("writes") {
            self.written.fetch_add(1, Relaxed);
        }
        self.runs
            .lock()
            .expect("ran")
            .push(format!("{what}: {digest}"));
        let (started, go) = (self.started.clone(), self.go.clone());
        let gathered = self.gathered.clone();
        Box::pin(async move {
            let printed = AppendText {
                item: job.item.id.clone(),
                part: ItemPart::Printed,
                text: "out\n".to_owned(),
            };
            job.reports.report(Command::AppendText(printed)).await;
            started.notify_one();
            let mut did = format!("did {what}");
            if let Some((tool, arguments)) = plugin_acts::act_of(&what) {
                let result = job.acts.run(plugin_acts::act(tool, arguments, job.stopped));
                let result = result.await;
                did = format!("{did}: {}", result.output.text);
                let body = ItemBody::Command(it);
                return ToolResult::new(result.status, body, Output::text(did));
            }
            let status = match what.as_str() {
                "hangs" => {
                    job.stopped.await;
                    ItemStatus::Interrupted
                }
                "waits" => {
                    go.notified().await;
                    ItemStatus::Completed
                }
                "gathers" => {
                    let now = gathered.now.fetch_add(1, Relaxed) + 1;
                    gathered.most.fetch_max(now, Relaxed);
                    gathered.barrier.wait().await;
                    gathered.now.fetch_sub(1, Relaxed);
                    ItemStatus::Completed
                }
                "ignores" => std::future::pending().await,
                "elicits" | "asks-permission" => {
                    let permission = PluginPermission {
                        plugin: "s".to_owned(),
                        hash: "sha256:0".to_owned(),
                        name: "workspace.read".to_owned(),
                    };
                    let ask = Ask::Elicitation(AskElicitation {
                        server: "s".to_owned(),
                        body: serde_json::json!({"mode": "form", "message": "which?"}),
                        permission: did.ends_with("asks-permission").then_some(permission),
                    });
                    tokio::select! {
                        resolution = job.questions.ask(ask) => {
                            did = format!("{did}: {}", description(&resolution));
                            ItemStatus::Completed
                        }
                        () = go.notified() => {
                            go.notified().await;
                            did = format!("{did}: gave up");
                            ItemStatus::Completed
                        }
                        () = job.stopped => ItemStatus::Interrupted,
                    }
                }
                "falls" => panic!("a tool that falls"),
                _ => ItemStatus::Completed,
            };
            let body = ItemBody::Command(it);
            ToolResult::new(status, body, Output::text(did))
        })
    }

    fn end_turn(&self, _: ThreadId, turn: TurnId) -> BoxFuture<'static, Vec<String>> {
        self.ended.lock().expect("ended").push(turn);
        Box::pin(std::future::ready(vec!["sleep 9".to_owned()]))
    }

    fn terminals(&self, _: ThreadId) -> Vec<BackgroundTerminal> {
        Vec::new()
    }

    fn end_terminal(&self, _: ThreadId, _: Option<&str>) -> bool {
        false
    }
}

pub struct GateHarness {
    pub tools: Arc<TestTools>,
    pub threads: Threads,
    pub script: Arc<ScriptedAnswers>,
    pub thread: Handle,
    /// The creator of the thread,
    pub me: Arc<dyn Subscriber>,
    pub id: ThreadId,
    /// and what it receives.
    pub deliveries: mpsc::UnboundedReceiver<String>,
    pub journal: Arc<dyn Journal>,
}

async fn harness(script: &[&[ScriptLine]]) -> GateHarness {
    harness_with_rules(script, Arc::new(FixedRules::default())).await
}

async fn harness_with_rules(script: &[&[ScriptLine]], rules: Arc<dyn Rulebook>) -> GateHarness {
    harness_with_webhook(script, rules, Arc::new(NoWebhook)).await
}

/// Creates a harness with a webhook.
pub async fn harness_with_webhook(
    script: &[&[ScriptLine]],
    rules: Arc<dyn Rulebook>,
    webhook: Arc<dyn Webhook>,
) -> GateHarness {
    let journal = journal();
    let tools = Arc::new(TestTools::default());
    let (threads, script) = threads_with_webhook(&journal, script, tools.clone(), rules, webhook);
    let (me, deliveries) = client();
    let id = ThreadId::mint();
    let thread = begin(&threads, id, me.clone()).await;
    GateHarness {
        tools,
        threads,
        script,
        thread,
        me,
        id,
        deliveries,
        journal,
    }
}

impl GateHarness {
    pub async fn answer(&self, request: u64, answer: RequestAnswer) {
        let answer = AnswerRequest {
            request: RequestNumber(request),
            by: "ann".to_owned(),
            answer,
        };
        let command = Command::AnswerRequest(Box::new(answer));
        execute(&self.thread, command).await.expect("an answer");
    }

    pub async fn events(&self) -> Vec<Event> {
        let records = self.journal.read(self.id, Seq::ZERO, usize::MAX).await;
        let events = records
            .expect("records")
            .into_iter()
            .filter_map(|record| match record.body {
                RecordBody::Event(event) => Some(*event),
                RecordBody::Delta(_) => None,
            });
        events.collect()
    }

    /// The results of the items that run calls.
    async fn ends(&self) -> Vec<(ItemStatus, Option<String>, String)> {
        let ended = self
            .events()
            .await
            .into_iter()
            .filter_map(|event| match event {
                Event::ItemCompleted(it) if it.item.call.is_some() => {
                    let ItemBody::Command(command) = it.item.body else {
                        return None;
                    };
                    let output = it.item.output.map(|it| it.text).unwrap_or_default();
                    Some((it.item.status, command.printed, output))
                }
                _ => None,
            });
        ended.collect()
    }
}

const DONE: &[ScriptLine] = &[ScriptLine::Says("done")];

#[tokio::test]
async fn a_sandboxed_call_runs_at_once_and_is_recorded_with_its_rule() {
    let mut harness = harness(&[&[ScriptLine::Calls("do", "prints")], DONE]).await;
    execute(&harness.thread, turn("t1", "hi"))
        .await
        .expect("a turn");
    until(&mut harness.deliveries, "turn/completed").await;
    assert_eq!(harness.tools.runs(), ["prints: by policy"]);
    let out = Some("out\n".to_owned());
    let expected = (ItemStatus::Completed, out, "did prints".to_owned());
    assert_eq!(harness.ends().await, [expected]);
    let rulings = harness
        .events()
        .await
        .into_iter()
        .filter_map(|event| match event {
            Event::ItemStarted(it) => it.ruling,
            _ => None,
        });
    let rulings: Vec<(String, String)> = rulings.map(|it| (it.rule, it.digest)).collect();
    let expected = ("approvalPolicy".to_owned(), "digest of prints".to_owned());
    assert_eq!(rulings, [expected]);
    assert_eq!(
        harness.script.prompts()[1],
        "user hi · call do · output did prints"
    );
    // Commands that the turn left running ended with it, and the user is warned.
    until(&mut harness.deliveries, "warning").await;
    assert_eq!(
        *harness.tools.ended.lock().expect("ended"),
        [TurnId::from("t1")]
    );
}

#[tokio::test]
async fn the_answer_decides_whether_a_call_runs() {
    let accepted = "user hi · call do · output did prints";
    let declined = "user hi · call do · output The user declined this call. Nothing was done.";
    for (answer, expected_runs, read) in [
        (RequestAnswer::Accept {}, 1, Some(accepted)),
        (RequestAnswer::AcceptForSession {}, 1, Some(accepted)),
        (RequestAnswer::Decline {}, 0, Some(declined)),
        (RequestAnswer::Cancel {}, 0, None),
    ] {
        let call: &[ScriptLine] = &[ScriptLine::Calls("do", "beyond prints")];
        let mut harness = harness(&[call, DONE]).await;
        execute(&harness.thread, turn("t1", "hi"))
            .await
            .expect("a turn");
        let received = until(&mut harness.deliveries, "ask").await;
        assert_eq!(
            received[received.len() - 3..],
            [
                "thread/status/changed",
                "item/started #",
                "ask item/commandExecution/requestApproval",
            ]
        );
        harness.answer(0, answer.clone()).await;
        until(&mut harness.deliveries, "turn/completed").await;
        assert_eq!(harness.tools.runs().len(), expected_runs, "{answer:?}");
        let prompts = harness.script.prompts();
        assert_eq!(prompts.get(1).map(String::as_str), read, "{answer:?}");
    }
}

#[tokio::test]
async fn an_approval_for_the_session_covers_only_the_same_act() {
    let call: &[ScriptLine] = &[ScriptLine::Calls("do", "beyond prints")];
    let other: &[ScriptLine] = &[ScriptLine::Calls("do", "beyond other")];
    let mut harness = harness(&[call, call, other, DONE]).await;
    execute(&harness.thread, turn("t1", "hi"))
        .await
        .expect("a turn");
    until(&mut harness.deliveries, "ask").await;
    harness.answer(0, RequestAnswer::AcceptForSession {}).await;
    // Twice the same act, and then another, which needs approval.
    until(&mut harness.deliveries, "ask").await;
    assert_eq!(harness.tools.runs().len(), 2);
    harness.answer(1, RequestAnswer::Accept {}).await;
    until(&mut harness.deliveries, "turn/completed").await;
    assert_eq!(harness.tools.runs().len(), 3);
}

#[tokio::test]
async fn an_open_request_is_sent_again_on_return_and_after_a_takeover() {
    let call: &[ScriptLine] = &[ScriptLine::Calls("do", "beyond prints")];
    let mut harness = harness(&[call, DONE]).await;
    execute(&harness.thread, turn("t1", "hi"))
        .await
        .expect("a turn");
    until(&mut harness.deliveries, "ask").await;
    let (me, mut deliveries) = client();
    subscribe(&harness.thread, me).await;
    until(&mut deliveries, "ask item/commandExecution/requestApproval").await;

    // The first owner has crashed.
    let rules = Arc::new(FixedRules::default());
    let (second, script) = threads_with(&harness.journal, &[DONE], harness.tools.clone(), rules);
    let thread = second.get(harness.id).await.expect("the thread");
    let (me, mut deliveries) = client();
    subscribe(&thread, me).await;
    until(&mut deliveries, "ask item/commandExecution/requestApproval").await;
    harness.thread = thread;
    harness.answer(0, RequestAnswer::Accept {}).await;
    until(&mut deliveries, "turn/completed").await;
    assert_eq!(harness.tools.runs(), ["prints: digest of prints"]);
    assert_eq!(script.prompts(), ["user hi · call do · output did prints"]);
    drop(harness.threads);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_stopped_ends_with_what_it_printed() {
    for (what, expected_output) in [
        ("hangs", "did hangs"),
        (
            "ignores",
            "This call was ended by the user's interrupt before it was done. It may have taken effect in part; \
             check before you repeat it.",
        ),
    ] {
        let call: &[ScriptLine] = match what {
            "hangs" => &[ScriptLine::Calls("do", "hangs")],
            _ => &[ScriptLine::Calls("do", "ignores")],
        };
        let mut harness = harness(&[call]).await;
        execute(&harness.thread, turn("t1", "hi"))
            .await
            .expect("a turn");
        until(&mut harness.deliveries, "item/commandExecution/outputDelta").await;
        harness.tools.started.notified().await;
        execute(&harness.thread, interrupt()).await.expect("an end");
        until(&mut harness.deliveries, "turn/completed").await;
        let out = Some("out\n".to_owned());
        let expected = (ItemStatus::Interrupted, out, expected_output.to_owned());
        assert_eq!(harness.ends().await, [expected]);
    }
}

#[tokio::test]
async fn a_panicking_tool_fails_and_the_turn_continues() {
    let mut harness = harness(&[&[ScriptLine::Calls("do", "falls")], DONE]).await;
    execute(&harness.thread, turn("t1", "hi"))
        .await
        .expect("a turn");
    until(&mut harness.deliveries, "turn/completed").await;
    let ends = harness.ends().await;
    assert_eq!(ends[0].0, ItemStatus::Failed);
    assert!(
        ends[0]
            .2
            .starts_with("The tool failed with an internal error"),
        "{ends:?}"
    );
    assert_eq!(harness.script.prompts().len(), 2);
}

/// An approval of typed input covers that input, so the request shows it.
#[tokio::test]
async fn an_approval_of_typed_input_shows_the_input() {
    let call: &[ScriptLine] = &[ScriptLine::Calls("type", "beyond rm -r /")];
    let mut harness = harness(&[call, DONE]).await;
    execute(&harness.thread, turn("t1", "hi"))
        .await
        .expect("a turn");
    until(&mut harness.deliveries, "ask").await;
    let events = harness.events().await;
    let command = events.iter().find_map(|event| match event {
        Event::RequestOpened(it) => match &it.ask {
            Ask::Command(ask) => Some(ask.command.as_str()),
            _ => None,
        },
        _ => None,
    });
    assert_eq!(command, Some("rm -r /"));
}

/// Only the user can answer a question of the model or of a running tool: no policy accepts at its
/// deadline.
#[tokio::test]
async fn an_unanswered_question_expires() {
    let (deny, allow) = (
        UnattendedPolicy::Deny { after_ms: 0 },
        UnattendedPolicy::Allow { after_ms: 0 },
    );
    let of_model = ("ask", "{}", "call ask · output The request timed out.");
    let of_tool = ("do", "elicits", "call do · output did elicits: expired");
    for ((tool, arguments, expected), unattended) in [
        (of_model, deny.clone()),
        (of_model, allow.clone()),
        (of_tool, deny),
        (of_tool, allow),
    ] {
        let policy = Policy {
            unattended: Some(unattended),
            ..Policy::default()
        };
        let rules = Arc::new(FixedRules(Arc::new(policy)));
        let call: &[ScriptLine] = &[ScriptLine::Calls(tool, arguments)];
        let mut harness = harness_with_rules(&[call, DONE], rules).await;
        let result = execute(&harness.thread, turn("t1", "hi")).await;
        result.expect("a turn");
        until(&mut harness.deliveries, "turn/completed").await;
        assert_eq!(harness.script.prompts()[1], format!("user hi · {expected}"));
    }
}

#[tokio::test]
async fn an_unanswered_approval_is_resolved_by_the_rules() {
    let untrusted = "prints";
    for (unattended, expected_runs) in [
        (UnattendedPolicy::Deny { after_ms: 0 }, 0),
        (UnattendedPolicy::Allow { after_ms: 0 }, 1),
    ] {
        let policy = Policy {
            unattended: Some(unattended.clone()),
            ..Policy::default()
        };
        let rules = Arc::new(FixedRules(Arc::new(policy)));
        let call: &[ScriptLine] = &[ScriptLine::Calls("do", untrusted)];
        let mut harness = harness_with_rules(&[call, DONE], rules).await;
        let change = Box::new(raddle_core::SettingsChange {
            approval: Some(raddle_core::ApprovalPolicy::Untrusted),
            ..raddle_core::SettingsChange::default()
        });
        let Command::StartTurn(mut start) = turn("t1", "hi") else {
            panic!("no turn");
        };
        start.change = change;
        let start = Command::StartTurn(start);
        execute(&harness.thread, start).await.expect("a turn");
        until(&mut harness.deliveries, "turn/completed").await;
        assert_eq!(harness.tools.runs().len(), expected_runs, "{unattended:?}");
        let resolution = harness
            .events()
            .await
            .into_iter()
            .find_map(|event| match event {
                Event::RequestResolved(it) => Some(it.resolution),
                _ => None,
            });
        let expected = match expected_runs {
            0 => Resolution::Expired {},
            _ => Resolution::Answered {
                by: "policy".to_owned(),
                answer: Box::new(RequestAnswer::Accept {}),
            },
        };
        assert_eq!(resolution, Some(expected));
    }
}

/// Rules about tool names apply to built-in tools too, and the strictest decides.
#[tokio::test]
async fn a_rule_about_a_tool_applies_whatever_its_act() {
    for (name, verdict, tool, expected) in [
        ("d?", Verdict::Deny, "do", "turn/completed"),
        (
            "do",
            Verdict::Ask,
            "do",
            "ask item/commandExecution/requestApproval",
        ),
        ("ask", Verdict::Deny, "ask", "turn/completed"),
        // A question needs no approval.
        ("ask", Verdict::Ask, "ask", "ask item/tool/requestUserInput"),
        (
            "type",
            Verdict::Deny,
            "do",
            "item/commandExecution/outputDelta",
        ),
    ] {
        let rule = Rule {
            layer: Layer::User,
            subject: Subject::Tool(name.to_owned()),
            verdict,
            beyond: false,
            reason: None,
        };
        let policy = Policy {
            rules: vec![rule],
            ..Policy::default()
        };
        let rules = Arc::new(FixedRules(Arc::new(policy)));
        let call: &[ScriptLine] = match tool {
            "do" => &[ScriptLine::Calls("do", "prints")],
            _ => &[ScriptLine::Calls("ask", "{}")],
        };
        let mut harness = harness_with_rules(&[call, DONE], rules).await;
        execute(&harness.thread, turn("t1", "hi"))
            .await
            .expect("a turn");
        let received = until(&mut harness.deliveries, expected).await;
        assert_eq!(
            received.iter().any(|it| it.starts_with("ask")),
            expected.starts_with("ask")
        );
        if expected == "turn/completed" {
            assert!(harness.tools.runs().is_empty());
            let read = &harness.script.prompts()[1];
            assert!(read.contains("because a rule forbids it (tool "), "{read}");
        }
    }
}

/// Rules that record their amendments.
#[derive(Default)]
struct RecordingRules(Mutex<Vec<Vec<String>>>);

impl Rulebook for RecordingRules {
    fn policy(&self) -> Arc<Policy> {
        Arc::default()
    }

    fn amend(&self, amendment: Amendment) -> BoxFuture<'_, Result<(), AmendError>> {
        let words = amendment.words().to_vec();
        self.0.lock().expect("rules").push(words);
        Box::pin(std::future::ready(Ok(())))
    }
}

#[tokio::test]
async fn an_approval_with_a_rule_approves_and_stores_the_rule() {
    let rules = Arc::new(RecordingRules::default());
    let call: &[ScriptLine] = &[ScriptLine::Calls("do", "beyond prints")];
    let mut harness = harness_with_rules(&[call, DONE], rules.clone()).await;
    execute(&harness.thread, turn("t1", "hi"))
        .await
        .expect("a turn");
    until(&mut harness.deliveries, "ask").await;
    let rule = serde_json::json!({"execpolicy_amendment": ["prints"]});
    harness
        .answer(0, RequestAnswer::AcceptWithRule { rule })
        .await;
    until(&mut harness.deliveries, "turn/completed").await;
    assert_eq!(harness.tools.runs().len(), 1);
    assert_eq!(*rules.0.lock().expect("rules"), [["prints"]]);
}

#[tokio::test]
async fn a_user_command_runs_in_its_own_turn_and_is_in_the_next_prompt() {
    let mut harness = harness(&[DONE]).await;
    assert_eq!(
        harness.deliveries.recv().await.as_deref(),
        Some("thread/started #")
    );
    let shell = RunShell {
        turn: "t1".into(),
        item: "u1".into(),
        command: harness.tools.user_command(&Settings::default(), "prints"),
        briefs: Vec::new(),
        principal: None,
    };
    let shell = Command::RunShell(Box::new(shell));
    execute(&harness.thread, shell).await.expect("a turn");
    assert_eq!(
        until(&mut harness.deliveries, "turn/completed").await,
        [
            "thread/status/changed",
            "turn/started #",
            "item/started #",
            "item/commandExecution/outputDelta #",
            "item/completed #",
            "thread/status/changed",
            "turn/completed #",
        ]
    );
    execute(&harness.thread, turn("t2", "hi"))
        .await
        .expect("a turn");
    until(&mut harness.deliveries, "turn/completed").await;
    let notes = harness.script.notes().pop().expect("a call");
    assert!(notes.contains(&"did prints".to_owned()), "{notes:?}");
}
