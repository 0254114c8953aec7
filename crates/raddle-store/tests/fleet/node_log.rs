//! The node log: deltas of all threads of a node in one batch, and taking a thread from a node whose
//! deltas are there.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use raddle_core::ports::{AppendError, BoxFuture, Journal};
use raddle_core::{Class, RecordBody, Seq, ThreadId};
use raddle_store::{FleetJournal, FleetOptions};
use store_suite::records::{
    ThreadScript, completed, delta, item_started, owned_by, released, renamed,
};
use tokio_postgres::{Client, NoTls};

use crate::maker::{open, options};
use crate::proxy::{Fault, Proxy};
use crate::server;

/// Starts a thread with an open item, whose text is gathered.
pub async fn with_item(journal: &FleetJournal) -> ThreadScript {
    let mut script = ThreadScript::new();
    script.start(journal, "/w").await;
    script.append(journal, vec![item_started("t", "i")]).await;
    script
}

pub async fn numbers(journal: &FleetJournal, thread: ThreadId) -> Vec<u64> {
    let records = journal.read(thread, Seq::ZERO, usize::MAX).await.unwrap();
    records.iter().map(|it| it.seq.0).collect()
}

/// Numbers of a thread that has all its records.
pub fn whole(script: &ThreadScript) -> Vec<u64> {
    (1..=script.head.0).collect()
}

/// Appends a body after the head of a script, whose head stays.
pub async fn attempt(
    journal: &FleetJournal,
    script: &ThreadScript,
    body: RecordBody,
) -> Result<Seq, AppendError> {
    let class = body.class();
    let records = script.clone().records(vec![body]);
    journal
        .append(script.thread, script.head, &records, class)
        .await
}

/// A connection of the test to the tables of a journal.
pub struct Tables(Client);

impl Tables {
    pub async fn open(options: &FleetOptions) -> Self {
        let (client, io) = tokio_postgres::connect(server::shared(), NoTls)
            .await
            .unwrap();
        tokio::spawn(io);
        let tables = Self(client);
        tables
            .run(&format!("SET search_path = {}", options.schema))
            .await;
        tables
    }

    pub async fn run(&self, sql: &str) {
        self.0.batch_execute(sql).await.unwrap();
    }

    pub async fn number(&self, sql: &str) -> i64 {
        self.0.query_one(sql, &[]).await.unwrap().get(0)
    }

    /// Waits until a query returns a number.
    pub async fn wait_for(&self, sql: &str, expected: impl Fn(i64) -> bool) {
        for _ in 0..100_000 {
            if expected(self.number(sql).await) {
                return;
            }
        }
        panic!("{sql}: {}", self.number(sql).await);
    }

    /// Waits until this many statements wait for the log's row.
    pub async fn wait_for_waiters(&self, count: i64) {
        let sql = "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
                   WHERE NOT l.granted AND a.query LIKE '%UPDATE node_logs%'
                       AND pg_blocking_pids(pid) <> '{}'
                       AND EXISTS (SELECT 1 FROM pg_locks m WHERE m.pid = l.pid
                           AND m.relation = 'node_logs'::regclass)";
        self.wait_for(sql, |waiting| waiting == count).await;
    }
}

pub const BATCHES: &str = "SELECT count(*) FROM node_batches";

const COUNTER: &str = "SELECT sum(n)::bigint FROM node_logs";

/// Two handles, a thread of the first with text, and a connection to the tables.
pub async fn two_nodes() -> (FleetJournal, FleetJournal, ThreadScript, Tables) {
    let options = options(server::shared());
    let (one, two) = (open(&options).await, open(&options).await);
    let mut script = with_item(&one).await;
    script.append(&one, vec![delta("i", 0, "a")]).await;
    let tables = Tables::open(&options).await;
    (one, two, script, tables)
}

#[tokio::test]
async fn deltas_of_many_threads_are_one_batch() {
    let options = options(server::shared());
    let journal = open(&options).await;
    let tables = Tables::open(&options).await;
    let mut scripts = Vec::new();
    for _ in 0..50 {
        scripts.push(with_item(&journal).await);
    }
    for round in 1..=3 {
        let appends = scripts
            .iter()
            .map(|script| attempt(&journal, script, delta("i", round, "a")));
        for appended in join(appends.collect()).await {
            assert!(appended.is_ok(), "{appended:?}");
        }
        for script in &mut scripts {
            script.head = script.head.next();
        }
        assert_eq!(tables.number(COUNTER).await, round as i64);
    }
    assert!(tables.number(BATCHES).await <= 3 * 16);
    for script in &scripts {
        assert_eq!(journal.head(script.thread).await, Ok(script.head));
        assert_eq!(numbers(&journal, script.thread).await, whole(script));
    }
}

