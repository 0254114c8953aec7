//! Threads that go from one store to another as a file, and are verified through the ports.
//!
//! The tests of the fleet include this file too.

use std::sync::atomic::Ordering;

use raddle_core::ports::{Blobs, ListQuery, Pages};
use raddle_core::{Record, RecordBody, Seq, ThreadId};
use raddle_store::{
    BundleReader, ExportSummary, Extent, ImportError, ImportOptions, ImportSummary, ThreadStore,
    export, import, verify,
};
use store_suite::StoreMaker;

use crate::records::renamed;
use crate::transfer::{Calls, Counted, Cut, Example, NOW, all, listed};

/// Writes the file of a thread.
async fn file(store: &dyn ThreadStore, example: &Example) -> (Vec<u8>, ExportSummary) {
    let mut file = Vec::new();
    let exported = export(store, example.script.thread, &mut file, Extent::Whole).await;
    (file, exported.unwrap())
}

async fn read(
    store: &dyn ThreadStore,
    file: &[u8],
    as_new: bool,
) -> Result<ImportSummary, ImportError> {
    let options = ImportOptions {
        as_new,
        partial: false,
        now: NOW,
    };
    import(store, BundleReader::open(file).unwrap(), options).await
}

/// Returns the numbers of the events. The deltas of a settled item may be deleted.
pub fn event_numbers(records: &[Record]) -> Vec<Seq> {
    let is_event = |it: &&Record| matches!(it.body, RecordBody::Event(_));
    records.iter().filter(is_event).map(|it| it.seq).collect()
}

/// A thread keeps its numbers, its blob and its text, and is whole in both stores.
pub async fn a_file_holds_a_thread<A: StoreMaker, B: StoreMaker>()
where
    A::Store: ThreadStore + 'static,
    B::Store: ThreadStore,
{
    let (from, to) = (A::fresh().await, B::fresh().await);
    let (from, to) = (from.store(), to.store());
    let example = Example::write(from).await;
    let thread = example.script.thread;
    let (file, exported) = file(from, &example).await;
    let count = example.records.len() as u64;
    assert_eq!((exported.end.records, exported.end.blobs), (count, 1));
    assert_eq!(exported.end.head, example.script.head);
    assert_eq!(exported.lacks, Vec::<String>::new());
    let imported = read(to, &file, false).await.unwrap();
    assert_eq!((imported.thread, imported.records), (thread, count));
    assert_eq!(imported.head, example.script.head);
    let records = all(to, thread).await;
    // The import ends what was open.
    assert!(event_numbers(&records).starts_with(&event_numbers(&example.records)));
    let bytes = to.get(thread, example.blob.clone()).await.unwrap();
    assert_eq!(bytes, vec![7; 100_000]);
    assert_eq!(listed(to).await, [thread]);
    let again = read(to, &file, false).await;
    assert!(matches!(again, Err(ImportError::Exists(_))), "{again:?}");
    let copy = read(to, &file, true).await.unwrap();
    assert_ne!(copy.thread, thread);
    let query = ListQuery {
        limit: 10,
        ..ListQuery::default()
    };
    let page = to.list(query).await.unwrap();
    let mut ids: Vec<ThreadId> = page.entries.iter().map(|it| it.thread).collect();
    let mut expected = [thread, copy.thread];
    ids.sort_unstable();
    expected.sort_unstable();
    assert_eq!(ids, expected);
    for (store, thread) in [
        (from as &dyn ThreadStore, thread),
        (to, thread),
        (to, copy.thread),
    ] {
        let report = verify(store, thread).await.unwrap();
        assert_eq!(report.damage, Vec::new());
        assert_eq!(report.blobs, 1);
        assert_eq!(report.head, store.head(thread).await.unwrap());
    }
}

/// An import that stops at any call of the store shows nothing, or the thread, and can be repeated.
pub async fn an_interrupted_import_can_be_repeated<A: StoreMaker, B: StoreMaker>()
where
    A::Store: ThreadStore + 'static,
    B::Store: ThreadStore,
{
    let from = A::fresh().await;
    let example = Example::write(from.store()).await;
    let thread = example.script.thread;
    let (file, _) = file(from.store(), &example).await;
    let calls = Calls::new(None);
    let to = B::fresh().await;
    let counted = Counted::new(to.store(), &calls);
    read(&counted, &file, false).await.unwrap();
    let calls = calls.count.load(Ordering::SeqCst);
    assert!(calls > 5, "{calls}");
    for number in 0..2 * calls {
        let cut = Cut {
            call: number / 2,
            is_after: number % 2 == 1,
        };
        let to = B::fresh().await;
        let interrupted = Calls::new(Some(cut));
        {
            let counted = Counted::new(to.store(), &interrupted);
            tokio::select! {
                _ = read(&counted, &file, false) => panic!("{cut:?} was not reached"),
                () = interrupted.reached.notified() => {}
            }
        }
        match read(to.store(), &file, false).await {
            Ok(imported) => assert_eq!(imported.head, example.script.head, "{cut:?}"),
            Err(ImportError::Exists(_)) => {}
            Err(error) => panic!("{cut:?}: {error:?}"),
        }
        assert_eq!(listed(to.store()).await, [thread], "{cut:?}");
        let report = verify(to.store(), thread).await.unwrap();
        assert_eq!(report.damage, Vec::new(), "{cut:?}");
    }
}

/// A file ends with the record that was the newest when the export began.
pub async fn an_export_ends<A: StoreMaker>()
where
    A::Store: ThreadStore + 'static,
{
    let from = A::fresh().await;
    let mut example = Example::write(from.store()).await;
    let calls = Calls::new(Some(Cut {
        call: 0,
        is_after: true,
    }));
    let counted = Counted::new(from.store(), &calls);
    let head = example.script.head;
    let thread = example.script.thread;
    let mut out = Vec::new();
    let (exported, ()) = tokio::join!(export(&counted, thread, &mut out, Extent::Whole), async {
        calls.reached.notified().await;
        example
            .script
            .append(from.store(), vec![renamed("later")])
            .await;
        calls.resumed.notify_one();
    });
    assert_eq!(exported.unwrap().end.head, head);
}

/// Makes the tests for two makers.
macro_rules! bundle_tests {
    (mod $name:ident, $from:ident => $to:ident) => {
        mod $name {
            use super::{$from as Source, $to as Destination};
            use crate::bundle as suite;

            #[tokio::test]
            async fn a_file_holds_a_thread() {
                suite::a_file_holds_a_thread::<Source, Destination>().await;
            }

            #[tokio::test]
            async fn an_interrupted_import_can_be_repeated() {
                suite::an_interrupted_import_can_be_repeated::<Source, Destination>().await;
            }

            #[tokio::test]
            async fn an_export_ends() {
                suite::an_export_ends::<Source>().await;
            }
        }
    };
}
