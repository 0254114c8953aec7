//! Records are returned as they were appended.

use raddle_core::ports::Journal;
use raddle_core::{Base, Class, Record, RecordBody, Seq, Thread};

use crate::StoreMaker;
use crate::records::{ThreadScript, completed, delta, item_started, renamed, saved};

suite!(reading:
    records_come_back_in_order,
    pages_of_records_meet_without_a_gap,
    a_page_has_at_least_one_record,
    a_page_weighs_what_its_records_weigh,
    long_records_come_back_whole,
    deltas_stay_while_their_item_is_open,
    deltas_go_when_their_item_is_saved_or_completed,
    deltas_settled_in_the_same_append_are_not_stored,
    many_deltas_go_too,
    a_base_at_or_below_a_number,
    a_base_and_the_rest_are_the_whole,
);

async fn all(journal: &impl Journal, script: &ThreadScript) -> Vec<Record> {
    journal
        .read(script.thread, Seq::ZERO, usize::MAX)
        .await
        .unwrap()
}

async fn records_come_back_in_order(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut script = ThreadScript::new();
    let mut appended = script.start(journal, "/w").await;
    appended.extend(script.turn(journal, "t1", "hello").await);
    appended.extend(script.append(journal, vec![item_started("t1", "i")]).await);
    appended.extend(
        script
            .append(journal, vec![delta("i", 0, "ä€\u{10348}")])
            .await,
    );
    let read = all(journal, &script).await;
    // The answer of the turn began with one more record.
    let began = read.iter().filter(|it| !appended.contains(it)).count();
    assert_eq!(began, 1);
    assert!(read.windows(2).all(|pair| pair[0].seq < pair[1].seq));
    assert!(appended.iter().all(|record| read.contains(record)));
}

async fn pages_of_records_meet_without_a_gap(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut script = ThreadScript::new();
    script.start(journal, "/w").await;
    for turn in 0..20 {
        script.turn(journal, &format!("t{turn}"), "go").await;
    }
    script.append(journal, vec![item_started("t", "i")]).await;
    for at in 0..50 {
        script.append(journal, vec![delta("i", at, "x")]).await;
    }
    let whole = all(journal, &script).await;
    for bytes_max in [1, 100, 1000, 5000] {
        let mut paged = Vec::new();
        let mut after = Seq::ZERO;
        loop {
            let page = journal.read(script.thread, after, bytes_max).await.unwrap();
            let Some(last) = page.last() else { break };
            after = last.seq;
            paged.extend(page);
        }
        assert_eq!(paged, whole);
    }
}

async fn a_page_has_at_least_one_record(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut script = ThreadScript::new();
    script.start(journal, "/w").await;
    let page = journal.read(script.thread, Seq::ZERO, 0).await.unwrap();
    assert_eq!(page.len(), 1);
    let end = journal.read(script.thread, script.head, 0).await.unwrap();
    assert_eq!(end, []);
    let beyond = journal.read(script.thread, Seq(u64::MAX), 0).await.unwrap();
    assert_eq!(beyond, []);
}

async fn a_page_weighs_what_its_records_weigh(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut script = ThreadScript::new();
    script.start(journal, "/w").await;
    for bytes in [10_000, 100_000] {
        let after = script.head;
        for at in 0..10 {
            let text = format!("{at}").repeat(bytes);
            let body = vec![completed("t", "i", &text)];
            script.append(journal, body).await;
        }
        // Whether a record is long or very long, no page exceeds the requested size.
        let page = journal.read(script.thread, after, bytes * 7 / 2).await;
        assert_eq!(page.unwrap().len(), 3, "of {bytes} bytes each");
    }
    script.append(journal, vec![item_started("t", "i")]).await;
    let after = script.head;
    for at in 0..10 {
        let text = "x".repeat(10_000);
        script
            .append(journal, vec![delta("i", at * 10_000, &text)])
            .await;
    }
    let page = journal.read(script.thread, after, 35_000).await;
    assert_eq!(page.unwrap().len(), 3);
}

async fn long_records_come_back_whole(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut script = ThreadScript::new();
    let mut appended = script.start(journal, "/w").await;
    for bytes in [1_000, 60_000, 70_000, 3_000_000] {
        let text = "long ".repeat(bytes / 5);
        let bodies = vec![item_started("t", "i"), completed("t", "i", &text)];
        appended.extend(script.append(journal, bodies).await);
    }
    assert_eq!(all(journal, &script).await, appended);
    journal.delete(script.thread).await.unwrap();
    // The file of the deleted thread can be created again.
    let mut script = ThreadScript::new();
    let text = "long ".repeat(20_000);
    script.start(journal, "/w").await;
    let appended = script
        .append(journal, vec![completed("t", "i", &text)])
        .await;
    let read = journal.read(script.thread, Seq(2), usize::MAX).await;
    assert_eq!(read, Ok(appended));
}

pub(crate) fn deltas(records: &[Record]) -> Vec<&str> {
    let texts = records.iter().filter_map(|record| match &record.body {
        RecordBody::Delta(delta) => Some(delta.text.as_str()),
        RecordBody::Event(_) => None,
    });
    texts.collect()
}