/// Polls all futures until all are ready.
pub async fn join<T>(futures: Vec<impl Future<Output = T>>) -> Vec<T> {
    let mut waiting: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut ready: Vec<Option<T>> = waiting.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (one, ready) in waiting.iter_mut().zip(&mut ready) {
            if ready.is_none()
                && let Poll::Ready(it) = one.as_mut().poll(context)
            {
                *ready = Some(it);
            }
        }
        match ready.iter().all(Option::is_some) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    ready.into_iter().flatten().collect()
}

/// A batch and a seal change the same row: the second waits for the first.
#[tokio::test]
async fn a_seal_and_a_batch_on_its_way_have_an_order() {
    for is_batch_first in [true, false] {
        let options = options(server::shared());
        let (one, two) = (open(&options).await, open(&options).await);
        let mut script = with_item(&one).await;
        script.append(&one, vec![delta("i", 0, "a")]).await;
        // A transaction of the test holds the row until both statements wait for it.
        let (tables, lock) = (Tables::open(&options).await, Tables::open(&options).await);
        lock.run("BEGIN").await;
        lock.run("SELECT 1 FROM node_logs FOR UPDATE").await;
        let after = script.head;
        let wait_first = async |count| tables.wait_for_waiters(count).await;
        let end = async {
            wait_first(2).await;
            lock.run("COMMIT").await;
        };
        let (appended, taken) = if is_batch_first {
            let append = attempt(&one, &script, delta("i", 1, "late"));
            let take = async {
                wait_first(1).await;
                two.take(script.thread, Some("one")).await
            };
            let (appended, taken, ()) = tokio::join!(append, take, end);
            (appended, taken)
        } else {
            let take = two.take(script.thread, Some("one"));
            let append = async {
                wait_first(1).await;
                attempt(&one, &script, delta("i", 1, "late")).await
            };
            let (taken, appended, ()) = tokio::join!(take, append, end);
            (appended, taken)
        };
        let expected = match is_batch_first {
            true => (Ok(after.next()), Ok(after.next())),
            false => (Err(AppendError::Conflict), Ok(after)),
        };
        assert_eq!((appended, taken.clone()), expected);
        let mut next = ThreadScript {
            head: taken.unwrap(),
            ..script
        };
        next.append(&two, vec![owned_by("two", 2)]).await;
        assert_eq!(numbers(&two, next.thread).await, whole(&next));
        let late = attempt(&one, &next, delta("i", 2, "later")).await;
        assert_eq!(late, Err(AppendError::Conflict));
    }
}

#[tokio::test]
async fn a_sealed_node_leaves_all_its_threads() {
    let (one, two, mut taken, _) = two_nodes().await;
    let mut streaming = with_item(&one).await;
    streaming.append(&one, vec![delta("i", 0, "a")]).await;
    let mut idle = with_item(&one).await;
    assert_eq!(two.take(taken.thread, Some("one")).await, Ok(taken.head));
    taken.append(&two, vec![owned_by("two", 2)]).await;
    for body in [delta("i", 1, "b"), renamed("b"), delta("i", 1, "b")] {
        let refused = attempt(&one, &streaming, body).await;
        assert_eq!(refused, Err(AppendError::Conflict));
    }
    for body in [renamed("b"), delta("i", 1, "b")] {
        let refused = attempt(&one, &idle, body).await;
        assert_eq!(refused, Err(AppendError::Conflict));
    }
    // No other node has taken these threads. The node itself may.
    for script in [&mut streaming, &mut idle] {
        assert_eq!(one.take(script.thread, None).await, Ok(script.head));
        script.append(&one, vec![owned_by("one", 2)]).await;
        script.append(&one, vec![delta("i", 1, "b")]).await;
        assert_eq!(numbers(&two, script.thread).await, whole(script));
    }
    assert_eq!(numbers(&one, taken.thread).await, whole(&taken));
}

/// A node that did not notice that a third one took the thread does not seal the log of that one.
#[tokio::test]
async fn only_the_log_of_the_former_owner_is_sealed() {
    let (one, two, mut script, tables) = two_nodes().await;
    for former in [None, Some("zero")] {
        assert_eq!(two.take(script.thread, former).await, Ok(script.head));
        let refused = attempt(&two, &script, renamed("b")).await;
        assert_eq!(refused, Err(AppendError::Conflict));
    }
    let sealed = "SELECT count(*) FROM node_logs WHERE sealed";
    assert_eq!(tables.number(sealed).await, 0);
    script.append(&one, vec![delta("i", 1, "b")]).await;
    assert_eq!(two.head(script.thread).await, Ok(script.head));
}

