//! Getting a thread, opening it, and letting it go.

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
    /// A client wants a thread that is not open here.
    pub(super) fn want(&mut self, thread: usize, node: usize, waiting: OpenWaiter) {
        let life = self.nodes[node].life;
        let now = self.now;
        let lane = &mut self.lanes[thread];
        if lane.gone {
            let (client, link) = (waiting.client, waiting.link);
            return self.tell_client(thread, client, link, ToClient::Closed);
        }
        let held = lane.lease.holder.filter(|_| lane.lease.until > now);
        let asking = self.nodes[node].wants.contains_key(&thread);
        match held {
            Some((holder, _)) if holder != node && !asking => {
                let (client, link) = (waiting.client, waiting.link);
                self.tell_client(thread, client, link, ToClient::Moved(holder));
            }
            _ if asking => {
                self.nodes[node]
                    .wants
                    .entry(thread)
                    .or_default()
                    .push(waiting);
            }
            _ => {
                lane.lease.epoch += 1;
                lane.lease.holder = Some((node, life));
                lane.lease.until = now + LEASE_MS;
                let epoch = Epoch(lane.lease.epoch);
                let late = lane.rng.percent(self.scenario.late) && !self.healed;
                let wait = if late {
                    lane.rng.range(200, 3 * LEASE_MS)
                } else {
                    lane.rng.range(1, 20)
                };
                if wait > LEASE_MS {
                    self.reach.hit("lease late");
                }
                self.nodes[node]
                    .wants
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
        let wait = self.lanes[thread].rng.range(1, 30);
        self.push_node(wait, node, AtNode::Read(thread, epoch));
        Ok(())
    }

    /// The thread has been read: it is taken.
    pub(super) fn open(&mut self, thread: usize, node: usize, epoch: Epoch) -> Check {
        if self.nodes[node].live.contains_key(&thread) {
            return Ok(());
        }
        if self.trouble(thread) == Some(StoreFault::Unavailable) {
            self.push_node(100, node, AtNode::Read(thread, epoch));
            return Ok(());
        }
        if self.lanes[thread].gone {
            let waiting = self.nodes[node].wants.remove(&thread).unwrap_or_default();
            for it in waiting {
                self.tell_client(thread, it.client, it.link, ToClient::Closed);
            }
            return Ok(());
        }
        let now = self.clock(node);
        let log = self.store.log(thread);
        let me = identity(node, epoch);
        let owner = if log.is_empty() && log.head == Seq::ZERO {
            ThreadWriter::start(beginning(self.lanes[thread].id), me, now)
        } else {
            self.lanes[thread].oracle.i8_opens_alike(log)?;
            let ((opened, tail), head) = (log.open(log.head), log.head);
            if log.bases() > 0 {
                self.reach.hit("opened from a base");
            }
            if opened.is_deleted() {
                self.push(5, Next::Remove(thread));
            }
            ThreadWriter::open(opened, head, me, now).since_base(tail)
        };
        self.say(|| format!("thread {thread}: node {node} opens it in {epoch:?}"));
        self.install(thread, node, epoch, owner, None);
        let waiting = self.nodes[node].wants.remove(&thread).unwrap_or_default();
        for OpenWaiter { client, link, seen } in waiting {
            self.message(thread, node, client, link, ToNode::Subscribe(seen))?;
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
        let lane = &mut self.lanes[thread];
        lane.openings += 1;
        let opening = lane.openings;
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

    /// The new thread's log begins with a copy of the old one's.
    pub(super) fn fork(&mut self, thread: usize, node: usize) {
        let life = self.nodes[node].life;
        let new = self.lanes.len();
        let lane = &mut self.lanes[thread];
        let log = self.store.log(thread);
        let turns = &lane.oracle.turns;
        if !lane.forks || turns.is_empty() || self.trouble_at(thread) {
            return;
        }
        let lane = &mut self.lanes[thread];
        lane.forks = false;
        let at = if lane.rng.percent(40) {
            log.head
        } else if lane.rng.percent(40) {
            log.rows[lane.rng.index(log.rows.len())].record.seq
        } else {
            let index = lane.rng.index(lane.oracle.turns.len());
            let before = lane.oracle.turns[index].1;
            let rows = log.rows.iter().rev();
            rows.map(|row| row.record.seq)
                .find(|seq| *seq < before)
                .unwrap_or(log.head)
        };
        let past = log.fold(at);
        if past.id().is_none() || past.is_deleted() {
            return;
        }
        let from = lane.id;
        if thread >= self.scenario.threads {
            self.reach.hit("fork of a fork");
        }
        let rows = log.rows.iter().take_while(|row| row.record.seq <= at);
        let copy = Some(Rc::new(rows.cloned().collect()));
        self.store.add();
        self.add_lane(new);
        let epoch = Epoch(past.epoch().0 + 1);
        let lane = &mut self.lanes[new];
        lane.lease = Lease {
            holder: Some((node, life)),
            epoch: epoch.0,
            until: self.now + LEASE_MS,
        };
        lane.turns_left = 2;
        // A fork of a fork is as good as one of them, and a third tells nothing new.
        lane.forks = thread < self.scenario.threads && !self.healed;
        let forked = Forked {
            thread: lane.id,
            from,
            at: past.head(),
            principal: None,
            lineage: past.lineage().to_vec(),
            turns: past.turns(),
            settings: past.settings().clone(),
            ephemeral: false,
        };
        let me = identity(node, epoch);
        let owner = ThreadWriter::fork(past, forked, me, self.clock(node));
        self.install(new, node, epoch, owner, copy);
        let opening = self.lanes[new].openings;
        self.push_node(0, node, AtNode::Drive(new, opening));
    }

    pub(super) fn trouble_at(&self, thread: usize) -> bool {
        self.trouble(thread).is_some()
    }

    /// The lease is renewed; who has lost it stops, or finds out by being refused.
    pub(super) fn renew(&mut self, thread: usize, node: usize, opening: u64) -> Check {
        let me = (node, self.nodes[node].life);
        let (now, healed) = (self.now, self.healed);
        let Some(epoch) = self.live(thread, node, opening).map(|live| live.epoch) else {
            return Ok(());
        };
        let lane = &mut self.lanes[thread];
        if lane.lease.holder == Some(me) && lane.lease.epoch == epoch.0 {
            lane.lease.until = now + LEASE_MS;
        } else if healed || lane.rng.percent(30) {
            self.close(thread, node);
            return Ok(());
        }
        self.push_node(LEASE_MS / 3, node, AtNode::Renew(thread, opening));
        Ok(())
    }

    /// The thread is no longer open here, and whoever listens is told so.
    pub(super) fn close(&mut self, thread: usize, node: usize) {
        let Some(live) = self.nodes[node].live.remove(&thread) else {
            return;
        };
        let listeners = live
            .subscribers
            .into_iter()
            .map(|(client, it)| (client, it.link));
        let callers = live
            .tokens
            .into_values()
            .map(|caller| (caller.client, caller.link));
        for (client, link) in listeners.chain(callers) {
            self.tell_client(thread, client, link, ToClient::Closed);
        }
    }

    /// Every thread is left in good order.
    pub fn leave(&mut self, node: usize) {
        let threads: Vec<usize> = self.nodes[node].live.keys().copied().collect();
        for thread in threads {
            let opening = self.nodes[node].live[&thread].opening;
            self.push_node(1, node, AtNode::Late(thread, opening, Command::Release));
        }
    }
}

/// A thread's first record.
fn beginning(thread: ThreadId) -> ThreadStarted {
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

/// A node as threads see it. One of three ends the turns of dead owners, as a child of an editor does.
pub(super) fn identity(node: usize, epoch: Epoch) -> raddle_core::WriterNode {
    raddle_core::WriterNode {
        name: format!("node{node}"),
        epoch,
        recovery: if node % 3 == 2 {
            Recovery::Interrupt
        } else {
            Recovery::Continue
        },
    }
}
