//! The simulated world: virtual time, a queue of events, and all parts.

mod fail_over;
mod fault;
mod parts;

pub use parts::*;

use std::collections::BTreeMap;

use raddle_core::{ThreadId, Timestamp};
use support::Rng;

use crate::check::{Check, Oracle, broken, ending, rejoin, requests};
use crate::client::SimClient;
use crate::coverage::Coverage;
use crate::hash::Hash;
use crate::scenario::Scenario;
use crate::store::Store;

/// Duration of a lease, in milliseconds.
pub const LEASE_MS: u64 = 1_500;

/// Time after the last fault within which everything must have ended.
const HEALING_MS: u64 = 240_000;

/// Timestamp at which runs begin.
const BEGINNING: i64 = 1_700_000_000_000;

/// State of a run.
pub struct SimWorld {
    /// Scenario of the run.
    pub scenario: Scenario,
    /// Milliseconds since the run began.
    pub now: u64,
    /// Whether faults have ended.
    pub healed: bool,
    order: u64,
    queue: BTreeMap<(u64, u64), Next>,
    /// Model of the journal.
    pub store: Store,
    /// Every node, by index.
    pub nodes: Vec<SimNode>,
    /// Threads, each with all of its own state.
    pub threads: Vec<SimThread>,
    /// State of the connections to the database.
    pub database_net: DatabaseNet,
    /// Situations that were reached.
    pub coverage: Coverage,
    /// Hash of everything that happened, in order.
    pub trace: Hash,
    /// Trace of the run, if it was requested.
    pub lines: Option<Vec<String>>,
}

