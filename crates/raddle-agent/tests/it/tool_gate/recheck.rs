//! A call is judged by the state at its execution, not at the time of the model's response.

use std::sync::RwLock;

use raddle_core::policy::{Layer, ManagedLimits, PathPattern, Rule, SandboxKind, Subject, Verdict};
use raddle_core::{ApprovalPolicy, ChangeSettings, HunkDecision, SettingsChange, proposed_hunks};
use tracing::Instrument;

use super::*;
use crate::memory_log::MemoryLog;

/// Rules that a test changes.
#[derive(Default)]
struct MutableRules(RwLock<Arc<Policy>>);

impl Rulebook for MutableRules {
    fn policy(&self) -> Arc<Policy> {
        self.0.read().expect("rules").clone()
    }

    fn amend(&self, _: Amendment) -> BoxFuture<'_, Result<(), AmendError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// A change between a call and its execution.
#[derive(Clone, Copy, Debug)]
enum RaceChange {
    Nothing,
    /// A rule about commands or paths with this prefix.
    Rule(Verdict, &'static str),
    /// The operator allows only this sandbox.
    Pinned(SandboxKind),
    Approval(fn() -> ApprovalPolicy),
    Written,
}

impl RaceChange {
    async fn happen(self, harness: &GateHarness, rules: &MutableRules) {
        let mut policy = Policy::default();
        let mut change = SettingsChange::default();
        match self {
            Self::Nothing => {}
            Self::Rule(verdict, word) => policy.rules.push(Rule {
                layer: Layer::User,
                subject: match word.starts_with('/') {
                    true => Subject::Write(PathPattern::parse(word).expect("a path")),
                    false => Subject::Command(vec![word.to_owned()]),
                },
                verdict,
                beyond: false,
                reason: Some("Not today.".to_owned()),
            }),
            Self::Pinned(kind) => {
                policy.managed = ManagedLimits {
                    sandboxes: Some(vec![kind]),
                    ..ManagedLimits::default()
                };
            }
            Self::Approval(approval) => change.approval = Some(approval()),
            Self::Written => drop(harness.tools.written.fetch_add(1, Relaxed)),
        }
        *rules.0.write().expect("rules") = Arc::new(policy);
        let change = ChangeSettings {
            change,
            principal: None,
        };
        let change = Command::ChangeSettings(Box::new(change));
        execute(&harness.thread, change).await.expect("settings");
    }
}

const PROMPT_PREFIX: &str = "user hi · call do · output ";

/// An approval answers a request for approval, and overrides nothing else.
#[tokio::test]
async fn an_approved_call_is_judged_again_before_it_runs() {
    use RaceChange::{Approval, Nothing, Pinned, Rule, Written};
    let forbidden = "This was not done, because a rule forbids it ";
    let another = "This was not done: what it would do, or where, is no longer what was allowed.";
    let once = &[RequestAnswer::Accept {}][..];
    let session = &[RequestAnswer::AcceptForSession {}][..];
    let both = &[RequestAnswer::Accept {}, RequestAnswer::AcceptForSession {}][..];
    for (line, answers, meanwhile, expected) in [
        ("beyond prints", both, Nothing, "did prints"),
        (
            "beyond prints",
            both,
            Rule(Verdict::Ask, "prints"),
            "did prints",
        ),
        (
            "beyond prints",
            both,
            Rule(Verdict::Allow, "prints"),
            "did prints",
        ),
        (
            "beyond prints",
            both,
            Rule(Verdict::Deny, "prints"),
            forbidden,
        ),
        (
            "beyond prints",
            both,
            Rule(Verdict::Deny, "other"),
            "did prints",
        ),
        (
            "beyond prints",
            both,
            Pinned(SandboxKind::ReadOnly),
            forbidden,
        ),
        (
            "beyond prints",
            once,
            Approval(|| ApprovalPolicy::Never),
            forbidden,
        ),
        ("beyond prints", both, Written, "did prints"),
        ("beyond writes", both, Nothing, "did writes"),
        ("beyond writes", both, Rule(Verdict::Deny, "/w"), forbidden),
        ("beyond writes", once, Written, another),
        // The approval for the session covers the files.
        ("beyond writes", session, Written, "did writes"),
    ] {
        for answer in answers {
            let rules = Arc::new(MutableRules::default());
            let mut harness =
                harness_with_rules(&[&[ScriptLine::Calls("do", line)], DONE], rules.clone()).await;
            execute(&harness.thread, turn("t1", "hi"))
                .await
                .expect("a turn");
            until(&mut harness.deliveries, "ask").await;
            meanwhile.happen(&harness, &rules).await;
            harness.answer(0, answer.clone()).await;
            until(&mut harness.deliveries, "turn/completed").await;
            let prompt = &harness.script.prompts()[1];
            let output = prompt.strip_prefix(PROMPT_PREFIX).expect("one call");
            assert!(
                output.starts_with(expected),
                "{line} {meanwhile:?}: {output}"
            );
            let is_done = expected.starts_with("did");
            assert_eq!(
                harness.tools.runs().len(),
                usize::from(is_done),
                "{line} {meanwhile:?}"
            );
            if let (Rule(_, word), false) = (meanwhile, is_done) {
                assert!(output.contains(&format!("{word}). Not today.")), "{output}");
            }
        }
    }
}

/// The user chose among the hunks of one act. Another act is not run with that choice, even if it
/// needs no approval by then.
#[tokio::test]
async fn a_choice_of_hunks_is_for_the_act_that_was_shown() {
    use RaceChange::{Rule, Written};
    let rules = Arc::new(MutableRules::default());
    let script: &[&[ScriptLine]] = &[&[ScriptLine::Calls("do", "writes moved")], DONE];
    let mut harness = harness_with_rules(script, rules.clone()).await;
    Rule(Verdict::Ask, "/w").happen(&harness, &rules).await;
    execute(&harness.thread, turn("t1", "hi"))
        .await
        .expect("a turn");
    until(&mut harness.deliveries, "ask").await;
    Written.happen(&harness, &rules).await;
    harness.answer(0, first_of_moved()).await;
    until(&mut harness.deliveries, "turn/completed").await;
    let prompt = &harness.script.prompts()[1];
    assert!(prompt.contains("is no longer what was allowed"), "{prompt}");
    assert_eq!(harness.tools.runs(), Vec::<String>::new());
}

/// The hunks are named as the user saw them, whatever the working directory is when the tool runs.
#[tokio::test]
async fn a_choice_of_hunks_outlives_a_change_of_the_working_directory() {
    let rules = Arc::new(MutableRules::default());
    let script: &[&[ScriptLine]] = &[&[ScriptLine::Calls("do", "writes moved")], DONE];
    let mut harness = harness_with_rules(script, rules.clone()).await;
    RaceChange::Rule(Verdict::Ask, "/w")
        .happen(&harness, &rules)
        .await;
    execute(&harness.thread, turn("t1", "hi"))
        .await
        .expect("a turn");
    until(&mut harness.deliveries, "ask").await;
    let change = ChangeSettings {
        change: SettingsChange {
            cwd: Some("/v".to_owned()),
            ..SettingsChange::default()
        },
        principal: None,
    };
    let change = Command::ChangeSettings(Box::new(change));
    execute(&harness.thread, change).await.expect("settings");
    harness.answer(0, first_of_moved()).await;
    until(&mut harness.deliveries, "turn/completed").await;
    assert_eq!(harness.tools.runs(), ["[true] in /v"]);
}

/// Accepts the first hunk of the patch that moves a file, as the thread began.
fn first_of_moved() -> RequestAnswer {
    let hunks = proposed_hunks("/w", &moved().changes);
    let accepted = HunkDecision {
        id: hunks[0].id.clone(),
        accept: true,
        comment: None,
        replacement: None,
    };
    RequestAnswer::AcceptHunks {
        hunks: vec![accepted],
    }
}

/// A call without an approval is judged again when it runs.
#[tokio::test]
async fn a_call_allowed_by_policy_is_judged_again_before_it_runs() {
    use RaceChange::{Approval, Nothing, Rule, Written};
    let needs_approval = "This was not done: it now needs an approval ";
    for (meanwhile, expected) in [
        (Nothing, "did writes"),
        (Written, "did writes"),
        (
            Rule(Verdict::Deny, "/w"),
            "This was not done, because a rule forbids it (write /w).",
        ),
        (Rule(Verdict::Ask, "/w"), needs_approval),
        (Approval(|| ApprovalPolicy::Untrusted), needs_approval),
    ] {
        let rules = Arc::new(MutableRules::default());
        let calls: &[ScriptLine] = &[
            ScriptLine::Calls("do", "waits"),
            ScriptLine::Calls("do", "writes"),
        ];
        let mut harness = harness_with_rules(&[calls, DONE], rules.clone()).await;
        execute(&harness.thread, turn("t1", "hi"))
            .await
            .expect("a turn");
        // A write waits for the other call.
        harness.tools.started.notified().await;
        meanwhile.happen(&harness, &rules).await;
        harness.tools.go.notify_one();
        until(&mut harness.deliveries, "turn/completed").await;
        let prompt = &harness.script.prompts()[1];
        let (_, output) = prompt.rsplit_once("output ").expect("an output");
        assert!(output.starts_with(expected), "{meanwhile:?}: {output}");
    }
}

/// The line says which call of which request was rejected.
#[tokio::test]
async fn a_rejected_call_is_logged_in_the_span_of_its_request() {
    let log = MemoryLog::start();
    let rules = Arc::new(MutableRules::default());
    let calls: &[ScriptLine] = &[ScriptLine::Calls("do", "beyond prints")];
    let mut harness = harness_with_rules(&[calls, DONE], rules.clone()).await;
    let started = execute(&harness.thread, turn("t1", "hi"));
    let started = started.instrument(tracing::info_span!("request", id = 7));
    started.await.expect("a turn");
    until(&mut harness.deliveries, "ask").await;
    let denial = RaceChange::Rule(Verdict::Deny, "prints");
    denial.happen(&harness, &rules).await;
    harness.answer(0, RequestAnswer::Accept {}).await;
    until(&mut harness.deliveries, "turn/completed").await;
    let lines = log.lines_with("a tool call was rejected");
    let id = harness.id;
    let expected =
        format!("request{{id=7}}:thread{{id={id}}}:turn{{id=t1}}:tool_call{{tool=\"do\" item=");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with(&expected), "{lines:?}");
}

/// Each call sees the writes before it.
#[tokio::test]
async fn calls_of_one_answer_write_one_after_the_other() {
    let calls: &[ScriptLine] = &[
        ScriptLine::Calls("do", "writes one"),
        ScriptLine::Calls("do", "writes two"),
        ScriptLine::Calls("do", "writes three"),
    ];
    let mut harness = harness(&[calls, DONE]).await;
    execute(&harness.thread, turn("t1", "hi"))
        .await
        .expect("a turn");
    until(&mut harness.deliveries, "turn/completed").await;
    assert_eq!(
        harness.tools.runs(),
        [
            "writes one: by policy",
            "writes two: by policy",
            "writes three: by policy"
        ]
    );
}
