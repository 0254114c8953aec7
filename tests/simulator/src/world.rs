//! The world: virtual time, a queue of what comes next, and everything it comes to.

mod fault;
mod parts;

pub use parts::*;

use std::collections::BTreeMap;

use raddle_core::{ThreadId, Timestamp};

use crate::check::{Check, Oracle, broken, ending, rejoin, requests};
use crate::client::SimClient;
use crate::coverage::Coverage;
use crate::rng::{Hash, Rng};
use crate::scenario::Scenario;
use crate::store::Store;

/// For how long a lease is granted.
pub const LEASE_MS: u64 = 1_500;

/// How long after the last fault everything must have come to an end.
const HEALING_MS: u64 = 240_000;

/// The time at which runs begin.
const BEGINNING: i64 = 1_700_000_000_000;

/// Everything there is.
pub struct SimWorld {
    /// What is played.
    pub scenario: Scenario,
    /// Milliseconds since the run began.
    pub now: u64,
    /// Whether faults are over.
    pub healed: bool,
    order: u64,
    queue: BTreeMap<(u64, u64), Next>,
    /// The journal.
    pub store: Store,
    /// The nodes.
    pub nodes: Vec<SimNode>,
    /// The threads, each with everything of its own.
    pub lanes: Vec<Lane>,
    /// What was reached.
    pub reach: Coverage,
    /// A hash of everything that happened, in order.
    pub trace: Hash,
    /// The same in words, if someone reads it.
    pub lines: Option<Vec<String>>,
}

impl SimWorld {
    /// The world of a scenario, before anything happens.
    pub fn new(scenario: &Scenario, keeps_lines: bool) -> Self {
        let store = Store::new(scenario.medium, scenario.threads);
        let mut world = Self {
            scenario: scenario.clone(),
            now: 0,
            healed: false,
            order: 0,
            queue: BTreeMap::new(),
            store,
            nodes: Vec::new(),
            lanes: Vec::new(),
            reach: Coverage::default(),
            trace: Hash::default(),
            lines: keeps_lines.then(Vec::new),
        };
        for _ in 0..scenario.nodes {
            world.nodes.push(SimNode {
                alive: true,
                ..SimNode::default()
            });
        }
        for thread in 0..scenario.threads {
            world.add_lane(thread);
            world.start_clients(thread);
        }
        for (at, fault) in scenario.faults.clone() {
            world.push_at(at, Next::Fault(fault));
        }
        world.push_at(scenario.heal_at, Next::Heal);
        world
    }

    /// One more thread.
    pub fn add_lane(&mut self, thread: usize) {
        let seed = self.scenario.seed;
        let mut rng = Rng::new(seed, 100 + thread as u64);
        let clients =
            (0..self.scenario.clients).map(|name| SimClient::new(name, &mut rng, &self.scenario));
        let lane = Lane {
            id: ThreadId::from(uuid::Uuid::from_u64_pair(seed, thread as u64)),
            oracle: Oracle::new(seed.is_multiple_of(8)),
            lease: Lease::default(),
            clients: clients.collect(),
            openings: 0,
            minted: 100_000 * thread as u64,
            starts: BTreeMap::new(),
            turns_left: self.scenario.turns,
            trouble: None,
            gone: false,
            forks: self.scenario.forks && thread < self.scenario.threads,
            rng,
        };
        self.lanes.push(lane);
    }

    /// The clients of a thread begin.
    pub fn start_clients(&mut self, thread: usize) {
        for client in 0..self.lanes[thread].clients.len() {
            let wait = self.lanes[thread].rng.range(1, 100);
            self.push(wait, Next::Step(thread, client));
        }
    }

    /// Plays everything.
    pub fn run(&mut self) -> Check {
        while let Some(((at, _), next)) = self.queue.pop_first() {
            self.now = at;
            if matches!(next, Next::CheckDone) {
                if self.is_quiet() {
                    return self.last_checks();
                }
                if at > self.scenario.heal_at + HEALING_MS {
                    return self.too_late();
                }
                self.push(500, Next::CheckDone);
                continue;
            }
            self.trace.number(at);
            self.dispatch(next)?;
        }
        Ok(())
    }

    /// Puts something off.
    pub fn push(&mut self, wait: u64, next: Next) {
        self.push_at(self.now + wait, next);
    }

    /// Puts something off to a time.
    pub fn push_at(&mut self, at: u64, next: Next) {
        self.order += 1;
        self.queue.insert((at, self.order), next);
    }

