//! Faults, and their end.

use raddle_core::Seq;
use support::Rng;

use super::{Next, SimWorld, StoreFault};
use crate::check::Check;
use crate::client::ToClient;
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
                self.release_all(node % nodes);
                self.push(300, Next::Fault(PlannedFault::Kill { node, ms }));
            }
            PlannedFault::PowerCut {
                ms,
                kept_percent,
                torn,
            } => {
                self.trace_line(|| format!("{fault:?}"));
                self.coverage.hit(fault.name());
                return self.cut_power(ms, kept_percent, torn);
            }
            PlannedFault::Pause { node, ms } => {
                let it = &mut self.nodes[node % nodes];
                happened = it.alive && !it.paused;
                if happened {
                    it.paused = true;
                    let incarnation = it.incarnation;
                    self.push(ms, Next::Resume(node % nodes, incarnation));
                }
            }
            PlannedFault::ClockJump { node, by, moment } => {
                happened = self.jump(node % nodes, by, moment);
                if !happened {
                    self.push(50, Next::Fault(fault.clone()));
                }
            }
            PlannedFault::Unavailable { thread, ms } => {
                self.set_store_fault(thread, StoreFault::Unavailable, ms)
            }
            PlannedFault::Full { thread, ms } => self.set_store_fault(thread, StoreFault::Full, ms),
            PlannedFault::ReadOnly { thread, ms } => {
                self.set_store_fault(thread, StoreFault::ReadOnly, ms)
            }
            PlannedFault::FailOver { .. } => {
                happened = self.fail_over(fault)?;
                if !happened {
                    self.push(2, Next::Fault(fault.clone()));
                }
            }
            PlannedFault::Partition {
                node,
                ms,
                answers_lost,
            } => {
                let until = self.now + ms;
                self.nodes[node % nodes].partition = Some((until, answers_lost));
            }
            PlannedFault::LeaseLost { thread } => {
                if let Some(sim_thread) = self.threads.get_mut(thread) {
                    sim_thread.lease.until = self.now;
                }
            }
        }
        if happened {
            self.trace_line(|| format!("{fault:?}"));
            self.coverage.hit(fault.name());
        }
        Ok(())
    }

    pub(super) fn set_store_fault(&mut self, thread: usize, fault: StoreFault, ms: u64) {
        let until = self.now + ms;
        if let Some(sim_thread) = self.threads.get_mut(thread) {
            sim_thread.store_fault = Some((fault, until));
        }
    }

    /// Kills a process: its memory is lost, and its tools die with it.
    pub(super) fn kill(&mut self, node: usize, ms: u64) -> bool {
        let it = &mut self.nodes[node];
        if !it.alive {
            return false;
        }
        let dead = (node, it.incarnation);
        it.alive = false;
        it.incarnation += 1;
        it.paused = false;
        it.deferred.clear();
        it.pending_opens.clear();
        let live = std::mem::take(&mut it.live);
        let is_unannounced = live.iter().any(|(thread, live)| {
            let mine = self.threads[*thread]
                .oracle
                .writer
                .is_some_and(|(writer, _)| writer.1 == live.opening);
            mine && live.busy && live.owner.stored() < self.store.log(*thread).head
        });
        if is_unannounced {
            self.coverage.hit("killed between stored and told");
        }
        for (thread, sim_thread) in self.threads.iter_mut().enumerate() {
            // On one machine the lock is freed with the process; elsewhere the lease must expire.
            if sim_thread.lease.holder == Some(dead)
                && live.contains_key(&thread)
                && sim_thread.rng.percent(50)
            {
                sim_thread.lease.until = self.now;
            }
        }
        self.start_journal(node);
        self.push(ms, Next::Up(node));
        self.close_connections(dead);
        true
    }

    /// Closes the connections of a dead process, after a delay.
    pub(super) fn close_connections(&mut self, dead: (usize, u64)) {
        for thread in 0..self.threads.len() {
            for client in 0..self.threads[thread].clients.len() {
                let link = self.threads[thread].clients[client].link;
                if (link.node, link.incarnation) == dead {
                    let wait = self.threads[thread].rng.range(1, 200);
                    self.push(wait, Next::ToClient(thread, client, link, ToClient::Closed));
                }
            }
        }
    }

    /// Changes a clock, if the condition for it holds.
    fn jump(&mut self, node: usize, by: i64, moment: Moment) -> bool {
        let it = &mut self.nodes[node];
        // Only the first thread counts: the outcome must not depend on another.
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
            self.coverage.hit("clock set back while something waits");
        }
        if by < 0 && appends {
            self.coverage
                .hit("clock set back while an append is under way");
        }
        true
    }

    pub(super) fn cut_power(&mut self, ms: u64, kept_percent: u64, torn: Option<u64>) -> Check {
        for node in 0..self.nodes.len() {
            self.kill(node, ms);
        }
        if matches!(self.scenario.medium, Medium::Replicated | Medium::Fleet) {
            return Ok(());
        }
        // Writes that were under way never reach the disk.
        self.queue.retain(|_, next| {
            !matches!(
                next,
                Next::Arrive(_) | Next::SaveBase(..) | Next::Remove(_) | Next::AskHead(..)
            )
        });
        let before: Vec<Log> = (0..self.threads.len())
            .map(|thread| self.store.log(thread).clone())
            .collect();
        match torn {
            Some(seed) => self.store.tear(&mut Rng::for_purpose(seed, 1)),
            None => self.store.lose_power(kept_percent),
        }
        let mut whole = 0;
        for (thread, before) in before.iter().enumerate() {
            let (sim_thread, log) = (&mut self.threads[thread], self.store.log(thread));
            if !sim_thread.removed {
                sim_thread.oracle.i7_survives_power(log)?;
            }
            if log.head < before.head {
                self.coverage.hit("records lost with the power");
            } else {
                whole += 1;
                if log.bases() < before.bases() {
                    self.coverage.hit("base lost and its records not");
                }
            }
            let known = |seq: Seq| before.rows.iter().any(|row| row.record.seq == seq);
            if log.rows.iter().any(|row| !known(row.record.seq)) {
                self.coverage
                    .hit("settled text came back when the power went");
            }
        }
        if torn.is_some() && whole > 0 && whole < before.len() {
            self.coverage
                .hit("records of one thread lost and of another not");
        }
        Ok(())
    }

    pub(super) fn resume(&mut self, node: usize, incarnation: u64) {
        let it = &mut self.nodes[node];
        if it.incarnation != incarnation || !it.paused {
            return;
        }
        it.paused = false;
        let deferred = std::mem::take(&mut it.deferred);
        let zombie = it
            .live
            .iter()
            .any(|(thread, live)| self.threads[*thread].lease.epoch > live.epoch.0);
        if zombie {
            self.coverage.hit("zombie woke");
        }
        for next in deferred {
            self.push(0, next);
        }
    }

    pub(super) fn heal(&mut self) {
        self.trace_line(|| "all is well again".to_owned());
        self.healed = true;
        for node in 0..self.nodes.len() {
            let incarnation = self.nodes[node].incarnation;
            self.resume(node, incarnation);
            self.nodes[node].alive = true;
            self.nodes[node].partition = None;
        }
        self.database_net.down_until = self.now;
        self.database_net.former_of = 0;
        for sim_thread in &mut self.threads {
            sim_thread.store_fault = None;
            sim_thread.turns_left = 0;
            sim_thread.forks = false;
            for client in &mut sim_thread.clients {
                client.commands_left = 0;
            }
        }
        self.push(500, Next::CheckDone);
    }
}
