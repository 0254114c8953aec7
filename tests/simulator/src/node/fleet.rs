//! Nodes whose journal is on a database: the tasks of the journal, and what they send and receive.

use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use raddle_core::ports::AppendError;
use raddle_core::{Bug, Epoch, Seq};

use super::append::uses_reserve;
use crate::check::{Check, broken};
use crate::fleet::{
    Commit, NodeJournal, QueryFailure, Response, Sent, Statement, Task, TaskResult, appends,
    prepares_read, reads_head, sends_batches, takes,
};
use crate::store::Append;
use crate::world::{AtNode, Next, QueryArrival, SimWorld, StoreFault};

impl SimWorld {
    /// Begins the journal of a node's process.
    pub fn start_journal(&mut self, node: usize) {
        let it = &mut self.nodes[node];
        it.tasks.clear();
        if self.store.database.is_some() {
            let journal = NodeJournal::new((node, it.incarnation));
            it.tasks.push(sends_batches(&journal));
            it.journal = Some(journal);
        }
    }

    /// Appends on the database.
    pub(super) fn send_to_database(&mut self, node: usize, opening: u64, append: Append) {
        let thread = append.thread;
        let fault = self.store_fault(thread);
        let fault = fault.filter(|it| *it != StoreFault::Full || !uses_reserve(&append));
        let error = match fault {
            Some(StoreFault::Unavailable) => Some(AppendError::Unavailable("away".to_owned())),
            Some(StoreFault::Full) => Some(AppendError::Full("no room".to_owned())),
            Some(StoreFault::ReadOnly) => Some(AppendError::ReadOnly("sealed".to_owned())),
            None if self.threads[thread].removed => Some(AppendError::Conflict),
            None => None,
        };
        if let Some(error) = error {
            let wait = self.database_net.rng.range(1, 8);
            let answer = AtNode::Answer(thread, opening, Err(error));
            return self.push_node(wait, node, answer);
        }
        self.database_net.attempts += 1;
        let attempt = self.database_net.attempts;
        self.spawn(node, |journal| {
            appends(journal, append, (node, opening), attempt)
        });
    }

    /// Reads the head of a thread from the database.
    pub fn read_head(&mut self, thread: usize, node: usize, opening: u64) {
        if self.live(thread, node, opening).is_none() || !self.nodes[node].alive {
            return;
        }
        if self.store_fault(thread) == Some(StoreFault::Unavailable) {
            return self.push_node(2, node, AtNode::Head(thread, opening, None));
        }
        self.spawn(node, |journal| reads_head(journal, thread, opening));
    }

    /// Begins to take a thread, if it is on a database and exists. Returns whether it did.
    pub(super) fn take(&mut self, thread: usize, node: usize, epoch: Epoch) -> bool {
        let log = self.store.log(thread);
        if self.store.database.is_none() || log.head == Seq::ZERO {
            return false;
        }
        let folded = log.fold(log.head);
        let me = self.identity(node, epoch).name;
        let former = folded.owner().filter(|it| *it != me).map(str::to_owned);
        let head = log.head;
        self.spawn(node, |journal| takes(journal, thread, epoch, head, former));
        true
    }

    /// Opens a thread that was taken, unless there are records that were not folded before.
    pub(super) fn taken(
        &mut self,
        thread: usize,
        node: usize,
        epoch: Epoch,
        folded: Seq,
        result: Result<Seq, QueryFailure>,
    ) -> Check {
        let log = self.store.log(thread);
        match result {
            Err(_) => self.push_node(100, node, AtNode::Read(thread, epoch)),
            // Records that were stored since may be those of a third node.
            Ok(head) if head > folded && log.head > folded => {
                self.push_node(1, node, AtNode::Read(thread, epoch));
            }
            Ok(head) => {
                let former = self.threads[thread].oracle.writer;
                let is_partitioned = |former: usize| {
                    let it = &self.nodes[former];
                    former != node
                        && it.alive
                        && it.partition.is_some_and(|(until, _)| until > self.now)
                };
                if former.is_some_and(|((former, _), _)| is_partitioned(former)) {
                    self.coverage.hit("taken from a partitioned node");
                }
                return self.open(thread, node, epoch, Some(head));
            }
        }
        Ok(())
    }

    /// Whether a reader on this node finds all records that the node knows as stored. Otherwise
    /// lost batches are sent again first.
    pub(super) fn covers(&mut self, thread: usize, node: usize, stored: Seq) -> bool {
        let is_covered = self.store.log(thread).head >= stored;
        if is_covered || self.store.database.is_none() || Bug::LostTextNotRead.is_planted() {
            return true;
        }
        self.coverage.hit("read while batches are lost");
        self.spawn(node, |journal| prepares_read(journal, thread));
        false
    }

