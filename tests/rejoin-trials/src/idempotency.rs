//! Requests that are sent three times round a `kill -9`: what they do is done once.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::client::{ClientOptIns, RejoinClient};
use crate::server::{RejoinHarness, ServerEndpoint};

/// A model that says nothing until it is interrupted, whichever server asks it.
const HELD: &str = "MOCK held";

/// Where a thread stands before the request comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadSetup {
    /// There is none.
    Nothing,
    Idle,
    /// Two turns are over.
    Finished,
    /// A turn runs, and does not end by itself.
    Running,
    /// The same, and two inputs wait.
    Queued,
    /// One input waits, and the turn before it was interrupted.
    QueueRests,
    /// It has a goal.
    WithGoal,
    Archived,
}

/// What is asked three times.
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
        |scene| json!({"cwd": scene.cwd}),
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
        |scene| json!({"beforeTurnId": scene.turn}),
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
        |scene| json!({"queuedSubmissionId": scene.queued[0], "input": text("other")}),
    ),
    case(
        "thread/queue/delete",
        ThreadSetup::Queued,
        |scene| json!({"queuedSubmissionId": scene.queued[0]}),
    ),
    case(
        "thread/queue/reorder",
        ThreadSetup::Queued,
        |scene| json!({"queuedSubmissionIds": [scene.queued[1], scene.queued[0]]}),
    ),
    case(
        "thread/queue/start",
        ThreadSetup::QueueRests,
        |scene| json!({"queuedSubmissionId": scene.queued[0]}),
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
        |scene| json!({"expectedTurnId": scene.turn, "input": text(HELD)}),
    ),
    case(
        "turn/interrupt",
        ThreadSetup::Running,
        |scene| json!({"turnId": scene.turn}),
    ),
    case(
        "review/start",
        ThreadSetup::Idle,
        |_| json!({"target": {"type": "custom", "instructions": "look at it"}}),
    ),
];

/// When the server is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KillMoment {
    Never,
    /// Before the client reads the answer; so many other requests were answered by then.
    Unread(usize),
    /// After the answer was read, and what it began is over.
    Afterwards,
}

/// Sends each request three times, with a server that is killed before the answer is read or afterwards, so
/// many times. Gives how many requests that were.
pub fn run(bench: &RejoinHarness, rounds: usize) -> Result<usize> {
    let mut sent = 0;
    for case in CASES {
        let expected = play(bench, case, KillMoment::Never, &mut sent)
            .with_context(|| format!("{} once", case.method))?;
        for round in 0..rounds {
            for killed in [KillMoment::Unread(round), KillMoment::Afterwards] {
                let found = play(bench, case, killed, &mut sent)
                    .with_context(|| format!("{} {killed:?}", case.method))?;
                let is_same = found.is_same(&expected, case, killed);
                ensure!(
                    is_same,
                    "{} {killed:?}: {found:?}, and once: {expected:?}",
                    case.method
                );
            }
        }
    }
    Ok(sent)
}

/// One thread, and what is about it.
struct ThreadFixture {
    cwd: PathBuf,
    thread: Value,
    /// The last turn that began.
    turn: Value,
    /// What waits in its queue.
    queued: Vec<Value>,
}

