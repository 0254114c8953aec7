//! Acts of a plugin that answers a call: judged, asked about and stopped like calls of the model.

use raddle_core::ports::{ActApprover, NotApproved, PluginAct};

use super::*;

/// A user that approves all but what is named `forbidden`.
struct TestApprover;

impl ActApprover for TestApprover {
    fn approve(&self, what: String) -> BoxFuture<'_, Result<String, NotApproved>> {
        assert!(what.starts_with("wants to run a command in /w:"), "{what}");
        let approval = match what.contains("forbidden") {
            false => Ok("ann".to_owned()),
            true => Err(NotApproved("the user did not approve it".to_owned())),
        };
        Box::pin(std::future::ready(approval))
    }
}

/// Returns the tool and the argument of an act, if a call makes one.
pub(super) fn act_of(what: &str) -> Option<(&str, &str)> {
    what.strip_prefix("acts ")?.split_once(' ')
}

pub(super) fn act(tool: &str, arguments: &str, stopped: BoxFuture<'static, ()>) -> PluginAct {
    PluginAct {
        plugin: "org.example".to_owned(),
        tool: tool.to_owned(),
        arguments: arguments.to_owned(),
        approver: Arc::new(TestApprover),
        stopped,
    }
}

#[tokio::test]
async fn an_act_is_judged_like_a_call_of_the_model() {
    for (call, run, expected) in [
        ("acts do prints", Some("prints: by policy"), "did prints"),
        (
            "acts do beyond prints",
            Some("prints: digest of prints"),
            "did prints",
        ),
        (
            "acts do beyond forbidden",
            None,
            "This was not done: it needs an approval, and the user did not approve it.",
        ),
        (
            "acts type prints",
            None,
            "This was not done, because a rule forbids it (tool type). ",
        ),
        ("acts other prints", None, "There is no tool named other."),
        ("acts ask prints", None, "A plugin cannot call ask."),
    ] {
        let rule = Rule {
            layer: Layer::User,
            subject: Subject::Tool("type".to_owned()),
            verdict: Verdict::Deny,
            beyond: false,
            reason: None,
        };
        let policy = Policy {
            rules: vec![rule],
            ..Policy::default()
        };
        let rules = Arc::new(FixedRules(Arc::new(policy)));
        let call_line: &[ScriptLine] = &[ScriptLine::Calls("do", call)];
        let mut harness = harness_with_rules(&[call_line, DONE], rules).await;
        let started = execute(&harness.thread, turn("t1", "hi")).await;
        started.expect("a turn");
        until(&mut harness.deliveries, "turn/completed").await;
        let own = format!("{call}: by policy");
        let runs: Vec<String> = [own].into_iter().chain(run.map(str::to_owned)).collect();
        assert_eq!(harness.tools.runs(), runs, "{call}");
        let (_, printed, output) = harness.ends().await.remove(0);
        // The output of the act goes to the plugin, and is not in the item of the call.
        assert_eq!(printed.as_deref(), Some("out\n"), "{call}");
        let beginning = format!("did {call}: {expected}");
        assert!(output.starts_with(&beginning), "{output}");
    }
}

#[tokio::test]
async fn an_act_is_stopped_with_its_turn() {
    let call: &[ScriptLine] = &[ScriptLine::Calls("do", "acts do hangs")];
    let mut harness = harness(&[call, DONE]).await;
    let started = execute(&harness.thread, turn("t1", "hi")).await;
    started.expect("a turn");
    until(&mut harness.deliveries, "item/mcpToolCall/progress").await;
    let interrupted = execute(&harness.thread, interrupt()).await;
    interrupted.expect("an interrupt");
    until(&mut harness.deliveries, "turn/completed").await;
    let (status, _, output) = harness.ends().await.remove(0);
    assert_eq!(status, ItemStatus::Interrupted);
    assert_eq!(output, "did acts do hangs: did hangs");
}
