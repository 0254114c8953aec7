//! Moving a thread from one store to another, also when it is interrupted anywhere.
//!
//! The tests of the fleet include this file too.

use std::sync::atomic::{AtomicUsize, Ordering};

use raddle_core::ports::{
    AppendError, Blobs, BoxFuture, Durability, ForkError, ItemEntry, Journal, ListQuery, Page,
    PageQuery, Pages, ReadError, StoreTimeouts, Summary, TurnEntry,
};
use raddle_core::{Base, Blob, Class, Record, Seq, ThreadId, Timestamp, TurnId};
use raddle_store::{ThreadStore, Transfer, TransferError, TransferSummary};
use store_suite::StoreMaker;
use tokio::sync::Notify;

use crate::records::{
    ThreadScript, begin_turn, delta, item_started, record_with_blob, released, renamed,
};

pub const NOW: Timestamp = Timestamp(1_700_000_000_000);

/// Moment of an interruption, counted over the calls of both stores.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    pub call: usize,
    /// Whether the call has its effect before.
    pub is_after: bool,
}

/// Counts calls, and stops at one of them until it is resumed.
pub struct Calls {
    pub count: AtomicUsize,
    cut: Option<Cut>,
    pub reached: Notify,
    pub resumed: Notify,
}

impl Calls {
    pub fn new(cut: Option<Cut>) -> Self {
        Self {
            count: AtomicUsize::new(0),
            cut,
            reached: Notify::new(),
            resumed: Notify::new(),
        }
    }

    async fn pass<T>(&self, call: impl Future<Output = T>) -> T {
        let number = self.count.fetch_add(1, Ordering::SeqCst);
        let cut = self.cut.filter(|it| it.call == number);
        if cut.is_some_and(|it| !it.is_after) {
            self.stop().await;
        }
        let result = call.await;
        if cut.is_some_and(|it| it.is_after) {
            self.stop().await;
        }
        result
    }

    async fn stop(&self) {
        self.reached.notify_one();
        self.resumed.notified().await;
    }
}

/// A store whose calls are counted.
pub struct Counted<'a> {
    inner: &'a dyn ThreadStore,
    calls: &'a Calls,
}

impl<'a> Counted<'a> {
    pub fn new(inner: &'a dyn ThreadStore, calls: &'a Calls) -> Self {
        Self { inner, calls }
    }
}

/// Passes a call on.
macro_rules! pass {
    ($self:ident, $call:expr) => {
        Box::pin($self.calls.pass($call))
    };
}

impl Journal for Counted<'_> {
    fn append<'a>(
        &'a self,
        thread: ThreadId,
        after: Seq,
        records: &'a [Record],
        class: Class,
    ) -> BoxFuture<'a, Result<Seq, AppendError>> {
        pass!(self, self.inner.append(thread, after, records, class))
    }

    fn take<'a>(
        &'a self,
        thread: ThreadId,
        former: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Seq, ReadError>> {
        pass!(self, self.inner.take(thread, former))
    }

    fn head(&self, thread: ThreadId) -> BoxFuture<'_, Result<Seq, ReadError>> {
        pass!(self, self.inner.head(thread))
    }

    fn read(
        &self,
        thread: ThreadId,
        after: Seq,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, ReadError>> {
        pass!(self, self.inner.read(thread, after, bytes_max))
    }

    fn base(
        &self,
        thread: ThreadId,
        at: Option<Seq>,
    ) -> BoxFuture<'_, Result<Option<Base>, ReadError>> {
        pass!(self, self.inner.base(thread, at))
    }

    fn save_base(&self, thread: ThreadId, base: Base) -> BoxFuture<'_, Result<(), AppendError>> {
        pass!(self, self.inner.save_base(thread, base))
    }

    fn fork(&self, from: ThreadId, at: Seq, to: ThreadId) -> BoxFuture<'_, Result<Seq, ForkError>> {
        pass!(self, self.inner.fork(from, at, to))
    }

    fn delete(&self, thread: ThreadId) -> BoxFuture<'_, Result<(), AppendError>> {
        pass!(self, self.inner.delete(thread))
    }

    fn forget(&self, thread: ThreadId, head: Seq) -> BoxFuture<'_, Result<(), AppendError>> {
        pass!(self, self.inner.forget(thread, head))
    }

    fn timeouts(&self) -> StoreTimeouts {
        self.inner.timeouts()
    }

    fn durability(&self) -> Durability {
        self.inner.durability()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }
}

impl ThreadStore for Counted<'_> {
    fn ids(&self, after: Option<ThreadId>) -> BoxFuture<'_, Result<Vec<ThreadId>, ReadError>> {
        self.inner.ids(after)
    }
}