impl ThreadFixture {
    /// Brings a thread to where it is to stand.
    fn set(client: &mut RejoinClient, cwd: PathBuf, before: ThreadSetup) -> Result<Self> {
        std::fs::create_dir(&cwd)?;
        let mut scene = Self {
            cwd,
            thread: Value::Null,
            turn: Value::Null,
            queued: Vec::new(),
        };
        if before == ThreadSetup::Nothing {
            return Ok(scene);
        }
        let mut begun = client.ask("thread/start", json!({"cwd": scene.cwd}))?;
        scene.thread = begun["thread"]["id"].take();
        let turns: &[&str] = match before {
            ThreadSetup::Finished | ThreadSetup::Archived => &["first", "second"],
            ThreadSetup::Running | ThreadSetup::Queued | ThreadSetup::QueueRests => &[HELD],
            ThreadSetup::Nothing | ThreadSetup::Idle | ThreadSetup::WithGoal => &[],
        };
        for words in turns {
            let mut begun = client.ask("turn/start", scene.about(json!({"input": text(words)})))?;
            scene.turn = begun["turn"]["id"].take();
            if *words != HELD {
                scene.wait(client)?;
            }
        }
        let inputs: &[&str] = match before {
            ThreadSetup::Queued => &["first", "second"],
            ThreadSetup::QueueRests => &["first"],
            _ => &[],
        };
        for words in inputs {
            let params = json!({"input": text(words), "clientUserMessageId": words});
            let mut added = client.ask("thread/queue/add", scene.about(params))?;
            scene.queued.push(added["queuedSubmission"]["id"].take());
        }
        match before {
            ThreadSetup::QueueRests => scene.stop(client)?,
            ThreadSetup::WithGoal => {
                let goal = json!({"objective": "weave", "status": "paused"});
                client.ask("thread/goal/set", scene.about(goal))?;
            }
            ThreadSetup::Archived => {
                client.ask("thread/archive", scene.about(json!({})))?;
            }
            _ => {}
        }
        Ok(scene)
    }

    fn about(&self, mut params: Value) -> Value {
        if !self.thread.is_null() {
            params["threadId"] = self.thread.clone();
        }
        params
    }

    fn mark(&self) -> PathBuf {
        self.cwd.join("mark")
    }

    fn stop(&self, client: &mut RejoinClient) -> Result<()> {
        let params = self.about(json!({"turnId": ""}));
        client.ask("turn/interrupt", params).map(drop)
    }

    /// Waits until nothing runs in the thread.
    fn wait(&self, client: &mut RejoinClient) -> Result<()> {
        let params = self.about(json!({"excludeTurns": true}));
        client.ask("thread/resume", params)?;
        let id = self.thread.as_str().context("a thread")?;
        loop {
            let read = client.ask("thread/read", self.about(json!({})))?;
            if read["thread"]["status"]["type"] != "active" {
                return Ok(());
            }
            while client.told(id)?.method != "thread/status/changed" {}
        }
    }
}

fn text(words: &str) -> Value {
    json!([{"type": "text", "text": words}])
}

/// Plays a case on a thread of its own, and looks at what came of it.
fn play(
    bench: &RejoinHarness,
    case: &RepeatCase,
    killed: KillMoment,
    sent: &mut usize,
) -> Result<CaseResult> {
    let mut server = bench.serve()?;
    // Over a unix socket the client is known by its user, else by its name: it comes back the way it came.
    let door = match killed {
        KillMoment::Unread(_) => ServerEndpoint::Websocket,
        KillMoment::Never | KillMoment::Afterwards => ServerEndpoint::Unix,
    };
    let mut client = server.client(door, ClientOptIns::Numbers)?;
    *sent += 1;
    let cwd = bench.home.path().join(format!("again-{sent}"));
    let mut scene = ThreadFixture::set(&mut client, cwd, case.before)?;
    let mut params = scene.about((case.params)(&scene));
    params["clientRequestId"] = json!(format!("request {sent}"));
    let mut answers = Vec::new();
    match killed {
        KillMoment::Never => answers.push(client.ask(case.method, params.clone())?),
        KillMoment::Unread(others) => {
            client.send(case.method, &params)?;
            for _ in 0..others {
                client.ask("thread/loaded/list", json!({}))?;
            }
        }
        KillMoment::Afterwards => {
            answers.push(client.ask(case.method, params.clone())?);
            if case.before == ThreadSetup::Idle {
                scene.wait(&mut client)?;
            }
        }
    }
    if killed != KillMoment::Never {
        server.kill()?;
        server = bench.serve()?;
        client = server.client(door, ClientOptIns::Numbers)?;
        for _ in 0..2 {
            answers.push(client.ask(case.method, params.clone())?);
        }
        is_refused(&mut client, case, &params)?;
    }
    let made = answers[0]["thread"]["id"].clone();
    for answer in &answers[1..] {
        // What makes a thread shows it as it is by now.
        let is_same = match case.method {
            "thread/start" | "thread/fork" => answer["thread"]["id"] == made,
            _ => *answer == answers[0],
        };
        ensure!(is_same, "not the same answer: {answers:?}");
    }
    if scene.thread.is_null() {
        scene.thread = made.clone();
    }
    if matches!(case.before, ThreadSetup::Running | ThreadSetup::Queued)
        && case.method != "turn/interrupt"
    {
        scene.stop(&mut client)?;
    }
    if case.method != "thread/delete" && case.method != "thread/archive" {
        scene.wait(&mut client)?;
    }
    CaseResult::of(&mut client, &scene, &made)
}