/// A released thread has no text outside its rows, so its next node seals nothing.
#[tokio::test]
async fn a_released_thread_changes_its_node_and_no_other_does() {
    let (one, two, mut script, tables) = two_nodes().await;
    let mut other = with_item(&one).await;
    script.append(&one, vec![released()]).await;
    // The deltas of a thread without an owner are rows of the thread.
    script.append(&one, vec![delta("i", 1, "b")]).await;
    assert_eq!(tables.number(COUNTER).await, 1);
    assert_eq!(two.take(script.thread, None).await, Ok(script.head));
    script.append(&two, vec![owned_by("two", 2)]).await;
    script.append(&two, vec![delta("i", 2, "c")]).await;
    other.append(&one, vec![delta("i", 0, "a")]).await;
    assert_eq!(tables.number(COUNTER).await, 3);
    let sealed = "SELECT count(*) FROM node_logs WHERE sealed";
    assert_eq!(tables.number(sealed).await, 0);
    let late = attempt(&one, &script, delta("i", 3, "late")).await;
    assert_eq!(late, Err(AppendError::Conflict));
    for (thread, all) in [(script.thread, &script), (other.thread, &other)] {
        for journal in [&one, &two] {
            assert_eq!(numbers(journal, thread).await, whole(all));
        }
    }
}

#[tokio::test]
async fn batches_that_the_database_lost_are_sent_again() {
    for lost in [1, 2] {
        let (one, two, mut script, tables) = two_nodes().await;
        for at in 1..4 {
            script.append(&one, vec![delta("i", at, "a")]).await;
        }
        // A change of the primary loses the newest commits that waited for no standby.
        let lose = format!(
            "DELETE FROM node_batches WHERE n > 4 - {lost}; UPDATE node_logs SET n = n - {lost}"
        );
        tables.run(&lose).await;
        let head = Seq(script.head.0 - lost);
        assert_eq!(two.head(script.thread).await, Ok(head));
        // The node itself has them in memory.
        assert_eq!(numbers(&one, script.thread).await, whole(&script));
        tables.run(&lose).await;
        script.append(&one, vec![delta("i", 4, "a")]).await;
        for journal in [&one, &two] {
            assert_eq!(journal.head(script.thread).await, Ok(script.head));
            assert_eq!(numbers(journal, script.thread).await, whole(&script));
        }
        // An append of an event does not need them: it copies the text from memory.
        tables.run(&lose.replace("> 4", "> 5")).await;
        script.append(&one, vec![renamed("b")]).await;
        assert_eq!(numbers(&two, script.thread).await, whole(&script));
        assert_eq!(two.take(script.thread, Some("one")).await, Ok(script.head));
    }
}

/// A change of the primary causes a doubt about an event, and loses batches at the same time.
#[tokio::test]
async fn lost_batches_are_back_before_a_doubt_is_settled() {
    let address = server::shared();
    let proxy = Proxy::start(server::port(address)).await;
    let options = FleetOptions {
        event_connections: 1,
        ..options(&proxy.address(address))
    };
    let journal = open(&options).await;
    let tables = Tables::open(&options).await;
    let mut script = with_item(&journal).await;
    for at in 0..2 {
        script.append(&journal, vec![delta("i", at, "a")]).await;
    }
    proxy.arm(Fault::LoseRequest, "lost");
    let lost = attempt(&journal, &script, renamed("lost")).await;
    assert!(matches!(lost, Err(AppendError::Unknown(_))), "{lost:?}");
    tables
        .run("DELETE FROM node_batches WHERE n = 2; UPDATE node_logs SET n = 1")
        .await;
    assert_eq!(journal.head(script.thread).await, Ok(script.head));
    script.append(&journal, vec![renamed("next")]).await;
    assert_eq!(numbers(&journal, script.thread).await, whole(&script));
}

