//! Leasing, opening and releasing of threads.

use std::collections::BTreeMap;
use std::rc::Rc;

use raddle_core::{
    Command, Epoch, Forked, Recovery, Route, Seq, Settings, ThreadId, ThreadSource, ThreadStarted,
    ThreadWriter,
};

use crate::check::Check;
use crate::client::{ToClient, ToNode};
use crate::store::LogRow;
use crate::world::{AtNode, LEASE_MS, Lease, Next, OpenThread, OpenWaiter, SimWorld, StoreFault};

impl SimWorld {
    /// Handles a client's request for a thread that is not open here.
    pub(super) fn request_open(&mut self, thread: usize, node: usize, waiting: OpenWaiter) {
        let incarnation = self.nodes[node].incarnation;
        let now = self.now;
        let sim_thread = &mut self.threads[thread];
        if sim_thread.removed {
            let (client, link) = (waiting.client, waiting.link);
            return self.send_to_client(thread, client, link, ToClient::Closed);
        }
        let current_holder = sim_thread
            .lease
            .holder
            .filter(|_| sim_thread.lease.until > now);
        let is_opening = self.nodes[node].pending_opens.contains_key(&thread);
        match current_holder {
            Some((holder, _)) if holder != node && !is_opening => {
                let (client, link) = (waiting.client, waiting.link);
                self.send_to_client(thread, client, link, ToClient::Moved(holder));
            }
            _ if is_opening => {
                self.nodes[node]
                    .pending_opens
                    .entry(thread)
                    .or_default()
                    .push(waiting);
            }
            _ => {
                sim_thread.lease.epoch += 1;
                sim_thread.lease.holder = Some((node, incarnation));
                sim_thread.lease.until = now + LEASE_MS;
                let epoch = Epoch(sim_thread.lease.epoch);
                let late = sim_thread.rng.percent(self.scenario.late) && !self.healed;
                let wait = if late {
                    sim_thread.rng.range(200, 3 * LEASE_MS)
                } else {
                    sim_thread.rng.range(1, 20)
                };
                if wait > LEASE_MS {
                    self.coverage.hit("lease late");
                }
                self.nodes[node]
                    .pending_opens
                    .entry(thread)
                    .or_default()
                    .push(waiting);
                self.push_node(wait, node, AtNode::Granted(thread, epoch));
            }
        }
    }

    pub(super) fn granted(&mut self, thread: usize, node: usize, epoch: Epoch) -> Check {
        if self.nodes[node].live.contains_key(&thread) {
            return Ok(());
        }
        let wait = self.threads[thread].rng.range(1, 30);
        self.push_node(wait, node, AtNode::Read(thread, epoch));
        Ok(())
    }

    /// Takes ownership of a thread that has been read.
    pub(super) fn open(
        &mut self,
        thread: usize,
        node: usize,
        epoch: Epoch,
        taken: Option<Seq>,
    ) -> Check {
        if self.nodes[node].live.contains_key(&thread) {
            return Ok(());
        }
        if self.store_fault(thread) == Some(StoreFault::Unavailable) {
            self.push_node(100, node, AtNode::Read(thread, epoch));
            return Ok(());
        }
        if self.threads[thread].removed {
            let waiting = self.nodes[node]
                .pending_opens
                .remove(&thread)
                .unwrap_or_default();
            for it in waiting {
                self.send_to_client(thread, it.client, it.link, ToClient::Closed);
            }
            return Ok(());
        }
        if taken.is_none() && self.take(thread, node, epoch) {
            return Ok(());
        }
        let now = self.clock(node);
        let log = self.store.log(thread);
        let me = self.identity(node, epoch);
        let owner = if log.is_empty() && log.head == Seq::ZERO {
            ThreadWriter::start(thread_started(self.threads[thread].id), me, now)
        } else {
            self.threads[thread].oracle.i8_opens_alike(log)?;
            let head = taken.unwrap_or(log.head);
            let (opened, tail) = log.open(head);
            if log.bases() > 0 {
                self.coverage.hit("opened from a base");
            }
            if opened.is_deleted() {
                self.push(5, Next::Remove(thread));
            }
            ThreadWriter::open(opened, head, me, now).since_base(tail)
        };
        self.trace_line(|| format!("thread {thread}: node {node} opens it in {epoch:?}"));
        self.install(thread, node, epoch, owner, None);
        let waiting = self.nodes[node]
            .pending_opens
            .remove(&thread)
            .unwrap_or_default();
        for OpenWaiter {
            client,
            link,
            cursor,
        } in waiting
        {
            self.message(thread, node, client, link, ToNode::Subscribe(cursor))?;
        }
        self.drive(thread, node)
    }

    pub(super) fn install(
        &mut self,
        thread: usize,
        node: usize,
        epoch: Epoch,
        owner: ThreadWriter,
        copy: Option<Rc<Vec<Rc<LogRow>>>>,
    ) {
        let sim_thread = &mut self.threads[thread];
        sim_thread.openings += 1;
        let opening = sim_thread.openings;
        let live = OpenThread {
            opening,
            epoch,
            owner,
            busy: false,
            full: false,
            copy,
            subscribers: BTreeMap::new(),
            tokens: BTreeMap::new(),
            model: None,
            tools: BTreeMap::new(),
            wake: None,
        };
        self.nodes[node].live.insert(thread, live);
        self.push_node(LEASE_MS / 3, node, AtNode::Renew(thread, opening));
    }

