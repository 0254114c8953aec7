//! Removal of the logs of nodes that ended.
//!
//! A node that ends removes its own log. That of a node that died stays, and another node removes it
//! once its row did not change in several looks. A look that fails proves nothing: while the database
//! is silent, no node can change its row. So no clock is compared, and a node that looks too rarely
//! removes nothing.
//!
//! Nothing depends on whether the node is really dead: its log is sealed first, so if it lives, it
//! leaves its threads and begins another log.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use raddle_core::ThreadId;
use uuid::Uuid;

use crate::fleet::SharedJournal;
use crate::fleet::error::QueryFailure;
use crate::fleet::take;

/// Number of looks in which a row did not change, after which its node has ended.
const LOOKS: u32 = 10;

/// Maximum number of logs that are observed: the oldest.
const LOGS_MAX: i64 = 1000;

/// Maximum number of threads that one look takes from a log.
const THREADS_MAX: i64 = 64;

/// Maximum number of times that a node which ends takes so many threads from its log.
const ROUNDS_MAX: usize = 64;

/// Maximum number of batches that one statement deletes.
const BATCHES_MAX: i64 = 64;

/// Row of a log, which changes while its node runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ObservedLog {
    n: i64,
    beats: i64,
    sealed: bool,
}

/// Rows of the logs of other nodes, and in how many looks each was the same.
#[derive(Debug, Default)]
struct Observation(HashMap<Uuid, (ObservedLog, u32)>);

impl Observation {
    /// Compares the rows with those of the last look. Returns the logs whose nodes have ended.
    fn look(&mut self, rows: Vec<(Uuid, ObservedLog)>) -> Vec<(Uuid, ObservedLog)> {
        let mut before = std::mem::take(&mut self.0);
        let mut ended = Vec::new();
        for (log, row) in rows {
            let looks = match before.remove(&log) {
                Some((same, looks)) if same == row => looks + 1,
                _ => 0,
            };
            if looks >= LOOKS {
                ended.push((log, row));
            }
            self.0.insert(log, (row, looks));
        }
        ended
    }
}

/// Shows that this node runs, and removes the logs of nodes that ended, until the task is aborted.
pub(in crate::fleet) async fn remove_ended(journal: Arc<SharedJournal>, beat: Duration) {
    let mut observation = Observation::default();
    loop {
        tokio::time::sleep(beat).await;
        match look(&journal, &mut observation).await {
            Ok(ended) => {
                for (log, row) in ended {
                    if let Err(failure) = remove(&journal, log, row).await {
                        tracing::debug!(%log, ?failure, "the log of a node is removed later");
                    }
                }
            }
            Err(failure) => {
                tracing::debug!(?failure, "the logs of other nodes could not be read");
                observation = Observation::default();
            }
        }
    }
}

/// Shows that this node runs, and reads the rows of the other logs.
async fn look(
    journal: &SharedJournal,
    observation: &mut Observation,
) -> Result<Vec<(Uuid, ObservedLog)>, QueryFailure> {
    let own = journal.node_log.position().log;
    let beat = "UPDATE node_logs SET beats = beats + 1 WHERE id = $1 AND NOT sealed";
    let connection = journal.connections.deltas();
    connection.query(beat, &[&own]).await?;
    let others = "SELECT id, n, beats, sealed FROM node_logs WHERE id <> $1 ORDER BY id LIMIT $2";
    let connection = journal.connections.reads();
    let rows = connection.query(others, &[&own, &LOGS_MAX]).await?;
    let row = |row: &tokio_postgres::Row| {
        let state = ObservedLog {
            n: row.get(1),
            beats: row.get(2),
            sealed: row.get(3),
        };
        (row.get(0), state)
    };
    Ok(observation.look(rows.iter().map(row).collect()))
}

/// Seals a log whose row is as it was observed, and removes it.
async fn remove(journal: &SharedJournal, log: Uuid, row: ObservedLog) -> Result<(), QueryFailure> {
    if !row.sealed {
        let seal = "UPDATE node_logs SET sealed = true
                    WHERE id = $1 AND n = $2 AND beats = $3 AND NOT sealed RETURNING 1";
        let connection = journal.connections.events(ThreadId::from(log));
        let sealed = connection.query(seal, &[&log, &row.n, &row.beats]).await?;
        if sealed.is_empty() {
            return Ok(());
        }
        tracing::info!(%log, "sealed the log of a node that ended");
    }
    if take_threads(journal, log).await? {
        delete(journal, log).await?;
    }
    Ok(())
}

