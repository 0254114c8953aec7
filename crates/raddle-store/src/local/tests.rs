use raddle_core::ports::{Journal, ReadError};
use raddle_core::{Seq, ThreadId};

use super::{LocalJournal, Options, read};

/// Not even of a thread that takes no append, through which the file would be opened again.
#[tokio::test]
async fn nobody_is_told_a_head_that_is_in_doubt() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options {
        folder: folder.path().to_owned(),
    };
    let journal = LocalJournal::open(&options).expect("a journal");
    let thread = ThreadId::mint();
    assert_eq!(journal.head(thread).await, Ok(Seq::ZERO));
    let damage: Result<(), _> = Err(read::corrupt(Seq(3), "hit".to_owned()));
    let noted = journal.quarantine.note(thread, damage);
    assert!(noted.is_err());
    journal.writer.doubt();
    let head = journal.head(thread).await;
    assert!(matches!(head, Err(ReadError::Unavailable(_))), "{head:?}");
}
