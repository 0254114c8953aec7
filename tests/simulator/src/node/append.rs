//! Appends: their sending, arrival and result.

use raddle_core::ports::{AppendError, ends_for_lack_of_space};
use raddle_core::{Epoch, Event, Failure, FailureKind, Record, RecordBody, Seq};

use crate::check::{Check, broken};
use crate::store::Append;
use crate::world::{Arrival, AtNode, Next, SimWorld, StoreFault};

impl SimWorld {
    /// Sends an append. It, or its response, may be lost.
    pub(super) fn send(&mut self, node: usize, opening: u64, append: Append) {
        if self.store.database.is_some() {
            return self.send_to_database(node, opening, append);
        }
        let sim_thread = &mut self.threads[append.thread];
        let thread = append.thread;
        // Barriers are few, and their outcome matters most.
        let barrier = append.records.iter().any(is_barrier);
        let lost_percent = self.scenario.lost * if barrier { 4 } else { 1 };
        let lost = !self.healed && sim_thread.rng.percent(lost_percent);
        let fate = if lost { 1 + sim_thread.rng.below(3) } else { 0 };
        let (short, long) = (sim_thread.rng.range(1, 8), sim_thread.rng.range(60, 300));
        let later = sim_thread.rng.range(100, 3_000);
        let incarnation = self.nodes[node].incarnation;
        let mut arrival = Box::new(Arrival {
            node,
            incarnation,
            opening,
            append,
            answers: true,
        });
        let wait = match fate {
            0 => return self.push(short, Next::Arrive(arrival)),
            1 => {
                self.coverage.hit("append lost");
                None
            }
            2 => {
                self.coverage.hit("append answer lost");
                Some(short)
            }
            _ => {
                self.coverage.hit("append slow");
                Some(later)
            }
        };
        if let Some(wait) = wait {
            arrival.answers = false;
            self.push(wait, Next::Arrive(arrival));
        }
        let unknown = Err(AppendError::Unknown("no answer".to_owned()));
        self.push_node(long, node, AtNode::Answer(thread, opening, unknown));
    }

    /// Handles an append at the store.
    pub fn arrive(&mut self, arrival: Arrival) -> Check {
        let Arrival {
            node,
            incarnation,
            opening,
            append,
            answers,
        } = arrival;
        let thread = append.thread;
        let fault = self.store_fault(thread);
        let result = match fault.filter(|it| *it != StoreFault::Full || !uses_reserve(&append)) {
            Some(StoreFault::Unavailable) => Err(AppendError::Unavailable("away".to_owned())),
            Some(StoreFault::Full) => Err(AppendError::Full("no room".to_owned())),
            Some(StoreFault::ReadOnly) => Err(AppendError::ReadOnly("sealed".to_owned())),
            None if self.threads[thread].removed => Err(AppendError::Conflict),
            None => self.store.append(&append),
        };
        let answer = match result {
            Ok(rows) => {
                for row in &rows {
                    self.trace.add_bytes(row.json.as_bytes());
                    self.coverage.record(&row.record);
                    self.trace_line(|| {
                        format!(
                            "thread {thread}: {} {}",
                            row.record.seq,
                            short(&row.record.body)
                        )
                    });
                }
                let oracle = &mut self.threads[thread].oracle;
                if let Some(copy) = &append.copy {
                    oracle.add_copied(copy)?;
                }
                oracle.count(&rows, &mut self.coverage);
                oracle.stored((node, opening), append.after, &rows)?;
                if append.copy.is_some() {
                    self.start_clients(thread);
                }
                Ok(rows.last().map_or(append.after, |row| row.record.seq))
            }
            Err(error) => {
                if error == AppendError::Conflict {
                    self.coverage.hit("conflict");
                    if append.records.iter().any(is_barrier) {
                        self.coverage.hit("barrier in conflict");
                    }
                }
                Err(error)
            }
        };
        if answers {
            let wait = self.threads[thread].rng.range(1, 8);
            let at_node = AtNode::Answer(thread, opening, answer);
            self.push(wait, Next::Node(node, incarnation, at_node));
        }
        Ok(())
    }