/// Something else under the same key is no repetition.
fn is_refused(client: &mut RejoinClient, case: &RepeatCase, params: &Value) -> Result<()> {
    // Of one that is gone nothing is remembered, and to be gone is all that can be asked.
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
    let error = client.refused(case.method, params)?;
    let info = &error["data"]["errorInfo"];
    ensure!(*info == "idempotency_conflict", "not a conflict: {error}");
    Ok(())
}

/// What came of a case, without what differs from one thread to another.
#[derive(Debug, PartialEq)]
struct CaseResult {
    /// The threads that are in sight, and those that are archived.
    threads: [usize; 2],
    name: Value,
    branch: Value,
    effort: Value,
    goal: Value,
    queue: Vec<Value>,
    turns: Vec<TurnSummary>,
    /// The turns of the thread that was made.
    made: Vec<TurnSummary>,
    marks: String,
}

/// A turn, with what was asked in it and done.
#[derive(Debug, PartialEq)]
struct TurnSummary {
    status: Value,
    items: Vec<Value>,
}

impl CaseResult {
    fn of(client: &mut RejoinClient, scene: &ThreadFixture, made: &Value) -> Result<Self> {
        let mut threads = [0; 2];
        for (count, archived) in threads.iter_mut().zip([false, true]) {
            let params = json!({"cwd": scene.cwd, "archived": archived});
            let listed = client.ask("thread/list", params)?;
            *count = listed["data"].as_array().map_or(0, Vec::len);
        }
        let marks = std::fs::read_to_string(scene.mark()).unwrap_or_default();
        if threads == [0, 0] {
            return Ok(Self {
                threads,
                name: Value::Null,
                branch: Value::Null,
                effort: Value::Null,
                goal: Value::Null,
                queue: Vec::new(),
                turns: Vec::new(),
                made: Vec::new(),
                marks,
            });
        }
        let about = scene.about(json!({}));
        let mut shown = client.ask("thread/read", scene.about(json!({"includeTurns": true})))?;
        let thread = &mut shown["thread"];
        let mut goal = client.ask("thread/goal/get", about.clone())?;
        let queue = client.ask("thread/queue/list", about)?;
        let queue = queue["data"].as_array().cloned().unwrap_or_default();
        let resumed = match threads {
            [_, 0] => client.ask("thread/resume", scene.about(json!({"excludeTurns": true})))?,
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
            made: match made {
                Value::Null => Vec::new(),
                id => {
                    let params = json!({"threadId": id, "includeTurns": true});
                    turns(&client.ask("thread/read", params)?["thread"]["turns"])
                }
            },
            marks,
        })
    }

    /// Whether nothing was done twice, or left out. What a server was killed in the middle of is known to have
    /// been cut off there.
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

/// What the model says differs with where it was cut off.
fn turns(turns: &Value) -> Vec<TurnSummary> {
    let turns = turns.as_array().cloned().unwrap_or_default();
    let items = |turn: &Value| {
        let items = turn["items"].as_array().cloned().unwrap_or_default();
        let items = items.into_iter();
        let items = items.filter(|it| it["type"] != "agentMessage" && it["type"] != "reasoning");
        let shown = items.map(|it| json!([it["type"], it["content"], it["command"], it["review"]]));
        shown.collect()
    };
    let shown = turns.iter().map(|turn| TurnSummary {
        status: turn["status"].clone(),
        items: items(turn),
    });
    shown.collect()
}
