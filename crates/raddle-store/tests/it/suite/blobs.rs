//! Bytes beside the journal.

use raddle_core::ports::{Blobs, Journal, ReadError};
use raddle_core::{Blob, Event, Image, Input, InputAccepted, ItemBody, ItemStatus, UserMessage};

use crate::records::{Script, item};

super::for_each_journal!(
    bytes_come_back,
    a_name_that_names_nothing,
    a_blob_goes_with_the_last_thread_that_names_it,
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

async fn a_name_that_names_nothing(journal: impl Blobs) {
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

async fn a_blob_goes_with_the_last_thread_that_names_it(journal: impl Journal + Blobs) {
    let blob = journal.put(vec![9; 5000], "image/png".to_owned()).await;
    let blob = blob.unwrap();
    let mut scripts = [Script::new(), Script::new()];
    for script in &mut scripts {
        script.start(&journal, "/w").await;
        let image = Image::Blob(blob.clone());
        let input = Input::Image {
            image,
            detail: None,
        };
        let message = UserMessage {
            input: vec![input],
            client_id: None,
        };
        let accepted = InputAccepted {
            turn: "t".into(),
            item: item("i", ItemBody::UserMessage(message), ItemStatus::Completed),
        };
        script
            .append(&journal, vec![Event::InputAccepted(accepted).into()])
            .await;
    }
    journal.delete(scripts[0].thread).await.unwrap();
    assert_eq!(journal.get(blob.clone()).await, Ok(vec![9; 5000]));
    journal.delete(scripts[1].thread).await.unwrap();
    assert_eq!(journal.get(blob).await, Err(ReadError::NotFound));
}
