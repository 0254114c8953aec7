//! What goes wrong, and how all is well again.

use raddle_core::Seq;

use super::{Next, SimWorld, StoreFault};
use crate::check::Check;
use crate::client::ToClient;
use crate::rng::Rng;
use crate::scenario::{Medium, Moment, PlannedFault};
use crate::store::Log;

impl SimWorld {
    pub(super) fn fault(&mut self, fault: &PlannedFault) -> Check {
        if self.healed {
            return Ok(());
        }
        let nodes = self.nodes.len();
        let mut happened = true;
        match *fault {
            PlannedFault::Kill { node, ms } => happened = self.kill(node % nodes, ms),
            PlannedFault::Shutdown { node, .. } if !self.nodes[node % nodes].alive => {
                happened = false
            }
            PlannedFault::Shutdown { node, ms } => {
                self.leave(node % nodes);
                self.push(300, Next::Fault(PlannedFault::Kill { node, ms }));
            }
            PlannedFault::PowerCut { ms, kept, torn } => {
                self.say(|| format!("{fault:?}"));
                self.reach.hit(fault.name());
                return self.cut_power(ms, kept, torn);
            }
            PlannedFault::Pause { node, ms } => {
                let it = &mut self.nodes[node % nodes];
                happened = it.alive && !it.paused;
                if happened {
                    it.paused = true;
                    let life = it.life;
                    self.push(ms, Next::Resume(node % nodes, life));
                }
            }
            PlannedFault::ClockJump { node, by, moment } => {
                happened = self.jump(node % nodes, by, moment);
                if !happened {
                    self.push(50, Next::Fault(fault.clone()));
                }
            }
            PlannedFault::Unavailable { thread, ms } => {
                self.trouble_for(thread, StoreFault::Unavailable, ms)
            }
            PlannedFault::Full { thread, ms } => self.trouble_for(thread, StoreFault::Full, ms),
            PlannedFault::ReadOnly { thread, ms } => {
                self.trouble_for(thread, StoreFault::ReadOnly, ms)
            }
            PlannedFault::LeaseLost { thread } => {
                if let Some(lane) = self.lanes.get_mut(thread) {
                    lane.lease.until = self.now;
                }
            }
        }
        if happened {
            self.say(|| format!("{fault:?}"));
            self.reach.hit(fault.name());
        }
        Ok(())
    }

    pub(super) fn trouble_for(&mut self, thread: usize, trouble: StoreFault, ms: u64) {
        let until = self.now + ms;
        if let Some(lane) = self.lanes.get_mut(thread) {
            lane.trouble = Some((trouble, until));
        }
    }

    /// A process dies: what it held in memory is gone, and its tools with it.
    pub(super) fn kill(&mut self, node: usize, ms: u64) -> bool {
        let it = &mut self.nodes[node];
        if !it.alive {
            return false;
        }
        let dead = (node, it.life);
        it.alive = false;
        it.life += 1;
        it.paused = false;
        it.deferred.clear();
        it.wants.clear();
        let live = std::mem::take(&mut it.live);
        let untold = live.iter().any(|(thread, live)| {
            let mine = self.lanes[*thread]
                .oracle
                .writer
                .is_some_and(|(writer, _)| writer.1 == live.opening);
            mine && live.busy && live.owner.stored() < self.store.log(*thread).head
        });
        if untold {
            self.reach.hit("killed between stored and told");
        }
        for (thread, lane) in self.lanes.iter_mut().enumerate() {
            // On one box the lock goes with the process; elsewhere the lease must run out.
            if lane.lease.holder == Some(dead) && live.contains_key(&thread) && lane.rng.percent(50)
            {
                lane.lease.until = self.now;
            }
        }
        self.push(ms, Next::Up(node));
        self.hang_up(dead);
        true
    }

