//! Maker of journals on PostgreSQL, each in a schema of its own.

use raddle_core::ThreadId;
use raddle_store::{FleetJournal, FleetOptions};
use store_suite::StoreMaker;

use crate::server;

pub struct FleetMaker {
    journal: FleetJournal,
    options: FleetOptions,
}

impl FleetMaker {
    pub fn options(&self) -> &FleetOptions {
        &self.options
    }

    pub fn schema(&self) -> &str {
        &self.options.schema
    }
}

/// Returns options for a new schema of a server.
pub fn options(address: &str) -> FleetOptions {
    let name = ThreadId::mint()
        .to_string()
        .replace(|it: char| !it.is_ascii_alphanumeric(), "");
    FleetOptions {
        schema: format!("t{}", name.to_lowercase()),
        event_connections: 2,
        read_connections: 1,
        ..FleetOptions::new(address)
    }
}

pub async fn open(options: &FleetOptions) -> FleetJournal {
    FleetJournal::open(options).await.unwrap()
}

impl StoreMaker for FleetMaker {
    type Store = FleetJournal;

    async fn fresh() -> Self {
        let options = options(server::shared());
        let journal = open(&options).await;
        Self { journal, options }
    }

    fn store(&self) -> &FleetJournal {
        &self.journal
    }

    async fn second_handle(&self) -> FleetJournal {
        open(&self.options).await
    }

    async fn reopen(self) -> Self {
        let Self { journal, options } = self;
        drop(journal);
        let journal = open(&options).await;
        Self { journal, options }
    }

    /// Nothing lags: search reads what the index does not have, and a deletion removes unused blobs
    /// before it returns.
    async fn settle(&self) {}
}

/// A maker whose searches find all text in the index.
pub struct IndexedMaker(FleetMaker);

impl StoreMaker for IndexedMaker {
    type Store = FleetJournal;

    async fn fresh() -> Self {
        Self(FleetMaker::fresh().await)
    }

    fn store(&self) -> &FleetJournal {
        self.0.store()
    }

    async fn second_handle(&self) -> FleetJournal {
        self.0.second_handle().await
    }

    async fn reopen(self) -> Self {
        Self(self.0.reopen().await)
    }

    async fn settle(&self) {
        self.store().index_texts().await.unwrap();
    }
}
