//! After any operations on both, a store equals a reference.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use raddle_core::ports::{Journal, ListOrder, ListQuery, PageQuery, Pages};
use raddle_core::{Base, Event, Record, RecordBody, Seq, Thread, ThreadId};

use crate::StoreMaker;
use crate::records::{
    ThreadScript, begin_turn, class_of, completed, delta, forked, item_started, owned, owned_by,
    released, renamed, request_opened, request_resolved, reverted, saved, started, turn_ended,
};

/// Checks that the stores of two makers return the same after any operations, in this many cases. A
/// failure shows the shortest operations that lead to it. The reference is never reopened.
pub fn agrees<M: StoreMaker, Reference: StoreMaker>(cases: u32) {
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let operations = prop::collection::vec((0..3_usize, act()), 1..40);
    let mut runner = TestRunner::new(config);
    let result = runner.run(&operations, |acts| {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(compare_after::<M, Reference>(acts));
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}\n{runner}");
    }
}

async fn compare_after<M: StoreMaker, Reference: StoreMaker>(acts: Vec<(usize, ThreadOp)>) {
    let mut pair = StorePair::<M, Reference>::new().await;
    for (at, (which, act)) in acts.into_iter().enumerate() {
        pair.act(which, act).await;
        if at % 5 == 0 {
            pair.compare().await;
        }
    }
    pair.compare().await;
}

/// Operation on a thread.
#[derive(Clone, Debug)]
enum ThreadOp {
    /// An append of some of these records.
    Append(Vec<RecordSpec>),
    /// An append by a writer that is behind or ahead by this much.
    Stale(i64),
    /// A base is stored.
    Base,
    /// The thread is forked at this share of its numbers, and the fork replaces the third thread.
    Fork(u8),
    /// The thread is deleted.
    Delete,
    /// The owner takes the thread again.
    Take,
    /// The store is closed and reopened, and all threads are taken.
    Reopen,
}

/// Record of an append.
#[derive(Clone, Debug)]
enum RecordSpec {
    Turn,
    EndTurn,
    Start(u8),
    Grow(u8, usize),
    Save(u8, usize),
    Complete(u8, usize),
    Rename(u8),
    Archive(bool),
    Revert(u8),
    Skip(u16),
    Own(u8),
    Release,
    /// A request is opened, or the oldest open one of the thread is resolved.
    Request(bool),
}

fn piece() -> impl Strategy<Value = RecordSpec> {
    let item = 0..4_u8;
    let bytes = prop_oneof![20 => 0..200_usize, 1 => 60_000..140_000_usize];
    prop_oneof![
        2 => Just(RecordSpec::Turn),
        2 => Just(RecordSpec::EndTurn),
        4 => item.clone().prop_map(RecordSpec::Start),
        12 => (item.clone(), 1..50_usize).prop_map(|(item, bytes)| RecordSpec::Grow(item, bytes)),
        2 => (item.clone(), bytes.clone()).prop_map(|(item, bytes)| RecordSpec::Save(item, bytes)),
        4 => (item, bytes).prop_map(|(item, bytes)| RecordSpec::Complete(item, bytes)),
        1 => any::<u8>().prop_map(RecordSpec::Rename),
        1 => any::<bool>().prop_map(RecordSpec::Archive),
        1 => any::<u8>().prop_map(RecordSpec::Revert),
        1 => any::<u16>().prop_map(RecordSpec::Skip),
        1 => (0..3_u8).prop_map(RecordSpec::Own),
        1 => Just(RecordSpec::Release),
        2 => any::<bool>().prop_map(RecordSpec::Request),
    ]
}

fn act() -> impl Strategy<Value = ThreadOp> {
    prop_oneof![
        20 => prop::collection::vec(piece(), 1..8).prop_map(ThreadOp::Append),
        2 => (-3..4_i64).prop_filter("not stale", |by| *by != 0).prop_map(ThreadOp::Stale),
        1 => Just(ThreadOp::Base),
        2 => any::<u8>().prop_map(ThreadOp::Fork),
        1 => Just(ThreadOp::Delete),
        1 => Just(ThreadOp::Take),
        1 => Just(ThreadOp::Reopen),
    ]
}

/// A store and the reference, and their threads.
struct StorePair<M, Reference> {
    /// `None` while it is reopened.
    maker: Option<M>,
    reference: Reference,
    scripts: Vec<ThreadScript>,
    turns: u64,
    /// Open requests that a thread did not copy, the oldest first.
    requests: BTreeMap<ThreadId, VecDeque<u64>>,
    opened: u64,
    forks: Vec<ThreadId>,
    bases: Vec<Base>,
}

