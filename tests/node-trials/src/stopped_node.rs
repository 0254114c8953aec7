//! A process that has a thread is stopped, as by a debugger or a laptop that sleeps: it is alive and does not answer.
//! Clients of others are told so in time, nobody takes its thread, and it goes on when it is let go.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::node::{NodeProcess, says};
use crate::{LATE, MockHome, records};

/// How long a client may wait until it is told that nobody answers.
const NOTICE_TIMEOUT: Duration = Duration::from_secs(15);

pub fn run(raddle: &Path) -> Result<Vec<String>> {
    let home = MockHome::new(raddle)?;
    let mut wrongs = Vec::new();
    let mut owner = NodeProcess::start(raddle, home.path())?;
    let mut guest = NodeProcess::start(raddle, home.path())?;
    let mut newcomer = NodeProcess::start(raddle, home.path())?;
    let started = owner.call("thread/start", &json!({}))?;
    let thread = started["thread"]["id"].as_str().context("an id")?;
    guest.call("thread/resume", &json!({"threadId": thread}))?;
    let long = json!({"threadId": thread, "input": says("MOCK text n=300 size=8 gap_ms=10")});
    let turn = guest.call("turn/start", &long)?;
    guest.hear("the first words", |it| {
        it["method"] == "item/agentMessage/delta"
    })?;

    signal(&owner, "STOP")?;
    let rename = json!({"threadId": thread, "name": "who answers?"});
    wrongs.extend(is_refused(
        &mut guest,
        "thread/name/set",
        &rename,
        "owner_lost",
    )?);
    guest.hear("that it hears no more", |it| {
        it["method"] == "thread/closed"
    })?;
    let resume = json!({"threadId": thread});
    wrongs.extend(is_refused(
        &mut newcomer,
        "thread/resume",
        &resume,
        "owned_elsewhere",
    )?);
    // What needs nobody else is there.
    newcomer.call("thread/read", &resume)?;

    signal(&owner, "CONT")?;
    let is_end = |it: &Value| it["method"] == "turn/completed";
    let ended = owner.hear("the end of the turn", is_end)?;
    if ended["params"]["turn"]["status"] != "completed" {
        wrongs.push(format!("the turn of a process that was stopped: {ended}"));
    }
    newcomer.call("thread/resume", &resume)?;
    let more = json!({"threadId": thread, "input": says("still there?")});
    newcomer.call("turn/start", &more)?;
    newcomer.hear("the end of a turn from afar", is_end)?;

    for node in [newcomer, guest, owner] {
        node.end()?;
    }
    let promised = turn["turn"]["id"].as_str().map(str::to_owned);
    let promised: BTreeSet<String> = promised.into_iter().collect();
    wrongs.extend(records::wrongs(raddle, home.path(), thread, &promised)?);
    println!("a process was stopped, clients of others were told, and its thread went on");
    Ok(wrongs)
}

/// What is wrong with the answer to a request that is refused for this.
fn is_refused(
    node: &mut NodeProcess,
    method: &str,
    params: &Value,
    why: &str,
) -> Result<Option<String>> {
    let begun = Instant::now();
    let asked = node.ask(method, params.clone())?;
    let answer = node.answer(asked)?;
    let took = begun.elapsed();
    println!("  {method}: {why} after {} ms", took.as_millis());
    let is_it = matches!(&answer, Err(error) if error["data"]["errorInfo"] == why);
    let is_well = is_it && took < NOTICE_TIMEOUT;
    Ok((!is_well).then(|| {
        let took = took.as_millis();
        let late = if is_it { LATE } else { "" };
        format!("{late}{method} of a stopped process after {took} ms: {answer:?}, not {why}")
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
