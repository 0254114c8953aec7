//! Processes that are killed at random under load.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use support::Rng;

use crate::node::{NodeProcess, text_input};
use crate::{LATE, MockHome, NodesArgs, records};

/// Time limit for a client to continue with a thread whose owner was killed.
const TAKEOVER_LIMIT: Duration = Duration::from_secs(2);

/// Number of clients of each thread.
const USERS: usize = 2;

/// Text of every turn of the load, which takes 300 ms.
const LOAD: &str = "MOCK text n=30 size=8 gap_ms=10";

struct LoadThread {
    id: String,
    /// Indices of the processes whose clients use the thread. The first one starts its turns.
    users: Vec<usize>,
    /// Ids of the turns that the server confirmed.
    turns: BTreeSet<String>,
}

struct KillTrial<'a> {
    raddle: &'a Path,
    home: &'a MockHome,
    nodes: Vec<NodeProcess>,
    threads: Vec<LoadThread>,
    problems: Vec<String>,
    slowest: Duration,
}

pub fn run(raddle: &Path, arguments: &NodesArgs) -> Result<Vec<String>> {
    let home = MockHome::new(raddle)?;
    let mut rng = Rng::new(arguments.seed);
    let mut trial = KillTrial::open(raddle, &home, arguments)?;
    for _ in 0..arguments.kills {
        trial.load()?;
        std::thread::sleep(Duration::from_millis(rng.below(300)));
        trial.kill(rng.index(arguments.nodes))?;
    }
    println!(
        "figure: {} kills, {} processes, {} threads: the slowest went on after {} ms of at most {}",
        arguments.kills,
        arguments.nodes,
        arguments.threads,
        trial.slowest.as_millis(),
        TAKEOVER_LIMIT.as_millis()
    );
    trial.close()
}

impl<'a> KillTrial<'a> {
    /// Opens the threads. Each is started by one process and used by the clients of the next two,
    /// which compete for it when its owner dies.
    fn open(raddle: &'a Path, home: &'a MockHome, arguments: &NodesArgs) -> Result<Self> {
        let nodes = (0..arguments.nodes).map(|_| NodeProcess::start(raddle, home.path()));
        let mut nodes: Vec<NodeProcess> = nodes.collect::<Result<_>>()?;
        let mut threads = Vec::new();
        for number in 0..arguments.threads {
            let starter = number % nodes.len();
            let started = nodes[starter].call("thread/start", &json!({}))?;
            let id = started["thread"]["id"]
                .as_str()
                .context("an id")?
                .to_owned();
            let users: Vec<usize> = (1..=USERS).map(|it| (starter + it) % nodes.len()).collect();
            for user in &users {
                nodes[*user].call("thread/resume", &json!({"threadId": id}))?;
            }
            nodes[starter].call("thread/unsubscribe", &json!({"threadId": id}))?;
            threads.push(LoadThread {
                id,
                users,
                turns: BTreeSet::new(),
            });
        }
        Ok(Self {
            raddle,
            home,
            nodes,
            threads,
            problems: Vec::new(),
            slowest: Duration::ZERO,
        })
    }

    /// Starts a turn in every thread, or adds input to its running turn.
    fn load(&mut self) -> Result<()> {
        let mut request_ids = Vec::new();
        for thread in &self.threads {
            request_ids
                .push(self.nodes[thread.users[0]].send_request("turn/start", load(&thread.id))?);
        }
        for (thread, id) in self.threads.iter_mut().zip(request_ids) {
            let node = &mut self.nodes[thread.users[0]];
            let answer = match node.answer(id)? {
                Ok(answer) => answer,
                // Two of its users may still be competing for its ownership.
                Err(error) if error["code"] == -32001 => {
                    node.call("turn/start", &load(&thread.id))?
                }
                Err(error) => {
                    self.problems.push(format!("{}: {error}", thread.id));
                    continue;
                }
            };
            let turn = answer["turn"]["id"].as_str().context("a turn")?;
            thread.turns.insert(turn.to_owned());
        }
        Ok(())
    }

    /// Kills one process. The clients of the others continue with all of their threads; its own
    /// client reconnects.
    fn kill(&mut self, victim: usize) -> Result<()> {
        for node in &mut self.nodes {
            node.take_notifications();
        }
        self.nodes[victim].kill()?;
        let killed = Instant::now();
        let mut requests = Vec::new();
        for (at, thread) in self.threads.iter().enumerate() {
            for user in thread.users.iter().filter(|it| **it != victim) {
                let id = self.nodes[*user].send_request("thread/name/set", name(&thread.id))?;
                requests.push((at, *user, id));
            }
        }
        for (at, user, id) in requests {
            let thread = &self.threads[at].id;
            let node = &mut self.nodes[user];
            match node.answer(id)? {
                Ok(_) => {}
                Err(error) if error["code"] == -32001 => {
                    node.call("thread/name/set", &name(thread))?;
                }
                Err(error) => self.problems.push(format!("{thread}: {error}")),
            }
            let elapsed = killed.elapsed();
            if elapsed > TAKEOVER_LIMIT {
                self.problems.push(format!(
                    "{LATE}{thread} went on after {} ms",
                    elapsed.as_millis()
                ));
            }
            self.slowest = self.slowest.max(elapsed);
        }
        self.nodes[victim] = NodeProcess::start(self.raddle, self.home.path())?;
        for thread in self.threads.iter().filter(|it| it.users.contains(&victim)) {
            let params = json!({"threadId": thread.id, "excludeTurns": true});
            self.nodes[victim].call("thread/resume", &params)?;
        }
        Ok(())
    }

    /// Waits for all turns, ends the processes, and checks the records.
    fn close(mut self) -> Result<Vec<String>> {
        for thread in &self.threads {
            let node = &mut self.nodes[thread.users[0]];
            node.call(
                "turn/start",
                &json!({"threadId": thread.id, "input": text_input("the end")}),
            )?;
            let is_end = |it: &Value| {
                it["method"] == "turn/completed" && it["params"]["threadId"] == thread.id.as_str()
            };
            node.wait_for_notification("the last turn", is_end)?;
        }
        for node in self.nodes {
            node.end()?;
        }
        let listing = records::list_threads(self.raddle, self.home.path())?;
        for thread in &self.threads {
            if !listing.contains(&thread.id) {
                self.problems.push(format!("{} is lost", thread.id));
            }
            self.problems.extend(records::problems(
                self.raddle,
                self.home.path(),
                &thread.id,
                &thread.turns,
            )?);
        }
        let stderr = std::fs::read_to_string(self.home.path().join("nodes.stderr"))?;
        if stderr.contains("panicked") {
            self.problems.push(format!("the processes say: {stderr}"));
        }
        Ok(self.problems)
    }
}

fn load(thread: &str) -> Value {
    json!({"threadId": thread, "input": text_input(LOAD)})
}

fn name(thread: &str) -> Value {
    json!({"threadId": thread, "name": "goes on"})
}
