//! Blobs beside the journal.

use raddle_core::ports::{AppendError, Blobs, Journal, ReadError};
use raddle_core::{
    Blob, Class, DiffUpdated, Event, Image, ImageOutput, Item, ItemBody, ItemCompleted,
    ItemStarted, ItemStatus, Output, Seq, ThreadId,
};

use crate::StoreMaker;
use crate::records::{ThreadScript, completed, item, message, record_with_blob, renamed};

suite!(blobs:
    bytes_come_back,
    unknown_hashes_are_not_found,
    a_blob_is_deleted_with_the_last_thread_that_uses_it,
    references_to_missing_blobs_are_rejected,
    every_kind_of_reference_protects_a_blob,
    a_blob_that_was_put_again_waits_for_its_reference,
    a_fork_preserves_the_blobs_that_it_shares,
    a_fork_has_the_blobs_of_its_records,
    forks_have_the_blobs_that_were_put_for_a_fork_before_it,
);

async fn bytes_come_back(maker: impl StoreMaker) {
    let journal = maker.store();
    let thread = ThreadId::mint();
    for bytes in [vec![], vec![7; 10], [1, 2, 3].repeat(500_000)] {
        let blob = journal.put(thread, bytes.clone(), "image/png".to_owned());
        let blob = blob.await.unwrap();
        assert_eq!(blob.bytes, bytes.len() as u64);
        assert_eq!(blob.media, "image/png");
        assert_eq!(journal.get(thread, blob.clone()).await, Ok(bytes.clone()));
        let again = journal.put(thread, bytes, "image/png".to_owned()).await;
        assert_eq!(again, Ok(blob));
    }
}

async fn unknown_hashes_are_not_found(maker: impl StoreMaker) {
    let journal = maker.store();
    for hash in [
        "",
        "zz",
        "../../etc/passwd",
        &"0".repeat(64),
        &"g".repeat(64),
    ] {
        let blob = Blob {
            hash: hash.to_owned(),
            bytes: 0,
            media: String::new(),
        };
        let bytes = journal.get(ThreadId::mint(), blob).await;
        assert_eq!(bytes, Err(ReadError::NotFound));
    }
}

async fn put(journal: &impl Blobs, thread: ThreadId, byte: u8) -> Blob {
    let blob = journal.put(thread, vec![byte; 5000], "image/png".to_owned());
    blob.await.unwrap()
}

/// Checks that a blob is gone. Some stores delete it a while after its last use.
async fn check_gone(maker: &impl StoreMaker, thread: ThreadId, blob: Blob) {
    maker.settle().await;
    let bytes = maker.store().get(thread, blob).await;
    assert_eq!(bytes, Err(ReadError::NotFound));
}

async fn a_blob_is_deleted_with_the_last_thread_that_uses_it(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut scripts = [ThreadScript::new(), ThreadScript::new()];
    let mut blobs = Vec::new();
    for script in &mut scripts {
        script.start(journal, "/w").await;
        // Each thread puts the same bytes, and names them once, and once more.
        let blob = put(journal, script.thread, 9).await;
        script.append(journal, vec![record_with_blob(&blob)]).await;
        script.append(journal, vec![record_with_blob(&blob)]).await;
        blobs.push(blob);
    }
    let [first, second] = scripts.map(|it| it.thread);
    let blob = blobs[0].clone();
    assert_eq!(blobs[1], blob);
    journal.delete(first).await.unwrap();
    maker.settle().await;
    assert_eq!(journal.get(second, blob.clone()).await, Ok(vec![9; 5000]));
    journal.delete(second).await.unwrap();
    check_gone(&maker, second, blob).await;
}

async fn references_to_missing_blobs_are_rejected(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut script = ThreadScript::new();
    script.start(journal, "/w").await;
    let existing = put(journal, script.thread, 1).await;
    for hash in ["", "zz", &"0".repeat(64), &"g".repeat(64)] {
        let missing = Blob {
            hash: hash.to_owned(),
            ..existing.clone()
        };
        let (after, mut ahead) = (script.head, script.clone());
        let bodies = vec![
            record_with_blob(&existing),
            renamed("x"),
            record_with_blob(&missing),
        ];
        let records = ahead.records(bodies);
        let rejected = journal.append(script.thread, after, &records, Class::Power);
        let rejected = rejected.await;
        assert!(
            matches!(rejected, Err(AppendError::NoBlob(_))),
            "{rejected:?}"
        );
        let what = rejected.unwrap_err().to_string();
        assert!(what.contains("store it first"), "{what}");
        // Nothing of it was written.
        assert_eq!(journal.head(script.thread).await, Ok(after));
    }
    script
        .append(journal, vec![record_with_blob(&existing)])
        .await;
}

async fn every_kind_of_reference_protects_a_blob(maker: impl StoreMaker) {
    let journal = maker.store();
    let image = |blob: &Blob| Image::Blob(blob.clone());
    let output = |images, full| Item {
        output: Some(Output {
            images,
            full,
            ..Output::default()
        }),
        ..item("i", message("text"), ItemStatus::Completed)
    };
    let made = |blob: &Blob| {
        let made = ImageOutput {
            stage: "done".to_owned(),
            image: Some(image(blob)),
            prompt: None,
            saved: None,
        };
        item("i", ItemBody::ImageMade(made), ItemStatus::Completed)
    };
    let ended = |item| {
        let turn = "t".into();
        Event::ItemCompleted(ItemCompleted { turn, item })
    };
    let events: [&dyn Fn(&Blob) -> Event; 5] = [
        &|blob| ended(output(vec![image(blob)], None)),
        &|blob| ended(output(vec![], Some(blob.clone()))),
        &|blob| ended(made(blob)),
        &|blob| {
            let item = made(blob);
            let (turn, gate) = ("t".into(), None);
            Event::ItemStarted(ItemStarted {
                turn,
                item,
                gate,
                ruling: None,
            })
        },
        &|blob| {
            Event::DiffUpdated(DiffUpdated {
                turn: "t".into(),
                diff: String::new(),
                full: Some(blob.clone()),
            })
        },
    ];
    for (byte, event_with) in (10..).zip(events) {
        let mut script = ThreadScript::new();
        script.start(journal, "/w").await;
        let blob = put(journal, script.thread, byte).await;
        script.append(journal, vec![event_with(&blob).into()]).await;
        maker.settle().await;
        assert!(journal.get(script.thread, blob.clone()).await.is_ok());
        journal.delete(script.thread).await.unwrap();
        check_gone(&maker, script.thread, blob).await;
    }
}

