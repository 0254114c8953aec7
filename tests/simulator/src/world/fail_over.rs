//! Changes of the primary, and what statements stored.

use std::rc::Rc;

use super::{Next, SimWorld};
use crate::check::{Check, broken};
use crate::fleet::{AppendStatement, NodeLogBatch, Statement};
use crate::node::short;
use crate::scenario::{FailOverMoment, PlannedFault};
use crate::store::LogRow;

impl SimWorld {
    /// Changes the primary, if the condition for it holds. Returns whether it did.
    pub(super) fn fail_over(
        &mut self,
        fault: &PlannedFault,
    ) -> Result<bool, crate::check::BrokenPromise> {
        let PlannedFault::FailOver {
            ms,
            kept_percent,
            former_of,
            former_ms,
            moment,
        } = *fault
        else {
            return Ok(false);
        };
        let Some(database) = &mut self.store.database else {
            return Ok(false);
        };
        let is_due = match moment {
            FailOverMoment::Now => true,
            FailOverMoment::UnreplicatedBatch => database.has_unreplicated_batch(),
            FailOverMoment::Sealed => database.has_just_sealed(),
        };
        if !is_due {
            return Ok(false);
        }
        let lost = database.fail_over(self.now, kept_percent, former_of > 0);
        let generation = database.generation;
        self.database_net.down_until = self.now + ms;
        self.database_net.former_of = former_of;
        self.push(former_ms, Next::EndFormer(generation));
        for statement in lost {
            match statement {
                Statement::Batch(batch) => {
                    self.coverage.hit("batch lost with the primary");
                    for row in batch.rows.iter() {
                        self.database_net.stored.remove(&row.attempt);
                    }
                }
                Statement::Append(append) => {
                    self.coverage.hit("append lost with the primary");
                    self.database_net.stored.remove(&append.attempt);
                }
                _ => {}
            }
        }
        for thread in 0..self.threads.len() {
            let (head, rows) = {
                let log = self.store.log(thread);
                (log.head, log.rows.len())
            };
            self.trace_line(|| format!("thread {thread}: after the change of the primary it is at {head}, in {rows} rows"));
            let (sim_thread, log) = (&mut self.threads[thread], self.store.log(thread));
            if !sim_thread.removed {
                sim_thread.oracle.i7_survives_fail_over(log)?;
            }
        }
        Ok(true)
    }

    /// Ends the former primary, unless the primary changed again.
    pub(super) fn end_former(&mut self, generation: u64) {
        if let Some(database) = &mut self.store.database
            && database.generation == generation
        {
            database.end_former();
            self.database_net.former_of = 0;
        }
    }

    /// Checks what a batch stored.
    pub fn batch_is_stored(&mut self, batch: &NodeLogBatch) -> Check {
        for row in batch.rows.iter() {
            self.attempt_is_stored(row.attempt)?;
            let (thread, seq) = (row.thread, row.row.record.seq);
            let removed = self.threads[thread].removed;
            let database = self.store.database.as_ref();
            if database.is_some_and(|it| it.accepts(batch.log, thread, seq)) {
                let after = self.threads[thread].oracle.newest();
                self.rows_are_stored(row.by, thread, after, std::slice::from_ref(&row.row))?;
            } else if removed {
                let oracle = &mut self.threads[thread].oracle;
                oracle.acknowledged_in_vain(row.by, &row.row);
            }
        }
        Ok(())
    }

    /// Checks what an append stored: the deltas that only the writer's memory had, and the records.
    pub fn append_is_stored(&mut self, append: &AppendStatement) -> Check {
        self.attempt_is_stored(append.attempt)?;
        let thread = append.thread;
        let oracle = &mut self.threads[thread].oracle;
        oracle.i7_gathered_is_whole(append.expected.head, &append.gathered)?;
        if let Some(copy) = &append.copy {
            oracle.add_copied(copy)?;
        }
        for row in &append.gathered {
            let newest = self.threads[thread].oracle.newest();
            if row.row.record.seq > newest {
                self.coverage.hit("lost text stored with an event");
                self.rows_are_stored(row.by, thread, newest, std::slice::from_ref(&row.row))?;
            }
        }
        let after = match (append.gathered.last(), &append.copy) {
            (Some(last), _) => last.row.record.seq,
            (None, Some(copy)) => copy.last().map(|row| row.record.seq).unwrap_or_default(),
            (None, None) => append.expected.head,
        };
        self.rows_are_stored(append.by, thread, after, &append.records)?;
        if append.copy.is_some() {
            self.start_clients(thread);
        }
        Ok(())
    }

    fn attempt_is_stored(&mut self, attempt: u64) -> Check {
        self.database_net.stored.insert(attempt);
        if self.database_net.failed.contains(&attempt) {
            return self.denied_and_stored(attempt);
        }
        Ok(())
    }

    /// Reports an append that is stored although its caller was told that nothing was.
    pub fn denied_and_stored(&self, attempt: u64) -> Check {
        broken(
            "I7 nothing is stored that failed",
            format!("append {attempt} was reported as not stored, and is stored"),
        )
    }

    fn rows_are_stored(
        &mut self,
        by: crate::check::WriterId,
        thread: usize,
        after: raddle_core::Seq,
        rows: &[Rc<LogRow>],
    ) -> Check {
        for row in rows {
            self.trace.add_bytes(row.json.as_bytes());
            self.coverage.record(&row.record);
            let text = || {
                let (seq, what) = (row.record.seq, short(&row.record.body));
                format!("thread {thread}: {seq} {what}")
            };
            self.trace_line(text);
        }
        let oracle = &mut self.threads[thread].oracle;
        oracle.count(rows, &mut self.coverage);
        oracle.stored(by, after, rows)
    }
}
