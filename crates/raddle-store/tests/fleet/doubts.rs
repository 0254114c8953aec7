//! A broken connection: what was not sent did not happen, and what was sent is in doubt until a
//! write settles it.

use raddle_core::ports::{AppendError, Blobs, ForkError, Journal, ReadError};
use raddle_core::{Base, Class, Seq, Thread, ThreadId};
use raddle_store::{FleetJournal, FleetOptions};
use store_suite::records::{ThreadScript, delta, item_started, owned, released, renamed, started};

use crate::maker::{open, options};
use crate::proxy::{Fault, Proxy};
use crate::server;
use crate::sql_session::SqlSession;

/// A journal behind a proxy, with one connection for events.
async fn behind_proxy() -> (Proxy, FleetJournal, FleetOptions) {
    let address = server::shared();
    let proxy = Proxy::start(server::port(address)).await;
    let options = FleetOptions {
        event_connections: 1,
        ..options(&proxy.address(address))
    };
    let journal = open(&options).await;
    (proxy, journal, options)
}

/// Starts a thread with a piece of text that is not settled.
async fn with_text(journal: &FleetJournal) -> ThreadScript {
    let mut script = ThreadScript::new();
    script.start(journal, "/w").await;
    let bodies = vec![item_started("t", "i")];
    script.append(journal, bodies).await;
    script.append(journal, vec![renamed("first")]).await;
    script.append(journal, vec![delta("i", 0, "a")]).await;
    script
}

async fn numbers(journal: &FleetJournal, thread: ThreadId) -> Vec<Seq> {
    let records = journal.read(thread, Seq::ZERO, usize::MAX).await.unwrap();
    records.iter().map(|it| it.seq).collect()
}

#[tokio::test]
async fn a_lost_answer_is_in_doubt_until_the_head_is_read() {
    for (fault, happened) in [(Fault::LoseAnswer, true), (Fault::LoseRequest, false)] {
        // The thread is released, so no node log gathers its deltas.
        for (body, class) in [
            (renamed("lost"), Class::Power),
            (delta("i", 1, "lost"), Class::Process),
        ] {
            let (proxy, journal, _) = behind_proxy().await;
            let mut script = with_text(&journal).await;
            script.append(&journal, vec![released()]).await;
            let (after, before) = (script.head, numbers(&journal, script.thread).await);
            let records = script.clone().records(vec![body]);
            proxy.arm(fault, "lost");
            let lost = journal.append(script.thread, after, &records, class).await;
            assert!(proxy.has_fired());
            assert!(matches!(lost, Err(AppendError::Unknown(_))), "{lost:?}");
            let head = journal.head(script.thread).await;
            let expected = if happened { after.next() } else { after };
            assert_eq!(head, Ok(expected), "{class:?} {fault:?}");
            // The writer goes on from the head, and nothing is there twice.
            script.head = expected;
            script.append(&journal, vec![renamed("next")]).await;
            let mut all = before;
            all.extend(happened.then_some(expected));
            all.push(script.head);
            assert_eq!(numbers(&journal, script.thread).await, all);
            assert_eq!(proxy.cancel_requests(), 0);
        }
    }
}

#[tokio::test]
async fn an_append_that_was_not_sent_did_not_happen() {
    let (proxy, journal, options) = behind_proxy().await;
    let script = with_text(&journal).await;
    let (thread, after) = (script.thread, script.head);
    proxy.refuse();
    // The connection that ended is noticed at the latest when it is used.
    let taken = journal.take(thread, None).await;
    assert!(matches!(taken, Err(ReadError::Unavailable(_))), "{taken:?}");
    let put = journal.put(thread, vec![1], "a/b".to_owned()).await;
    assert!(matches!(put, Err(AppendError::Unavailable(_))), "{put:?}");
    let records = script.clone().records(vec![renamed("next")]);
    let base = journal.save_base(thread, Base::of(&Thread::new())).await;
    assert!(matches!(base, Err(AppendError::Unavailable(_))), "{base:?}");
    for class in [Class::Power, Class::Process] {
        let refused = journal.append(thread, after, &records, class).await;
        let is_known = matches!(refused, Err(AppendError::Unavailable(_)));
        assert!(is_known, "{refused:?}");
    }
    assert!(journal.head(thread).await.is_err());
    proxy.pass();
    let other = open(&options).await;
    assert_eq!(other.head(thread).await, Ok(after));
}

