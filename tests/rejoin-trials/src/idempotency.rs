//! Requests that are sent three times around a `kill -9`: their effect must happen once.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::client::{ClientOptIns, RejoinClient};
use crate::server::{RejoinHarness, ServerEndpoint};

/// Prompt for a model that sends nothing until it is interrupted, whichever server calls it.
const HELD: &str = "MOCK held";

/// State of the thread before the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadSetup {
    /// There is no thread.
    Nothing,
    Idle,
    /// Two turns are over.
    Finished,
    /// A turn runs, and does not end by itself.
    Running,
    /// A turn runs, and two inputs are queued.
    Queued,
    /// One input is queued, and the turn before it was interrupted.
    QueuePaused,
    WithGoal,
    Archived,
}

/// Request that is sent three times.
struct RepeatCase {
    method: &'static str,
    before: ThreadSetup,
    params: fn(&ThreadFixture) -> Value,
}

const fn case(
    method: &'static str,
    before: ThreadSetup,
    params: fn(&ThreadFixture) -> Value,
) -> RepeatCase {
    RepeatCase {
        method,
        before,
        params,
    }
}

/// Every request that changes a thread.
const CASES: &[RepeatCase] = &[
    case(
        "thread/start",
        ThreadSetup::Nothing,
        |fixture| json!({"cwd": fixture.cwd}),
    ),
    case("thread/fork", ThreadSetup::Finished, |_| json!({})),
    case("thread/archive", ThreadSetup::Finished, |_| json!({})),
    case("thread/unarchive", ThreadSetup::Archived, |_| json!({})),
    case("thread/delete", ThreadSetup::Finished, |_| json!({})),
    case(
        "thread/name/set",
        ThreadSetup::Idle,
        |_| json!({"name": "warp"}),
    ),
    case(
        "thread/metadata/update",
        ThreadSetup::Idle,
        |_| json!({"gitInfo": {"branch": "weft"}}),
    ),
    case(
        "thread/settings/update",
        ThreadSetup::Idle,
        |_| json!({"effort": "high"}),
    ),
    case("thread/compact/start", ThreadSetup::Finished, |_| json!({})),
    case(
        "thread/revert",
        ThreadSetup::Finished,
        |fixture| json!({"beforeTurnId": fixture.turn}),
    ),
    case("thread/inject_items", ThreadSetup::Idle, |_| {
        let text = json!([{"type": "input_text", "text": "by the way"}]);
        json!({"items": [{"type": "message", "role": "user", "content": text}]})
    }),
    case(
        "thread/goal/set",
        ThreadSetup::Idle,
        |_| json!({"objective": "weave", "status": "paused"}),
    ),
    case("thread/goal/clear", ThreadSetup::WithGoal, |_| json!({})),
    case(
        "thread/queue/add",
        ThreadSetup::Running,
        |_| json!({"input": text("third"), "clientUserMessageId": "m"}),
    ),
    case(
        "thread/queue/update",
        ThreadSetup::Queued,
        |fixture| json!({"queuedSubmissionId": fixture.queued[0], "input": text("other")}),
    ),
    case(
        "thread/queue/delete",
        ThreadSetup::Queued,
        |fixture| json!({"queuedSubmissionId": fixture.queued[0]}),
    ),
    case(
        "thread/queue/reorder",
        ThreadSetup::Queued,
        |fixture| json!({"queuedSubmissionIds": [fixture.queued[1], fixture.queued[0]]}),
    ),
    case(
        "thread/queue/start",
        ThreadSetup::QueuePaused,
        |fixture| json!({"queuedSubmissionId": fixture.queued[0]}),
    ),
    case(
        "thread/shellCommand",
        ThreadSetup::Idle,
        |_| json!({"command": "echo once >> mark"}),
    ),
    case(
        "turn/start",
        ThreadSetup::Idle,
        |_| json!({"input": text("say it")}),
    ),
    case(
        "turn/steer",
        ThreadSetup::Running,
        |fixture| json!({"expectedTurnId": fixture.turn, "input": text(HELD)}),
    ),
    case(
        "turn/interrupt",
        ThreadSetup::Running,
        |fixture| json!({"turnId": fixture.turn}),
    ),
    case(
        "review/start",
        ThreadSetup::Idle,
        |_| json!({"target": {"type": "custom", "instructions": "look at it"}}),
    ),
];

