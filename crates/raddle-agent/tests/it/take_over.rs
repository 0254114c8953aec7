//! Threads that are taken from another node, which may write until the journal stops it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use raddle_agent::{AgentError, JournalHealth, Liveness, Options, Threads};
use raddle_core::ports::{
    AppendError, BoxFuture, Durability, ForkError, Journal, ReadError, StoreTimeouts,
};
use raddle_core::{
    Base, Class, Epoch, Event, LEVEL, Owned, Record, Renamed, Seq, ThreadId, Timestamp,
};
use raddle_store::MemoryJournal;

use super::script::ScriptedAnswers;
use super::{begin, client, options};

/// A journal into which other nodes write just before a thread is taken.
struct RacingJournal {
    inner: MemoryJournal,
    /// Events of other nodes, one for each call of `take`.
    races: Mutex<VecDeque<Event>>,
    /// Former nodes of all calls of `take`.
    formers: Mutex<Vec<Option<String>>>,
    /// Classes of all appends without records.
    probes: Mutex<Vec<Class>>,
}

impl RacingJournal {
    async fn write(&self, thread: ThreadId, event: Event) {
        let head = self.inner.head(thread).await.expect("a head");
        let records = [Record {
            seq: head.next(),
            at: Timestamp(2_000_000),
            body: event.into(),
        }];
        let append = self.inner.append(thread, head, &records, Class::Process);
        append.await.expect("stored");
    }
}

impl Journal for RacingJournal {
    fn append<'a>(
        &'a self,
        thread: ThreadId,
        after: Seq,
        records: &'a [Record],
        class: Class,
    ) -> BoxFuture<'a, Result<Seq, AppendError>> {
        if records.is_empty() {
            self.probes.lock().expect("the list").push(class);
        }
        self.inner.append(thread, after, records, class)
    }

    fn take<'a>(
        &'a self,
        thread: ThreadId,
        former: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Seq, ReadError>> {
        let former_name = former.map(str::to_owned);
        self.formers.lock().expect("the list").push(former_name);
        let race = self.races.lock().expect("the races").pop_front();
        Box::pin(async move {
            if let Some(event) = race {
                self.write(thread, event).await;
            }
            self.inner.take(thread, former).await
        })
    }

    fn head(&self, thread: ThreadId) -> BoxFuture<'_, Result<Seq, ReadError>> {
        self.inner.head(thread)
    }

    fn read(
        &self,
        thread: ThreadId,
        after: Seq,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, ReadError>> {
        self.inner.read(thread, after, bytes_max)
    }

    fn base(
        &self,
        thread: ThreadId,
        at: Option<Seq>,
    ) -> BoxFuture<'_, Result<Option<Base>, ReadError>> {
        self.inner.base(thread, at)
    }

    fn save_base(&self, thread: ThreadId, base: Base) -> BoxFuture<'_, Result<(), AppendError>> {
        self.inner.save_base(thread, base)
    }

    fn fork(&self, from: ThreadId, at: Seq, to: ThreadId) -> BoxFuture<'_, Result<Seq, ForkError>> {
        self.inner.fork(from, at, to)
    }

    fn delete(&self, thread: ThreadId) -> BoxFuture<'_, Result<(), AppendError>> {
        self.inner.delete(thread)
    }

    fn forget(&self, thread: ThreadId, head: Seq) -> BoxFuture<'_, Result<(), AppendError>> {
        self.inner.forget(thread, head)
    }

    fn timeouts(&self) -> StoreTimeouts {
        self.inner.timeouts()
    }

    fn durability(&self) -> Durability {
        self.inner.durability()
    }
}

/// Nodes that are alive.
struct LiveNodes(&'static [&'static str]);

impl Liveness for LiveNodes {
    fn is_alive<'a>(&'a self, node: &'a str) -> BoxFuture<'a, Result<bool, ReadError>> {
        Box::pin(std::future::ready(Ok(self.0.contains(&node))))
    }
}

