//! Two processes: one has a thread, the client of the other uses it, and goes on when the first one ends.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::MockHome;
use crate::node::{NodeProcess, says};
use crate::records;

pub fn run(raddle: &Path) -> Result<Vec<String>> {
    let home = MockHome::new(raddle)?;
    let mut wrongs = Vec::new();
    let mut first = NodeProcess::start(raddle, home.path())?;
    let mut second = NodeProcess::start(raddle, home.path())?;
    let started = first.call("thread/start", &json!({}))?;
    let thread = started["thread"]["id"]
        .as_str()
        .context("an id")?
        .to_owned();
    let resumed = second.call("thread/resume", &json!({"threadId": thread}));
    // A thread of which nothing is stored but its beginning is resumed like any other.
    resumed.context("the thread of a live process")?;

    // A turn that the other process runs.
    let params = json!({"threadId": thread, "input": says("hello from afar")});
    let turn = second.call("turn/start", &params)?;
    let told = second.hear("the end of a relayed turn", |it| {
        it["method"] == "turn/completed"
    })?;
    if told["params"]["turn"]["id"] != turn["turn"]["id"] || told.get("seq").is_some() {
        wrongs.push(format!("the turn {turn} was answered, and {told} told"));
    }
    first.hear("the end of the turn, where it ran", |it| {
        it["method"] == "turn/completed"
    })?;

    wrongs.extend(is_listed(&mut second, &thread)?);
    wrongs.extend(is_asked(&mut second, &thread)?);

    // A turn that is cut short where it runs, because that process ends.
    let long = says("MOCK text n=2000 size=8 gap_ms=10");
    let turn = second.call("turn/start", &json!({"threadId": thread, "input": long}))?;
    second.hear("the first words", |it| {
        it["method"] == "item/agentMessage/delta"
    })?;
    first
        .end()
        .context("the process that handed its thread over")?;
    let is_end = |it: &Value| it["method"] == "turn/completed" || it["method"] == "thread/closed";
    let told = second.hear("the end of a turn that was handed over", is_end)?;
    let ended = &told["params"]["turn"];
    if ended["id"] != turn["turn"]["id"] || ended["status"] != "interrupted" {
        wrongs.push(format!("the turn {turn} was handed over, and {told} told"));
    }

    // The thread is here now.
    second.call(
        "turn/start",
        &json!({"threadId": thread, "input": says("still there?")}),
    )?;
    let told = second.hear("the end of a turn of its own", |it| {
        it["method"] == "turn/completed"
    })?;
    if told["params"]["turn"]["status"] != "completed" {
        wrongs.push(format!("after the handing over: {told}"));
    }
    second.end()?;
    wrongs.extend(was_left(raddle, &home, &thread)?);
    println!("a thread was used from afar, and handed over");
    Ok(wrongs)
}

/// Whether the list says that another process has the thread.
fn is_listed(second: &mut NodeProcess, thread: &str) -> Result<Option<String>> {
    let list = second.call("thread/list", &json!({}))?;
    let listed = list["data"].as_array().into_iter().flatten();
    let mut listed = listed.filter(|it| it["id"] == thread);
    let owner = listed.next().map(|it| &it["extra"]["owner"]["node"]);
    Ok((!owner.is_some_and(Value::is_string)).then(|| format!("no owner is listed: {list}")))
}

/// Whether what runs there asks here, and is answered from here.
fn is_asked(second: &mut NodeProcess, thread: &str) -> Result<Option<String>> {
    let call = r#"MOCK call name=exec_command arguments={"cmd": "touch asked"}"#;
    let params = json!({"threadId": thread, "input": says(call), "approvalPolicy": "untrusted"});
    second.call("turn/start", &params)?;
    let is_question = |it: &Value| it["method"] == "item/commandExecution/requestApproval";
    let question = second.hear("a question from afar", is_question)?;
    second.say(&json!({"id": question["id"], "result": {"decision": "decline"}}))?;
    let is_resolved = |it: &Value| it["method"] == "serverRequest/resolved";
    let resolved = second.hear("that it was answered", is_resolved)?;
    second.hear("the end of its turn", |it| it["method"] == "turn/completed")?;
    let is_it = resolved["params"]["requestId"] == question["id"];
    Ok((!is_it).then(|| format!("{question} was answered, and {resolved} told")))
}

/// Whether the process that ended left the thread before the other one took it.
fn was_left(raddle: &Path, home: &MockHome, thread: &str) -> Result<Option<String>> {
    let records = records::of(raddle, home.path(), thread)?;
    let events = || records.iter().map(|it| &it["record"]["body"]["event"]);
    let left = events().position(|it| it["released"].is_object());
    let mut owned = events()
        .enumerate()
        .filter(|(_, it)| it["owned"].is_object());
    let taken = owned.nth(1).map(|(at, _)| at);
    let is_well = left.is_some() && left < taken;
    Ok((!is_well).then(|| format!("{thread} was left at {left:?}, and taken at {taken:?}")))
}
