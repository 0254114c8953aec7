//! What holds is what is so when a call is carried out, and not when the model made it.

use std::sync::RwLock;

use raddle_core::policy::{Layer, ManagedLimits, PathPattern, Rule, SandboxKind, Subject, Verdict};
use raddle_core::{ApprovalPolicy, ChangeSettings, SettingsChange};

use super::*;

/// Rules that change.
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

/// What happens between a call and its start.
#[derive(Clone, Copy, Debug)]
enum RaceChange {
    Nothing,
    /// A rule about what begins like this.
    Rule(Verdict, &'static str),
    /// The operator allows no sandbox but this.
    Pinned(SandboxKind),
    Approval(fn() -> ApprovalPolicy),
    Written,
}

impl RaceChange {
    async fn happen(self, stage: &GateHarness, board: &MutableRules) {
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
            Self::Written => drop(stage.bench.written.fetch_add(1, Relaxed)),
        }
        *board.0.write().expect("rules") = Arc::new(policy);
        let change = ChangeSettings {
            change,
            principal: None,
        };
        let change = Command::ChangeSettings(Box::new(change));
        order(&stage.thread, change).await.expect("settings");
    }
}

const SAID: &str = "user hi · call do · output ";

/// A yes lifts a question, and nothing else.
#[tokio::test]
async fn a_yes_is_judged_once_more_before_it_counts() {
    use RaceChange::{Approval, Nothing, Pinned, Rule, Written};
    let forbidden = "This was not done, because a rule forbids it ";
    let another = "This was not done: what it would do, or where, is no longer what was allowed.";
    let once = &[RequestAnswer::Accept {}][..];
    let session = &[RequestAnswer::AcceptForSession {}][..];
    let both = &[RequestAnswer::Accept {}, RequestAnswer::AcceptForSession {}][..];
    for (line, answers, meanwhile, told) in [
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
        // For the session it was said of the files.
        ("beyond writes", session, Written, "did writes"),
    ] {
        for answer in answers {
            let board = Arc::new(MutableRules::default());
            let mut stage =
                stage_with(&[&[ScriptLine::Calls("do", line)], DONE], board.clone()).await;
            order(&stage.thread, turn("t1", "hi"))
                .await
                .expect("a turn");
            until(&mut stage.hears, "ask").await;
            meanwhile.happen(&stage, &board).await;
            stage.answer(0, answer.clone()).await;
            until(&mut stage.hears, "turn/completed").await;
            let prompt = &stage.script.prompts()[1];
            let found = prompt.strip_prefix(SAID).expect("one call");
            assert!(found.starts_with(told), "{line} {meanwhile:?}: {found}");
            let is_done = told.starts_with("did");
            assert_eq!(
                stage.bench.ran().len(),
                usize::from(is_done),
                "{line} {meanwhile:?}"
            );
            if let (Rule(_, word), false) = (meanwhile, is_done) {
                assert!(found.contains(&format!("{word}). Not today.")), "{found}");
            }
        }
    }
}

/// What nobody was asked about is what it is when it runs, if that may be.
#[tokio::test]
async fn what_policy_allows_is_judged_as_it_is_by_then() {
    use RaceChange::{Approval, Nothing, Rule, Written};
    let asked = "This was not done: by now someone must say yes to it ";
    for (meanwhile, told) in [
        (Nothing, "did writes"),
        (Written, "did writes"),
        (
            Rule(Verdict::Deny, "/w"),
            "This was not done, because a rule forbids it (write /w).",
        ),
        (Rule(Verdict::Ask, "/w"), asked),
        (Approval(|| ApprovalPolicy::Untrusted), asked),
    ] {
        let board = Arc::new(MutableRules::default());
        let calls: &[ScriptLine] = &[
            ScriptLine::Calls("do", "waits"),
            ScriptLine::Calls("do", "writes"),
        ];
        let mut stage = stage_with(&[calls, DONE], board.clone()).await;
        order(&stage.thread, turn("t1", "hi"))
            .await
            .expect("a turn");
        // What writes waits for the other.
        stage.bench.begun.notified().await;
        meanwhile.happen(&stage, &board).await;
        stage.bench.go.notify_one();
        until(&mut stage.hears, "turn/completed").await;
        let prompt = &stage.script.prompts()[1];
        let (_, found) = prompt.rsplit_once("output ").expect("an output");
        assert!(found.starts_with(told), "{meanwhile:?}: {found}");
    }
}

/// Each finds what the one before it wrote.
#[tokio::test]
async fn calls_of_one_answer_write_one_after_the_other() {
    let calls: &[ScriptLine] = &[
        ScriptLine::Calls("do", "writes one"),
        ScriptLine::Calls("do", "writes two"),
        ScriptLine::Calls("do", "writes three"),
    ];
    let mut stage = stage(&[calls, DONE]).await;
    order(&stage.thread, turn("t1", "hi"))
        .await
        .expect("a turn");
    until(&mut stage.hears, "turn/completed").await;
    assert_eq!(
        stage.bench.ran(),
        [
            "writes one: by policy",
            "writes two: by policy",
            "writes three: by policy"
        ]
    );
}