#[tokio::test]
async fn a_batch_whose_connection_broke_is_stored_once() {
    for fault in [Fault::LoseAnswer, Fault::LoseRequest, Fault::Delay] {
        let address = server::shared();
        let proxy = Proxy::start(server::port(address)).await;
        let options = options(&proxy.address(address));
        let journal = open(&options).await;
        let mut script = with_item(&journal).await;
        script.append(&journal, vec![delta("i", 0, "a")]).await;
        proxy.arm(fault, "lost");
        script.append(&journal, vec![delta("i", 1, "lost")]).await;
        assert!(proxy.has_fired());
        if fault == Fault::Delay {
            proxy.release().await;
        }
        let tables = Tables::open(&options).await;
        assert_eq!(tables.number(COUNTER).await, 2, "{fault:?}");
        assert_eq!(tables.number(BATCHES).await, 2, "{fault:?}");
        script.append(&journal, vec![delta("i", 5, "b")]).await;
        assert_eq!(numbers(&journal, script.thread).await, whole(&script));
        assert_eq!(proxy.cancel_requests(), 0);
    }
}

/// While there is no connection, an append fails at once and is not stored later.
#[tokio::test]
async fn deltas_that_were_not_sent_are_not_stored() {
    let address = server::shared();
    let proxy = Proxy::start(server::port(address)).await;
    let options = options(&proxy.address(address));
    let journal = open(&options).await;
    let mut script = with_item(&journal).await;
    script.append(&journal, vec![delta("i", 0, "a")]).await;
    proxy.refuse();
    // The journal may notice that the connection is gone only after it sent the batch.
    let failed = attempt(&journal, &script, delta("i", 1, "b")).await;
    proxy.pass();
    match failed {
        Err(AppendError::Unavailable(_)) => {}
        Err(AppendError::Unknown(_)) => {
            script.head = journal.head(script.thread).await.unwrap();
        }
        other => panic!("{other:?}"),
    }
    script.append(&journal, vec![delta("i", 1, "c")]).await;
    assert_eq!(numbers(&journal, script.thread).await, whole(&script));
}

/// Polls the future once and drops it.
async fn abandon<T>(mut waiting: BoxFuture<'_, T>) {
    poll_fn(|context| {
        let _ = waiting.as_mut().poll(context);
        Poll::Ready(())
    })
    .await;
}

#[tokio::test]
async fn an_append_whose_caller_left_is_in_doubt() {
    let (one, two, mut script, _) = two_nodes().await;
    for round in 0..20 {
        let after = script.head;
        let records = script.clone().records(vec![delta("i", round, "left")]);
        abandon(one.append(script.thread, after, &records, Class::Process)).await;
        if round % 2 == 0 {
            let head = one.head(script.thread).await.unwrap();
            assert!(head == after || head == after.next(), "{head}");
            assert_eq!(two.head(script.thread).await, Ok(head));
            script.head = head;
            script.append(&one, vec![delta("i", round, "next")]).await;
        } else {
            let next = attempt(&one, &script, renamed("next")).await;
            script.head = match next {
                Ok(head) => head,
                Err(AppendError::Conflict) => one.head(script.thread).await.unwrap(),
                other => panic!("{other:?}"),
            };
        }
        assert_eq!(numbers(&two, script.thread).await, whole(&script));
    }
}

#[tokio::test]
async fn batches_are_deleted_once_their_items_are_complete() {
    let (one, two, mut script, tables) = two_nodes().await;
    // Text of an open item stays, and holds the batches of its lane only.
    let lane = |thread: ThreadId| thread.as_uuid().as_bytes()[15] % 16;
    let mut open_item = with_item(&one).await;
    while lane(open_item.thread) == lane(script.thread) {
        open_item = with_item(&one).await;
    }
    open_item.append(&one, vec![delta("i", 0, "a")]).await;
    for turn in 0..3 {
        let item = format!("i{turn}");
        script.append(&one, vec![item_started("t", &item)]).await;
        for at in 0..64 {
            script.append(&one, vec![delta(&item, at, "a")]).await;
        }
        script.append(&one, vec![completed("t", &item, "a")]).await;
    }
    tables.wait_for(BATCHES, |count| count <= 64).await;
    let open = vec![item_started("t", "last"), delta("last", 0, "a")];
    script.append(&one, open).await;
    script.append(&one, vec![delta("last", 1, "b")]).await;
    for journal in [&one, &two] {
        let records = journal.read(script.thread, Seq::ZERO, usize::MAX).await;
        let records = records.unwrap();
        let is_text = |body: &RecordBody| matches!(body, RecordBody::Delta(_));
        // The piece of the first item is there, because that is open, and those of the last.
        assert_eq!(records.iter().filter(|it| is_text(&it.body)).count(), 3);
        let open_item = (open_item.thread, whole(&open_item));
        assert_eq!(numbers(journal, open_item.0).await, open_item.1);
    }
}