    fn spawn(&mut self, node: usize, task: impl FnOnce(&Rc<NodeJournal>) -> Task) {
        if let Some(journal) = &self.nodes[node].journal {
            let task = task(journal);
            self.nodes[node].tasks.push(task);
            self.run_tasks(node);
        }
    }

    /// Handles a response of the database, or the end of a timer.
    pub(super) fn answered(
        &mut self,
        node: usize,
        id: u64,
        answer: Result<Response, QueryFailure>,
    ) -> Check {
        let journal = self.nodes[node].journal.clone();
        if journal.is_some_and(|journal| journal.port.answer(id, answer)) {
            self.run_tasks(node);
        } else {
            self.coverage.hit("late or duplicate response");
        }
        match self.database_net.denied {
            Some(attempt) => self.denied_and_stored(attempt),
            None => Ok(()),
        }
    }

    /// Runs the tasks of a node until each waits.
    fn run_tasks(&mut self, node: usize) {
        let Some(journal) = self.nodes[node].journal.clone() else {
            return;
        };
        loop {
            let changes = journal.port.changes();
            let mut results = Vec::new();
            let mut context = Context::from_waker(Waker::noop());
            let mut poll = |task: &mut Task| match task.as_mut().poll(&mut context) {
                Poll::Ready(result) => {
                    results.extend(result);
                    false
                }
                Poll::Pending => true,
            };
            self.nodes[node].tasks.retain_mut(&mut poll);
            for what in journal.reached.take() {
                self.coverage.hit(what);
            }
            for sent in journal.port.take_sent() {
                match sent {
                    Sent::Timer(id, ms) => {
                        let answer = Ok(Response::Moved(true));
                        self.push_node(ms, node, AtNode::Answered(id, answer));
                    }
                    Sent::Query(id, statement, commit) => {
                        self.send_query(node, id, statement, commit);
                    }
                }
            }
            for result in results {
                self.finished(node, result);
            }
            if journal.port.changes() == changes {
                return;
            }
        }
    }

    fn finished(&mut self, node: usize, result: TaskResult) {
        let at_node = match result {
            TaskResult::Appended {
                thread,
                opening,
                attempt,
                result,
            } => {
                if matches!(result, Err(AppendError::Unavailable(_))) {
                    let net = &mut self.database_net;
                    net.failed.insert(attempt);
                    if net.stored.contains(&attempt) {
                        net.denied = Some(attempt);
                    }
                }
                if matches!(result, Err(AppendError::Conflict)) {
                    self.coverage.hit("conflict");
                }
                AtNode::Answer(thread, opening, result)
            }
            TaskResult::Head(thread, opening, head) => AtNode::Head(thread, opening, head),
            TaskResult::Taken(thread, epoch, folded, head) => {
                AtNode::Taken(thread, epoch, folded, head)
            }
        };
        self.push_node(0, node, at_node);
    }

    /// Sends a statement. It, or its response, may be lost, late, or come twice.
    fn send_query(&mut self, node: usize, id: u64, statement: Statement, commit: Commit) {
        let Some(database) = &self.store.database else {
            return;
        };
        let generation = database.generation;
        let net = &mut self.database_net;
        net.sent += 1;
        let sent = net.sent;
        let (short, long) = (net.rng.range(1, 8), net.rng.range(60, 300));
        let later = net.rng.range(100, 3_000);
        let is_lost = net.rng.percent(self.scenario.lost) && !self.healed;
        let fate = if is_lost { 1 + net.rng.below(4) } else { 0 };
        let is_down = self.now < net.down_until && net.former_of >> node & 1 == 0;
        let partition = self.nodes[node].partition.filter(|it| it.0 > self.now);
        let mut arrival = Box::new(QueryArrival {
            node,
            incarnation: self.nodes[node].incarnation,
            id,
            statement,
            commit,
            generation,
            sent,
            answers: true,
            has_read_flag: false,
        });
        let lost = AtNode::Answered(id, Err(QueryFailure::Lost));
        let refused = AtNode::Answered(id, Err(QueryFailure::NotSent));
        let wait = match (fate, partition) {
            _ if is_down => return self.push_node(short, node, refused),
            (_, Some((_, false))) if long % 2 == 0 => {
                return self.push_node(short, node, refused);
            }
            (_, Some((_, false))) => return self.push_node(long, node, lost),
            (_, Some((_, true))) => Some(short),
            (0, None) => return self.push(short, Next::Query(arrival)),
            (1, None) => {
                self.coverage.hit("statement lost");
                None
            }
            (2, None) => {
                self.coverage.hit("response lost");
                Some(short)
            }
            (3, None) => {
                self.coverage.hit("statement late");
                Some(later)
            }
            _ => {
                // The wait for the standby broke off: the commit is visible, and may vanish.
                self.coverage.hit("wait for the standby broken off");
                arrival.commit = Commit::Nothing;
                Some(short)
            }
        };
        if let Some(wait) = wait {
            arrival.answers = false;
            self.push(wait, Next::Query(arrival));
        }
        self.push_node(long, node, lost);
    }