/// The server processes the statement after the doubt about it was settled.
#[tokio::test]
async fn a_statement_that_is_late_has_no_effect() {
    let (proxy, journal, options) = behind_proxy().await;
    let mut script = with_text(&journal).await;
    let before = numbers(&journal, script.thread).await;
    let after = script.head;
    let records = script.clone().records(vec![renamed("late")]);
    proxy.arm(Fault::Delay, "late");
    let lost = journal.append(script.thread, after, &records, Class::Power);
    let lost = lost.await;
    assert!(matches!(lost, Err(AppendError::Unknown(_))), "{lost:?}");
    assert_eq!(journal.head(script.thread).await, Ok(after));
    proxy.release().await;
    assert_eq!(journal.head(script.thread).await, Ok(after));
    assert_eq!(numbers(&journal, script.thread).await, before);
    script.append(&journal, vec![renamed("next")]).await;
    let next = open(&options).await;
    assert_eq!(
        numbers(&next, script.thread).await.last(),
        Some(&script.head)
    );
    // The same, while another node takes the thread.
    let records = script.clone().records(vec![renamed("late")]);
    proxy.arm(Fault::Delay, "late");
    let lost = journal.append(script.thread, script.head, &records, Class::Power);
    let lost = lost.await;
    assert!(matches!(lost, Err(AppendError::Unknown(_))), "{lost:?}");
    assert_eq!(next.take(script.thread, Some("one")).await, Ok(script.head));
    proxy.release().await;
    assert_eq!(next.head(script.thread).await, Ok(script.head));
    script
        .append(&next, vec![renamed("of the next node")])
        .await;
}

#[tokio::test]
async fn the_late_start_of_a_thread_has_no_effect() {
    let (proxy, journal, options) = behind_proxy().await;
    let mut script = ThreadScript::new();
    let bodies = vec![started(script.thread, "/late"), owned()];
    let records = script.clone().records(bodies);
    let thread = script.thread;
    proxy.arm(Fault::Delay, "late");
    let lost = journal.append(thread, Seq::ZERO, &records, Class::Power);
    let lost = lost.await;
    assert!(matches!(lost, Err(AppendError::Unknown(_))), "{lost:?}");
    assert_eq!(journal.head(thread).await, Ok(Seq::ZERO));
    proxy.release().await;
    // A doubt about a thread does not make it exist.
    for journal in [&journal, &open(&options).await] {
        assert_eq!(journal.head(thread).await, Ok(Seq::ZERO));
        let read = journal.read(thread, Seq::ZERO, 1).await;
        assert_eq!(read, Err(ReadError::NotFound));
        let fork = journal.fork(thread, Seq::ZERO, ThreadId::mint()).await;
        assert_eq!(fork, Err(ForkError::Read(ReadError::NotFound)));
    }
    let records = script.start(&journal, "/w").await;
    let read = journal.read(thread, Seq::ZERO, usize::MAX).await;
    assert_eq!(read, Ok(records));
    // A fork may have an id about which there was a doubt, too.
    let other = ThreadId::mint();
    let records = ThreadScript {
        thread: other,
        ..ThreadScript::new()
    }
    .records(vec![started(other, "/late"), owned()]);
    proxy.arm(Fault::LoseRequest, "late");
    let lost = journal.append(other, Seq::ZERO, &records, Class::Power);
    assert!(matches!(lost.await, Err(AppendError::Unknown(_))));
    assert_eq!(journal.head(other).await, Ok(Seq::ZERO));
    let forked = journal.fork(thread, script.head, other).await;
    assert_eq!(forked, Ok(script.head));
    assert_eq!(numbers(&journal, other).await, [Seq(1), Seq(2)]);
}

