//! Lists and pages follow the records, in the transaction that stores them.

use raddle_core::ports::{Origin, Summary};
use raddle_core::{Body, Event, Git, Record, Seq, Source, ThreadId, Timestamp};
use rusqlite::{Connection, Error, params};
use serde::{Deserialize, Serialize};

use super::chain::{self, Sum};
use super::course::{Course, Order};
use super::error;
use super::fence::{Row, as_i64};
use super::key;
use super::trail::Trail;
use crate::cuts::Cuts;
use crate::records::item_of;

/// Where a list keeps a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i64)]
pub(super) enum Shelf {
    /// Ordinary lists.
    Open = 0,
    /// Lists of archived threads.
    Archived = 1,
    /// No list: a copy that has not yet its own first record.
    Hidden = 2,
}

impl Shelf {
    fn of(number: i64) -> Option<Self> {
        [Self::Open, Self::Archived, Self::Hidden]
            .into_iter()
            .find(|shelf| *shelf as i64 == number)
    }
}

/// Takes in what was appended, and changes the thread's row as that asks for.
pub(super) fn follow(
    transaction: &Connection,
    row: &mut Row,
    thread: ThreadId,
    records: &[Record],
) -> Result<(), Error> {
    let mut listed = false;
    for record in records {
        let Body::Event(event) = &record.body else {
            continue;
        };
        listed |= event.is_change();
        follow_event(transaction, row, event, record)?;
    }
    if listed {
        follow_list(transaction, row, thread, records)?;
    }
    Ok(())
}

fn follow_list(
    transaction: &Connection,
    row: &mut Row,
    thread: ThreadId,
    records: &[Record],
) -> Result<(), Error> {
    let before = listed(transaction, row)?.map(|it| it.summary);
    let mut after = before.clone();
    for record in records {
        Summary::fold(&mut after, record);
    }
    match (before, after) {
        (None, None) => Ok(()),
        (Some(_), None) => {
            transaction.execute("DELETE FROM summary WHERE number = ?1", [row.number])?;
            row.listed = None;
            Ok(())
        }
        (before, Some(mut after)) => {
            // The head is read from where the fence keeps it.
            after.head = before.as_ref().map_or(Seq::ZERO, |it| it.head);
            if before.as_ref() == Some(&after) {
                return Ok(());
            }
            row.listed = Some(write_summary(transaction, row.number, thread, &after)?);
            Ok(())
        }
    }
}

fn follow_event(
    transaction: &Connection,
    row: &mut Row,
    event: &Event,
    record: &Record,
) -> Result<(), Error> {
    let seq = record.seq;
    if item_of(event).is_some() {
        let (it, sum) = Trail::Item.go_on(row, seq, Seq::ZERO);
        transaction
            .prepare_cached("INSERT INTO item (at, before, sum) VALUES (?1, ?2, ?3)")?
            .execute(params![it.at, as_i64(it.before), sum])?;
    }
    match event {
        Event::TurnStarted(started) => {
            let (it, sum) = Trail::Turn.go_on(row, seq, Seq::ZERO);
            transaction
                .prepare_cached("INSERT INTO turn (at, before, sum, id) VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![
                    it.at,
                    as_i64(it.before),
                    sum,
                    started.turn.as_str()
                ])?;
        }
        Event::TurnEnded(_) => {
            let (it, sum) = Trail::TurnEnd.go_on(row, seq, Seq::ZERO);
            transaction
                .prepare_cached("INSERT INTO turn_end (at, before, sum) VALUES (?1, ?2, ?3)")?
                .execute(params![it.at, as_i64(it.before), sum])?;
        }
        Event::Reverted(reverted) => {
            let (it, sum) = Trail::Cut.go_on(row, seq, reverted.at);
            transaction
                .prepare_cached("INSERT INTO cut (at, before, sum, since) VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![it.at, as_i64(it.before), sum, as_i64(it.since)])?;
        }
        _ => {}
    }
    Ok(())
}

/// What of a thread no longer counts.
pub(super) fn cuts(connection: &Connection, course: &Course) -> Result<Cuts, Error> {
    let all = (Seq::ZERO, key::SEQ_MAX);
    let mut cuts = Cuts::default();
    for entry in course.along(connection, Trail::Cut, all, Order::OldestFirst, usize::MAX)? {
        cuts.cut(entry.since, entry.seq());
    }
    Ok(cuts)
}