/// Moment of the kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KillMoment {
    Never,
    /// Before the client reads the response; this many other requests were answered by then.
    Unread(usize),
    /// After the response was read, and its turn is over.
    Afterwards,
}

/// Sends each request three times, to a server that is killed before or after the response is read,
/// for a number of rounds. Returns the number of cases.
pub fn run(harness: &RejoinHarness, rounds: usize) -> Result<usize> {
    let mut sent = 0;
    for case in CASES {
        let expected = play(harness, case, KillMoment::Never, &mut sent)
            .with_context(|| format!("{} once", case.method))?;
        for round in 0..rounds {
            for killed in [KillMoment::Unread(round), KillMoment::Afterwards] {
                let result = play(harness, case, killed, &mut sent)
                    .with_context(|| format!("{} {killed:?}", case.method))?;
                let is_same = result.is_same(&expected, case, killed);
                ensure!(
                    is_same,
                    "{} {killed:?}: {result:?}, and once: {expected:?}",
                    case.method
                );
            }
        }
    }
    Ok(sent)
}

/// A thread and its surrounding state.
struct ThreadFixture {
    cwd: PathBuf,
    thread: Value,
    /// Last turn that was started.
    turn: Value,
    /// Ids in its queue.
    queued: Vec<Value>,
}

impl ThreadFixture {
    /// Prepares a thread in a given state.
    fn prepare(client: &mut RejoinClient, cwd: PathBuf, before: ThreadSetup) -> Result<Self> {
        std::fs::create_dir(&cwd)?;
        let mut fixture = Self {
            cwd,
            thread: Value::Null,
            turn: Value::Null,
            queued: Vec::new(),
        };
        if before == ThreadSetup::Nothing {
            return Ok(fixture);
        }
        let mut started = client.request("thread/start", json!({"cwd": fixture.cwd}))?;
        fixture.thread = started["thread"]["id"].take();
        let turns: &[&str] = match before {
            ThreadSetup::Finished | ThreadSetup::Archived => &["first", "second"],
            ThreadSetup::Running | ThreadSetup::Queued | ThreadSetup::QueuePaused => &[HELD],
            ThreadSetup::Nothing | ThreadSetup::Idle | ThreadSetup::WithGoal => &[],
        };
        for prompt in turns {
            let mut started = client.request(
                "turn/start",
                fixture.with_thread(json!({"input": text(prompt)})),
            )?;
            fixture.turn = started["turn"]["id"].take();
            if *prompt != HELD {
                fixture.wait(client)?;
            }
        }
        let inputs: &[&str] = match before {
            ThreadSetup::Queued => &["first", "second"],
            ThreadSetup::QueuePaused => &["first"],
            _ => &[],
        };
        for prompt in inputs {
            let params = json!({"input": text(prompt), "clientUserMessageId": prompt});
            let mut added = client.request("thread/queue/add", fixture.with_thread(params))?;
            fixture.queued.push(added["queuedSubmission"]["id"].take());
        }
        match before {
            ThreadSetup::QueuePaused => fixture.stop(client)?,
            ThreadSetup::WithGoal => {
                let goal = json!({"objective": "weave", "status": "paused"});
                client.request("thread/goal/set", fixture.with_thread(goal))?;
            }
            ThreadSetup::Archived => {
                client.request("thread/archive", fixture.with_thread(json!({})))?;
            }
            _ => {}
        }
        Ok(fixture)
    }

    fn with_thread(&self, mut params: Value) -> Value {
        if !self.thread.is_null() {
            params["threadId"] = self.thread.clone();
        }
        params
    }

    fn mark(&self) -> PathBuf {
        self.cwd.join("mark")
    }

    fn stop(&self, client: &mut RejoinClient) -> Result<()> {
        let params = self.with_thread(json!({"turnId": ""}));
        client.request("turn/interrupt", params).map(drop)
    }