async fn a_blob_that_was_put_again_waits_for_its_reference(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut scripts = [ThreadScript::new(), ThreadScript::new()];
    for script in &mut scripts {
        script.start(journal, "/w").await;
    }
    let [first, second] = &mut scripts;
    // Both have put the blob; one refers to it and is deleted before the other refers to it.
    let blob = put(journal, first.thread, 3).await;
    assert_eq!(put(journal, second.thread, 3).await, blob);
    first.append(journal, vec![record_with_blob(&blob)]).await;
    journal.delete(first.thread).await.unwrap();
    maker.settle().await;
    let bytes = journal.get(second.thread, blob.clone()).await;
    assert_eq!(bytes, Ok(vec![3; 5000]));
    second.append(journal, vec![record_with_blob(&blob)]).await;
    journal.delete(second.thread).await.unwrap();
    check_gone(&maker, second.thread, blob).await;
}

async fn a_fork_preserves_the_blobs_that_it_shares(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut script = ThreadScript::new();
    script.start(journal, "/w").await;
    let (early, late, long) = (
        put(journal, script.thread, 1).await,
        put(journal, script.thread, 2).await,
        "long ".repeat(20_000),
    );
    script.append(journal, vec![record_with_blob(&early)]).await;
    let body = vec![completed("t", "long", &long)];
    script.append(journal, body).await;
    let at = script.head;
    script.append(journal, vec![record_with_blob(&late)]).await;
    let fork = script.fork(journal, at).await;
    let second_fork = fork.fork(journal, Seq(at.0 - 1)).await;
    let whole = journal.read(fork.thread, Seq::ZERO, usize::MAX).await;
    journal.delete(script.thread).await.unwrap();
    // The blob of the unshared record is deleted, the others stay.
    check_gone(&maker, script.thread, late).await;
    let after = journal.read(fork.thread, Seq::ZERO, usize::MAX).await;
    assert_eq!(after, whole);
    journal.delete(fork.thread).await.unwrap();
    maker.settle().await;
    let bytes = journal.get(second_fork.thread, early.clone()).await;
    assert_eq!(bytes, Ok(vec![1; 5000]));
    journal.delete(second_fork.thread).await.unwrap();
    check_gone(&maker, second_fork.thread, early).await;
}

/// A fork reads a blob by its own id, and may name it in records of its own.
async fn a_fork_has_the_blobs_of_its_records(maker: impl StoreMaker) {
    let (journal, other) = (maker.store(), maker.second_handle().await);
    let mut script = ThreadScript::new();
    script.start(journal, "/w").await;
    let blob = put(journal, script.thread, 5).await;
    script.append(journal, vec![record_with_blob(&blob)]).await;
    let fork = script.fork(&other, script.head).await;
    let mut late = fork.fork(journal, fork.head).await;
    for thread in [script.thread, fork.thread, late.thread] {
        for bytes in [
            journal.get(thread, blob.clone()),
            other.get(thread, blob.clone()),
        ] {
            assert_eq!(bytes.await, Ok(vec![5; 5000]));
        }
    }
    late.append(&other, vec![record_with_blob(&blob)]).await;
    journal.delete(script.thread).await.unwrap();
    other.delete(fork.thread).await.unwrap();
    maker.settle().await;
    let bytes = journal.get(late.thread, blob.clone()).await;
    assert_eq!(bytes, Ok(vec![5; 5000]));
    drop(other);
    journal.delete(late.thread).await.unwrap();
    check_gone(&maker, late.thread, blob).await;
}

async fn forks_have_the_blobs_that_were_put_for_a_fork_before_it(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut script = ThreadScript::new();
    script.start(journal, "/w").await;
    // The other thread has put one of them too.
    let shared = put(journal, script.thread, 6).await;
    script
        .append(journal, vec![record_with_blob(&shared)])
        .await;
    let to = ThreadId::mint();
    assert_eq!(put(journal, to, 6).await, shared);
    let own = put(journal, to, 7).await;
    let head = journal.fork(script.thread, script.head, to).await.unwrap();
    let mut fork = ThreadScript {
        thread: to,
        head,
        now: script.now,
    };
    let bodies = [&shared, &own].map(record_with_blob).to_vec();
    fork.append(journal, bodies).await;
    let late = fork.fork(journal, fork.head).await;
    journal.delete(script.thread).await.unwrap();
    journal.delete(fork.thread).await.unwrap();
    maker.settle().await;
    for (blob, byte) in [(&shared, 6), (&own, 7)] {
        let bytes = journal.get(late.thread, blob.clone()).await;
        assert_eq!(bytes, Ok(vec![byte; 5000]));
    }
    journal.delete(late.thread).await.unwrap();
    check_gone(&maker, late.thread, shared).await;
    check_gone(&maker, late.thread, own).await;
}
