//! Tools of the agent's: asked about, run, stopped, and lost with their owner.

mod many;
mod recheck;

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use raddle_agent::{FixedRules, Handle, NoWebhook, Subscriber, Threads};
use raddle_core::policy::{
    Act, ActKind, Amendment, Layer, ParsedScript as Line_, Policy, Rule, Subject, UnattendedPolicy,
    Verdict,
};
use raddle_core::ports::{
    AmendError, Authorization, BackgroundTerminal, BoxFuture, Journal, Rulebook, ToolIntent,
    ToolJob, ToolResult, ToolSpec, Tools, Webhook,
};
use raddle_core::{
    AnswerRequest, AppendText, Ask, AskQuestions, ChangeKind, Command, CommandRun, CommandSource,
    ContextEntry, Event, FileChange, ItemBody, ItemPart, ItemStatus, Output, Patch, RecordBody,
    RequestAnswer, RequestNumber, Resolution, RunShell, Seq, Settings, ThreadId, ToolCall, TurnId,
};
use tokio::sync::{Barrier, Notify, mpsc};

use crate::script::{ScriptLine, ScriptedAnswers};
use crate::{
    begin, client, interrupt, journal, order, subscribe, threads_asking, threads_with, turn, until,
};

/// What a tool in a test does when it is run: `prints`, `waits` for the test, `gathers` with seven others,
/// `hangs` until it is stopped, `ignores` that too, or `falls`; what begins with `writes` writes, and `writes moved`
/// would move a file. With `beyond` before it, it goes beyond the sandbox; a tool `type` types it, and `ask` asks the user.
#[derive(Default)]
pub struct TestTools {
    ran: Mutex<Vec<String>>,
    begun: Arc<Notify>,
    go: Arc<Notify>,
    ended: Mutex<Vec<TurnId>>,
    /// How often a tool wrote: what another one would write is then something else.
    written: AtomicUsize,
    gathered: Arc<ConcurrentCalls>,
}

/// Calls that run at once.
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
    pub fn ran(&self) -> Vec<String> {
        self.ran.lock().expect("ran").clone()
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
            });
            let body = ItemBody::Command(CommandRun::default());
            let known = Some((body, ToolIntent::Ask(questions)));
            return Box::pin(std::future::ready(known));
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
            script: Line_ {
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
            why: None,
            kind,
        };
        let is_known = matches!(call.tool.as_str(), "do" | "type");
        let known = is_known.then_some((body, ToolIntent::Act(act)));
        Box::pin(std::future::ready(known))
    }

    fn user_command(&self, _: &Settings, line: &str) -> CommandRun {
        CommandRun {
            command: line.to_owned(),
            ..CommandRun::default()
        }
    }

    fn run(&self, job: ToolJob) -> BoxFuture<'static, ToolResult> {
        let ItemBody::Command(it) = job.item.body.clone() else {
            panic!("no command");
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
        self.ran
            .lock()
            .expect("ran")
            .push(format!("{what}: {digest}"));
        let (begun, go) = (self.begun.clone(), self.go.clone());
        let gathered = self.gathered.clone();
        Box::pin(async move {
            let printed = AppendText {
                item: job.item.id.clone(),
                part: ItemPart::Printed,
                text: "out\n".to_owned(),
            };
            job.reports.report(Command::AppendText(printed)).await;
            begun.notify_one();
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
                "falls" => panic!("a tool that falls"),
                _ => ItemStatus::Completed,
            };
            let body = ItemBody::Command(it);
            ToolResult::new(status, body, Output::text(format!("did {what}")))
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
    pub bench: Arc<TestTools>,
    pub threads: Threads,
    pub script: Arc<ScriptedAnswers>,
    pub thread: Handle,
    /// Who began the thread,
    pub me: Arc<dyn Subscriber>,
    pub id: ThreadId,
    /// and what that one hears.
    pub hears: mpsc::UnboundedReceiver<String>,
    pub journal: Arc<dyn Journal>,
}

async fn stage(script: &[&[ScriptLine]]) -> GateHarness {
    stage_with(script, Arc::new(FixedRules::default())).await
}

async fn stage_with(script: &[&[ScriptLine]], rules: Arc<dyn Rulebook>) -> GateHarness {
    stage_asking(script, rules, Arc::new(NoWebhook)).await
}

/// The same with someone far away.
pub async fn stage_asking(
    script: &[&[ScriptLine]],
    rules: Arc<dyn Rulebook>,
    webhook: Arc<dyn Webhook>,
) -> GateHarness {
    let journal = journal();
    let bench = Arc::new(TestTools::default());
    let (threads, script) = threads_asking(&journal, script, bench.clone(), rules, webhook);
    let (me, hears) = client();
    let id = ThreadId::mint();
    let thread = begin(&threads, id, me.clone()).await;
    GateHarness {
        bench,
        threads,
        script,
        thread,
        me,
        id,
        hears,
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
        order(&self.thread, command).await.expect("an answer");
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

    /// How the items that carry out calls ended.
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
                    let said = it.item.output.map(|it| it.text).unwrap_or_default();
                    Some((it.item.status, command.printed, said))
                }
                _ => None,
            });
        ended.collect()
    }
}