#[tokio::test]
async fn a_fork_whose_answer_was_lost_is_in_doubt() {
    for (fault, happened) in [(Fault::LoseAnswer, true), (Fault::LoseRequest, false)] {
        let (proxy, journal, _) = behind_proxy().await;
        let script = with_text(&journal).await;
        let to = ThreadId::mint();
        proxy.arm(fault, "COMMIT");
        let lost = journal.fork(script.thread, script.head, to).await;
        let is_unknown = matches!(lost, Err(ForkError::Append(AppendError::Unknown(_))));
        assert!(is_unknown, "{lost:?}");
        let head = if happened { script.head } else { Seq::ZERO };
        assert_eq!(journal.head(to).await, Ok(head));
        let again = journal.fork(script.thread, script.head, to).await;
        let expected = if happened {
            Err(ForkError::Taken)
        } else {
            Ok(script.head)
        };
        assert_eq!(again, expected);
    }
}

#[tokio::test]
async fn a_deletion_that_is_late_has_no_effect() {
    let (proxy, journal, options) = behind_proxy().await;
    let session = SqlSession::open(&options.schema).await;
    let script = with_text(&journal).await;
    proxy.arm(Fault::Delay, session.log(script.thread).await);
    let lost = journal.delete(script.thread).await;
    assert!(matches!(lost, Err(AppendError::Unknown(_))), "{lost:?}");
    assert_eq!(journal.head(script.thread).await, Ok(script.head));
    proxy.release().await;
    assert_eq!(journal.head(script.thread).await, Ok(script.head));
    // The same, while another node starts a new thread under the id.
    proxy.arm(Fault::Delay, session.log(script.thread).await);
    let lost = journal.delete(script.thread).await;
    assert!(matches!(lost, Err(AppendError::Unknown(_))), "{lost:?}");
    let other = open(&options).await;
    assert_eq!(other.delete(script.thread).await, Ok(()));
    let mut newer = ThreadScript {
        thread: script.thread,
        ..ThreadScript::new()
    };
    newer.start(&other, "/newer").await;
    proxy.release().await;
    assert_eq!(journal.head(newer.thread).await, Ok(newer.head));
    newer.append(&other, vec![renamed("next")]).await;
    assert_eq!(journal.delete(newer.thread).await, Ok(()));
    assert_eq!(other.head(newer.thread).await, Ok(Seq::ZERO));
}

#[tokio::test]
async fn a_fork_that_is_in_doubt_does_not_appear_after_its_deletion() {
    let (proxy, journal, _) = behind_proxy().await;
    let script = with_text(&journal).await;
    let to = ThreadId::mint();
    proxy.arm(Fault::Delay, "COMMIT");
    let lost = journal.fork(script.thread, script.head, to).await;
    let is_unknown = matches!(lost, Err(ForkError::Append(AppendError::Unknown(_))));
    assert!(is_unknown, "{lost:?}");
    let deleted = journal.delete(to).await;
    let is_unavailable = matches!(deleted, Err(AppendError::Unavailable(_)));
    assert!(is_unavailable, "{deleted:?}");
    proxy.release().await;
    assert_eq!(journal.delete(to).await, Ok(()));
    assert_eq!(journal.head(to).await, Ok(Seq::ZERO));
}

/// Statements of all threads share the connection.
#[tokio::test]
async fn a_row_that_another_node_has_locked_leaves_no_thread_in_doubt() {
    let (_proxy, journal, options) = behind_proxy().await;
    let mut first = with_text(&journal).await;
    let mut second = with_text(&journal).await;
    let session = SqlSession::open(&options.schema).await;
    let id = first.thread.as_uuid();
    let lock = format!("BEGIN; SELECT 1 FROM threads WHERE id = '{id}' FOR UPDATE");
    session.run(&lock).await;
    let records = first.clone().records(vec![renamed("waits")]);
    let waits = journal.append(first.thread, first.head, &records, Class::Power);
    let behind = second.append(&journal, vec![renamed("next")]);
    let (waits, _) = tokio::join!(waits, behind);
    let is_unavailable = matches!(waits, Err(AppendError::Unavailable(_)));
    assert!(is_unavailable, "{waits:?}");
    session.run("ROLLBACK").await;
    first.append(&journal, vec![renamed("next")]).await;
}