impl Pages for Counted<'_> {
    fn list(&self, query: ListQuery) -> BoxFuture<'_, Result<Page<Summary>, ReadError>> {
        self.inner.list(query)
    }

    fn turns(
        &self,
        thread: ThreadId,
        query: PageQuery,
    ) -> BoxFuture<'_, Result<Page<TurnEntry>, ReadError>> {
        self.inner.turns(thread, query)
    }

    fn items(
        &self,
        thread: ThreadId,
        turn: Option<TurnId>,
        query: PageQuery,
    ) -> BoxFuture<'_, Result<Page<ItemEntry>, ReadError>> {
        self.inner.items(thread, turn, query)
    }

    fn search(
        &self,
        text: String,
        query: ListQuery,
    ) -> BoxFuture<'_, Result<Page<Summary>, ReadError>> {
        self.inner.search(text, query)
    }
}

impl Blobs for Counted<'_> {
    fn put(
        &self,
        thread: ThreadId,
        bytes: Vec<u8>,
        media: String,
    ) -> BoxFuture<'_, Result<Blob, AppendError>> {
        pass!(self, self.inner.put(thread, bytes, media))
    }

    fn get(&self, thread: ThreadId, blob: Blob) -> BoxFuture<'_, Result<Vec<u8>, ReadError>> {
        pass!(self, self.inner.get(thread, blob))
    }
}

/// A thread with everything that a store keeps: turns, a blob, a fork of it, and an open item.
pub struct Example {
    pub script: ThreadScript,
    pub blob: Blob,
    pub records: Vec<Record>,
}

impl Example {
    pub async fn write(store: &(impl ThreadStore + 'static)) -> Self {
        let mut script = ThreadScript::new();
        script.start(store, "/w").await;
        for turn in ["a", "b", "c"] {
            script.turn(store, turn, "some text").await;
        }
        let put = store.put(script.thread, vec![7; 100_000], "image/png".to_owned());
        let blob = put.await.unwrap();
        script.append(store, vec![record_with_blob(&blob)]).await;
        script.append(store, begin_turn("d", "more")).await;
        script.append(store, vec![item_started("d", "open")]).await;
        for offset in 0..3 {
            script.append(store, vec![delta("open", offset, "x")]).await;
        }
        let records = all(store, script.thread).await;
        Self {
            script,
            blob,
            records,
        }
    }

    /// Whether a store has the whole thread.
    async fn is_in(&self, store: &dyn ThreadStore) -> bool {
        let thread = self.script.thread;
        if store.head(thread).await.unwrap() == Seq::ZERO {
            return false;
        }
        let records = all(store, thread).await;
        let has_all = records.starts_with(&self.records);
        assert!(has_all, "a part of the thread: {records:?}");
        let bytes = store.get(thread, self.blob.clone()).await.unwrap();
        assert_eq!(bytes, vec![7; 100_000]);
        true
    }
}

pub async fn all(store: &dyn ThreadStore, thread: ThreadId) -> Vec<Record> {
    store.read(thread, Seq::ZERO, usize::MAX).await.unwrap()
}

pub async fn listed(store: &dyn ThreadStore) -> Vec<ThreadId> {
    let page = store.list(ListQuery::default()).await.unwrap();
    page.entries.iter().map(|it| it.thread).collect()
}

async fn run(
    from: &dyn ThreadStore,
    to: &dyn ThreadStore,
    id: ThreadId,
) -> Result<TransferSummary, TransferError> {
    Transfer::open(from, to, id).await?.run(NOW).await
}

/// Moves a thread there, and goes on with it.
pub async fn a_thread_keeps_its_numbers<A: StoreMaker, B: StoreMaker>()
where
    A::Store: ThreadStore + 'static,
    B::Store: ThreadStore,
{
    let (from, to) = (A::fresh().await, B::fresh().await);
    let (from, to) = (from.store(), to.store());
    let mut example = Example::write(from).await;
    let moved = run(from, to, example.script.thread).await.unwrap();
    assert_eq!(moved.head, example.script.head);
    assert_eq!(
        (moved.records, moved.blobs),
        (example.records.len() as u64, 1)
    );
    assert!(example.is_in(to).await && !example.is_in(from).await);
    let thread = example.script.thread;
    assert_eq!(all(to, thread).await, example.records);
    assert_eq!(
        (listed(from).await, listed(to).await),
        (vec![], vec![thread])
    );
    to.take(thread, Some("one")).await.unwrap();
    example.script.append(to, vec![renamed("there")]).await;
}

/// Interrupts the move at each call of a store, before and after its effect. One store has the
/// thread whole each time, and a second attempt ends the move.
pub async fn an_interrupted_move_loses_nothing<A: StoreMaker, B: StoreMaker>()
where
    A::Store: ThreadStore + 'static,
    B::Store: ThreadStore,
{
    let calls = {
        let (from, to) = (A::fresh().await, B::fresh().await);
        let example = Example::write(from.store()).await;
        let calls = Calls::new(None);
        let (from, to) = counted(from.store(), to.store(), &calls);
        run(&from, &to, example.script.thread).await.unwrap();
        calls.count.load(Ordering::SeqCst)
    };
    assert!(calls > 15, "{calls}");
    for number in 0..2 * calls {
        let cut = Cut {
            call: number / 2,
            is_after: number % 2 == 1,
        };
        let (from, to) = (A::fresh().await, B::fresh().await);
        let (from, to) = (from.store(), to.store());
        let example = Example::write(from).await;
        let thread = example.script.thread;
        let interrupted = Calls::new(Some(cut));
        {
            let (from, to) = counted(from, to, &interrupted);
            tokio::select! {
                _ = run(&from, &to, thread) => panic!("{cut:?} was not reached"),
                () = interrupted.reached.notified() => {}
            }
        }
        let is_there = example.is_in(to).await;
        assert!(
            is_there || example.is_in(from).await,
            "{cut:?}: it is in neither"
        );
        let is_named = from.ids(None).await.unwrap().contains(&thread);
        match run(from, to, thread).await {
            Ok(moved) => {
                assert_eq!(moved.head, example.script.head, "{cut:?}");
                assert!(is_named, "{cut:?}: a move of all threads leaves it behind");
            }
            // It had ended, but for the return.
            Err(TransferError::NotFound) => assert!(is_there, "{cut:?}"),
            Err(error) => panic!("{cut:?}: {error:?}"),
        }
        assert!(example.is_in(to).await, "{cut:?}");
        assert_eq!(from.head(thread).await, Ok(Seq::ZERO), "{cut:?}");
        assert_eq!(listed(to).await, [thread], "{cut:?}");
    }
}

fn counted<'a>(
    from: &'a dyn ThreadStore,
    to: &'a dyn ThreadStore,
    calls: &'a Calls,
) -> (Counted<'a>, Counted<'a>) {
    let counted = |inner| Counted { inner, calls };
    (counted(from), counted(to))
}