/// The columns of `summary`, in the order in which they are written and read.
pub(super) const SUMMARY: &str = "number, id, shelf, recency_at, created_at, updated_at, turns, \
                                  cwd, provider, source, originator, name, preview, rest";

/// What a list shows of a thread, and is neither filtered nor ordered by.
#[derive(Debug, Serialize, Deserialize)]
struct Rest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    effort: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    version: String,
    #[serde(default)]
    paginated: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    git: Option<Git>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    forked_from: Option<ThreadId>,
}

/// What lists show of a thread, without its head.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    pub(super) shelf: Shelf,
    pub(super) summary: Summary,
}

impl Listed {
    /// Reads a summary, and holds it against what the thread's row says of it.
    pub(super) fn read(found: &rusqlite::Row<'_>, row: &Row) -> Result<Self, Error> {
        let id: [u8; 16] = found.get(1)?;
        let shelf = Shelf::of(found.get(2)?).ok_or_else(changed)?;
        let rest: Rest = from_json(found.get_ref(13)?.as_str()?)?;
        let summary = Summary {
            thread: uuid::Uuid::from_bytes(id).into(),
            archived: shelf == Shelf::Archived,
            recency_at: Timestamp(found.get(3)?),
            created_at: Timestamp(found.get(4)?),
            updated_at: Timestamp(found.get(5)?),
            turns: found.get::<_, i64>(6)?.unsigned_abs(),
            cwd: found.get(7)?,
            provider: found.get(8)?,
            model: rest.model,
            effort: rest.effort,
            origin: Origin {
                source: from_json(found.get_ref(9)?.as_str()?)?,
                originator: found.get(10)?,
                label: rest.label,
                version: rest.version,
                paginated: rest.paginated,
                git: rest.git,
                forked_from: rest.forked_from,
            },
            name: found.get(11)?,
            preview: found.get(12)?,
            head: Seq::ZERO,
        };
        if row.listed != Some(chain::sum_of_summary(row.number, shelf, &summary)) {
            return Err(changed());
        }
        Ok(Self { shelf, summary })
    }
}

fn changed() -> Error {
    error::damaged("what lists show of a thread is not what was written")
}

fn from_json<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|_| changed())
}

/// What kind of client started a thread, as a column has it.
pub(super) fn source(source: &Source) -> String {
    // Names and text always make JSON.
    serde_json::to_string(source).unwrap_or_default()
}

/// What lists show of a thread, if there is something.
pub(super) fn listed(connection: &Connection, row: &Row) -> Result<Option<Listed>, Error> {
    let sql = format!("SELECT {SUMMARY} FROM summary WHERE number = ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([row.number])?;
    match rows.next()? {
        Some(found) => Listed::read(found, row).map(Some),
        None if row.listed.is_none() => Ok(None),
        None => Err(changed()),
    }
}

/// Keeps what lists show of a thread, and gives its checksum.
pub(super) fn write_summary(
    transaction: &Connection,
    number: i64,
    thread: ThreadId,
    summary: &Summary,
) -> Result<Sum, Error> {
    let shelf = if summary.thread != thread {
        Shelf::Hidden
    } else if summary.archived {
        Shelf::Archived
    } else {
        Shelf::Open
    };
    let origin = &summary.origin;
    let rest = Rest {
        model: summary.model.clone(),
        effort: summary.effort.clone(),
        label: origin.label.clone(),
        version: origin.version.clone(),
        paginated: origin.paginated,
        git: origin.git.clone(),
        forked_from: origin.forked_from,
    };
    let sql = format!(
        "INSERT OR REPLACE INTO summary ({SUMMARY})
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"
    );
    transaction.prepare_cached(&sql)?.execute(params![
        number,
        summary.thread.as_uuid().as_bytes(),
        shelf as i64,
        summary.recency_at.0,
        summary.created_at.0,
        summary.updated_at.0,
        i64::try_from(summary.turns).unwrap_or(i64::MAX),
        summary.cwd,
        summary.provider,
        source(&origin.source),
        origin.originator,
        summary.name,
        summary.preview,
        serde_json::to_string(&rest).unwrap_or_default(),
    ])?;
    Ok(chain::sum_of_summary(number, shelf, summary))
}
