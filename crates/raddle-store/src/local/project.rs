//! Lists and pages follow the records, in the transaction that stores them.

use raddle_core::ports::{Origin, ReadError, Summary};
use raddle_core::{Body, Event, Git, Record, Seq, Source, ThreadId, Timestamp};
use rusqlite::{Connection, Error, OptionalExtension, params};
use serde::{Deserialize, Serialize};

use super::course::Course;
use super::fence::as_i64;
use super::files::Files;
use super::key::{self, key};
use super::{error, read};
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

/// Takes in what was appended.
pub(super) fn follow(
    transaction: &Connection,
    number: i64,
    thread: ThreadId,
    records: &[Record],
) -> Result<(), Error> {
    let mut listed = false;
    for record in records {
        let Body::Event(event) = &record.body else {
            continue;
        };
        listed |= event.is_change();
        follow_event(transaction, number, event, record)?;
    }
    if listed {
        follow_list(transaction, number, thread, records)?;
    }
    Ok(())
}

fn follow_list(
    transaction: &Connection,
    number: i64,
    thread: ThreadId,
    records: &[Record],
) -> Result<(), Error> {
    let before = summary(transaction, number)?;
    let mut after = before.clone();
    for record in records {
        Summary::fold(&mut after, record);
    }
    match (before, after) {
        (None, None) => Ok(()),
        (Some(_), None) => {
            transaction.execute("DELETE FROM summary WHERE number = ?1", [number])?;
            Ok(())
        }
        (before, Some(mut after)) => {
            // The head is read from where the fence keeps it.
            after.head = before.as_ref().map_or(Seq::ZERO, |it| it.head);
            if before.as_ref() == Some(&after) {
                return Ok(());
            }
            write_summary(transaction, number, thread, &after)
        }
    }
}

fn follow_event(
    transaction: &Connection,
    number: i64,
    event: &Event,
    record: &Record,
) -> Result<(), Error> {
    let at = key(number, record.seq);
    if item_of(event).is_some() {
        transaction
            .prepare_cached("INSERT INTO item (at) VALUES (?1)")?
            .execute([at])?;
    }
    match event {
        Event::TurnStarted(it) => {
            transaction
                .prepare_cached("INSERT INTO turn (at, id) VALUES (?1, ?2)")?
                .execute(params![at, it.turn.as_str()])?;
        }
        Event::TurnEnded(_) => {
            transaction
                .prepare_cached("INSERT INTO turn_end (at) VALUES (?1)")?
                .execute([at])?;
        }
        Event::Reverted(it) => {
            transaction
                .prepare_cached("INSERT INTO cut (at, since) VALUES (?1, ?2)")?
                .execute([at, as_i64(it.at)])?;
        }
        _ => {}
    }
    Ok(())
}

/// What of a thread no longer counts.
pub(super) fn cuts(connection: &Connection, course: &Course) -> Result<Cuts, Error> {
    let mut statement = connection
        .prepare_cached("SELECT at, since FROM cut WHERE at BETWEEN ?1 AND ?2 ORDER BY at")?;
    let mut cuts = Cuts::default();
    for part in course.parts(Seq::ZERO, key::SEQ_MAX) {
        let mut rows = statement.query(part.keys())?;
        while let Some(row) = rows.next()? {
            let since = Seq(row.get::<_, i64>(1)?.unsigned_abs());
            cuts.cut(since, key::seq(row.get(0)?));
        }
    }
    Ok(cuts)
}

/// How much of a thread is read at a time to list it again.
const PAGE_BYTES: usize = 1 << 20;

/// Makes the list of threads again from their records. One that cannot be read is in no list; whoever opens
/// it is told why.
pub(super) fn list_again(transaction: &Connection, files: &Files) -> Result<(), Error> {
    let mut statement = transaction.prepare("SELECT number, id FROM thread WHERE going = 0")?;
    let threads = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let threads: Vec<(i64, [u8; 16])> = threads.collect::<Result<_, _>>()?;
    for (number, id) in threads {
        let thread = uuid::Uuid::from_bytes(id).into();
        if let Ok(Some(summary)) = folded(transaction, files, thread) {
            write_summary(transaction, number, thread, &summary)?;
        }
    }
    Ok(())
}

fn folded(
    connection: &Connection,
    files: &Files,
    thread: ThreadId,
) -> Result<Option<Summary>, ReadError> {
    let mut summary = None;
    let mut after = Seq::ZERO;
    loop {
        let page = read::records(connection, files, thread, after, PAGE_BYTES)?;
        for record in &page {
            Summary::fold(&mut summary, record);
        }
        match page.last() {
            Some(last) => after = last.seq,
            None => return Ok(summary),
        }
    }
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

/// Reads a summary without its head, and the thread's number.
pub(super) fn read_summary(row: &rusqlite::Row<'_>) -> Result<(i64, Summary), Error> {
    let id: [u8; 16] = row.get(1)?;
    let rest: Rest = from_json(row.get_ref(13)?.as_str()?)?;
    let summary = Summary {
        thread: uuid::Uuid::from_bytes(id).into(),
        archived: row.get::<_, i64>(2)? == Shelf::Archived as i64,
        recency_at: Timestamp(row.get(3)?),
        created_at: Timestamp(row.get(4)?),
        updated_at: Timestamp(row.get(5)?),
        turns: row.get::<_, i64>(6)?.unsigned_abs(),
        cwd: row.get(7)?,
        provider: row.get(8)?,
        model: rest.model,
        effort: rest.effort,
        origin: Origin {
            source: from_json(row.get_ref(9)?.as_str()?)?,
            originator: row.get(10)?,
            label: rest.label,
            version: rest.version,
            paginated: rest.paginated,
            git: rest.git,
            forked_from: rest.forked_from,
        },
        name: row.get(11)?,
        preview: row.get(12)?,
        head: Seq::ZERO,
    };
    Ok((row.get(0)?, summary))
}

fn from_json<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|_| error::damaged("a row of the list of threads"))
}

/// What kind of client started a thread, as a column has it.
pub(super) fn source(source: &Source) -> String {
    // Names and text always make JSON.
    serde_json::to_string(source).unwrap_or_default()
}

fn summary(connection: &Connection, number: i64) -> Result<Option<Summary>, Error> {
    let sql = format!("SELECT {SUMMARY} FROM summary WHERE number = ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    let found = statement.query_row([number], read_summary).optional()?;
    Ok(found.map(|(_, summary)| summary))
}

/// Keeps what lists show of a thread.
pub(super) fn write_summary(
    transaction: &Connection,
    number: i64,
    thread: ThreadId,
    summary: &Summary,
) -> Result<(), Error> {
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
    Ok(())
}
