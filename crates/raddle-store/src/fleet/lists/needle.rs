//! Text that a search looks for, as conditions of SQL.

use raddle_core::ports::ListScope;

use crate::fleet::SharedJournal;
use crate::fleet::error::QueryFailure;
use crate::fleet::statement::Statement;
use crate::fleet::summary_row;
use crate::fleet::text_index::TrigramHasher;

/// Maximum number of blocks with all trigrams of a rare text. A search for it reads only those.
const RARE_MAX: i64 = 1_000;

/// Maximum number of texts that wait for the index. A search by index reads all of them.
const WAITING_MAX: i64 = 4_000;

/// Maximum number of trigrams that the index is queried for.
const GRAMS_MAX: usize = 32;

/// Text that a search looks for.
#[derive(Debug)]
pub(super) struct Needle {
    /// The text, in lower case.
    text: String,
    /// Hashes of some of its trigrams.
    grams: Vec<i32>,
}

impl Needle {
    pub(super) fn new(text: &str, scope: &ListScope) -> Self {
        let text = text.to_lowercase();
        let mut all = Vec::new();
        TrigramHasher::new(&summary_row::tenant_of(scope)).add(&text, &mut all);
        let step = all.len().div_ceil(GRAMS_MAX).max(1);
        let grams = all.into_iter().step_by(step).collect();
        Self { text, grams }
    }

    /// Whether the index leads to few texts. Otherwise looking at one thread after another is faster:
    /// a page of a common text is soon full.
    pub(super) async fn is_rare(&self, journal: &SharedJournal) -> Result<bool, QueryFailure> {
        // Materialized, so that the server plans to read all blocks with the trigrams: it would
        // expect the first thousand to be found sooner in the table than by the index.
        let sql = "WITH blocks AS MATERIALIZED (
                SELECT 1 FROM text_blocks WHERE grams @> $1::integer[])
            SELECT (SELECT count(*) FROM (SELECT 1 FROM blocks LIMIT $2) AS it) < $2
                AND (SELECT count(*) FROM (SELECT 1 FROM texts LIMIT $3) AS it) < $3";
        let search = journal.connections.search();
        let rows = search
            .query(sql, &[&self.grams, &RARE_MAX, &WAITING_MAX])
            .await;
        match rows {
            Ok(rows) => Ok(rows.first().is_some_and(|row| row.get(0))),
            Err(failure) if failure.is_canceled() => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// Returns the condition that a thread has the text, where `s.log` is its log.
    pub(super) fn held<'a>(&'a self, statement: &mut Statement<'a>) -> String {
        let text = statement.bind(&self.text);
        format!(
            "EXISTS (SELECT 1 FROM texts WHERE texts.log = s.log
                 AND strpos(texts.text, {text}::text) > 0)
             OR EXISTS (SELECT 1 FROM text_blocks AS b, unnest(b.texts) AS it(text)
                 WHERE b.log = s.log AND strpos(it.text, {text}::text) > 0)
             OR EXISTS (SELECT 1 FROM parts JOIN texts ON texts.log = parts.taken
                 AND texts.seq BETWEEN parts.first AND parts.upto
                 WHERE parts.log = s.log AND strpos(texts.text, {text}::text) > 0)
             OR EXISTS (SELECT 1 FROM parts JOIN text_blocks AS b ON b.log = parts.taken
                 AND b.upto >= parts.first AND b.seqs[1] <= parts.upto,
                 unnest(b.seqs, b.texts) AS it(seq, text)
                 WHERE parts.log = s.log AND it.seq BETWEEN parts.first AND parts.upto
                     AND strpos(it.text, {text}::text) > 0)"
        )
    }

    /// Returns the condition that a thread has the text, by index. One statement sees a text that
    /// moves to the index either before or after.
    pub(super) fn found<'a>(&'a self, statement: &mut Statement<'a>) -> String {
        let (text, grams) = (statement.bind(&self.text), statement.bind(&self.grams));
        // As an array, so that the threads are looked up by their ids and not the other way round.
        format!(
            "s.id = ANY (ARRAY(
                WITH found AS MATERIALIZED (
                    SELECT b.log, it.seq FROM text_blocks AS b, unnest(b.seqs, b.texts) AS it(seq, text)
                    WHERE b.grams @> {grams}::integer[] AND strpos(it.text, {text}::text) > 0
                    UNION ALL
                    SELECT log, seq FROM texts WHERE strpos(text, {text}::text) > 0)
                SELECT t.id FROM found JOIN threads t ON t.log = found.log AND t.live
                UNION
                SELECT t.id FROM found JOIN parts ON parts.taken = found.log
                    AND found.seq BETWEEN parts.first AND parts.upto
                    JOIN threads t ON t.log = parts.log AND t.live))"
        )
    }
}
