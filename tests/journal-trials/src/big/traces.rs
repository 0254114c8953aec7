//! What is deleted is found nowhere.

use std::io::Read;
use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use raddle_core::ports::{Journal, ListQuery, Pages};
use raddle_core::{Input, ThreadId};
use raddle_store::{LocalJournal, Options};

use crate::ledger::Ledger;
use crate::live::LiveThread;
use crate::rng::Rng;
use crate::turn::{self, Grain};
use crate::verdict::{Limit, VerdictRow};

/// How much of a file is looked at a time.
const PIECE: usize = 1 << 20;

/// Deletes a thread whose records, blobs and words hold a marker, and looks for it everywhere.
pub async fn delete(home: &Path, id: ThreadId, marker: &str) -> Result<Vec<VerdictRow>> {
    let folder = home.to_owned();
    let store = LocalJournal::open(&Options { folder })?;
    let mut ledger = Ledger::default();
    let mut live = LiveThread::open(&store, id, "deleter", &mut ledger).await?;
    // Once more, so that it is in the log too.
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
    for place in ["journal.sqlite", "journal.sqlite-wal", "blobs"] {
        let found = holding(&home.join(place), marker.as_bytes())?;
        ensure!(
            found > 0,
            "the marker should be in {place} before it is deleted"
        );
    }
    ensure!(
        is_found(&store, marker).await?,
        "a search should find it before"
    );
    let begun = Instant::now();
    store.delete(id).await?;
    let took = begun.elapsed();
    // The index of words follows when someone asks.
    while is_found(&store, marker).await? {
        let late = begun.elapsed().as_secs() > 600;
        ensure!(!late, "a search still finds it");
        std::thread::yield_now();
    }
    let open = holding(home, marker.as_bytes())?;
    drop(store);
    let closed = holding(home, marker.as_bytes())?;
    let blobs = files(&home.join("blobs"))?;
    Ok(vec![
        VerdictRow::new("seconds to delete it", took.as_secs_f64(), "s", Limit::None),
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

/// How many files are or lie below a path.
fn files(path: &Path) -> Result<u64> {
    each(path, &mut |_| Ok(true))
}

/// How many files at or below a path hold some bytes.
fn holding(path: &Path, bytes: &[u8]) -> Result<u64> {
    each(path, &mut |file| holds(file, bytes))
}

fn each(path: &Path, wanted: &mut dyn FnMut(&Path) -> Result<bool>) -> Result<u64> {
    if !path.exists() {
        return Ok(0);
    }
    if !path.is_dir() {
        return Ok(u64::from(wanted(path)?));
    }
    let mut count = 0;
    for entry in std::fs::read_dir(path)? {
        count += each(&entry?.path(), wanted)?;
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
        // What lies across the edge is looked at with the next piece.
        let kept = piece.len().saturating_sub(bytes.len() - 1);
        piece.drain(..kept);
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
        assert_eq!(holding(folder.path(), b"needle").unwrap(), 1);
        assert_eq!(files(folder.path()).unwrap(), 1);
    }
}