    /// Handles a statement at the database.
    pub fn query_arrives(&mut self, mut arrival: QueryArrival) -> Check {
        let node = arrival.node;
        let reaches_former = self.database_net.former_of >> node & 1 == 1;
        let Some(database) = &mut self.store.database else {
            return Ok(());
        };
        let is_current = arrival.generation == database.generation;
        let answer = if reaches_former {
            // A commit on it that waits for a standby waits for ever.
            let ran = (arrival.commit == Commit::Nothing)
                .then(|| database.run_on_former(&arrival.statement));
            match ran.flatten() {
                Some((response, changed)) => {
                    if changed && let Statement::Batch(batch) = &arrival.statement {
                        self.coverage.hit("batch acknowledged by a former primary");
                        for row in batch.rows.iter() {
                            let oracle = &mut self.threads[row.thread].oracle;
                            oracle.acknowledged_in_vain(row.by, &row.row);
                        }
                    }
                    Ok(response)
                }
                None => Err(QueryFailure::Lost),
            }
        } else if !is_current || self.now < self.database_net.down_until {
            Err(QueryFailure::Lost)
        } else {
            if let Statement::Batch(batch) = &arrival.statement
                && Bug::FlagReadWithoutLock.is_planted()
                && !arrival.has_read_flag
            {
                arrival.has_read_flag = true;
                if !database.is_sealed(batch.log) {
                    let wait = self.database_net.rng.range(1, 40);
                    self.push(wait, Next::Query(Box::new(arrival)));
                    return Ok(());
                }
                Ok(Response::Moved(false))
            } else {
                Ok(self.run_statement(&arrival)?)
            }
        };
        if !arrival.answers {
            return Ok(());
        }
        let incarnation = arrival.incarnation;
        let send = |world: &mut Self, wait: u64, answer| {
            let answered = AtNode::Answered(arrival.id, answer);
            world.push(wait, Next::Node(node, incarnation, answered));
        };
        let rng = &mut self.database_net.rng;
        let wait = match answer {
            Ok(_) => rng.range(1, 8),
            Err(_) => rng.range(60, 300),
        };
        if rng.percent(self.scenario.lost) && !self.healed {
            send(self, wait + 7, answer.clone());
        }
        send(self, wait, answer);
        Ok(())
    }

    /// Runs a statement on the primary, and checks what it stored.
    fn run_statement(
        &mut self,
        arrival: &QueryArrival,
    ) -> Result<Response, crate::check::BrokenPromise> {
        const I2: &str = "I2 one writer per epoch";
        let (statement, commit) = (&arrival.statement, arrival.commit);
        let Some(database) = &mut self.store.database else {
            return Ok(Response::Moved(false));
        };
        let sealed = match statement {
            Statement::Batch(batch) => database.is_sealed(batch.log),
            _ => false,
        };
        let before = match statement {
            Statement::Copy(thread, ..) => Some((*thread, database.log(*thread).head)),
            Statement::Append(it) => Some((it.thread, database.log(it.thread).head)),
            _ => None,
        };
        let former = match statement {
            Statement::Copy(thread, ..) => database.row(*thread).and_then(|row| row.writer),
            _ => None,
        };
        let (response, changed) = database.run(self.now, statement, commit);
        if !changed {
            return Ok(response);
        }
        if let Some((thread, head)) = before
            && database.log(thread).head < head
        {
            broken(
                "I7 prefix",
                format!("the head fell from {head} without a change of the primary"),
            )?;
        }
        let process = (arrival.node, arrival.incarnation);
        if former.is_some_and(|it| it.process != process && !database.is_sealed(it)) {
            broken(I2, "a thread is taken from a node whose log is not sealed")?;
        }
        match statement {
            Statement::Settle(thread)
            | Statement::TakeUngathered(thread)
            | Statement::Copy(thread, ..) => {
                let net = &mut self.database_net;
                net.settled.insert(*thread, net.sent);
            }
            Statement::Append(it) => {
                let settled = self.database_net.settled.get(&it.thread);
                if settled.is_some_and(|settled| arrival.sent < *settled) {
                    broken(
                        I2,
                        "a statement from before a doubt was settled has an effect",
                    )?;
                }
            }
            _ => {}
        }
        match statement {
            Statement::Batch(batch) => {
                if sealed {
                    broken(I2, "a sealed node log took a batch")?;
                }
                self.batch_is_stored(batch)?;
            }
            Statement::Append(append) => self.append_is_stored(append)?,
            _ => {}
        }
        Ok(response)
    }
}
