//! A turn on a disk that becomes full: it ends once, and its end stays the same when there is space
//! again.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use support::{MockModel, StdioServer};

use crate::EXTRA_TIMEOUT;
use crate::server;

/// Input for a response that takes longer than the trial.
const LONG: &str = "MOCK text n=100000 size=64 gap_ms=2";

/// Code of an error after which the client may retry the same request.
const OVERLOADED: i64 = -32001;

/// Fills a real disk, if the process may mount one. Returns the problem, if there was one.
pub fn run(raddle: &Path) -> Result<Option<String>> {
    let folder = tempfile::tempdir()?;
    for words in [&["--mount"][..], &["--user", "--map-root-user", "--mount"]] {
        let may = Command::new("unshare")
            .args(words)
            .args(["sh", "-c", "mount -t tmpfs -o size=64k tmpfs \"$0\""])
            .arg(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if !may.is_ok_and(|status| status.success()) {
            continue;
        }
        let status = Command::new("unshare")
            .args(words)
            .arg(std::env::current_exe()?)
            .arg("--raddle")
            .arg(raddle)
            .arg("--full-disk")
            .arg(folder.path())
            .status()?;
        println!("{:<20}{:>6}", "a full disk", 1);
        let has_failed = !status.success();
        return Ok(
            has_failed.then(|| "the turn on a full disk ended otherwise, see above".to_owned())
        );
    }
    println!("a full disk: not possible here, because this may not mount one");
    Ok(None)
}

/// Runs a turn on a small disk that is filled meanwhile.
pub fn inside(raddle: &Path, folder: &Path) -> Result<()> {
    let home = folder.join("home");
    std::fs::create_dir(&home)?;
    let mount_status = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=6m", "tmpfs"])
        .arg(&home)
        .status()?;
    ensure!(mount_status.success(), "no disk can be mounted");
    let mock = MockModel::start(raddle, folder)?;
    let config = format!("[model_providers.mock]\nbase_url = {:?}\n", mock.address());
    std::fs::write(home.join("config.toml"), config)?;
    let mut server = server::start(raddle, &home)?;
    let start = json!({"model": "mock", "modelProvider": "mock"});
    let started = answer(&mut server, "thread/start", start)?;
    let thread = started["thread"]["id"].as_str().context("a thread")?;
    answer(&mut server, "turn/start", turn(thread, LONG))?;
    until(&mut server, |it| it["method"] == "item/agentMessage/delta")?;

    let filler = home.join("filler");
    fill(&filler)?;
    let messages = until(&mut server, |it| it["method"] == "turn/completed")?;
    let ended_turn = &messages.last().context("an end")?["params"]["turn"];
    require_full("the turn that was told", ended_turn)?;
    let methods = messages.iter().map(|it| it["method"].as_str());
    let methods: Vec<&str> = methods
        .flatten()
        .filter(|it| !it.ends_with("/delta"))
        .collect();
    let expected = [
        "item/completed",
        "thread/status/changed",
        "error",
        "turn/completed",
    ];
    ensure!(methods == expected, "the turn ended with {methods:?}");

    // While the disk is full, no turn starts, and stored turns can be read.
    let response = outcome(&mut server, "turn/start", turn(thread, "hello"))?;
    ensure!(response.get("error").is_some(), "a turn began: {response}");
    std::fs::remove_file(&filler)?;
    check_resumed(&mut server, thread)?;
    answer(&mut server, "turn/start", turn(thread, "hello"))?;
    let messages = until(&mut server, |it| it["method"] == "turn/completed")?;
    let next = &messages.last().context("an end")?["params"]["turn"];
    ensure!(next["status"] == "completed", "the next turn: {next}");
    server.end()?;

    let mut server = server::start(raddle, &home)?;
    check_resumed(&mut server, thread)?;
    server.end()?;
    Ok(())
}

/// Checks that the first turn of the resumed thread is the failed one.
fn check_resumed(server: &mut StdioServer, thread: &str) -> Result<()> {
    let answer = answer(server, "thread/resume", json!({"threadId": thread}))?;
    require_full("the turn that is stored", &answer["thread"]["turns"][0])
}

fn require_full(what: &str, turn: &Value) -> Result<()> {
    let is_full = turn["error"]["codexErrorInfo"] == "storageFull";
    ensure!(turn["status"] == "failed" && is_full, "{what}: {turn}");
    Ok(())
}

fn turn(thread: &str, prompt: &str) -> Value {
    json!({"threadId": thread, "input": [{"type": "text", "text": prompt}]})
}

/// Writes to a file until the disk is full.
fn fill(path: &Path) -> Result<()> {
    let mut file = File::create(path)?;
    loop {
        match file.write_all(&[b'x'; 4096]) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::StorageFull => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Returns the result of a request. Retries while the server is overloaded, as clients do: the
/// thread may be about to be unloaded.
fn answer(server: &mut StdioServer, method: &str, params: Value) -> Result<Value> {
    let end = Instant::now() + EXTRA_TIMEOUT;
    loop {
        let mut answer = outcome(server, method, params.clone())?;
        match answer.get("error") {
            None => return Ok(answer["result"].take()),
            Some(error) if error["code"] == OVERLOADED && Instant::now() < end => {}
            Some(error) => bail!("{method} was refused: {error}"),
        }
    }
}

/// Returns the response to a request, with a result or an error.
fn outcome(server: &mut StdioServer, method: &str, params: Value) -> Result<Value> {
    let id = server.send_request(method, &params)?;
    let mut messages = until(server, |it| it["id"] == id && it.get("method").is_none())?;
    messages.pop().context("an answer")
}

/// Returns all messages up to and including the matching one.
fn until(server: &mut StdioServer, is_it: impl Fn(&Value) -> bool) -> Result<Vec<Value>> {
    let end = Instant::now() + EXTRA_TIMEOUT;
    let mut messages = Vec::new();
    while let Some(message) = server.next(end)? {
        let is_last = is_it(&message);
        messages.push(message);
        if is_last {
            return Ok(messages);
        }
    }
    let last: Vec<&Value> = messages.iter().rev().take(5).collect();
    bail!("nothing more came; the last were {last:?}")
}
