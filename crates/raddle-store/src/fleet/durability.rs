//! Durability of commits, measured at the database.

use std::sync::{Mutex, PoisonError};

use raddle_core::ports::Durability;
use tokio_postgres::Row;

use super::SharedJournal;
use super::error::QueryFailure;

/// Expression that is true if commits wait for a standby. Rows of other roles have no state for a role
/// without the privilege to see it, which counts as no standby.
pub(super) const HAS_STANDBY: &str = "EXISTS (SELECT 1 FROM pg_stat_replication
             WHERE sync_state IN ('sync', 'quorum'))";

/// Newest measurement.
#[derive(Debug)]
pub(super) struct MeasuredDurability(Mutex<Durability>);

impl Default for MeasuredDurability {
    fn default() -> Self {
        Self(Mutex::new(Durability::Pending))
    }
}

/// Measures the durability without a write.
pub(super) async fn measure(journal: &SharedJournal) -> Result<(), QueryFailure> {
    let sql = format!("SELECT {HAS_STANDBY}");
    let rows = journal.connections.reads().query(&sql, &[]).await?;
    journal.durability.set(&rows);
    Ok(())
}

impl MeasuredDurability {
    pub(super) fn get(&self) -> Durability {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the result of a query whose first column is [`HAS_STANDBY`].
    pub(super) fn set(&self, rows: &[Row]) {
        let measured = match rows.first().map(|row| row.try_get(0)) {
            Some(Ok(true)) => Durability::Synchronous,
            Some(Ok(false) | Err(_)) | None => Durability::Relaxed,
        };
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if *last == Durability::Synchronous && measured == Durability::Relaxed {
            tracing::warn!("commits of the database wait for no standby any more");
        }
        *last = measured;
    }
}