const DONE: &[ScriptLine] = &[ScriptLine::Says("done")];

#[tokio::test]
async fn what_stays_in_the_sandbox_runs_at_once_and_is_recorded_with_its_rule() {
    let mut stage = stage(&[&[ScriptLine::Calls("do", "prints")], DONE]).await;
    order(&stage.thread, turn("t1", "hi"))
        .await
        .expect("a turn");
    until(&mut stage.hears, "turn/completed").await;
    assert_eq!(stage.bench.ran(), ["prints: by policy"]);
    let out = Some("out\n".to_owned());
    let wanted = (ItemStatus::Completed, out, "did prints".to_owned());
    assert_eq!(stage.ends().await, [wanted]);
    let rulings = stage
        .events()
        .await
        .into_iter()
        .filter_map(|event| match event {
            Event::ItemStarted(it) => it.ruling,
            _ => None,
        });
    let rulings: Vec<(String, String)> = rulings.map(|it| (it.rule, it.digest)).collect();
    let wanted = ("approvalPolicy".to_owned(), "digest of prints".to_owned());
    assert_eq!(rulings, [wanted]);
    assert_eq!(
        stage.script.prompts()[1],
        "user hi · call do · output did prints"
    );
    // What the turn left running ended with it, and the user hears so.
    until(&mut stage.hears, "warning").await;
    assert_eq!(
        *stage.bench.ended.lock().expect("ended"),
        [TurnId::from("t1")]
    );
}

#[tokio::test]
async fn an_answer_decides_what_becomes_of_a_call() {
    let yes = "user hi · call do · output did prints";
    let no = "user hi · call do · output The user declined this call. Nothing was done.";
    for (answer, ran, read) in [
        (RequestAnswer::Accept {}, 1, Some(yes)),
        (RequestAnswer::AcceptForSession {}, 1, Some(yes)),
        (RequestAnswer::Decline {}, 0, Some(no)),
        (RequestAnswer::Cancel {}, 0, None),
    ] {
        let call: &[ScriptLine] = &[ScriptLine::Calls("do", "beyond prints")];
        let mut stage = stage(&[call, DONE]).await;
        order(&stage.thread, turn("t1", "hi"))
            .await
            .expect("a turn");
        let heard = until(&mut stage.hears, "ask").await;
        assert_eq!(
            heard[heard.len() - 3..],
            [
                "thread/status/changed",
                "item/started #",
                "ask item/commandExecution/requestApproval",
            ]
        );
        stage.answer(0, answer.clone()).await;
        until(&mut stage.hears, "turn/completed").await;
        assert_eq!(stage.bench.ran().len(), ran, "{answer:?}");
        let prompts = stage.script.prompts();
        assert_eq!(prompts.get(1).map(String::as_str), read, "{answer:?}");
    }
}

#[tokio::test]
async fn a_yes_for_the_session_is_not_asked_for_again_but_only_for_the_same() {
    let call: &[ScriptLine] = &[ScriptLine::Calls("do", "beyond prints")];
    let other: &[ScriptLine] = &[ScriptLine::Calls("do", "beyond other")];
    let mut stage = stage(&[call, call, other, DONE]).await;
    order(&stage.thread, turn("t1", "hi"))
        .await
        .expect("a turn");
    until(&mut stage.hears, "ask").await;
    stage.answer(0, RequestAnswer::AcceptForSession {}).await;
    // Twice the same, and then something else, which is asked about.
    until(&mut stage.hears, "ask").await;
    assert_eq!(stage.bench.ran().len(), 2);
    stage.answer(1, RequestAnswer::Accept {}).await;
    until(&mut stage.hears, "turn/completed").await;
    assert_eq!(stage.bench.ran().len(), 3);
}

