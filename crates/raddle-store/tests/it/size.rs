//! Stored size of the local journal, compared with its live data.

use std::path::Path;

use raddle_core::Seq;
use raddle_core::ports::{Blobs, Journal};
use raddle_store::LocalJournal;

use crate::makers::local;
use crate::records::{
    ThreadScript, begin_turn, completed, delta, item_started, record_with_blob, turn_ended,
};

/// Maximum ratio of stored to live bytes, without the search index.
const RATIO_MAX: f64 = 1.3;

/// Source of unique, poorly compressible text.
struct WordSource(u64);

impl WordSource {
    fn byte(&mut self) -> u8 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 56) as u8
    }

    fn text(&mut self, bytes: usize) -> String {
        const LETTERS: &[u8; 64] =
            b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .";
        let letters = (0..bytes).map(|_| char::from(LETTERS[usize::from(self.byte() % 64)]));
        letters.collect()
    }
}

/// Appends a typical turn of an agent: a question, some tools with their output, a streamed answer.
async fn turn(
    journal: &LocalJournal,
    script: &mut ThreadScript,
    words: &mut WordSource,
    turn: usize,
) -> u64 {
    let id = format!("0199c0de-0000-7000-8000-{turn:012}");
    let mut bodies = begin_turn(&id, &words.text(200));
    let mut bytes = 0;
    if turn.is_multiple_of(10) {
        let image: Vec<u8> = (0..100_000).map(|_| words.byte()).collect();
        bytes = image.len() as u64;
        let blob = journal
            .put(script.thread, image, "image/png".to_owned())
            .await
            .unwrap();
        bodies.push(record_with_blob(&blob));
    }
    script.append(journal, bodies).await;
    for (at, length) in [300, 1200, 4000, 700].into_iter().enumerate() {
        let item = format!("{id}-{at}");
        script.append(journal, vec![item_started(&id, &item)]).await;
        let text = words.text(length);
        for offset in (0..length).step_by(100) {
            let piece = &text[offset..offset + 100];
            let delta = delta(&item, offset as u64, piece);
            script.append(journal, vec![delta]).await;
        }
        script
            .append(journal, vec![completed(&id, &item, &text)])
            .await;
    }
    script.append(journal, vec![turn_ended(&id)]).await;
    bytes
}

/// Returns the size of the files of a folder, without the search index and without the reserve,
/// whose size is constant.
fn stored_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap());
    let sizes = entries.map(|entry| {
        let path = entry.path();
        let name = entry.file_name();
        let is_excluded = name.to_string_lossy().starts_with("search") || name == "reserve";
        match (is_excluded, path.is_dir()) {
            (true, _) => 0,
            (false, true) => stored_bytes(&path),
            (false, false) => entry.metadata().unwrap().len(),
        }
    });
    sizes.sum()
}

/// Checkpoints the WAL, whose size is bounded and does not depend on the amount of data.
fn checkpoint(folder: &Path) {
    let connection = rusqlite::Connection::open(folder.join("journal.sqlite")).unwrap();
    let busy: i64 = connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
        .unwrap();
    assert_eq!(busy, 0);
}

#[tokio::test]
async fn stored_size_stays_close_to_live_size() {
    // One thread after another, and many that grow at the same time.
    for (threads, turns) in [(1, 60), (20, 3)] {
        let folder = tempfile::tempdir().unwrap();
        let mut live = 0;
        {
            let journal = local(folder.path());
            let mut words = WordSource(7);
            let mut scripts: Vec<ThreadScript> =
                (0..threads).map(|_| ThreadScript::new()).collect();
            for script in &mut scripts {
                script.start(&journal, "/home/someone/work").await;
            }
            for at in 0..turns {
                for script in &mut scripts {
                    live += turn(&journal, script, &mut words, at).await;
                }
            }
            for script in &scripts {
                let records = journal.read(script.thread, Seq::ZERO, usize::MAX).await;
                let records = records.unwrap();
                let json = records
                    .iter()
                    .map(|it| serde_json::to_vec(it).unwrap().len());
                live += json.sum::<usize>() as u64;
            }
        }
        checkpoint(folder.path());
        let stored = stored_bytes(folder.path());
        let ratio = stored as f64 / live as f64;
        assert!(
            ratio <= RATIO_MAX,
            "{stored} bytes are kept for {live} in {threads} threads: {ratio:.2}"
        );
    }
}