    /// Clients of a dead process notice, sooner or later.
    pub(super) fn hang_up(&mut self, dead: (usize, u64)) {
        for thread in 0..self.lanes.len() {
            for client in 0..self.lanes[thread].clients.len() {
                let link = self.lanes[thread].clients[client].link;
                if (link.node, link.life) == dead {
                    let wait = self.lanes[thread].rng.range(1, 200);
                    self.push(wait, Next::ToClient(thread, client, link, ToClient::Closed));
                }
            }
        }
    }

    /// A clock jumps, if it is the moment for it.
    fn jump(&mut self, node: usize, by: i64, moment: Moment) -> bool {
        let it = &mut self.nodes[node];
        // One thread's moment: what becomes of it must not hang on another.
        let first = it.live.get(&0);
        let waits = first.is_some_and(|live| live.owner.thread().wake_at().is_some());
        let appends = first.is_some_and(|live| live.busy);
        let now = match moment {
            Moment::Now => true,
            Moment::Waiting => waits,
            Moment::Appending => appends,
        };
        if !now {
            return false;
        }
        it.clock += by;
        if by < 0 && waits {
            self.reach.hit("clock set back while something waits");
        }
        if by < 0 && appends {
            self.reach
                .hit("clock set back while an append is under way");
        }
        true
    }

    pub(super) fn cut_power(&mut self, ms: u64, kept: u64, torn: Option<u64>) -> Check {
        for node in 0..self.nodes.len() {
            self.kill(node, ms);
        }
        if self.scenario.medium == Medium::Fleet {
            return Ok(());
        }
        // What was on its way to the disk never gets there.
        self.queue.retain(|_, next| {
            !matches!(
                next,
                Next::Arrive(_) | Next::SaveBase(..) | Next::Remove(_) | Next::AskHead(..)
            )
        });
        let before: Vec<Log> = (0..self.lanes.len())
            .map(|thread| self.store.log(thread).clone())
            .collect();
        match torn {
            Some(seed) => self.store.tear(&mut Rng::new(seed, 1)),
            None => self.store.lose_power(kept),
        }
        let mut whole = 0;
        for (thread, before) in before.iter().enumerate() {
            let (lane, log) = (&mut self.lanes[thread], self.store.log(thread));
            if !lane.gone {
                lane.oracle.i7_survives_power(log)?;
            }
            if log.head < before.head {
                self.reach.hit("records lost with the power");
            } else {
                whole += 1;
                if log.bases() < before.bases() {
                    self.reach.hit("base lost and its records not");
                }
            }
            let known = |seq: Seq| before.rows.iter().any(|row| row.record.seq == seq);
            if log.rows.iter().any(|row| !known(row.record.seq)) {
                self.reach.hit("settled text came back when the power went");
            }
        }
        if torn.is_some() && whole > 0 && whole < before.len() {
            self.reach
                .hit("records of one thread lost and of another not");
        }
        Ok(())
    }

    pub(super) fn resume(&mut self, node: usize, life: u64) {
        let it = &mut self.nodes[node];
        if it.life != life || !it.paused {
            return;
        }
        it.paused = false;
        let deferred = std::mem::take(&mut it.deferred);
        let zombie = it
            .live
            .iter()
            .any(|(thread, live)| self.lanes[*thread].lease.epoch > live.epoch.0);
        if zombie {
            self.reach.hit("zombie woke");
        }
        for next in deferred {
            self.push(0, next);
        }
    }

    pub(super) fn heal(&mut self) {
        self.say(|| "all is well again".to_owned());
        self.healed = true;
        for node in 0..self.nodes.len() {
            let life = self.nodes[node].life;
            self.resume(node, life);
            self.nodes[node].alive = true;
        }
        for lane in &mut self.lanes {
            lane.trouble = None;
            lane.turns_left = 0;
            lane.forks = false;
            for client in &mut lane.clients {
                client.commands_left = 0;
            }
        }
        self.push(500, Next::CheckDone);
    }
}