#[tokio::test]
async fn who_comes_back_is_asked_again_and_so_is_whoever_takes_over() {
    let call: &[ScriptLine] = &[ScriptLine::Calls("do", "beyond prints")];
    let mut stage = stage(&[call, DONE]).await;
    order(&stage.thread, turn("t1", "hi"))
        .await
        .expect("a turn");
    until(&mut stage.hears, "ask").await;
    let (me, mut hears) = client();
    subscribe(&stage.thread, me).await;
    until(&mut hears, "ask item/commandExecution/requestApproval").await;

    // The first owner is gone without a word.
    let rules = Arc::new(FixedRules::default());
    let (second, script) = threads_with(&stage.journal, &[DONE], stage.bench.clone(), rules);
    let thread = second.get(stage.id).await.expect("the thread");
    let (me, mut hears) = client();
    subscribe(&thread, me).await;
    until(&mut hears, "ask item/commandExecution/requestApproval").await;
    stage.thread = thread;
    stage.answer(0, RequestAnswer::Accept {}).await;
    until(&mut hears, "turn/completed").await;
    assert_eq!(stage.bench.ran(), ["prints: digest of prints"]);
    assert_eq!(script.prompts(), ["user hi · call do · output did prints"]);
    drop(stage.threads);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_stopped_ends_with_what_it_printed() {
    for (what, said) in [
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
        let mut stage = stage(&[call]).await;
        order(&stage.thread, turn("t1", "hi"))
            .await
            .expect("a turn");
        until(&mut stage.hears, "item/commandExecution/outputDelta").await;
        stage.bench.begun.notified().await;
        order(&stage.thread, interrupt()).await.expect("an end");
        until(&mut stage.hears, "turn/completed").await;
        let out = Some("out\n".to_owned());
        let wanted = (ItemStatus::Interrupted, out, said.to_owned());
        assert_eq!(stage.ends().await, [wanted]);
    }
}

#[tokio::test]
async fn a_tool_that_falls_fails_and_the_turn_goes_on() {
    let mut stage = stage(&[&[ScriptLine::Calls("do", "falls")], DONE]).await;
    order(&stage.thread, turn("t1", "hi"))
        .await
        .expect("a turn");
    until(&mut stage.hears, "turn/completed").await;
    let ends = stage.ends().await;
    assert_eq!(ends[0].0, ItemStatus::Failed);
    assert!(ends[0].2.starts_with("The tool failed inside"), "{ends:?}");
    assert_eq!(stage.script.prompts().len(), 2);
}

/// Nobody answers: what becomes of that is in the rules, and in the record.
/// A yes to typing is a yes to what is typed, so that is what is shown.
#[tokio::test]
async fn whoever_is_asked_about_typing_is_shown_what_is_typed() {
    let call: &[ScriptLine] = &[ScriptLine::Calls("type", "beyond rm -r /")];
    let mut stage = stage(&[call, DONE]).await;
    order(&stage.thread, turn("t1", "hi"))
        .await
        .expect("a turn");
    until(&mut stage.hears, "ask").await;
    let events = stage.events().await;
    let asked = events.iter().find_map(|event| match event {
        Event::RequestOpened(it) => match &it.ask {
            Ask::Command(ask) => Some(ask.command.as_str()),
            _ => None,
        },
        _ => None,
    });
    assert_eq!(asked, Some("rm -r /"));
}

/// Nobody's answer stands for the user's: a question is over at its deadline without one.
#[tokio::test]
async fn a_question_that_nobody_answers_is_given_up() {
    for unattended in [
        UnattendedPolicy::Deny { after_ms: 0 },
        UnattendedPolicy::Allow { after_ms: 0 },
    ] {
        let policy = Policy {
            unattended: Some(unattended),
            ..Policy::default()
        };
        let rules = Arc::new(FixedRules(Arc::new(policy)));
        let call: &[ScriptLine] = &[ScriptLine::Calls("ask", "{}")];
        let mut stage = stage_with(&[call, DONE], rules).await;
        order(&stage.thread, turn("t1", "hi"))
            .await
            .expect("a turn");
        until(&mut stage.hears, "turn/completed").await;
        assert_eq!(
            stage.script.prompts()[1],
            "user hi · call ask · output Nobody answered in time."
        );
    }
}

#[tokio::test]
async fn silence_is_settled_by_the_rules() {
    let untrusted = "prints";
    for (unattended, ran) in [
        (UnattendedPolicy::Deny { after_ms: 0 }, 0),
        (UnattendedPolicy::Allow { after_ms: 0 }, 1),
    ] {
        let policy = Policy {
            unattended: Some(unattended.clone()),
            ..Policy::default()
        };
        let rules = Arc::new(FixedRules(Arc::new(policy)));
        let call: &[ScriptLine] = &[ScriptLine::Calls("do", untrusted)];
        let mut stage = stage_with(&[call, DONE], rules).await;
        let change = Box::new(raddle_core::SettingsChange {
            approval: Some(raddle_core::ApprovalPolicy::Untrusted),
            ..raddle_core::SettingsChange::default()
        });
        let Command::StartTurn(mut start) = turn("t1", "hi") else {
            panic!("no turn");
        };
        start.change = change;
        let start = Command::StartTurn(start);
        order(&stage.thread, start).await.expect("a turn");
        until(&mut stage.hears, "turn/completed").await;
        assert_eq!(stage.bench.ran().len(), ran, "{unattended:?}");
        let settled = stage
            .events()
            .await
            .into_iter()
            .find_map(|event| match event {
                Event::RequestResolved(it) => Some(it.resolution),
                _ => None,
            });
        let wanted = match ran {
            0 => Resolution::Expired {},
            _ => Resolution::Answered {
                by: "policy".to_owned(),
                answer: Box::new(RequestAnswer::Accept {}),
            },
        };
        assert_eq!(settled, Some(wanted));
    }
}

/// Rules about tools by their names hold for ours too, and the strictest decides.
#[tokio::test]
async fn a_rule_about_a_tool_holds_whatever_it_would_do() {
    for (name, verdict, tool, wanted) in [
        ("d?", Verdict::Deny, "do", "turn/completed"),
        (
            "do",
            Verdict::Ask,
            "do",
            "ask item/commandExecution/requestApproval",
        ),
        ("ask", Verdict::Deny, "ask", "turn/completed"),
        // A question is not asked about first.
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
        let mut stage = stage_with(&[call, DONE], rules).await;
        order(&stage.thread, turn("t1", "hi"))
            .await
            .expect("a turn");
        let heard = until(&mut stage.hears, wanted).await;
        assert_eq!(
            heard.iter().any(|it| it.starts_with("ask")),
            wanted.starts_with("ask")
        );
        if wanted == "turn/completed" {
            assert!(stage.bench.ran().is_empty());
            let read = &stage.script.prompts()[1];
            assert!(read.contains("because a rule forbids it (tool "), "{read}");
        }
    }
}

/// Rules that write down what they are given.
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
async fn a_yes_by_a_rule_is_a_yes_and_writes_the_rule_down() {
    let rules = Arc::new(RecordingRules::default());
    let call: &[ScriptLine] = &[ScriptLine::Calls("do", "beyond prints")];
    let mut stage = stage_with(&[call, DONE], rules.clone()).await;
    order(&stage.thread, turn("t1", "hi"))
        .await
        .expect("a turn");
    until(&mut stage.hears, "ask").await;
    let rule = serde_json::json!({"execpolicy_amendment": ["prints"]});
    stage
        .answer(0, RequestAnswer::AcceptWithRule { rule })
        .await;
    until(&mut stage.hears, "turn/completed").await;
    assert_eq!(stage.bench.ran().len(), 1);
    assert_eq!(*rules.0.lock().expect("rules"), [["prints"]]);
}

#[tokio::test]
async fn a_command_of_the_users_has_its_turn_and_the_model_reads_of_it_later() {
    let mut stage = stage(&[DONE]).await;
    assert_eq!(
        stage.hears.recv().await.as_deref(),
        Some("thread/started #")
    );
    let shell = RunShell {
        turn: "t1".into(),
        item: "u1".into(),
        command: stage.bench.user_command(&Settings::default(), "prints"),
        briefs: Vec::new(),
        principal: None,
    };
    let shell = Command::RunShell(Box::new(shell));
    order(&stage.thread, shell).await.expect("a turn");
    assert_eq!(
        until(&mut stage.hears, "turn/completed").await,
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
    order(&stage.thread, turn("t2", "hi"))
        .await
        .expect("a turn");
    until(&mut stage.hears, "turn/completed").await;
    let notes = stage.script.notes().pop().expect("a call");
    assert!(notes.contains(&"did prints".to_owned()), "{notes:?}");
}