/// A thread that is used while it is copied stays in its store alone.
pub async fn a_thread_that_is_used_meanwhile_stays<A: StoreMaker, B: StoreMaker>()
where
    A::Store: ThreadStore + 'static,
    B::Store: ThreadStore,
{
    let (from, to) = (A::fresh().await, B::fresh().await);
    let (from, to) = (from.store(), to.store());
    let mut example = Example::write(from).await;
    let thread = example.script.thread;
    let transfer = Transfer::open(from, to, thread).await.unwrap();
    assert_eq!(transfer.owner(), Some("one"));
    example.script.append(from, vec![renamed("later")]).await;
    let moved = transfer.run(NOW).await;
    assert!(matches!(moved, Err(TransferError::Changed)), "{moved:?}");
    assert!(example.is_in(from).await && !example.is_in(to).await);

    example.script.append(from, vec![released()]).await;
    let transfer = Transfer::open(from, to, thread).await.unwrap();
    assert_eq!(transfer.owner(), None);
}

/// Two handles of one store, as two addresses of one database: nothing is removed.
pub async fn a_move_to_the_same_store_is_refused<A: StoreMaker>()
where
    A::Store: ThreadStore + 'static,
{
    let maker = A::fresh().await;
    let example = Example::write(maker.store()).await;
    let other = maker.second_handle().await;
    let moved = run(maker.store(), &other, example.script.thread).await;
    assert!(matches!(moved, Err(TransferError::SameStore)), "{moved:?}");
    assert!(example.is_in(maker.store()).await);
}

/// Another attempt runs while one has stopped at a call, for each of its calls. The thread is never
/// lost, and is in the destination once an attempt succeeded.
pub async fn two_attempts_at_once_keep_the_thread<A: StoreMaker, B: StoreMaker>()
where
    A::Store: ThreadStore + 'static,
    B::Store: ThreadStore,
{
    for call in 0.. {
        let (from, to) = (A::fresh().await, B::fresh().await);
        let (from, to) = (from.store(), to.store());
        let example = Example::write(from).await;
        let thread = example.script.thread;
        let stopped = Calls::new(Some(Cut {
            call,
            is_after: false,
        }));
        let (slow_from, slow_to) = counted(from, to, &stopped);
        let slow = run(&slow_from, &slow_to, thread);
        let mut slow = std::pin::pin!(slow);
        tokio::select! {
            result = &mut slow => {
                assert!(result.is_ok() && call > 15, "{call}: {result:?}");
                return;
            }
            () = stopped.reached.notified() => {}
        }
        let quick = run(from, to, thread).await;
        stopped.resumed.notify_one();
        let slow = slow.await;
        let is_there = example.is_in(to).await;
        assert!(
            is_there || example.is_in(from).await,
            "{call}: {quick:?} {slow:?}"
        );
        assert!(
            is_there || (quick.is_err() && slow.is_err()),
            "{call}: {quick:?} {slow:?}"
        );
    }
}