async fn fold(journal: &impl Journal, thread: ThreadId) -> Thread {
    let records = journal.read(thread, Seq::ZERO, usize::MAX).await;
    let mut folded = Thread::new();
    for record in records.unwrap_or_default() {
        folded.apply(&record);
    }
    folded
}

fn head_of(base: Option<&Base>) -> Seq {
    base.map_or(Seq::ZERO, |base| base.thread.head())
}

impl<M: StoreMaker, Reference: StoreMaker> StorePair<M, Reference> {
    async fn new() -> Self {
        Self {
            maker: Some(M::fresh().await),
            reference: Reference::fresh().await,
            scripts: vec![
                ThreadScript::new(),
                ThreadScript::new(),
                ThreadScript::new(),
            ],
            turns: 0,
            requests: BTreeMap::new(),
            opened: 0,
            forks: Vec::new(),
            bases: Vec::new(),
        }
    }

    fn store(&self) -> &M::Store {
        self.maker.as_ref().unwrap().store()
    }

    fn reference(&self) -> &Reference::Store {
        self.reference.store()
    }

    async fn act(&mut self, which: usize, act: ThreadOp) {
        match act {
            ThreadOp::Append(pieces) => {
                let after = self.scripts[which].head;
                let records = self.records(which, pieces).await;
                self.append(which, after, &records).await;
            }
            ThreadOp::Stale(by) => {
                let head = self.scripts[which].head.0;
                let after = Seq(head.saturating_add_signed(by));
                let records = ThreadScript {
                    head: after,
                    ..self.scripts[which].clone()
                }
                .records(vec![renamed("stale")]);
                if after.0 != head {
                    self.append(which, after, &records).await;
                }
            }
            ThreadOp::Base => {
                let thread = self.scripts[which].thread;
                let base = Base::of(&fold(self.reference(), thread).await);
                self.bases.push(base.clone());
                let saved = self.store().save_base(thread, base.clone()).await;
                assert_eq!(saved, self.reference().save_base(thread, base).await);
            }
            ThreadOp::Fork(share) => {
                let script = self.scripts[which].clone();
                let at = Seq((script.head.0 * u64::from(share)).div_ceil(255));
                let to = ThreadId::mint();
                self.forks.push(to);
                let stored = self.store().fork(script.thread, at, to).await;
                let copied = self.reference().fork(script.thread, at, to).await;
                assert_eq!(stored, copied);
                if let Ok(head) = copied {
                    // Lists show the replaced thread too, and no later operation takes it.
                    self.take(2).await;
                    let mut fork = ThreadScript {
                        thread: to,
                        head,
                        ..script.clone()
                    };
                    let after = fork.head;
                    let records = fork.records(vec![forked(to, script.thread, at, 0)]);
                    self.scripts[2] = fork;
                    self.append(2, after, &records).await;
                }
            }
            ThreadOp::Delete => {
                let thread = self.scripts[which].thread;
                let deleted = self.store().delete(thread).await;
                assert_eq!(deleted, self.reference().delete(thread).await);
                self.scripts[which] = ThreadScript::new();
            }
            ThreadOp::Reopen => {
                let maker = self.maker.take().unwrap();
                self.maker = Some(maker.reopen().await);
                for which in 0..self.scripts.len() {
                    self.take(which).await;
                }
            }
            ThreadOp::Take => self.take(which).await,
        }
    }

    async fn take(&self, which: usize) {
        let thread = self.scripts[which].thread;
        let folded = fold(self.reference(), thread).await;
        let taken = self.store().take(thread, folded.owner()).await;
        let head = self.reference().take(thread, folded.owner()).await;
        assert_eq!(taken, head);
    }

    async fn append(&self, which: usize, after: Seq, records: &[Record]) {
        let thread = self.scripts[which].thread;
        let class = class_of(records);
        let stored = self.store().append(thread, after, records, class).await;
        let copied = self.reference().append(thread, after, records, class).await;
        assert_eq!(stored, copied);
    }

    /// Builds records from specs, as far as the state of the thread allows.
    async fn records(&mut self, which: usize, pieces: Vec<RecordSpec>) -> Vec<Record> {
        let mut records = Vec::new();
        if self.scripts[which].head == Seq::ZERO {
            let bodies = vec![started(self.scripts[which].thread, "/w"), owned()];
            records.extend(self.scripts[which].records(bodies));
        }
        for piece in pieces {
            let bodies = self.bodies(which, piece).await;
            records.extend(self.scripts[which].records(bodies));
        }
        records
    }

