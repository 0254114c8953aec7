//! Segments of a thread: its own rows under its log, and the rows that a fork shares under other
//! logs. To a reader they are one sequence of records.

use raddle_core::ports::ReadError;
use raddle_core::{Seq, ThreadId};
use uuid::Uuid;

use super::SharedJournal;
use super::error::{self, QueryFailure};
use super::thread_state::{as_i64, seq};

/// Segments of a thread as a SQL query: `log`, `first` and `upto`, from the common table expression
/// `t`, which has the thread's log. Its own records begin after the last shared one.
pub(super) const OF_T: &str = "
    SELECT parts.taken AS log, parts.first, parts.upto FROM t JOIN parts ON parts.log = t.log
    UNION ALL
    SELECT t.log,
        coalesce((SELECT max(parts.upto) + 1 FROM parts WHERE parts.log = t.log), 0),
        9223372036854775807
    FROM t";

/// Rows of one log, from the first record to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) log: Uuid,
    pub(super) first: Seq,
    pub(super) last: Seq,
}

/// Segments of a thread, oldest first. The last is its own, and has no end.
#[derive(Clone, Debug)]
pub(super) struct Segments(Vec<Segment>);

impl Segments {
    /// Reads the segments of a thread; `None` if it does not exist.
    pub(super) async fn of(
        journal: &SharedJournal,
        thread: ThreadId,
    ) -> Result<Option<Self>, QueryFailure> {
        let sql = "SELECT t.log, parts.taken, parts.first, parts.upto
                   FROM threads t LEFT JOIN parts ON parts.log = t.log
                   WHERE t.id = $1 AND t.live ORDER BY parts.upto";
        let rows = journal
            .connections
            .reads()
            .query(sql, &[thread.as_uuid()])
            .await?;
        let Some(first) = rows.first() else {
            return Ok(None);
        };
        let mut segments: Vec<Segment> = Vec::with_capacity(rows.len() + 1);
        for row in &rows {
            if let Some(log) = row.get::<_, Option<Uuid>>(1) {
                segments.push(Segment {
                    log,
                    first: seq(row.get(2)),
                    last: seq(row.get(3)),
                });
            }
        }
        let begin = segments.last().map_or(Seq::ZERO, |part| part.last.next());
        segments.push(Segment {
            log: first.get(0),
            first: begin,
            last: Seq(u64::MAX),
        });
        Ok(Some(Self(segments)))
    }

    /// Reads the segments of a thread that must exist.
    pub(super) async fn existing(
        journal: &SharedJournal,
        thread: ThreadId,
    ) -> Result<Self, ReadError> {
        let segments = Self::of(journal, thread).await.map_err(error::read)?;
        segments.ok_or(ReadError::NotFound)
    }

    /// Returns the log of the thread's own rows.
    pub(super) fn own(&self) -> Option<Uuid> {
        self.0.last().map(|segment| segment.log)
    }

    /// Returns the segments that hold records from the first number to before the second, clipped to
    /// that range.
    pub(super) fn within(
        &self,
        (from, until): (Seq, Seq),
    ) -> impl DoubleEndedIterator<Item = Segment> + '_ {
        let last = Seq(until.0.saturating_sub(1));
        let clipped = self.0.iter().map(move |part| Segment {
            log: part.log,
            first: part.first.max(from),
            last: part.last.min(last),
        });
        clipped.filter(move |part| from < until && part.first <= part.last)
    }
}

/// Segments as columns, for `unnest`.
#[derive(Debug, Default)]
pub(super) struct SegmentColumns {
    pub(super) log: Vec<Uuid>,
    pub(super) first: Vec<i64>,
    pub(super) last: Vec<i64>,
}

impl FromIterator<Segment> for SegmentColumns {
    fn from_iter<T: IntoIterator<Item = Segment>>(segments: T) -> Self {
        let mut columns = Self::default();
        for segment in segments {
            columns.log.push(segment.log);
            columns.first.push(as_i64(segment.first));
            columns.last.push(as_i64(segment.last));
        }
        columns
    }
}
