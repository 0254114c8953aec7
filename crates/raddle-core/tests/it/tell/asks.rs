//! Requests, as the wire asks them.

use raddle_core::*;
use serde_json::{Value, json};

use crate::fixtures;
use crate::simulated::SimulatedThread;

/// The method and the params of a request that a running tool makes, without what names thread, turn and item.
fn asked(question: Ask) -> (&'static str, Value) {
    let mut life = SimulatedThread::new();
    life.say(r#"start t1 "hi" · call i1 shell "a" run · done"#);
    life.report(Command::AskForTool(Box::new(AskForTool {
        item: "i1".into(),
        ask: question,
        expires_at: None,
    })));
    life.settle();
    let (_, method, mut params) = ask(life.owner.thread(), RequestNumber(0)).expect("a request");
    let members = params.as_object_mut().expect("params");
    let id = fixtures::thread_id().to_string();
    assert_eq!(members.remove("threadId"), Some(id.into()));
    assert_eq!(members.remove("turnId"), Some("t1".into()));
    members.remove("itemId");
    members.remove("startedAtMs");
    members.retain(|_, value| !value.is_null());
    (method, params)
}

/// A rule is proposed where there is one. Every answer is offered, because some clients offer no more than
/// they are told.
#[test]
fn a_command() {
    let git = json!({ "acceptWithExecpolicyAmendment": { "execpolicy_amendment": ["git"] } });
    for (rule, wanted, offered) in [
        (
            vec![],
            None,
            json!(["accept", "acceptForSession", "decline", "cancel"]),
        ),
        (
            vec!["git".to_owned()],
            Some(json!(["git"])),
            json!(["accept", "acceptForSession", git, "decline", "cancel"]),
        ),
    ] {
        let (method, params) = asked(Ask::Command(AskCommand {
            command: "git push".to_owned(),
            cwd: "/w".to_owned(),
            reason: Some("it reaches outside".to_owned()),
            actions: vec![],
            rule,
        }));
        assert_eq!(method, "item/commandExecution/requestApproval");
        assert_eq!(params["command"], "git push");
        assert_eq!(params["cwd"], "/w");
        assert_eq!(params["reason"], "it reaches outside");
        assert_eq!(params.get("proposedExecpolicyAmendment"), wanted.as_ref());
        assert_eq!(params["availableDecisions"], offered);
    }
}

/// The contract has no request for a tool by its name, so the user is asked.
#[test]
fn a_tool_by_its_name() {
    let long = "x".repeat(3000);
    for arguments in ["{}", &*long] {
        let mut life = SimulatedThread::new();
        life.say(&format!(
            r#"start t1 "hi" · call i1 client "{arguments}" may · done"#
        ));
        let (_, method, params) = ask(life.owner.thread(), RequestNumber(0)).expect("a request");
        assert_eq!(method, "item/tool/requestUserInput");
        assert_eq!(params["itemId"], "i1");
        let question = &params["questions"][0];
        let asked = format!("May the tool {arguments} be called with {arguments}?");
        assert_eq!(question["question"], asked);
        let options = question["options"].as_array().expect("options");
        let labels: Vec<&Value> = options.iter().map(|it| &it["label"]).collect();
        assert_eq!(labels, ["Allow", "Allow for this session", "Decline"]);
    }
}

/// Only a yes in its own words is one.
#[test]
fn what_is_answered_to_a_tool_by_its_name() {
    for (said, wanted) in [
        (
            json!({"may_call": {"answers": ["Allow"]}}),
            RequestAnswer::Accept {},
        ),
        (
            json!({"may_call": {"answers": ["Allow for this session"]}}),
            RequestAnswer::AcceptForSession {},
        ),
        (
            json!({"may_call": {"answers": ["Decline"]}}),
            RequestAnswer::Decline {},
        ),
        (
            json!({"may_call": {"answers": ["Allow", "Decline"]}}),
            RequestAnswer::Decline {},
        ),
        (
            json!({"may_call": {"answers": []}}),
            RequestAnswer::Decline {},
        ),
        (
            json!({"other": {"answers": ["Allow"]}}),
            RequestAnswer::Decline {},
        ),
        (json!({}), RequestAnswer::Decline {}),
    ] {
        let answers = serde_json::from_value(json!({"answers": said})).expect("answers");
        assert_eq!(may_call_answer(&answers), wanted, "{said}");
    }
}

/// What an MCP server asks is handed on as it came, with who asks beside it.
#[test]
fn an_elicitation() {
    let (method, params) = asked(Ask::Elicitation(AskElicitation {
        server: "files".to_owned(),
        body: json!({ "message": "which?", "mode": "form" }),
    }));
    assert_eq!(method, "mcpServer/elicitation/request");
    assert_eq!(
        params,
        json!({ "message": "which?", "mode": "form", "serverName": "files" })
    );
}