    /// Puts off something that comes to a node, if it is still in this life by then.
    pub fn push_node(&mut self, wait: u64, node: usize, at_node: AtNode) {
        let life = self.nodes[node].life;
        self.push(wait, Next::Node(node, life, at_node));
    }

    /// Says what happened, to whoever reads.
    pub fn say(&mut self, line: impl FnOnce() -> String) {
        let now = self.now;
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{now:>7} {}", line()));
        }
    }

    /// What a node's clock shows.
    pub fn clock(&self, node: usize) -> Timestamp {
        let now = i64::try_from(self.now).unwrap_or(i64::MAX);
        Timestamp(BEGINNING + now + self.nodes[node].clock)
    }

    fn dispatch(&mut self, next: Next) -> Check {
        match next {
            Next::Fault(fault) => self.fault(&fault),
            Next::Up(node) => {
                self.nodes[node].alive = true;
                Ok(())
            }
            Next::Resume(node, life) => {
                self.resume(node, life);
                Ok(())
            }
            Next::Heal => {
                self.heal();
                Ok(())
            }
            Next::CheckDone => Ok(()),
            Next::Node(node, life, at_node) => {
                let it = &mut self.nodes[node];
                if !it.alive || it.life != life {
                    return self.nobody_there(at_node);
                }
                if it.paused {
                    it.deferred.push(Next::Node(node, life, at_node));
                    return Ok(());
                }
                self.at_node(node, at_node)
            }
            Next::Arrive(arrival) => self.arrive(*arrival),
            Next::AskHead(thread, node, opening) => {
                let head = match self.trouble(thread) {
                    Some(StoreFault::Unavailable) => None,
                    _ => Some(self.store.log(thread).fence()),
                };
                let wait = self.lanes[thread].rng.range(1, 5);
                self.push_node(wait, node, AtNode::Head(thread, opening, head));
                Ok(())
            }
            Next::SaveBase(thread, base) => {
                if self.trouble(thread).is_none() && !self.lanes[thread].gone {
                    self.store.save_base(thread, &base);
                }
                Ok(())
            }
            Next::Remove(thread) => {
                self.store.delete(thread);
                self.lanes[thread].gone = true;
                Ok(())
            }
            Next::Step(thread, client) => self.client_step(thread, client),
            Next::ToClient(thread, client, link, message) => {
                self.at_client(thread, client, link, message)
            }
        }
    }

    /// What is wrong with a thread's store now.
    pub fn trouble(&self, thread: usize) -> Option<StoreFault> {
        let (trouble, until) = self.lanes[thread].trouble?;
        (self.now < until).then_some(trouble)
    }

    fn is_quiet(&self) -> bool {
        self.lanes.iter().enumerate().all(|(thread, lane)| {
            let log = self.store.log(thread);
            let unborn = thread >= self.scenario.threads && log.is_empty();
            lane.gone
                || unborn
                || (ending::is_idle(&lane.oracle)
                    && lane
                        .clients
                        .iter()
                        .all(|client| client.is_settled(log.head)))
        })
    }

    fn last_checks(&self) -> Check {
        for (thread, lane) in self.lanes.iter().enumerate().filter(|(_, lane)| !lane.gone) {
            ending::i5_all_ended(&lane.oracle)?;
            lane.oracle.i8_opens_alike(self.store.log(thread))?;
            for client in &lane.clients {
                if let Some(believed) = &client.believes {
                    rejoin::i1_picture(&lane.oracle, believed)?;
                    requests::i4_all_are_asked(&lane.oracle, client.asked())?;
                }
            }
        }
        Ok(())
    }

    /// Long after the last fault something is still under way.
    fn too_late(&self) -> Check {
        for lane in self.lanes.iter().filter(|lane| !lane.gone) {
            ending::i5_all_ended(&lane.oracle)?;
        }
        let lanes = self.lanes.iter().enumerate().filter(|(_, it)| !it.gone);
        let behind = lanes.flat_map(|(thread, lane)| {
            let head = self.store.log(thread).head;
            let clients = lane.clients.iter().filter(move |it| !it.is_settled(head));
            clients.map(move |client| (thread, head, client))
        });
        match behind.into_iter().next() {
            Some((thread, head, client)) => broken(
                "I5 ending",
                format!("thread {thread} is at {head} and a client of it is not: {client}"),
            ),
            None => broken("I5 ending", "something is still under way"),
        }
    }
}
