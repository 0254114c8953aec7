//! Requests as they are on the wire.

use raddle_core::*;
use serde_json::{Value, json};

use crate::fixtures;
use crate::simulated::SimulatedThread;

/// Returns the method and the params of a running tool's request, without the ids of thread, turn
/// and item.
fn request_on_wire(question: Ask) -> (&'static str, Value) {
    let mut sim = SimulatedThread::new();
    sim.run_line(r#"start t1 "hi" · call i1 shell "a" run · done"#);
    sim.report(Command::AskForTool(Box::new(AskForTool {
        item: "i1".into(),
        ask: question,
        expires_at: None,
    })));
    sim.settle();
    let (_, method, mut params) = ask(sim.owner.thread(), RequestNumber(0)).expect("a request");
    let members = params.as_object_mut().expect("params");
    let id = fixtures::thread_id().to_string();
    assert_eq!(members.remove("threadId"), Some(id.into()));
    assert_eq!(members.remove("turnId"), Some("t1".into()));
    members.remove("itemId");
    members.remove("startedAtMs");
    members.retain(|_, value| !value.is_null());
    (method, params)
}

/// A rule is proposed where there is one. Every decision is listed, because some clients offer only
/// those in the list.
#[test]
fn a_command() {
    let git = json!({ "acceptWithExecpolicyAmendment": { "execpolicy_amendment": ["git"] } });
    for (rule, expected, offered) in [
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
        let (method, params) = request_on_wire(Ask::Command(AskCommand {
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
        assert_eq!(params.get("proposedExecpolicyAmendment"), expected.as_ref());
        assert_eq!(params["availableDecisions"], offered);
    }
}

/// A request that is sent again has the hunks of the first time, though the working directory changed.
#[test]
fn hunks_of_a_change() {
    let mut sim = SimulatedThread::new();
    sim.run_line(r#"start t1 "hi" · call i1 edit "e" ask · done"#);
    let hunks = |sim: &SimulatedThread| {
        let (_, method, params) = ask(sim.owner.thread(), RequestNumber(0)).expect("a request");
        assert_eq!(method, "item/fileChange/requestApproval");
        params["hunks"].clone()
    };
    let first = hunks(&sim);
    assert_eq!(first.as_array().map(Vec::len), Some(2));
    sim.run_line(r#"set cwd "/v""#);
    assert_eq!(hunks(&sim), first);
}

/// The contract has no request for a tool by its name, so it is a question to the user.
#[test]
fn a_tool_by_its_name() {
    let long = "x".repeat(3000);
    for arguments in ["{}", &*long] {
        let mut sim = SimulatedThread::new();
        sim.run_line(&format!(
            r#"start t1 "hi" · call i1 client "{arguments}" may · done"#
        ));
        let (_, method, params) = ask(sim.owner.thread(), RequestNumber(0)).expect("a request");
        assert_eq!(method, "item/tool/requestUserInput");
        assert_eq!(params["itemId"], "i1");
        let question = &params["questions"][0];
        let expected = format!("May the tool {arguments} be called with {arguments}?");
        assert_eq!(question["question"], expected);
        let options = question["options"].as_array().expect("options");
        let labels: Vec<&Value> = options.iter().map(|it| &it["label"]).collect();
        assert_eq!(labels, ["Allow", "Allow for this session", "Decline"]);
    }
}

/// Only an exact approval counts as one.
#[test]
fn only_an_exact_answer_approves_a_tool() {
    for (answer, expected) in [
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
        let answers = serde_json::from_value(json!({"answers": answer})).expect("answers");
        assert_eq!(may_call_answer(&answers), expected, "{answer}");
    }
}

/// The request of an MCP server is passed on unchanged, with the server's name added.
#[test]
fn an_elicitation() {
    let (method, params) = request_on_wire(Ask::Elicitation(AskElicitation {
        permission: None,
        server: "files".to_owned(),
        body: json!({ "message": "which?", "mode": "form" }),
    }));
    assert_eq!(method, "mcpServer/elicitation/request");
    assert_eq!(
        params,
        json!({ "message": "which?", "mode": "form", "serverName": "files" })
    );
}
