//! Lists show which node has a thread, and its current work.

use raddle_core::ports::{Activity, Journal, Pages, Summary, ThreadOwner};
use raddle_core::{Epoch, Event, RecordBody, Seq, Thread, ThreadId};

use crate::StoreMaker;
use crate::lists::query;
use crate::records::{
    ThreadScript, begin_turn, completed, deleted, delta, forked, item_started, owned, owned_by,
    released, renamed, request_opened, request_resolved, started, turn_ended,
};

suite!(activity:
    the_life_of_a_turn,
    a_thread_changes_its_owner,
    changes_of_activity_are_no_updates,
    a_fork_shows_its_own_activity,
    a_base_in_the_middle_of_a_turn,
    a_deleted_thread_shows_no_activity,
);

async fn listed(journal: &impl Pages, thread: ThreadId) -> Option<Summary> {
    let page = journal.list(query(100)).await.unwrap();
    page.entries.into_iter().find(|it| it.thread == thread)
}

fn activity(owner: Option<(&str, u64)>, running: bool, open_requests: u32) -> Activity {
    Activity {
        owner: owner.map(|(node, epoch)| ThreadOwner {
            node: node.to_owned(),
            epoch: Epoch(epoch),
        }),
        running,
        open_requests,
    }
}

/// Appends records, and checks the activity in the list, which is also that of the folded thread.
async fn check(
    maker: &impl StoreMaker,
    script: &mut ThreadScript,
    bodies: Vec<RecordBody>,
    expected: Activity,
) {
    let journal = maker.store();
    script.append(journal, bodies).await;
    let summary = listed(journal, script.thread).await;
    assert_eq!(summary.as_ref().map(|it| &it.activity), Some(&expected));
    let mut thread = Thread::new();
    let records = journal.read(script.thread, Seq::ZERO, usize::MAX).await;
    for record in records.unwrap() {
        thread.apply(&record);
    }
    assert_eq!(summary, Summary::of(&thread));
}

async fn the_life_of_a_turn(maker: impl StoreMaker) {
    let mut script = ThreadScript::new();
    let one = Some(("one", 1));
    for (bodies, running, open_requests) in [
        (vec![started(script.thread, "/w"), owned()], false, 0),
        (begin_turn("t", "go"), true, 0),
        (vec![item_started("t", "i")], true, 0),
        (vec![delta("i", 0, "a")], true, 0),
        (vec![request_opened("t", "i", 1)], true, 1),
        (vec![request_opened("t", "i", 2)], true, 2),
        (vec![request_resolved(1)], true, 1),
        (
            vec![request_opened("t", "i", 3), request_resolved(2)],
            true,
            1,
        ),
        (vec![request_resolved(3)], true, 0),
        (vec![completed("t", "i", "a")], true, 0),
        (vec![turn_ended("t")], false, 0),
        (vec![renamed("a name")], false, 0),
    ] {
        let expected = activity(one, running, open_requests);
        check(&maker, &mut script, bodies, expected).await;
    }
    // All of it at once, too.
    let mut bodies = begin_turn("t2", "go");
    bodies.extend([item_started("t2", "i2"), request_opened("t2", "i2", 4)]);
    check(&maker, &mut script, bodies, activity(one, true, 1)).await;
    let bodies = vec![
        request_resolved(4),
        completed("t2", "i2", "a"),
        turn_ended("t2"),
        released(),
    ];
    check(&maker, &mut script, bodies, Activity::default()).await;
}

async fn a_thread_changes_its_owner(maker: impl StoreMaker) {
    let mut script = ThreadScript::new();
    let thread = script.thread;
    for (bodies, expected) in [
        (vec![started(thread, "/w")], Activity::default()),
        (vec![owned()], activity(Some(("one", 1)), false, 0)),
        (vec![released()], Activity::default()),
        (
            vec![owned_by("two", 2)],
            activity(Some(("two", 2)), false, 0),
        ),
        (begin_turn("t", "go"), activity(Some(("two", 2)), true, 0)),
        // The node died in the middle of the turn, which the next owner continues.
        (
            vec![owned_by("three", 3)],
            activity(Some(("three", 3)), true, 0),
        ),
        (vec![turn_ended("t"), released()], Activity::default()),
    ] {
        check(&maker, &mut script, bodies, expected).await;
    }
}