    /// Forks a thread: the new log begins with a copy of the old one.
    pub(super) fn fork(&mut self, thread: usize, node: usize) {
        let incarnation = self.nodes[node].incarnation;
        let new = self.threads.len();
        let sim_thread = &mut self.threads[thread];
        let log = self.store.log(thread);
        let turns = &sim_thread.oracle.turns;
        if !sim_thread.forks || turns.is_empty() || self.has_store_fault(thread) {
            return;
        }
        let sim_thread = &mut self.threads[thread];
        sim_thread.forks = false;
        let at = if sim_thread.rng.percent(40) {
            log.head
        } else if sim_thread.rng.percent(40) {
            log.rows[sim_thread.rng.index(log.rows.len())].record.seq
        } else {
            let index = sim_thread.rng.index(sim_thread.oracle.turns.len());
            let before = sim_thread.oracle.turns[index].1;
            let rows = log.rows.iter().rev();
            rows.map(|row| row.record.seq)
                .find(|seq| *seq < before)
                .unwrap_or(log.head)
        };
        let source = log.fold(at);
        if source.id().is_none() || source.is_deleted() {
            return;
        }
        let from = sim_thread.id;
        if thread >= self.scenario.threads {
            self.coverage.hit("fork of a fork");
        }
        let rows = log.rows.iter().take_while(|row| row.record.seq <= at);
        let copy = Some(Rc::new(rows.cloned().collect()));
        self.store.add();
        self.add_lane(new);
        let epoch = Epoch(source.epoch().0 + 1);
        let sim_thread = &mut self.threads[new];
        sim_thread.lease = Lease {
            holder: Some((node, incarnation)),
            epoch: epoch.0,
            until: self.now + LEASE_MS,
        };
        sim_thread.turns_left = 2;
        // Forks of forks are allowed once; a third generation shows nothing new.
        sim_thread.forks = thread < self.scenario.threads && !self.healed;
        let forked = Forked {
            thread: sim_thread.id,
            from,
            at: source.head(),
            principal: None,
            lineage: source.lineage().to_vec(),
            turns: source.turns(),
            settings: source.settings().clone(),
            ephemeral: false,
        };
        let me = self.identity(node, epoch);
        let owner = ThreadWriter::fork(source, forked, me, self.clock(node));
        self.install(new, node, epoch, owner, copy);
        let opening = self.threads[new].openings;
        self.push_node(0, node, AtNode::Drive(new, opening));
    }

    pub(super) fn has_store_fault(&self, thread: usize) -> bool {
        self.store_fault(thread).is_some()
    }

    /// Renews the lease. A node that lost it closes the thread, or learns of it by a conflict.
    pub(super) fn renew(&mut self, thread: usize, node: usize, opening: u64) -> Check {
        let me = (node, self.nodes[node].incarnation);
        let (now, healed) = (self.now, self.healed);
        let Some(epoch) = self.live(thread, node, opening).map(|live| live.epoch) else {
            return Ok(());
        };
        let sim_thread = &mut self.threads[thread];
        if sim_thread.lease.holder == Some(me) && sim_thread.lease.epoch == epoch.0 {
            sim_thread.lease.until = now + LEASE_MS;
        } else if healed || sim_thread.rng.percent(30) {
            self.close(thread, node);
            return Ok(());
        }
        self.push_node(LEASE_MS / 3, node, AtNode::Renew(thread, opening));
        Ok(())
    }

    /// Closes a thread here, and closes the connections of its subscribers and callers.
    pub(super) fn close(&mut self, thread: usize, node: usize) {
        let Some(live) = self.nodes[node].live.remove(&thread) else {
            return;
        };
        let subscribers = live
            .subscribers
            .into_iter()
            .map(|(client, it)| (client, it.link));
        let callers = live
            .tokens
            .into_values()
            .map(|caller| (caller.client, caller.link));
        for (client, link) in subscribers.chain(callers) {
            self.send_to_client(thread, client, link, ToClient::Closed);
        }
    }

    /// Releases every thread cleanly.
    pub fn release_all(&mut self, node: usize) {
        let threads: Vec<usize> = self.nodes[node].live.keys().copied().collect();
        for thread in threads {
            let opening = self.nodes[node].live[&thread].opening;
            self.push_node(1, node, AtNode::Late(thread, opening, Command::Release));
        }
    }
}

/// Returns a thread's first record.
fn thread_started(thread: ThreadId) -> ThreadStarted {
    ThreadStarted {
        thread,
        tenant: None,
        principal: Some("someone".to_owned()),
        source: ThreadSource::AppServer,
        originator: None,
        label: None,
        version: "0".to_owned(),
        ephemeral: false,
        paginated: false,
        git: None,
        settings: Settings {
            cwd: "/w".to_owned(),
            compact_above: Some(1_000),
            fallback: ["a/m", "b/n"]
                .iter()
                .filter_map(|it| Route::parse(it))
                .collect(),
            ..Settings::default()
        },
    }
}

/// Returns a node's identity for its threads. Every third node interrupts the turns of dead owners,
/// as a child of an editor does.
impl SimWorld {
    pub(super) fn identity(&self, node: usize, epoch: Epoch) -> raddle_core::WriterNode {
        // A database compares the name, so each process has one of its own.
        let name = match self.store.database {
            Some(_) => format!("node{node}.{}", self.nodes[node].incarnation),
            None => format!("node{node}"),
        };
        raddle_core::WriterNode {
            name,
            epoch,
            recovery: if node % 3 == 2 {
                Recovery::Interrupt
            } else {
                Recovery::Continue
            },
        }
    }
}
