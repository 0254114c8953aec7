//! Processes that are killed at random under load.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::node::{NodeProcess, says};
use crate::rng::Dice;
use crate::{LATE, MockHome, NodesArgs, records};

/// In this time a client goes on whose thread was another process's, which is dead.
const GOES_ON: Duration = Duration::from_secs(2);

/// How many clients use each thread.
const USERS: usize = 2;

/// What every turn of the load says: for 300 ms.
const LOAD: &str = "MOCK text n=30 size=8 gap_ms=10";

struct LoadThread {
    id: String,
    /// Whose clients use it. The first one begins its turns.
    users: Vec<usize>,
    /// The turns that were promised to it.
    turns: BTreeSet<String>,
}

struct KillTrial<'a> {
    raddle: &'a Path,
    home: &'a MockHome,
    nodes: Vec<NodeProcess>,
    threads: Vec<LoadThread>,
    wrongs: Vec<String>,
    slowest: Duration,
}

pub fn run(raddle: &Path, arguments: &NodesArgs) -> Result<Vec<String>> {
    let home = MockHome::new(raddle)?;
    let mut dice = Dice::new(arguments.seed);
    let mut trial = KillTrial::open(raddle, &home, arguments)?;
    for _ in 0..arguments.kills {
        trial.load()?;
        std::thread::sleep(Duration::from_millis(dice.below(300) as u64));
        trial.kill(dice.below(arguments.nodes))?;
    }
    println!(
        "figure: {} kills, {} processes, {} threads: the slowest went on after {} ms of at most {}",
        arguments.kills,
        arguments.nodes,
        arguments.threads,
        trial.slowest.as_millis(),
        GOES_ON.as_millis()
    );
    trial.close()
}

impl<'a> KillTrial<'a> {
    /// Every thread is begun by one process and used by the clients of the next two, who are in each other's way
    /// when it dies.
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
            wrongs: Vec::new(),
            slowest: Duration::ZERO,
        })
    }

    /// A turn begins in every thread, or what runs there is told more.
    fn load(&mut self) -> Result<()> {
        let mut asked = Vec::new();
        for thread in &self.threads {
            asked.push(self.nodes[thread.users[0]].ask("turn/start", load(&thread.id))?);
        }
        for (thread, id) in self.threads.iter_mut().zip(asked) {
            let node = &mut self.nodes[thread.users[0]];
            let answer = match node.answer(id)? {
                Ok(answer) => answer,
                // Two of its users may still be at taking it over.
                Err(error) if error["code"] == -32001 => {
                    node.call("turn/start", &load(&thread.id))?
                }
                Err(error) => {
                    self.wrongs.push(format!("{}: {error}", thread.id));
                    continue;
                }
            };
            let turn = answer["turn"]["id"].as_str().context("a turn")?;
            thread.turns.insert(turn.to_owned());
        }
        Ok(())
    }

    /// Kills one. The clients of the others go on with all of their threads; its own comes back.
    fn kill(&mut self, victim: usize) -> Result<()> {
        for node in &mut self.nodes {
            node.told();
        }
        self.nodes[victim].kill()?;
        let killed = Instant::now();
        let mut asked = Vec::new();
        for (at, thread) in self.threads.iter().enumerate() {
            for user in thread.users.iter().filter(|it| **it != victim) {
                let id = self.nodes[*user].ask("thread/name/set", name(&thread.id))?;
                asked.push((at, *user, id));
            }
        }
        for (at, user, id) in asked {
            let thread = &self.threads[at].id;
            let node = &mut self.nodes[user];
            match node.answer(id)? {
                Ok(_) => {}
                Err(error) if error["code"] == -32001 => {
                    node.call("thread/name/set", &name(thread))?;
                }
                Err(error) => self.wrongs.push(format!("{thread}: {error}")),
            }
            let took = killed.elapsed();
            if took > GOES_ON {
                self.wrongs.push(format!(
                    "{LATE}{thread} went on after {} ms",
                    took.as_millis()
                ));
            }
            self.slowest = self.slowest.max(took);
        }
        self.nodes[victim] = NodeProcess::start(self.raddle, self.home.path())?;
        for thread in self.threads.iter().filter(|it| it.users.contains(&victim)) {
            let params = json!({"threadId": thread.id, "excludeTurns": true});
            self.nodes[victim].call("thread/resume", &params)?;
        }
        Ok(())
    }

    /// Lets all turns end, ends the processes, and reads the records.
    fn close(mut self) -> Result<Vec<String>> {
        for thread in &self.threads {
            let node = &mut self.nodes[thread.users[0]];
            node.call(
                "turn/start",
                &json!({"threadId": thread.id, "input": says("the end")}),
            )?;
            let is_end = |it: &Value| {
                it["method"] == "turn/completed" && it["params"]["threadId"] == thread.id.as_str()
            };
            node.hear("the last turn", is_end)?;
        }
        for node in self.nodes {
            node.end()?;
        }
        let listed = records::listed(self.raddle, self.home.path())?;
        for thread in &self.threads {
            if !listed.contains(&thread.id) {
                self.wrongs.push(format!("{} is lost", thread.id));
            }
            self.wrongs.extend(records::wrongs(
                self.raddle,
                self.home.path(),
                &thread.id,
                &thread.turns,
            )?);
        }
        let said = std::fs::read_to_string(self.home.path().join("nodes.stderr"))?;
        if said.contains("panicked") {
            self.wrongs.push(format!("the processes say: {said}"));
        }
        Ok(self.wrongs)
    }
}

fn load(thread: &str) -> Value {
    json!({"threadId": thread, "input": says(LOAD)})
}

fn name(thread: &str) -> Value {
    json!({"threadId": thread, "name": "goes on"})
}
