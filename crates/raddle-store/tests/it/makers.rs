//! Makers of the stores, for the suite.

use std::path::Path;
use std::time::{Duration, Instant};

use raddle_core::ports::{ListQuery, Pages};
use raddle_store::{Archive, LocalJournal, MemoryJournal, Options};
use store_suite::StoreMaker;

/// Maximum lag of search on a busy machine before a test fails.
const LAG_MAX: Duration = Duration::from_secs(60);

/// Opens the local journal in a folder.
pub fn local(folder: &Path) -> LocalJournal {
    let folder = folder.to_owned();
    LocalJournal::open(&Options { folder }).unwrap()
}

/// Makes memory journals. Their handles share the records, which last as long as one of them, so
/// that reopening one changes nothing. Nothing in them lags.
pub struct MemoryMaker(MemoryJournal);

impl StoreMaker for MemoryMaker {
    type Store = MemoryJournal;

    async fn fresh() -> Self {
        Self(MemoryJournal::new())
    }

    fn store(&self) -> &MemoryJournal {
        &self.0
    }

    async fn second_handle(&self) -> MemoryJournal {
        self.0.clone()
    }

    async fn reopen(self) -> Self {
        self
    }

    async fn settle(&self) {}
}

/// Makes local journals, each in a folder of its own.
pub struct LocalMaker {
    // Closed before the folder is removed.
    journal: LocalJournal,
    folder: tempfile::TempDir,
}

impl StoreMaker for LocalMaker {
    type Store = LocalJournal;

    async fn fresh() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let journal = local(folder.path());
        Self { journal, folder }
    }

    fn store(&self) -> &LocalJournal {
        &self.journal
    }

    async fn second_handle(&self) -> LocalJournal {
        local(self.folder.path())
    }

    async fn reopen(self) -> Self {
        let Self { journal, folder } = self;
        drop(journal);
        let journal = local(folder.path());
        Self { journal, folder }
    }

    /// Waits for the search index. A deletion removes unused blobs before it returns.
    async fn settle(&self) {
        let archive = Archive::open(self.folder.path()).unwrap().unwrap();
        let deadline = Instant::now() + LAG_MAX;
        while archive.lag().unwrap().threads() > 0 {
            assert!(Instant::now() < deadline, "the search index lags behind");
            // The indexer hurries during a search.
            let text = "text".to_owned();
            self.journal
                .search(text, ListQuery::default())
                .await
                .unwrap();
        }
    }
}
