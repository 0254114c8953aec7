//! Search index: text in blocks, found by its trigrams.
//!
//! An append writes text to the table `texts` only. A task moves it to `text_blocks`, where each block
//! has the hashes of its trigrams, and a GIN index on them. So an append costs the same with and
//! without the index, and what waits is what `texts` has. A search looks at both in one statement, so
//! that a text which moves meanwhile is found once.
//!
//! Any node indexes the text of any thread. It locks the rows that it moves, and others skip them.

mod grams;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio_postgres::Row;
use uuid::Uuid;

use super::SharedJournal;
use super::error::QueryFailure;

pub(super) use grams::TrigramHasher;

/// Time between the first text that waits and its move. The text of a turn then shares a block.
const DELAY: Duration = Duration::from_secs(5);

/// Time after which a node looks for text that another node left.
const SWEEP: Duration = Duration::from_secs(60);

/// Maximum number of texts that one transaction moves.
const TEXTS_MAX: i64 = 256;

/// Size of a block, unless a single text is longer.
const BLOCK_BYTES: usize = 16 << 10;

/// Tells the task that there may be text to move.
#[derive(Debug, Default)]
pub(super) struct IndexSignal {
    raised: Notify,
}

impl IndexSignal {
    pub(super) fn raise(&self) {
        self.raised.notify_one();
    }
}

/// Moves text to the index until the task is aborted.
pub(super) async fn keep_indexed(journal: Arc<SharedJournal>) {
    loop {
        // Whichever comes first.
        let _ = tokio::time::timeout(SWEEP, journal.index_signal.raised.notified()).await;
        tokio::time::sleep(DELAY).await;
        if let Err(failure) = index_all(&journal).await {
            tracing::debug!(?failure, "text is indexed later");
        }
    }
}

/// Moves all text that waits.
pub(super) async fn index_all(journal: &SharedJournal) -> Result<(), QueryFailure> {
    let mut after = Some((Uuid::nil(), 0));
    while let Some(last) = after {
        after = index_some(journal, last).await?;
    }
    Ok(())
}

/// Moves the next texts after one. Returns the last that it looked at, if there may be more.
async fn index_some(
    journal: &SharedJournal,
    (log, seq): (Uuid, i64),
) -> Result<Option<(Uuid, i64)>, QueryFailure> {
    // Records that only forks still have are of the tenant of the forks.
    let next = "SELECT texts.log, texts.seq, texts.text, coalesce(
                    (SELECT s.tenant FROM threads t JOIN summaries s ON s.id = t.id
                        WHERE t.log = texts.log),
                    (SELECT s.tenant FROM parts JOIN threads t ON t.log = parts.log
                        JOIN summaries s ON s.id = t.id WHERE parts.taken = texts.log LIMIT 1))
                FROM texts WHERE (texts.log, texts.seq) > ($1, $2)
                ORDER BY texts.log, texts.seq LIMIT $3 FOR UPDATE OF texts SKIP LOCKED";
    let transaction = journal.connections.begin_index().await?;
    let rows = transaction.query(next, &[&log, &seq, &TEXTS_MAX]).await?;
    let blocks = BlockColumns::of(&rows);
    if !blocks.first_grams.is_empty() {
        transaction.query(MOVE, &blocks.params()).await?;
    }
    transaction.commit().await?;
    let last = rows.last().filter(|_| rows.len() as i64 == TEXTS_MAX);
    Ok(last.map(|row| (row.get(0), row.get(1))))
}

/// Moves texts to their blocks.
const MOVE: &str = "
    WITH moved AS (
        DELETE FROM texts USING unnest($1::uuid[], $2::bigint[], $3::integer[])
            AS it(log, seq, block)
        WHERE texts.log = it.log AND texts.seq = it.seq
        RETURNING it.block, texts.log, texts.seq, texts.text),
    blocks AS (
        SELECT block, log, max(seq) AS upto, array_agg(seq ORDER BY seq) AS seqs,
            array_agg(text ORDER BY seq) AS texts
        FROM moved GROUP BY block, log)
    INSERT INTO text_blocks (log, upto, seqs, texts, grams)
    SELECT log, upto, seqs, texts, ($4::integer[])[it.first:it.last]
    FROM blocks JOIN unnest($5::integer[], $6::integer[]) WITH ORDINALITY AS it(first, last, block)
        ON it.block = blocks.block";

/// Texts and their blocks, as columns.
#[derive(Debug, Default)]
struct BlockColumns {
    logs: Vec<Uuid>,
    seqs: Vec<i64>,
    /// Block of each text, from 1.
    blocks: Vec<i32>,
    /// Trigrams of all blocks.
    grams: Vec<i32>,
    /// First and last position of each block's trigrams, from 1.
    first_grams: Vec<i32>,
    last_grams: Vec<i32>,
}

impl BlockColumns {
    /// Groups texts. One whose thread is in no list has no tenant, and waits.
    fn of(rows: &[Row]) -> Self {
        let mut columns = Self::default();
        let mut block: Option<(Uuid, usize, Vec<i32>)> = None;
        for row in rows {
            let (log, text): (Uuid, &str) = (row.get(0), row.get(2));
            let Some(tenant) = row.get::<_, Option<&str>>(3) else {
                continue;
            };
            let fits = |bytes: usize| bytes + text.len() <= BLOCK_BYTES;
            let next = match block.take() {
                Some((same, bytes, grams)) if same == log && fits(bytes) => {
                    (log, bytes + text.len(), grams)
                }
                other => {
                    if let Some((_, _, grams)) = other {
                        columns.end_block(grams);
                    }
                    (log, text.len(), Vec::new())
                }
            };
            let (_, _, grams) = block.insert(next);
            TrigramHasher::new(tenant).add(text, grams);
            columns.logs.push(log);
            columns.seqs.push(row.get(1));
            columns.blocks.push(as_i32(columns.first_grams.len() + 1));
        }
        if let Some((_, _, grams)) = block {
            columns.end_block(grams);
        }
        columns
    }

    fn end_block(&mut self, mut grams: Vec<i32>) {
        grams.sort_unstable();
        grams.dedup();
        self.first_grams.push(as_i32(self.grams.len() + 1));
        self.grams.append(&mut grams);
        self.last_grams.push(as_i32(self.grams.len()));
    }

    fn params(&self) -> [super::connection::Param<'_>; 6] {
        [
            &self.logs,
            &self.seqs,
            &self.blocks,
            &self.grams,
            &self.first_grams,
            &self.last_grams,
        ]
    }
}

fn as_i32(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