async fn deltas_stay_while_their_item_is_open(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut script = ThreadScript::new();
    script.start(journal, "/w").await;
    let bodies = vec![item_started("t", "i"), item_started("t", "j")];
    script.append(journal, bodies).await;
    script.append(journal, vec![delta("i", 0, "a")]).await;
    script
        .append(journal, vec![delta("j", 0, "b"), delta("i", 1, "c")])
        .await;
    script.append(journal, vec![renamed("x")]).await;
    assert_eq!(deltas(&all(journal, &script).await), ["a", "b", "c"]);
    let rest = journal
        .read(script.thread, Seq(5), usize::MAX)
        .await
        .unwrap();
    assert_eq!(deltas(&rest), ["b", "c"]);
}

async fn deltas_go_when_their_item_is_saved_or_completed(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut script = ThreadScript::new();
    script.start(journal, "/w").await;
    let bodies = vec![item_started("t", "i"), item_started("t", "j")];
    script.append(journal, bodies).await;
    script
        .append(journal, vec![delta("i", 0, "a"), delta("j", 0, "b")])
        .await;
    script.append(journal, vec![saved("i", "a")]).await;
    assert_eq!(deltas(&all(journal, &script).await), ["b"]);
    script.append(journal, vec![delta("i", 1, "c")]).await;
    assert_eq!(deltas(&all(journal, &script).await), ["b", "c"]);
    script.append(journal, vec![completed("t", "j", "b")]).await;
    assert_eq!(deltas(&all(journal, &script).await), ["c"]);
    script
        .append(journal, vec![completed("t", "i", "ac")])
        .await;
    assert!(deltas(&all(journal, &script).await).is_empty());
}

async fn deltas_settled_in_the_same_append_are_not_stored(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut script = ThreadScript::new();
    script.start(journal, "/w").await;
    let bodies = vec![
        item_started("t", "i"),
        delta("i", 0, "a"),
        saved("i", "a"),
        delta("i", 1, "b"),
    ];
    script.append(journal, bodies).await;
    assert_eq!(deltas(&all(journal, &script).await), ["b"]);
    assert_eq!(journal.head(script.thread).await, Ok(script.head));
    let bodies = vec![delta("i", 2, "c"), completed("t", "i", "abc")];
    script.append(journal, bodies).await;
    assert!(deltas(&all(journal, &script).await).is_empty());
}

async fn many_deltas_go_too(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut script = ThreadScript::new();
    script.start(journal, "/w").await;
    script.append(journal, vec![item_started("t", "i")]).await;
    for _ in 0..5 {
        let bodies = (0..700).map(|at| delta("i", at, "x")).collect();
        script.append(journal, bodies).await;
    }
    script.append(journal, vec![completed("t", "i", "x")]).await;
    // They may be deleted in pieces after the append. Each append and each deletion first runs a
    // piece.
    for _ in 0..20 {
        script.append(journal, vec![renamed("x")]).await;
        journal.delete(raddle_core::ThreadId::mint()).await.unwrap();
    }
    assert!(deltas(&all(journal, &script).await).is_empty());
}

async fn a_base_at_or_below_a_number(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut script = ThreadScript::new();
    script.start(journal, "/w").await;
    script.turn(journal, "t1", "one").await;
    let first = base(journal, &script).await;
    script.turn(journal, "t2", "two").await;
    let second = base(journal, &script).await;
    let thread = script.thread;
    let (low, high) = (first.thread.head(), second.thread.head());
    assert!(low < high);
    for base in [&first, &second] {
        journal.save_base(thread, base.clone()).await.unwrap();
    }
    let at = |at: Option<Seq>| journal.base(thread, at);
    assert_eq!(at(None).await, Ok(Some(second.clone())));
    assert_eq!(at(Some(high)).await, Ok(Some(second.clone())));
    assert_eq!(at(Some(Seq(u64::MAX))).await, Ok(Some(second)));
    assert_eq!(at(Some(Seq(high.0 - 1))).await, Ok(Some(first.clone())));
    assert_eq!(at(Some(low)).await, Ok(Some(first)));
    assert_eq!(at(Some(Seq(low.0 - 1))).await, Ok(None));
    journal.delete(thread).await.unwrap();
    assert_eq!(at(None).await, Ok(None));
    let late = Base::of(&Thread::new());
    assert_eq!(journal.save_base(thread, late).await, Ok(()));
    assert_eq!(at(None).await, Ok(None));
}

async fn base(journal: &impl Journal, script: &ThreadScript) -> Base {
    let mut thread = Thread::new();
    for record in all(journal, script).await {
        thread.apply(&record);
    }
    Base::of(&thread)
}

async fn a_base_and_the_rest_are_the_whole(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut script = ThreadScript::new();
    script.start(journal, "/w").await;
    script.append(journal, vec![item_started("t", "i")]).await;
    let after = script.head;
    let records = script.records(vec![delta("i", 0, "abc")]);
    let appended = journal.append(script.thread, after, &records, Class::Process);
    appended.await.unwrap();
    let half = base(journal, &script).await;
    journal.save_base(script.thread, half).await.unwrap();
    script.turn(journal, "t1", "one").await;
    let whole = base(journal, &script).await;
    let newest = journal.base(script.thread, None).await.unwrap().unwrap();
    let mut thread = newest.thread;
    let rest = journal.read(script.thread, thread.head(), usize::MAX).await;
    for record in rest.unwrap() {
        thread.apply(&record);
    }
    assert_eq!(thread, whole.thread);
}
