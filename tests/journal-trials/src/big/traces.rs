//! Deleted content must be found nowhere.

use std::io::Read;
use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use raddle_core::ports::{Journal, ListQuery, Pages};
use raddle_core::{Input, ThreadId};
use raddle_store::{LocalJournal, Options};
use support::Rng;

use crate::ledger::Ledger;
use crate::live::LiveThread;
use crate::turn::{self, Grain};
use crate::verdict::{Limit, VerdictRow};

/// Bytes of a file that are searched at a time.
const PIECE: usize = 1 << 20;

/// Deletes a thread whose records, blobs and words contain a marker, and searches for the marker
/// everywhere.
pub async fn delete(home: &Path, id: ThreadId, marker: &str) -> Result<Vec<VerdictRow>> {
    let folder = home.to_owned();
    let store = LocalJournal::open(&Options { folder })?;
    let mut ledger = Ledger::default();
    let mut live = LiveThread::open(&store, id, "deleter", &mut ledger).await?;
    // Written once more, so that it is in the WAL too.
    let input = vec![Input::text(marker)];
    let mut rng = Rng::new(7);
    turn::play(
        &mut live,
        input,
        Vec::new(),
        Grain::Coarse,
        &mut rng,
        &mut ledger,
    )
    .await?;
    live.release(&mut ledger).await?;
    ensure!(marker.len() == 32, "the marker has 32 bytes");
    for name in ["journal.sqlite", "journal.sqlite-wal", "blobs"] {
        let count = count_holding(&home.join(name), marker.as_bytes())?;
        ensure!(
            count > 0,
            "the marker should be in {name} before it is deleted"
        );
    }
    ensure!(
        is_found(&store, marker).await?,
        "a search should find it before"
    );
    let start = Instant::now();
    store.delete(id).await?;
    let elapsed = start.elapsed();
    // The search index is updated when a search is made.
    while is_found(&store, marker).await? {
        let late = start.elapsed().as_secs() > 600;
        ensure!(!late, "a search still finds it");
        std::thread::yield_now();
    }
    let open = count_holding(home, marker.as_bytes())?;
    drop(store);
    let closed = count_holding(home, marker.as_bytes())?;
    let blobs = files(&home.join("blobs"))?;
    Ok(vec![
        VerdictRow::new(
            "seconds to delete it",
            elapsed.as_secs_f64(),
            "s",
            Limit::None,
        ),
        VerdictRow::never("files that hold the marker, the journal open", open),
        VerdictRow::never("files that hold the marker, the journal closed", closed),
        VerdictRow::never("files left beside the journal", blobs),
    ])
}

async fn is_found(store: &LocalJournal, marker: &str) -> Result<bool> {
    let query = ListQuery {
        limit: 1,
        ..ListQuery::default()
    };
    let page = store.search(marker.to_owned(), query).await?;
    Ok(!page.entries.is_empty())
}

/// Returns the number of files at or below a path.
fn files(path: &Path) -> Result<u64> {
    count_files(path, &mut |_| Ok(true))
}

/// Returns the number of files at or below a path that contain some bytes.
fn count_holding(path: &Path, bytes: &[u8]) -> Result<u64> {
    count_files(path, &mut |file| holds(file, bytes))
}

fn count_files(path: &Path, matches: &mut dyn FnMut(&Path) -> Result<bool>) -> Result<u64> {
    if !path.exists() {
        return Ok(0);
    }
    if !path.is_dir() {
        return Ok(u64::from(matches(path)?));
    }
    let mut count = 0;
    for entry in std::fs::read_dir(path)? {
        count += count_files(&entry?.path(), matches)?;
    }
    Ok(count)
}

fn holds(path: &Path, bytes: &[u8]) -> Result<bool> {
    let mut file = std::fs::File::open(path)?;
    let mut piece = Vec::with_capacity(PIECE + bytes.len());
    loop {
        let read = (&mut file).take(PIECE as u64).read_to_end(&mut piece)?;
        let first = bytes[0];
        let mut starts = piece.iter().enumerate().filter(|(_, byte)| **byte == first);
        if starts.any(|(at, _)| piece[at..].starts_with(bytes)) {
            return Ok(true);
        }
        if read == 0 {
            return Ok(false);
        }
        // Bytes across the edge are searched with the next piece.
        let dropped = piece.len().saturating_sub(bytes.len() - 1);
        piece.drain(..dropped);
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_found_across_the_edge_of_a_piece() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut bytes = vec![b'.'; 3 * PIECE];
        bytes[PIECE - 3..PIECE + 3].copy_from_slice(b"needle");
        std::fs::write(&path, &bytes).unwrap();
        assert!(holds(&path, b"needle").unwrap());
        assert!(!holds(&path, b"needles").unwrap());
        assert_eq!(count_holding(folder.path(), b"needle").unwrap(), 1);
        assert_eq!(files(folder.path()).unwrap(), 1);
    }
}