    async fn bodies(&mut self, which: usize, piece: RecordSpec) -> Vec<RecordBody> {
        let turn = format!("t{}", self.turns);
        let name = |item: u8| format!("i{item}");
        match piece {
            RecordSpec::Turn => {
                self.turns += 1;
                begin_turn(&format!("t{}", self.turns), "words")
            }
            RecordSpec::EndTurn => vec![turn_ended(&turn)],
            RecordSpec::Start(item) => vec![item_started(&turn, &name(item))],
            RecordSpec::Grow(item, bytes) => vec![delta(&name(item), 0, &"x".repeat(bytes))],
            RecordSpec::Save(item, bytes) => vec![saved(&name(item), &"y".repeat(bytes))],
            RecordSpec::Complete(item, bytes) => {
                vec![completed(&turn, &name(item), &"z".repeat(bytes))]
            }
            RecordSpec::Rename(letter) => vec![renamed(&format!("name {letter}"))],
            RecordSpec::Archive(true) => vec![Event::Archived { principal: None }.into()],
            RecordSpec::Archive(false) => vec![Event::Unarchived { principal: None }.into()],
            RecordSpec::Revert(pick) => {
                let thread = self.scripts[which].thread;
                let query = PageQuery {
                    limit: 1000,
                    ..PageQuery::default()
                };
                let page = self.reference().turns(thread, query).await;
                let turns = page.map(|page| page.entries).unwrap_or_default();
                match turns.get(usize::from(pick) % turns.len().max(1)) {
                    Some(turn) => {
                        let rest = turns.iter().filter(|it| it.from < turn.from).count();
                        vec![reverted(turn.turn.as_str(), turn.from, rest as u64)]
                    }
                    None => Vec::new(),
                }
            }
            RecordSpec::Own(node) => {
                vec![owned_by(&format!("node {node}"), u64::from(node) + 2)]
            }
            RecordSpec::Release => vec![released()],
            RecordSpec::Request(is_opened) => {
                let thread = self.scripts[which].thread;
                let open = self.requests.entry(thread).or_default();
                if is_opened {
                    self.opened += 1;
                    open.push_back(self.opened);
                    return vec![request_opened(&turn, "i0", self.opened)];
                }
                open.pop_front().map(request_resolved).into_iter().collect()
            }
            RecordSpec::Skip(numbers) => {
                let head = self.scripts[which].head;
                self.scripts[which].head = head.plus(u64::from(numbers));
                vec![renamed("after a gap")]
            }
        }
    }

    /// Checks that both stores return the same.
    async fn compare(&self) {
        for script in &self.scripts {
            let thread = script.thread;
            let (store, reference) = (self.store(), self.reference());
            assert_eq!(store.head(thread).await, reference.head(thread).await);
            for after in [Seq::ZERO, Seq(script.head.0 / 2)] {
                let read = store.read(thread, after, usize::MAX).await;
                assert_eq!(read, reference.read(thread, after, usize::MAX).await);
            }
            for at in [None, Some(Seq(script.head.0 / 2))] {
                let stored = store.base(thread, at).await.unwrap();
                let copied = reference.base(thread, at).await.unwrap();
                // A fork that shares its parent's records also has the bases that were saved later.
                let shared = stored.as_ref().is_some_and(|base| {
                    let newer = base.thread.head() > head_of(copied.as_ref());
                    let fits = at.is_none_or(|at| base.thread.head() <= at);
                    newer && fits && self.forks.contains(&thread) && self.bases.contains(base)
                });
                assert!(stored == copied || shared, "{stored:?} {copied:?}");
            }
            for newest_first in [false, true] {
                let mut query = PageQuery {
                    limit: 2,
                    newest_first,
                    cursor: None,
                };
                loop {
                    let turns = store.turns(thread, query.clone()).await;
                    assert_eq!(turns, reference.turns(thread, query.clone()).await);
                    query.cursor = turns.ok().and_then(|page| page.next);
                    if query.cursor.is_none() {
                        break;
                    }
                }
                query.limit = 3;
                loop {
                    let items = store.items(thread, None, query.clone()).await;
                    assert_eq!(items, reference.items(thread, None, query.clone()).await);
                    query.cursor = items.ok().and_then(|page| page.next);
                    if query.cursor.is_none() {
                        break;
                    }
                }
            }
        }
        for archived in [false, true] {
            for order in [ListOrder::Recency, ListOrder::Created, ListOrder::Updated] {
                let query = ListQuery {
                    archived,
                    order,
                    oldest_first: archived,
                    limit: 10,
                    ..ListQuery::default()
                };
                let listed = self.store().list(query.clone()).await;
                assert_eq!(listed, self.reference().list(query).await);
            }
        }
    }
}