impl SimWorld {
    /// Creates the world of a scenario, before anything happens.
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
            threads: Vec::new(),
            database_net: DatabaseNet::new(scenario.seed),
            coverage: Coverage::default(),
            trace: Hash::default(),
            lines: keeps_lines.then(Vec::new),
        };
        for _ in 0..scenario.nodes {
            world.nodes.push(SimNode {
                alive: true,
                ..SimNode::default()
            });
        }
        for node in 0..scenario.nodes {
            world.start_journal(node);
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

    /// Adds a thread with its clients.
    pub fn add_lane(&mut self, thread: usize) {
        let seed = self.scenario.seed;
        let mut rng = Rng::for_purpose(seed, 100 + thread as u64);
        let clients =
            (0..self.scenario.clients).map(|name| SimClient::new(name, &mut rng, &self.scenario));
        let sim_thread = SimThread {
            id: ThreadId::from(uuid::Uuid::from_u64_pair(seed, thread as u64)),
            oracle: Oracle::new(seed.is_multiple_of(8)),
            lease: Lease::default(),
            clients: clients.collect(),
            openings: 0,
            minted: 100_000 * thread as u64,
            starts: BTreeMap::new(),
            turns_left: self.scenario.turns,
            store_fault: None,
            removed: false,
            forks: self.scenario.forks && thread < self.scenario.threads,
            rng,
        };
        self.threads.push(sim_thread);
    }

    /// Starts the clients of a thread.
    pub fn start_clients(&mut self, thread: usize) {
        for client in 0..self.threads[thread].clients.len() {
            let wait = self.threads[thread].rng.range(1, 100);
            self.push(wait, Next::Step(thread, client));
        }
    }

    /// Runs the scenario to its end.
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

    /// Schedules an event after a wait.
    pub fn push(&mut self, wait: u64, next: Next) {
        self.push_at(self.now + wait, next);
    }

    /// Schedules an event at a time.
    pub fn push_at(&mut self, at: u64, next: Next) {
        self.order += 1;
        self.queue.insert((at, self.order), next);
    }

    /// Schedules an event at a node, if the node is still in this incarnation by then.
    pub fn push_node(&mut self, wait: u64, node: usize, at_node: AtNode) {
        let incarnation = self.nodes[node].incarnation;
        self.push(wait, Next::Node(node, incarnation, at_node));
    }

    /// Adds a line to the trace, if it was requested.
    pub fn trace_line(&mut self, line: impl FnOnce() -> String) {
        let now = self.now;
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{now:>7} {}", line()));
        }
    }

    /// Returns the time of a node's clock.
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
            Next::Resume(node, incarnation) => {
                self.resume(node, incarnation);
                Ok(())
            }
            Next::Heal => {
                self.heal();
                Ok(())
            }
            Next::CheckDone => Ok(()),
            Next::Node(node, incarnation, at_node) => {
                let it = &mut self.nodes[node];
                if !it.alive || it.incarnation != incarnation {
                    return self.at_dead_node(at_node);
                }
                if it.paused {
                    it.deferred.push(Next::Node(node, incarnation, at_node));
                    return Ok(());
                }
                self.at_node(node, at_node)
            }
            Next::Arrive(arrival) => self.arrive(*arrival),
            Next::Query(arrival) => self.query_arrives(*arrival),
            Next::EndFormer(generation) => {
                self.end_former(generation);
                Ok(())
            }
            Next::AskHead(thread, node, opening) if self.store.database.is_some() => {
                self.read_head(thread, node, opening);
                Ok(())
            }
            Next::AskHead(thread, node, opening) => {
                let head = match self.store_fault(thread) {
                    Some(StoreFault::Unavailable) => None,
                    _ => Some(self.store.log(thread).fence()),
                };
                let wait = self.threads[thread].rng.range(1, 5);
                self.push_node(wait, node, AtNode::Head(thread, opening, head));
                Ok(())
            }
            Next::SaveBase(thread, base) => {
                if self.store_fault(thread).is_none() && !self.threads[thread].removed {
                    self.store.save_base(self.now, thread, base);
                }
                Ok(())
            }
            Next::Remove(thread) => {
                self.store.delete(self.now, thread);
                self.threads[thread].removed = true;
                Ok(())
            }
            Next::Step(thread, client) => self.client_step(thread, client),
            Next::ToClient(thread, client, link, message) => {
                self.at_client(thread, client, link, message)
            }
        }
    }

    /// Returns the present fault of a thread's store.
    pub fn store_fault(&self, thread: usize) -> Option<StoreFault> {
        let (fault, until) = self.threads[thread].store_fault?;
        (self.now < until).then_some(fault)
    }

    fn is_quiet(&self) -> bool {
        self.threads.iter().enumerate().all(|(thread, sim_thread)| {
            let log = self.store.log(thread);
            let unborn = thread >= self.scenario.threads && log.is_empty();
            sim_thread.removed
                || unborn
                || (ending::is_idle(&sim_thread.oracle)
                    && sim_thread
                        .clients
                        .iter()
                        .all(|client| client.is_settled(log.head)))
        })
    }

    fn last_checks(&self) -> Check {
        for (thread, sim_thread) in self
            .threads
            .iter()
            .enumerate()
            .filter(|(_, sim_thread)| !sim_thread.removed)
        {
            ending::i5_all_ended(&sim_thread.oracle)?;
            sim_thread.oracle.i8_opens_alike(self.store.log(thread))?;
            for client in &sim_thread.clients {
                if let Some(view) = &client.view {
                    rejoin::i1_picture(&sim_thread.oracle, view)?;
                    requests::i4_all_are_sent(&sim_thread.oracle, client.open_requests())?;
                }
            }
        }
        Ok(())
    }

    /// Reports what is still under way long after the last fault.
    fn too_late(&self) -> Check {
        for sim_thread in self.threads.iter().filter(|sim_thread| !sim_thread.removed) {
            ending::i5_all_ended(&sim_thread.oracle)?;
        }
        let threads = self
            .threads
            .iter()
            .enumerate()
            .filter(|(_, it)| !it.removed);
        let unsettled = threads.flat_map(|(thread, sim_thread)| {
            let head = self.store.log(thread).head;
            let clients = sim_thread
                .clients
                .iter()
                .filter(move |it| !it.is_settled(head));
            clients.map(move |client| (thread, head, client))
        });
        match unsettled.into_iter().next() {
            Some((thread, head, client)) => broken(
                "I5 ending",
                format!("thread {thread} is at {head} and a client of it is not: {client}"),
            ),
            None => broken("I5 ending", "something is still under way"),
        }
    }
}