/// The text of an item that stays open does not hold the log.
#[tokio::test]
async fn text_that_stays_is_copied_to_its_thread() {
    let options = FleetOptions {
        gathered_max: Duration::ZERO,
        upkeep: Duration::from_millis(1),
        ..options(server::shared())
    };
    let journal = open(&options).await;
    let mut script = with_item(&journal).await;
    script.append(&journal, vec![delta("i", 0, "a")]).await;
    let tables = Tables::open(&options).await;
    tables
        .wait_for("SELECT count(*) FROM deltas", |it| it == 1)
        .await;
    tables.wait_for(BATCHES, |count| count == 0).await;
    // Deltas that come meanwhile are in the log again.
    for at in 1..40 {
        script.append(&journal, vec![delta("i", at, "a")]).await;
    }
    let other = open(&options).await;
    for journal in [&journal, &other] {
        assert_eq!(journal.head(script.thread).await, Ok(script.head));
        assert_eq!(numbers(journal, script.thread).await, whole(&script));
    }
    script
        .append(&journal, vec![completed("t", "i", "a")])
        .await;
    assert_eq!(
        numbers(&other, script.thread).await,
        [1, 2, 3, script.head.0]
    );
}

#[tokio::test]
async fn long_text_is_copied_to_its_thread() {
    let (one, two, mut script, tables) = two_nodes().await;
    for at in 1..12 {
        let text = "x".repeat(60_000);
        script.append(&one, vec![delta("i", at, &text)]).await;
    }
    assert!(tables.number("SELECT count(*) FROM deltas").await >= 5);
    assert_eq!(numbers(&two, script.thread).await, whole(&script));
    assert_eq!(two.take(script.thread, Some("one")).await, Ok(script.head));
    assert_eq!(numbers(&two, script.thread).await, whole(&script));
}

/// The log has text of many other threads. Taking one reads its lane only, by the index.
#[tokio::test]
async fn taking_a_thread_reads_one_lane() {
    const BATCHES_EACH: i64 = 1000;
    let (one, two, mut script, tables) = two_nodes().await;
    let fill = format!(
        "INSERT INTO node_batches SELECT l.id, lane, at, ARRAY[gen_random_uuid()], ARRAY[at],
             ARRAY[at], ARRAY['i'], ARRAY[1], ARRAY['{{}}'::bytea]
         FROM node_logs l, generate_series(0, 15) lane, generate_series(2, {BATCHES_EACH}) at;
         UPDATE node_logs SET n = {BATCHES_EACH}; ANALYZE node_batches"
    );
    tables.run(&fill).await;
    assert_eq!(two.take(script.thread, Some("one")).await, Ok(script.head));
    script.append(&two, vec![owned_by("two", 2)]).await;
    // Processes of the server write their statistics at the latest when they end.
    drop((one, two));
    let read = "SELECT coalesce(sum(idx_tup_fetch), 0)::bigint FROM pg_stat_user_tables
                WHERE relid = 'node_batches'::regclass";
    tables.wait_for(read, |rows| rows > 0).await;
    let rows = tables.number(read).await;
    // The state is read before the seal and after it.
    assert!(rows <= 2 * BATCHES_EACH + 100, "{rows}");
    let scanned = "SELECT coalesce(sum(seq_tup_read), 0)::bigint FROM pg_stat_user_tables
                   WHERE relid = 'node_batches'::regclass";
    assert_eq!(tables.number(scanned).await, 0);
}

/// The index on the owner's log costs events and text nothing: only taking and releasing change it.
#[tokio::test]
async fn events_and_text_change_no_index_of_the_threads() {
    const EVENTS: i64 = 200;
    let options = options(server::shared());
    let journal = open(&options).await;
    let mut script = with_item(&journal).await;
    for at in 0..EVENTS as u64 {
        script.append(&journal, vec![delta("i", at, "a")]).await;
        script.append(&journal, vec![renamed("b")]).await;
    }
    // Processes of the server write their statistics at the latest when they end.
    drop(journal);
    let tables = Tables::open(&options).await;
    let column = |column| {
        format!(
            "SELECT coalesce(sum({column}), 0)::bigint FROM pg_stat_user_tables
             WHERE relid = 'threads'::regclass"
        )
    };
    tables
        .wait_for(&column("n_tup_upd"), |updates| updates >= EVENTS)
        .await;
    let updates = tables.number(&column("n_tup_upd")).await;
    let others = updates - tables.number(&column("n_tup_hot_upd")).await;
    assert!(others <= 5, "{others} of {updates}");
}