    /// Waits until nothing runs in the thread.
    fn wait(&self, client: &mut RejoinClient) -> Result<()> {
        let params = self.with_thread(json!({"excludeTurns": true}));
        client.request("thread/resume", params)?;
        let id = self.thread.as_str().context("a thread")?;
        loop {
            let read = client.request("thread/read", self.with_thread(json!({})))?;
            if read["thread"]["status"]["type"] != "active" {
                return Ok(());
            }
            while client.next_notification(id)?.method != "thread/status/changed" {}
        }
    }
}

fn text(words: &str) -> Value {
    json!([{"type": "text", "text": words}])
}

/// Plays a case on its own thread. Returns the resulting state.
fn play(
    harness: &RejoinHarness,
    case: &RepeatCase,
    killed: KillMoment,
    sent: &mut usize,
) -> Result<CaseResult> {
    let mut server = harness.serve()?;
    // Over a unix socket the server identifies the client by its user, otherwise by its name. So it
    // reconnects over the same endpoint.
    let endpoint = match killed {
        KillMoment::Unread(_) => ServerEndpoint::Websocket,
        KillMoment::Never | KillMoment::Afterwards => ServerEndpoint::Unix,
    };
    let mut client = server.client(endpoint, ClientOptIns::Numbers)?;
    *sent += 1;
    let cwd = harness.home.path().join(format!("again-{sent}"));
    let mut fixture = ThreadFixture::prepare(&mut client, cwd, case.before)?;
    let mut params = fixture.with_thread((case.params)(&fixture));
    params["clientRequestId"] = json!(format!("request {sent}"));
    let mut answers = Vec::new();
    match killed {
        KillMoment::Never => answers.push(client.request(case.method, params.clone())?),
        KillMoment::Unread(others) => {
            client.send(case.method, &params)?;
            for _ in 0..others {
                client.request("thread/loaded/list", json!({}))?;
            }
        }
        KillMoment::Afterwards => {
            answers.push(client.request(case.method, params.clone())?);
            if case.before == ThreadSetup::Idle {
                fixture.wait(&mut client)?;
            }
        }
    }
    if killed != KillMoment::Never {
        server.kill()?;
        server = harness.serve()?;
        client = server.client(endpoint, ClientOptIns::Numbers)?;
        for _ in 0..2 {
            answers.push(client.request(case.method, params.clone())?);
        }
        check_conflict(&mut client, case, &params)?;
    }
    let new_thread = answers[0]["thread"]["id"].clone();
    for answer in &answers[1..] {
        // A request that creates a thread returns its current state.
        let is_same = match case.method {
            "thread/start" | "thread/fork" => answer["thread"]["id"] == new_thread,
            _ => *answer == answers[0],
        };
        ensure!(is_same, "not the same answer: {answers:?}");
    }
    if fixture.thread.is_null() {
        fixture.thread = new_thread.clone();
    }
    if matches!(case.before, ThreadSetup::Running | ThreadSetup::Queued)
        && case.method != "turn/interrupt"
    {
        fixture.stop(&mut client)?;
    }
    if case.method != "thread/delete" && case.method != "thread/archive" {
        fixture.wait(&mut client)?;
    }
    CaseResult::of(harness, &mut client, &fixture, &new_thread)
}

/// Checks that another request with the same idempotency key is rejected.
fn check_conflict(client: &mut RejoinClient, case: &RepeatCase, params: &Value) -> Result<()> {
    // A deleted thread has no stored keys, and its deletion has no other parameters.
    if matches!(case.method, "thread/delete") {
        return Ok(());
    }
    let mut params = params.clone();
    match case.method {
        "thread/start" => params["model"] = json!("other"),
        "thread/fork" => params["excludeTurns"] = json!(true),
        "thread/name/set" => params["name"] = json!("other"),
        "turn/start" => params["input"] = text("other"),
        "thread/shellCommand" => params["command"] = json!("false"),
        _ => return Ok(()),
    }
    let error = client.request_error(case.method, params)?;
    let info = &error["data"]["errorInfo"];
    ensure!(*info == "idempotency_conflict", "not a conflict: {error}");
    Ok(())
}