/// A copy of an interrupted attempt is replaced, if the thread was used in its store since.
pub async fn a_stale_copy_is_replaced<A: StoreMaker, B: StoreMaker>()
where
    A::Store: ThreadStore + 'static,
    B::Store: ThreadStore,
{
    let calls = Calls::new(None);
    {
        let (from, to) = (A::fresh().await, B::fresh().await);
        let example = Example::write(from.store()).await;
        let (from, to) = counted(from.store(), to.store(), &calls);
        run(&from, &to, example.script.thread).await.unwrap();
    }
    let calls = calls.count.load(Ordering::SeqCst);
    for call in 0..calls {
        let (from, to) = (A::fresh().await, B::fresh().await);
        let (from, to) = (from.store(), to.store());
        let mut example = Example::write(from).await;
        let thread = example.script.thread;
        let cut = Cut {
            call,
            is_after: false,
        };
        let interrupted = Calls::new(Some(cut));
        {
            let (from, to) = counted(from, to, &interrupted);
            tokio::select! {
                _ = run(&from, &to, thread) => panic!("{cut:?} was not reached"),
                () = interrupted.reached.notified() => {}
            }
        }
        let newest = from.head(thread).await.unwrap();
        if newest != example.script.head {
            // The source has its mark, or nothing.
            continue;
        }
        example
            .script
            .append(from, vec![renamed("used since")])
            .await;
        let moved = run(from, to, thread).await;
        let moved = moved.unwrap_or_else(|error| panic!("{cut:?}: {error:?}"));
        assert_eq!(moved.head, example.script.head, "{cut:?}");
        assert!(example.is_in(to).await && !example.is_in(from).await);
    }
}

/// A thread of the destination is never overwritten.
pub async fn another_thread_of_the_same_id_stays<A: StoreMaker, B: StoreMaker>()
where
    A::Store: ThreadStore + 'static,
    B::Store: ThreadStore + 'static,
{
    let (from, to) = (A::fresh().await, B::fresh().await);
    let (from, to) = (from.store(), to.store());
    let example = Example::write(from).await;
    let mut other = ThreadScript::new();
    other.thread = example.script.thread;
    let records = other.start(to, "/other").await;
    let moved = run(from, to, other.thread).await;
    assert!(matches!(moved, Err(TransferError::Exists)), "{moved:?}");
    assert_eq!(all(to, other.thread).await, records);
    assert!(example.is_in(from).await);
    let missing = run(from, to, ThreadId::mint()).await;
    assert!(
        matches!(missing, Err(TransferError::NotFound)),
        "{missing:?}"
    );
}

/// Makes the tests for two makers.
macro_rules! transfer_tests {
    (mod $name:ident, $from:ident => $to:ident) => {
        mod $name {
            use super::{$from as Source, $to as Destination};
            use crate::transfer as suite;

            #[tokio::test]
            async fn a_thread_keeps_its_numbers() {
                suite::a_thread_keeps_its_numbers::<Source, Destination>().await;
            }

            #[tokio::test]
            async fn an_interrupted_move_loses_nothing() {
                suite::an_interrupted_move_loses_nothing::<Source, Destination>().await;
            }

            #[tokio::test]
            async fn a_thread_that_is_used_meanwhile_stays() {
                suite::a_thread_that_is_used_meanwhile_stays::<Source, Destination>().await;
            }

            #[tokio::test]
            async fn a_move_to_the_same_store_is_refused() {
                suite::a_move_to_the_same_store_is_refused::<Source>().await;
            }

            #[tokio::test]
            async fn two_attempts_at_once_keep_the_thread() {
                suite::two_attempts_at_once_keep_the_thread::<Source, Destination>().await;
            }

            #[tokio::test]
            async fn a_stale_copy_is_replaced() {
                suite::a_stale_copy_is_replaced::<Source, Destination>().await;
            }

            #[tokio::test]
            async fn another_thread_of_the_same_id_stays() {
                suite::another_thread_of_the_same_id_stays::<Source, Destination>().await;
            }
        }
    };
}
