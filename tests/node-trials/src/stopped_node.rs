//! A process that owns a thread is stopped, as by a debugger or a sleeping laptop: it is alive, but
//! does not respond. Clients of other processes receive an error in time, no other process acquires
//! its thread, and it continues when it is resumed.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::node::{NodeProcess, text_input};
use crate::{LATE, MockHome, records};

/// Maximum time until a client receives the error that the owner does not respond.
const NOTICE_TIMEOUT: Duration = Duration::from_secs(15);

pub fn run(raddle: &Path) -> Result<Vec<String>> {
    let home = MockHome::new(raddle)?;
    let mut problems = Vec::new();
    let mut owner = NodeProcess::start(raddle, home.path())?;
    let mut subscriber = NodeProcess::start(raddle, home.path())?;
    let mut new_client = NodeProcess::start(raddle, home.path())?;
    let started = owner.call("thread/start", &json!({}))?;
    let thread = started["thread"]["id"].as_str().context("an id")?;
    subscriber.call("thread/resume", &json!({"threadId": thread}))?;
    let long = json!({"threadId": thread, "input": text_input("MOCK text n=300 size=8 gap_ms=10")});
    let turn = subscriber.call("turn/start", &long)?;
    subscriber.wait_for_notification("the first words", |it| {
        it["method"] == "item/agentMessage/delta"
    })?;

    signal(&owner, "STOP")?;
    let rename = json!({"threadId": thread, "name": "who answers?"});
    problems.extend(check_rejected(
        &mut subscriber,
        "thread/name/set",
        &rename,
        "owner_lost",
    )?);
    subscriber.wait_for_notification("the end of its subscription", |it| {
        it["method"] == "thread/closed"
    })?;
    let resume = json!({"threadId": thread});
    problems.extend(check_rejected(
        &mut new_client,
        "thread/resume",
        &resume,
        "owned_elsewhere",
    )?);
    // Requests that do not need the owner succeed.
    new_client.call("thread/read", &resume)?;

    signal(&owner, "CONT")?;
    let is_end = |it: &Value| it["method"] == "turn/completed";
    let notification = owner.wait_for_notification("the end of the turn", is_end)?;
    if notification["params"]["turn"]["status"] != "completed" {
        problems.push(format!(
            "the turn of a process that was stopped: {notification}"
        ));
    }
    new_client.call("thread/resume", &resume)?;
    let more = json!({"threadId": thread, "input": text_input("still there?")});
    new_client.call("turn/start", &more)?;
    new_client.wait_for_notification("the end of a relayed turn", is_end)?;

    for node in [new_client, subscriber, owner] {
        node.end()?;
    }
    let confirmed = turn["turn"]["id"].as_str().map(str::to_owned);
    let confirmed: BTreeSet<String> = confirmed.into_iter().collect();
    problems.extend(records::problems(raddle, home.path(), thread, &confirmed)?);
    println!(
        "a process was stopped, clients of other processes received errors, and its thread continued"
    );
    Ok(problems)
}

/// Returns the problem with the response to a request that must be rejected for this reason.
fn check_rejected(
    node: &mut NodeProcess,
    method: &str,
    params: &Value,
    why: &str,
) -> Result<Option<String>> {
    let start = Instant::now();
    let request_id = node.send_request(method, params.clone())?;
    let answer = node.answer(request_id)?;
    let elapsed = start.elapsed();
    println!("  {method}: {why} after {} ms", elapsed.as_millis());
    let is_it = matches!(&answer, Err(error) if error["data"]["errorInfo"] == why);
    let is_well = is_it && elapsed < NOTICE_TIMEOUT;
    Ok((!is_well).then(|| {
        let elapsed_ms = elapsed.as_millis();
        let late = if is_it { LATE } else { "" };
        format!("{late}{method} of a stopped process after {elapsed_ms} ms: {answer:?}, not {why}")
    }))
}

fn signal(node: &NodeProcess, name: &str) -> Result<()> {
    let sent = Command::new("kill")
        .arg(format!("-{name}"))
        .arg(node.pid().to_string())
        .status()?;
    if !sent.success() {
        bail!("the process cannot be sent {name}");
    }
    Ok(())
}