    pub(super) fn answer(
        &mut self,
        thread: usize,
        node: usize,
        opening: u64,
        result: Result<Seq, AppendError>,
    ) -> Check {
        let Some(live) = self.live(thread, node, opening).filter(|live| live.busy) else {
            return Ok(());
        };
        live.busy = false;
        if result.is_ok() {
            live.copy = None;
        }
        let is_away = matches!(result, Err(AppendError::Unavailable(_)));
        live.full = matches!(result, Err(AppendError::Full(_)));
        let again = is_away || live.full && live.owner.fails().is_some();
        let actions = live.owner.appended(result);
        self.live_is_the_fold(thread, node)?;
        self.perform(thread, node, actions)?;
        if again {
            let wait = self.threads[thread].rng.range(20, 200);
            self.push_node(wait, node, AtNode::Drive(thread, opening));
            return Ok(());
        }
        self.drive(thread, node)
    }

    /// Takes ownership again after an append without space, and fails the turn. Returns whether it
    /// did.
    pub(super) fn fail_turn(&mut self, thread: usize, node: usize) -> bool {
        let me = (node, self.nodes[node].incarnation);
        let now = self.clock(node);
        let Some(live) = self.nodes[node].live.get_mut(&thread) else {
            return false;
        };
        let sim_thread = &mut self.threads[thread];
        let is_mine = sim_thread.lease.holder == Some(me) && sim_thread.lease.epoch == live.epoch.0;
        let log = self.store.log(thread);
        if !live.full || !is_mine || live.copy.is_some() || log.head != live.owner.stored() {
            return false;
        }
        let (opened, tail) = log.open(log.head);
        if opened.turn().is_none() || opened.epoch() != live.epoch {
            return false;
        }
        sim_thread.lease.epoch += 1;
        live.epoch = Epoch(sim_thread.lease.epoch);
        live.full = false;
        live.model = None;
        live.tools.clear();
        live.wake = None;
        let failure = Failure::new(FailureKind::StorageFull, "no room");
        let epoch = live.epoch;
        let me = self.identity(node, epoch);
        let Some(live) = self.nodes[node].live.get_mut(&thread) else {
            return false;
        };
        live.owner.fail_turn(opened, me, failure, now, tail);
        self.trace_line(|| format!("thread {thread}: node {node} fails its turn for lack of room"));
        true
    }

    pub(super) fn head(
        &mut self,
        thread: usize,
        node: usize,
        opening: u64,
        head: Option<Seq>,
    ) -> Check {
        let Some(live) = self.live(thread, node, opening) else {
            return Ok(());
        };
        live.busy = false;
        let Some(head) = head else {
            self.push_node(50, node, AtNode::Drive(thread, opening));
            return Ok(());
        };
        let actions = live.owner.head_is(head);
        self.live_is_the_fold(thread, node)?;
        self.perform(thread, node, actions)?;
        self.drive(thread, node)
    }

    /// I8: once its append is stored, the live thread is the fold of the log.
    pub(super) fn live_is_the_fold(&self, thread: usize, node: usize) -> Check {
        let Some(live) = self.nodes[node].live.get(&thread) else {
            return Ok(());
        };
        let oracle = &self.threads[thread].oracle;
        let at = live.owner.thread().head();
        if at == live.owner.stored()
            && at == oracle.fold.head()
            && *live.owner.thread() != oracle.fold
        {
            return broken(
                "I8 the live thread is the fold",
                format!("they differ at {at}"),
            );
        }
        Ok(())
    }
}

/// Whether an append may use the store's reserve, and that is still there.
pub(super) fn uses_reserve(append: &Append) -> bool {
    ends_for_lack_of_space(&append.records) && !append.after.0.is_multiple_of(4)
}

pub(super) fn is_barrier(record: &Record) -> bool {
    match &record.body {
        RecordBody::Event(event) => matches!(**event, Event::Owned(_)),
        RecordBody::Delta(_) => false,
    }
}

pub(crate) fn short(body: &RecordBody) -> String {
    let mut text = format!("{body:?}");
    if let Some((cut, _)) = text.char_indices().nth(150) {
        text.truncate(cut);
    }
    text
}