fn node(journal: &Arc<RacingJournal>, name: &str, alive: &'static [&'static str]) -> Threads {
    let journal: Arc<dyn Journal> = journal.clone();
    Threads::new(Options {
        node: name.to_owned(),
        liveness: Arc::new(LiveNodes(alive)),
        ..options(&journal, Arc::new(ScriptedAnswers::new(&[])))
    })
}

fn owned(node: &str) -> Event {
    Event::Owned(Owned {
        epoch: Epoch(2),
        node: node.to_owned(),
        found: Seq(2),
        reserved: Seq(20_000),
        level: LEVEL,
        version: "1".to_owned(),
    })
}

fn renamed() -> Event {
    Event::Renamed(Renamed {
        name: Some("late".to_owned()),
        principal: None,
    })
}

/// Takes a thread of the node `first`, which is dead or has released it. Other nodes write
/// meanwhile. Returns the epoch and the name of the thread, or the error, and the nodes that the
/// journal stopped.
async fn take(
    is_released: bool,
    races: Vec<Event>,
    alive: &'static [&'static str],
) -> (
    Result<(u64, Option<String>), AgentError>,
    Vec<Option<String>>,
) {
    let journal = Arc::new(RacingJournal {
        inner: MemoryJournal::new(),
        races: Mutex::new(races.into()),
        formers: Mutex::default(),
        probes: Mutex::default(),
    });
    let id = ThreadId::mint();
    let first = node(&journal, "first", &[]);
    begin(&first, id, client().0).await;
    if is_released {
        first.close().await;
    }
    let second = node(&journal, "second", alive);
    let taken = match second.get(id).await {
        Ok(thread) => {
            let inspect = |it: &raddle_core::Thread| (it.epoch().0, it.name().map(str::to_owned));
            thread.inspect(inspect).await
        }
        Err(error) => Err(error),
    };
    let formers = journal.formers.lock().expect("the list").clone();
    (taken, formers)
}

#[tokio::test]
async fn a_thread_is_taken_with_everything_that_its_former_owner_stored() {
    let former = |name: &str| Some(name.to_owned());
    let late = || Some("late".to_owned());
    for (released, races, formers, expected) in [
        (false, vec![], vec![former("first")], (2, None)),
        (true, vec![], vec![None], (2, None)),
        (
            false,
            vec![renamed(), renamed()],
            vec![former("first"); 3],
            (2, late()),
        ),
        // A third node took the thread meanwhile, and died.
        (
            false,
            vec![owned("third"), renamed()],
            vec![former("first"), former("third"), former("third")],
            (3, late()),
        ),
        (
            true,
            vec![owned("third")],
            vec![None, former("third")],
            (3, None),
        ),
        // This process owned it before, and forgot.
        (
            false,
            vec![owned("second")],
            vec![former("first"), None],
            (3, None),
        ),
    ] {
        let case = format!("{released} {races:?}");
        let taken = take(released, races, &[]).await;
        assert_eq!(taken, (Ok(expected), formers), "{case}");
    }
}

#[tokio::test]
async fn a_thread_that_a_live_node_took_meanwhile_stays_there() {
    let owner = || "third".to_owned();
    let taken = take(false, vec![owned("third")], &["third"]).await;
    let formers = vec![Some("first".to_owned())];
    let error = AgentError::OwnedBy { node: owner() };
    assert_eq!(taken, (Err(error), formers));
}

/// A store may commit text while events wait for a standby that is gone.
#[tokio::test]
async fn the_health_of_a_journal_is_that_of_events() {
    let journal = Arc::new(RacingJournal {
        inner: MemoryJournal::new(),
        races: Mutex::default(),
        formers: Mutex::default(),
        probes: Mutex::default(),
    });
    let health = node(&journal, "first", &[]).try_journal().await;
    assert_eq!(health, JournalHealth::Writable);
    assert_eq!(*journal.probes.lock().expect("the list"), [Class::Power]);
}
