//! Two processes: the first owns a thread, the client of the second uses it, and continues when the
//! first process ends.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::MockHome;
use crate::node::{NodeProcess, text_input};
use crate::records;

pub fn run(raddle: &Path) -> Result<Vec<String>> {
    let home = MockHome::new(raddle)?;
    let mut problems = Vec::new();
    let mut first = NodeProcess::start(raddle, home.path())?;
    let mut second = NodeProcess::start(raddle, home.path())?;
    let started = first.call("thread/start", &json!({}))?;
    let thread = started["thread"]["id"]
        .as_str()
        .context("an id")?
        .to_owned();
    let resume_result = second.call("thread/resume", &json!({"threadId": thread}));
    // A thread with nothing stored but its start is resumed like any other.
    resume_result.context("the thread of a live process")?;

    // A turn that runs in the other process.
    let params = json!({"threadId": thread, "input": text_input("hello from afar")});
    let turn = second.call("turn/start", &params)?;
    let notification = second.wait_for_notification("the end of a relayed turn", |it| {
        it["method"] == "turn/completed"
    })?;
    if notification["params"]["turn"]["id"] != turn["turn"]["id"]
        || notification.get("seq").is_some()
    {
        problems.push(format!(
            "the turn {turn} was answered, and {notification} told"
        ));
    }
    first.wait_for_notification("the end of the turn, where it ran", |it| {
        it["method"] == "turn/completed"
    })?;

    problems.extend(check_listed_owner(&mut second, &thread)?);
    problems.extend(check_remote_approval(&mut second, &thread)?);

    // A turn that ends early because its process ends.
    let long = text_input("MOCK text n=2000 size=8 gap_ms=10");
    let turn = second.call("turn/start", &json!({"threadId": thread, "input": long}))?;
    second.wait_for_notification("the first words", |it| {
        it["method"] == "item/agentMessage/delta"
    })?;
    first
        .end()
        .context("the process that handed its thread over")?;
    let is_end = |it: &Value| it["method"] == "turn/completed" || it["method"] == "thread/closed";
    let notification =
        second.wait_for_notification("the end of a turn that was handed over", is_end)?;
    let ended_turn = &notification["params"]["turn"];
    if ended_turn["id"] != turn["turn"]["id"] || ended_turn["status"] != "interrupted" {
        problems.push(format!(
            "the turn {turn} was handed over, and {notification} told"
        ));
    }

    // The second process owns the thread now.
    second.call(
        "turn/start",
        &json!({"threadId": thread, "input": text_input("still there?")}),
    )?;
    let notification = second.wait_for_notification("the end of a turn of its own", |it| {
        it["method"] == "turn/completed"
    })?;
    if notification["params"]["turn"]["status"] != "completed" {
        problems.push(format!("after the handing over: {notification}"));
    }
    second.end()?;
    problems.extend(check_released_before_acquired(raddle, &home, &thread)?);
    println!("a thread was used from another process, and handed over");
    Ok(problems)
}

/// Checks that the list names another process as the owner of the thread.
fn check_listed_owner(second: &mut NodeProcess, thread: &str) -> Result<Option<String>> {
    let list = second.call("thread/list", &json!({}))?;
    let threads = list["data"].as_array().into_iter().flatten();
    let mut threads = threads.filter(|it| it["id"] == thread);
    let owner = threads.next().map(|it| &it["extra"]["owner"]["node"]);
    Ok((!owner.is_some_and(Value::is_string)).then(|| format!("no owner is listed: {list}")))
}

/// Checks that a turn in the other process requests approval from this client, and gets its
/// response.
fn check_remote_approval(second: &mut NodeProcess, thread: &str) -> Result<Option<String>> {
    let call = r#"MOCK call name=exec_command arguments={"cmd": "touch asked"}"#;
    let params =
        json!({"threadId": thread, "input": text_input(call), "approvalPolicy": "untrusted"});
    second.call("turn/start", &params)?;
    let is_question = |it: &Value| it["method"] == "item/commandExecution/requestApproval";
    let question =
        second.wait_for_notification("an approval request from the other process", is_question)?;
    second.send(&json!({"id": question["id"], "result": {"decision": "decline"}}))?;
    let is_resolved = |it: &Value| it["method"] == "serverRequest/resolved";
    let resolved = second.wait_for_notification("that it was answered", is_resolved)?;
    second.wait_for_notification("the end of its turn", |it| it["method"] == "turn/completed")?;
    let is_it = resolved["params"]["requestId"] == question["id"];
    Ok((!is_it).then(|| format!("{question} was answered, and {resolved} told")))
}

/// Checks that the ended process released the thread before the other one acquired it.
fn check_released_before_acquired(
    raddle: &Path,
    home: &MockHome,
    thread: &str,
) -> Result<Option<String>> {
    let records = records::of(raddle, home.path(), thread)?;
    let events = || records.iter().map(|it| &it["record"]["body"]["event"]);
    let released_at = events().position(|it| it["released"].is_object());
    let mut owned = events()
        .enumerate()
        .filter(|(_, it)| it["owned"].is_object());
    let acquired_at = owned.nth(1).map(|(at, _)| at);
    let is_well = released_at.is_some() && released_at < acquired_at;
    Ok((!is_well)
        .then(|| format!("{thread} was left at {released_at:?}, and taken at {acquired_at:?}")))
}
