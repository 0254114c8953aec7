//! How much the local journal keeps for what it is given.

use std::path::Path;

use raddle_core::Seq;
use raddle_core::ports::{Blobs, Journal};
use raddle_store::LocalJournal;

use crate::records::{ThreadScript, begin_turn, completed, delta, item_started, turn_ended};
use crate::suite::blobs::naming;
use crate::suite::local;

/// At most this many bytes are kept for each that is live; search apart.
const RATIO_MAX: f64 = 1.3;

/// Words that no two texts share and that pack badly.
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

/// A turn as agents have them: a question, some tools with their output, an answer that streams.
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
        let blob = journal.put(image, "image/png".to_owned()).await.unwrap();
        bodies.push(naming(&blob));
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

/// What the files of a folder take, without those of search, and without the room that is held back, which
/// is the same for a little as for much.
fn kept(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap());
    let sizes = entries.map(|entry| {
        let path = entry.path();
        let name = entry.file_name();
        let is_beside = name.to_string_lossy().starts_with("search") || name == "reserve";
        match (is_beside, path.is_dir()) {
            (true, _) => 0,
            (false, true) => kept(&path),
            (false, false) => entry.metadata().unwrap().len(),
        }
    });
    sizes.sum()
}

/// The log is bounded by itself, and as large for a little as for much; so what is in it is moved first.
fn move_log(folder: &Path) {
    let connection = rusqlite::Connection::open(folder.join("journal.sqlite")).unwrap();
    let busy: i64 = connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
        .unwrap();
    assert_eq!(busy, 0);
}

#[tokio::test]
async fn little_more_is_kept_than_there_is() {
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
        move_log(folder.path());
        let kept = kept(folder.path());
        let ratio = kept as f64 / live as f64;
        assert!(
            ratio <= RATIO_MAX,
            "{kept} bytes are kept for {live} in {threads} threads: {ratio:.2}"
        );
    }
}
