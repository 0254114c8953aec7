//! After any operations on both, the local journal equals the in-memory one.

use proptest::prelude::*;
use raddle_core::ports::{Journal, ListOrder, ListQuery, PageQuery, Pages};
use raddle_core::{Base, Event, Record, RecordBody, Seq, Thread, ThreadId};
use raddle_store::{LocalJournal, MemoryJournal};

use crate::records::{
    ThreadScript, begin_turn, class_of, completed, delta, forked, item_started, owned, renamed,
    reverted, saved, started, turn_ended,
};
use crate::suite::local;

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
    /// The file is closed and reopened.
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
    ]
}

fn act() -> impl Strategy<Value = ThreadOp> {
    prop_oneof![
        20 => prop::collection::vec(piece(), 1..8).prop_map(ThreadOp::Append),
        2 => (-3..4_i64).prop_filter("not stale", |by| *by != 0).prop_map(ThreadOp::Stale),
        1 => Just(ThreadOp::Base),
        2 => any::<u8>().prop_map(ThreadOp::Fork),
        1 => Just(ThreadOp::Delete),
        1 => Just(ThreadOp::Reopen),
    ]
}

/// Both journals and their threads.
struct JournalPair {
    folder: tempfile::TempDir,
    local: Option<LocalJournal>,
    memory: MemoryJournal,
    scripts: Vec<ThreadScript>,
    turns: u64,
    forks: Vec<ThreadId>,
    bases: Vec<Base>,
}

fn head_of(base: Option<&Base>) -> Seq {
    base.map_or(Seq::ZERO, |base| base.thread.head())
}

impl JournalPair {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            local: Some(local(folder.path())),
            folder,
            memory: MemoryJournal::new(),
            scripts: vec![
                ThreadScript::new(),
                ThreadScript::new(),
                ThreadScript::new(),
            ],
            turns: 0,
            forks: Vec::new(),
            bases: Vec::new(),
        }
    }

    fn local(&self) -> &LocalJournal {
        self.local.as_ref().unwrap()
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
                let records = self.memory.read(thread, Seq::ZERO, usize::MAX).await;
                let mut folded = Thread::new();
                for record in records.unwrap_or_default() {
                    folded.apply(&record);
                }
                let base = Base::of(&folded);
                self.bases.push(base.clone());
                let saved = self.local().save_base(thread, base.clone()).await;
                assert_eq!(saved, self.memory.save_base(thread, base).await);
            }
            ThreadOp::Fork(share) => {
                let script = self.scripts[which].clone();
                let at = Seq((script.head.0 * u64::from(share)).div_ceil(255));
                let to = ThreadId::mint();
                self.forks.push(to);
                let local = self.local().fork(script.thread, at, to).await;
                let memory = self.memory.fork(script.thread, at, to).await;
                assert_eq!(local, memory);
                if let Ok(head) = memory {
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
                let deleted = self.local().delete(thread).await;
                assert_eq!(deleted, self.memory.delete(thread).await);
                self.scripts[which] = ThreadScript::new();
            }
            ThreadOp::Reopen => {
                self.local = None;
                self.local = Some(local(self.folder.path()));
            }
        }
    }

    async fn append(&self, which: usize, after: Seq, records: &[Record]) {
        let thread = self.scripts[which].thread;
        let class = class_of(records);
        let local = self.local().append(thread, after, records, class).await;
        let memory = self.memory.append(thread, after, records, class).await;
        assert_eq!(local, memory);
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
                let page = self.memory.turns(thread, query).await;
                let turns = page.map(|page| page.entries).unwrap_or_default();
                match turns.get(usize::from(pick) % turns.len().max(1)) {
                    Some(turn) => {
                        let rest = turns.iter().filter(|it| it.from < turn.from).count();
                        vec![reverted(turn.turn.as_str(), turn.from, rest as u64)]
                    }
                    None => Vec::new(),
                }
            }
            RecordSpec::Skip(numbers) => {
                let head = self.scripts[which].head;
                self.scripts[which].head = head.plus(u64::from(numbers));
                vec![renamed("after a gap")]
            }
        }
    }

    /// Checks that both journals return the same.
    async fn compare(&self) {
        for script in &self.scripts {
            let thread = script.thread;
            let (local, memory) = (self.local(), &self.memory);
            assert_eq!(local.head(thread).await, memory.head(thread).await);
            for after in [Seq::ZERO, Seq(script.head.0 / 2)] {
                let read = local.read(thread, after, usize::MAX).await;
                assert_eq!(read, memory.read(thread, after, usize::MAX).await);
            }
            for at in [None, Some(Seq(script.head.0 / 2))] {
                let stored = local.base(thread, at).await.unwrap();
                let copied = memory.base(thread, at).await.unwrap();
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
                    let turns = local.turns(thread, query.clone()).await;
                    assert_eq!(turns, memory.turns(thread, query.clone()).await);
                    query.cursor = turns.ok().and_then(|page| page.next);
                    if query.cursor.is_none() {
                        break;
                    }
                }
                query.limit = 3;
                loop {
                    let items = local.items(thread, None, query.clone()).await;
                    assert_eq!(items, memory.items(thread, None, query.clone()).await);
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
                let listed = self.local().list(query.clone()).await;
                assert_eq!(listed, self.memory.list(query).await);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_journals_agree(acts in prop::collection::vec((0..3_usize, act()), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.build().unwrap();
        runtime.block_on(async {
            let mut pair = JournalPair::new();
            for (at, (which, act)) in acts.into_iter().enumerate() {
                pair.act(which, act).await;
                if at % 5 == 0 {
                    pair.compare().await;
                }
            }
            pair.compare().await;
        });
    }
}