/// Result of a case, without what differs from one thread to another.
#[derive(Debug, PartialEq)]
struct CaseResult {
    /// Numbers of visible and of archived threads.
    threads: [usize; 2],
    name: Value,
    branch: Value,
    effort: Value,
    goal: Value,
    queue: Vec<Value>,
    turns: Vec<TurnSummary>,
    /// Turns of the new thread.
    new_turns: Vec<TurnSummary>,
    marks: String,
}

/// A turn, with its inputs and actions.
#[derive(Debug, PartialEq)]
struct TurnSummary {
    status: Value,
    items: Vec<Value>,
}

impl CaseResult {
    fn of(
        harness: &RejoinHarness,
        client: &mut RejoinClient,
        fixture: &ThreadFixture,
        new_thread: &Value,
    ) -> Result<Self> {
        let mut threads = [0; 2];
        for (count, archived) in threads.iter_mut().zip([false, true]) {
            *count = harness.stored_threads(&fixture.cwd, archived)?;
        }
        let marks = std::fs::read_to_string(fixture.mark()).unwrap_or_default();
        if threads == [0, 0] {
            return Ok(Self {
                threads,
                name: Value::Null,
                branch: Value::Null,
                effort: Value::Null,
                goal: Value::Null,
                queue: Vec::new(),
                turns: Vec::new(),
                new_turns: Vec::new(),
                marks,
            });
        }
        let params = fixture.with_thread(json!({}));
        let mut response = client.request(
            "thread/read",
            fixture.with_thread(json!({"includeTurns": true})),
        )?;
        let thread = &mut response["thread"];
        let mut goal = client.request("thread/goal/get", params.clone())?;
        let queue = client.request("thread/queue/list", params)?;
        let queue = queue["data"].as_array().cloned().unwrap_or_default();
        let resumed = match threads {
            [_, 0] => client.request(
                "thread/resume",
                fixture.with_thread(json!({"excludeTurns": true})),
            )?,
            _ => Value::Null,
        };
        Ok(Self {
            threads,
            name: thread["name"].take(),
            branch: thread["gitInfo"]["branch"].take(),
            effort: resumed["reasoningEffort"].clone(),
            goal: goal["goal"]["objective"].take(),
            queue: queue.iter().map(|it| it["input"].clone()).collect(),
            turns: turns(&thread["turns"]),
            new_turns: match new_thread {
                Value::Null => Vec::new(),
                id => {
                    let params = json!({"threadId": id, "includeTurns": true});
                    turns(&client.request("thread/read", params)?["thread"]["turns"])
                }
            },
            marks,
        })
    }

    /// Whether nothing was done twice, or omitted. A shell command during which the server was
    /// killed is recorded as interrupted.
    fn is_same(&self, once: &Self, case: &RepeatCase, killed: KillMoment) -> bool {
        if case.method != "thread/shellCommand" || killed == KillMoment::Afterwards {
            return self == once;
        }
        let items = |it: &Self| {
            it.turns
                .iter()
                .map(|it| it.items.clone())
                .collect::<Vec<_>>()
        };
        let marks = self.marks.is_empty() || self.marks == once.marks;
        marks && items(self) == items(once)
    }
}

/// Summarises turns, without the text of the model, which depends on where it was interrupted.
fn turns(turns: &Value) -> Vec<TurnSummary> {
    let turns = turns.as_array().cloned().unwrap_or_default();
    let items = |turn: &Value| {
        let items = turn["items"].as_array().cloned().unwrap_or_default();
        let items = items.into_iter();
        let items = items.filter(|it| it["type"] != "agentMessage" && it["type"] != "reasoning");
        let values =
            items.map(|it| json!([it["type"], it["content"], it["command"], it["review"]]));
        values.collect()
    };
    let summaries = turns.iter().map(|turn| TurnSummary {
        status: turn["status"].clone(),
        items: items(turn),
    });
    summaries.collect()
}
