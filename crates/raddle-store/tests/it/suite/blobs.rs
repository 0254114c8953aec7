//! Blobs beside the journal.

use raddle_core::ports::{AppendError, Blobs, Journal, ReadError};
use raddle_core::{
    Blob, Class, DiffUpdated, Event, Image, ImageOutput, Input, InputAccepted, Item, ItemBody,
    ItemCompleted, ItemStarted, ItemStatus, Output, RecordBody, Seq, UserMessage,
};

use crate::records::{ThreadScript, item, message, renamed};

super::for_each_journal!(
    bytes_come_back,
    unknown_hashes_are_not_found,
    a_blob_is_deleted_with_the_last_thread_that_uses_it,
    references_to_missing_blobs_are_rejected,
    every_kind_of_reference_protects_a_blob,
    a_blob_that_was_put_again_waits_for_its_reference,
    a_fork_preserves_the_blobs_that_it_shares,
);

async fn bytes_come_back(journal: impl Blobs) {
    for bytes in [vec![], vec![7; 10], [1, 2, 3].repeat(500_000)] {
        let blob = journal.put(bytes.clone(), "image/png".to_owned()).await;
        let blob = blob.unwrap();
        assert_eq!(blob.bytes, bytes.len() as u64);
        assert_eq!(blob.media, "image/png");
        assert_eq!(journal.get(blob.clone()).await, Ok(bytes.clone()));
        let again = journal.put(bytes, "image/png".to_owned()).await;
        assert_eq!(again, Ok(blob));
    }
}

async fn unknown_hashes_are_not_found(journal: impl Blobs) {
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
        assert_eq!(journal.get(blob).await, Err(ReadError::NotFound));
    }
}

pub async fn put(journal: &impl Blobs, byte: u8) -> Blob {
    let blob = journal.put(vec![byte; 5000], "image/png".to_owned());
    blob.await.unwrap()
}

/// Returns a record that refers to a blob.
pub fn record_with_blob(blob: &Blob) -> RecordBody {
    let image = Image::Blob(blob.clone());
    let input = Input::Image {
        image,
        detail: None,
        path: None,
    };
    let message = UserMessage {
        input: vec![input],
        client_id: None,
    };
    let accepted = InputAccepted {
        turn: "t".into(),
        item: item("i", ItemBody::UserMessage(message), ItemStatus::Completed),
        principal: None,
    };
    Event::InputAccepted(accepted).into()
}

async fn a_blob_is_deleted_with_the_last_thread_that_uses_it(journal: impl Journal + Blobs) {
    let blob = put(&journal, 9).await;
    let mut scripts = [ThreadScript::new(), ThreadScript::new()];
    for script in &mut scripts {
        script.start(&journal, "/w").await;
        // Once, and once more.
        script.append(&journal, vec![record_with_blob(&blob)]).await;
        script.append(&journal, vec![record_with_blob(&blob)]).await;
    }
    journal.delete(scripts[0].thread).await.unwrap();
    assert_eq!(journal.get(blob.clone()).await, Ok(vec![9; 5000]));
    journal.delete(scripts[1].thread).await.unwrap();
    assert_eq!(journal.get(blob).await, Err(ReadError::NotFound));
}

async fn references_to_missing_blobs_are_rejected(journal: impl Journal + Blobs) {
    let mut script = ThreadScript::new();
    script.start(&journal, "/w").await;
    let existing = put(&journal, 1).await;
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
        .append(&journal, vec![record_with_blob(&existing)])
        .await;
}

async fn every_kind_of_reference_protects_a_blob(journal: impl Journal + Blobs) {
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
    let completed = |item| {
        let turn = "t".into();
        Event::ItemCompleted(ItemCompleted { turn, item })
    };
    let events: [&dyn Fn(&Blob) -> Event; 5] = [
        &|blob| completed(output(vec![image(blob)], None)),
        &|blob| completed(output(vec![], Some(blob.clone()))),
        &|blob| completed(made(blob)),
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
        script.start(&journal, "/w").await;
        let blob = put(&journal, byte).await;
        script
            .append(&journal, vec![event_with(&blob).into()])
            .await;
        assert!(journal.get(blob.clone()).await.is_ok());
        journal.delete(script.thread).await.unwrap();
        assert_eq!(journal.get(blob).await, Err(ReadError::NotFound));
    }
}

async fn a_blob_that_was_put_again_waits_for_its_reference(journal: impl Journal + Blobs) {
    let mut scripts = [ThreadScript::new(), ThreadScript::new()];
    for script in &mut scripts {
        script.start(&journal, "/w").await;
    }
    let [first, second] = &mut scripts;
    // Both have put the blob; one refers to it and is deleted before the other refers to it.
    let blob = put(&journal, 3).await;
    assert_eq!(put(&journal, 3).await, blob);
    first.append(&journal, vec![record_with_blob(&blob)]).await;
    journal.delete(first.thread).await.unwrap();
    assert_eq!(journal.get(blob.clone()).await, Ok(vec![3; 5000]));
    second.append(&journal, vec![record_with_blob(&blob)]).await;
    journal.delete(second.thread).await.unwrap();
    assert_eq!(journal.get(blob).await, Err(ReadError::NotFound));
}

async fn a_fork_preserves_the_blobs_that_it_shares(journal: impl Journal + Blobs) {
    let mut script = ThreadScript::new();
    script.start(&journal, "/w").await;
    let (early, late, long) = (
        put(&journal, 1).await,
        put(&journal, 2).await,
        "long ".repeat(20_000),
    );
    script
        .append(&journal, vec![record_with_blob(&early)])
        .await;
    let body = vec![crate::records::completed("t", "long", &long)];
    script.append(&journal, body).await;
    let at = script.head;
    script.append(&journal, vec![record_with_blob(&late)]).await;
    let fork = script.fork(&journal, at).await;
    let second_fork = fork.fork(&journal, Seq(at.0 - 1)).await;
    let whole = journal.read(fork.thread, Seq::ZERO, usize::MAX).await;
    journal.delete(script.thread).await.unwrap();
    // The blob of the unshared record is deleted, the others stay.
    assert_eq!(journal.get(late).await, Err(ReadError::NotFound));
    let after = journal.read(fork.thread, Seq::ZERO, usize::MAX).await;
    assert_eq!(after, whole);
    journal.delete(fork.thread).await.unwrap();
    assert_eq!(journal.get(early.clone()).await, Ok(vec![1; 5000]));
    journal.delete(second_fork.thread).await.unwrap();
    assert_eq!(journal.get(early).await, Err(ReadError::NotFound));
}