/// Ends the use of a sealed log by its threads. Returns whether none is left.
async fn take_threads(journal: &SharedJournal, log: Uuid) -> Result<bool, QueryFailure> {
    let users = "SELECT id FROM threads WHERE writer = $1 LIMIT $2";
    let connection = journal.connections.reads();
    let rows = connection.query(users, &[&log, &THREADS_MAX]).await?;
    for row in &rows {
        let thread = ThreadId::from(row.get::<_, Uuid>(0));
        if let Err(failure) = take::release(journal, thread, log).await {
            tracing::debug!(%thread, ?failure, "a thread needs the log of an ended node");
            if !matches!(failure, QueryFailure::Unusable(_)) {
                return Err(failure);
            }
        }
    }
    Ok(rows.is_empty())
}

/// Deletes a sealed log that no thread names: the read that found none may have been on a host that is
/// no longer the primary. A thread that is made to name it later, by a statement that is late, has no
/// deltas there.
async fn delete(journal: &SharedJournal, log: Uuid) -> Result<(), QueryFailure> {
    let batches = "DELETE FROM node_batches b
                   USING (SELECT node_log, lane, n FROM node_batches
                       WHERE node_log = $1
                           AND NOT EXISTS (SELECT 1 FROM threads WHERE writer = $1)
                       ORDER BY lane, n LIMIT $2) AS it
                   WHERE b.node_log = it.node_log AND b.lane = it.lane AND b.n = it.n
                   RETURNING 1";
    let connection = journal.connections.deltas();
    loop {
        let deleted = connection.query(batches, &[&log, &BATCHES_MAX]).await?;
        if (deleted.len() as i64) < BATCHES_MAX {
            break;
        }
    }
    let row = "DELETE FROM node_logs WHERE id = $1 AND sealed
                   AND NOT EXISTS (SELECT 1 FROM node_batches WHERE node_log = $1)";
    connection.query(row, &[&log]).await.map(|_| ())
}

/// Removes the node's own log: no thread of the node is used any more.
pub(in crate::fleet) async fn close(journal: &SharedJournal) {
    let limit = journal.connections.statement_max();
    match tokio::time::timeout(limit, remove_own(journal)).await {
        Ok(Ok(())) => {}
        Ok(Err(failure)) => tracing::debug!(?failure, "another node removes the node log"),
        Err(_) => tracing::debug!("another node removes the node log: it takes too long"),
    }
}

async fn remove_own(journal: &SharedJournal) -> Result<(), QueryFailure> {
    let log = {
        let state = journal.node_log.state();
        if !state.has_row {
            return Ok(());
        }
        state.id
    };
    let limit = journal.connections.statement_max();
    // A sealed log cannot have the batches again that the database lost.
    journal.node_log.compare(limit).await?;
    let seal = "UPDATE node_logs SET sealed = true WHERE id = $1 AND NOT sealed";
    let connection = journal.connections.events(ThreadId::from(log));
    connection.query(seal, &[&log]).await?;
    for _ in 0..ROUNDS_MAX {
        if take_threads(journal, log).await? {
            return delete(journal, log).await;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(n: i64, beats: i64) -> ObservedLog {
        ObservedLog {
            n,
            beats,
            sealed: false,
        }
    }

    #[test]
    fn a_node_has_ended_after_enough_looks_at_the_same_row() {
        let (dead, alive) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let mut observation = Observation::default();
        for beat in 0..i64::from(LOOKS) {
            let ended = observation.look(vec![(dead, row(5, 1)), (alive, row(5, beat))]);
            assert_eq!(ended, []);
        }
        let ended = observation.look(vec![(dead, row(5, 1)), (alive, row(6, 9))]);
        assert_eq!(ended, [(dead, row(5, 1))]);
        // A log that was not there begins anew.
        assert_eq!(observation.look(Vec::new()), []);
        assert_eq!(observation.look(vec![(dead, row(5, 1))]), []);
    }
}