/// A thread does not move in the list when its owner or its requests change.
async fn changes_of_activity_are_no_updates(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut script = ThreadScript::new();
    script.start(journal, "/w").await;
    script.append(journal, begin_turn("t", "go")).await;
    let before = listed(journal, script.thread).await.unwrap();
    script.now = 100_000;
    for body in [
        item_started("t", "i"),
        request_opened("t", "i", 1),
        request_resolved(1),
        released(),
        owned_by("two", 2),
    ] {
        script.append(journal, vec![body]).await;
        let after = listed(journal, script.thread).await.unwrap();
        assert_eq!(after.updated_at, before.updated_at);
        assert_eq!(after.recency_at, before.recency_at);
        assert_eq!(after.head, script.head);
    }
}

async fn a_fork_shows_its_own_activity(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut script = ThreadScript::new();
    script.start(journal, "/w").await;
    let mut bodies = begin_turn("t", "go");
    bodies.extend([item_started("t", "i"), request_opened("t", "i", 1)]);
    script.append(journal, bodies).await;
    let mut fork = script.fork(journal, script.head).await;
    // Until the fork's owner ends it, the fork has the open turn that it copied.
    let own = vec![
        forked(fork.thread, script.thread, fork.head, 1),
        owned_by("two", 2),
    ];
    let two = Some(("two", 2));
    check(&maker, &mut fork, own, activity(two, true, 1)).await;
    let end = vec![
        request_resolved(1),
        completed("t", "i", "a"),
        turn_ended("t"),
    ];
    check(&maker, &mut fork, end, activity(two, false, 0)).await;
    let one = activity(Some(("one", 1)), true, 1);
    check(&maker, &mut script, vec![renamed("parent")], one).await;
    // A fork from before the turn.
    let mut early = script.fork(journal, Seq(2)).await;
    let own = vec![forked(early.thread, script.thread, early.head, 0)];
    let one = activity(Some(("one", 1)), false, 0);
    check(&maker, &mut early, own, one).await;
}

async fn a_base_in_the_middle_of_a_turn(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut script = ThreadScript::new();
    script.start(journal, "/w").await;
    let mut bodies = begin_turn("t", "go");
    bodies.extend([item_started("t", "i"), request_opened("t", "i", 1)]);
    let one = Some(("one", 1));
    check(&maker, &mut script, bodies, activity(one, true, 1)).await;
    let mut thread = Thread::new();
    let records = journal.read(script.thread, Seq::ZERO, usize::MAX).await;
    for record in records.unwrap() {
        thread.apply(&record);
    }
    let base = raddle_core::Base::of(&thread);
    journal.save_base(script.thread, base).await.unwrap();
    // A store may summarise the fork from the base.
    let mut fork = script.fork(journal, script.head).await;
    let own = vec![forked(fork.thread, script.thread, fork.head, 1)];
    check(&maker, &mut fork, own, activity(one, true, 1)).await;
    let end = vec![request_resolved(1), turn_ended("t"), released()];
    check(&maker, &mut fork, end, Activity::default()).await;
}

async fn a_deleted_thread_shows_no_activity(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut script = ThreadScript::new();
    script.start(journal, "/w").await;
    script.append(journal, begin_turn("t", "go")).await;
    script.append(journal, vec![deleted()]).await;
    assert_eq!(listed(journal, script.thread).await, None);
    for body in [turn_ended("t"), released(), owned_by("two", 2)] {
        script.append(journal, vec![body]).await;
        assert_eq!(listed(journal, script.thread).await, None);
    }
    let archived = Event::Archived { principal: None };
    script.append(journal, vec![archived.into()]).await;
    assert_eq!(listed(journal, script.thread).await, None);
}
