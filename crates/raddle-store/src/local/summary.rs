//! List rows: a summary of each thread that follows its records, and is rebuilt from them if it is
//! damaged.

use raddle_core::ports::{Activity, Origin, ReadError, Summary};
use raddle_core::{Git, Record, Seq, ThreadId, ThreadSource, Timestamp};
use rusqlite::types::Value;
use rusqlite::{Connection, Error, params_from_iter};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::chain::{self, RowChecksum};
use super::fence::ThreadRow;
use super::files::BlobFiles;
use super::{error, read};

/// Lists in which a thread appears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i64)]
pub(super) enum ListVisibility {
    /// Lists of threads that are not archived.
    Open = 0,
    /// Lists of archived threads.
    Archived = 1,
    /// No list: a fork that has only shared records so far.
    Hidden = 2,
}

impl ListVisibility {
    fn of(number: i64) -> Option<Self> {
        [Self::Open, Self::Archived, Self::Hidden]
            .into_iter()
            .find(|visibility| *visibility as i64 == number)
    }
}

/// Updates the list row with appended records, which are in the thread's row already.
pub(super) fn follow(
    transaction: &Connection,
    files: &BlobFiles,
    row: &mut ThreadRow,
    thread: ThreadId,
    records: &[Record],
) -> Result<(), Error> {
    let before = match list_row(transaction, row) {
        Err(error) if error::is_damage(&error) => {
            return repair_list(transaction, files, row, thread);
        }
        before => before?,
    };
    // An activity that is not known cannot be folded on. If a rebuild fails or takes too long, the
    // row remains without it.
    let lacks_activity = before.as_ref().is_some_and(|it| !it.has_activity);
    let rebuilt = lacks_activity.then(|| rebuild(transaction, files, thread, row).ok().flatten());
    let after = match rebuilt.flatten() {
        Some(summary) => summary.map(|it| ListRow::new(thread, it)),
        None => folded(thread, before.as_ref(), records),
    };
    write_list(transaction, row, before.as_ref(), after)
}

/// Folds records into a list row.
fn folded(thread: ThreadId, before: Option<&ListRow>, records: &[Record]) -> Option<ListRow> {
    let mut summary = before.map(|it| it.summary.clone());
    for record in records {
        Summary::fold(&mut summary, record);
    }
    let has_activity = before.is_none_or(|it| it.has_activity);
    summary.map(|it| ListRow {
        has_activity,
        ..ListRow::new(thread, it)
    })
}

/// Rebuilds a damaged list row.
fn repair_list(
    transaction: &Connection,
    files: &BlobFiles,
    row: &mut ThreadRow,
    thread: ThreadId,
) -> Result<(), Error> {
    let rebuilt = rebuild(transaction, files, thread, row);
    let rebuilt = rebuilt.map_err(|error| error::damaged(&error.to_string()))?;
    let Some(summary) = rebuilt else {
        // A rebuild takes too long, so the list row stays damaged.
        return Ok(());
    };
    unlist(transaction, row.number)?;
    let listed = summary.map(|it| ListRow::new(thread, it));
    write_list(transaction, row, None, listed)
}

/// Writes the list row. If the list's storage is damaged, the old row stays: the checksum in the
/// thread's row shows that it is outdated.
fn write_list(
    transaction: &Connection,
    row: &mut ThreadRow,
    before: Option<&ListRow>,
    after: Option<ListRow>,
) -> Result<(), Error> {
    if before == after.as_ref() {
        return Ok(());
    }
    let number = row.number;
    row.listed = after.as_ref().map(|it| it.sum(number));
    let Some(after) = &after else {
        return unlist(transaction, number);
    };
    let written = try_write(transaction, || match before {
        Some(before) => update_summary(transaction, number, before, after),
        None => insert_summary(transaction, number, after),
    });
    written.map(|_| ())
}

/// Removes a thread from all lists. If a damaged index or row prevents that, clears its text.
pub(super) fn unlist(transaction: &Connection, number: i64) -> Result<(), Error> {
    let run_sql = |sql: &str| {
        let mut statement = transaction.prepare_cached(sql)?;
        statement.execute([number]).map(|_| ())
    };
    let delete = || run_sql("DELETE FROM summary WHERE number = ?1");
    let clear_text =
        || run_sql("UPDATE summary SET name = NULL, preview = '', rest = '' WHERE number = ?1");
    if !try_write(transaction, delete)? {
        try_write(transaction, clear_text)?;
    }
    Ok(())
}

/// Runs a write to the lists. Returns false if their storage is damaged, so that nothing was
/// written.
fn try_write(
    transaction: &Connection,
    write: impl FnOnce() -> Result<(), Error>,
) -> Result<bool, Error> {
    let run = |sql| transaction.prepare_cached(sql)?.execute([]);
    run("SAVEPOINT list")?;
    match write() {
        Err(error) if is_about_lists(&error) => {
            run("ROLLBACK TO list")?;
            run("RELEASE list")?;
            Ok(false)
        }
        written => {
            written?;
            run("RELEASE list")?;
            Ok(true)
        }
    }
}

/// Whether the storage of the lists is damaged: an index, the table, or a row that was left behind.
fn is_about_lists(error: &Error) -> bool {
    error::is_damage(error)
        || error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation)
}

/// Limit: records from which one list rebuilds a damaged summary; beyond it, lists omit the thread.
///
/// It is approximate, and about as much as there is between two bases.
const ANEW_BYTES_MAX: usize = 4 << 20;
const ANEW_PAGE_BYTES: usize = 256 << 10;

/// Rebuilds a thread's summary from its records. Returns `None` if that takes too long.
pub(super) fn rebuild(
    connection: &Connection,
    files: &BlobFiles,
    thread: ThreadId,
    row: &ThreadRow,
) -> Result<Option<Option<Summary>>, ReadError> {
    let base = read::base_of(connection, row, None)?;
    let mut after = base.as_ref().map_or(Seq::ZERO, |it| it.thread.head());
    let mut summary = base.and_then(|base| Summary::of(&base.thread));
    for _ in 0..ANEW_BYTES_MAX / ANEW_PAGE_BYTES {
        let page = read::records(connection, files, thread, row, after, ANEW_PAGE_BYTES)?;
        let Some(last) = page.last() else {
            return Ok(Some(summary));
        };
        after = last.seq;
        for record in &page {
            Summary::fold(&mut summary, record);
        }
    }
    Ok(None)
}

/// Columns of `summary`, in the order in which they are written and read.
pub(super) const SUMMARY: &str = "number, id, shelf, recency_at, created_at, updated_at, turns, \
                                  cwd, provider, source, originator, name, preview, rest";

/// Number of those columns, without `number`.
const COLUMNS: usize = 13;

/// Part of a summary by which lists are neither filtered nor ordered.
#[derive(Debug, Serialize, Deserialize)]
struct SummaryDetails {
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    principal: Option<String>,
    /// `None` in a row of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    activity: Option<Activity>,
}

/// List row of a thread, without its head, which is stored with the fence.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ListRow {
    pub(super) visibility: ListVisibility,
    /// Whether the row has the activity, the tenant and the principal of the thread. A row of an
    /// older version lacks them until the next listed event.
    pub(super) has_activity: bool,
    pub(super) summary: Summary,
}

impl ListRow {
    fn new(thread: ThreadId, mut summary: Summary) -> Self {
        summary.head = Seq::ZERO;
        let visibility = if summary.thread != thread {
            ListVisibility::Hidden
        } else if summary.archived {
            ListVisibility::Archived
        } else {
            ListVisibility::Open
        };
        Self {
            visibility,
            has_activity: true,
            summary,
        }
    }

    /// Returns the checksum of the row. The members that rows of older versions lack are hashed only
    /// where the row has them, so that the checksums of those rows stay valid.
    fn sum(&self, number: i64) -> RowChecksum {
        let summary = &self.summary;
        let origin = &summary.origin;
        let mut hash = Sha256::new()
            .chain_update(number.to_le_bytes())
            .chain_update(summary.thread.as_uuid().as_bytes())
            .chain_update((self.visibility as i64).to_le_bytes())
            .chain_update(summary.recency_at.0.to_le_bytes())
            .chain_update(summary.created_at.0.to_le_bytes())
            .chain_update(summary.updated_at.0.to_le_bytes())
            .chain_update(summary.turns.to_le_bytes())
            .chain_update([u8::from(origin.paginated)]);
        let source = source(&origin.source);
        let forked_from = origin.forked_from.map(|it| it.to_string());
        let git = origin.git.as_ref();
        for text in [
            Some(&summary.cwd),
            Some(&summary.preview),
            summary.name.as_ref(),
            summary.provider.as_ref(),
            summary.model.as_ref(),
            summary.effort.as_ref(),
            Some(&source),
            origin.originator.as_ref(),
            origin.label.as_ref(),
            Some(&origin.version),
            forked_from.as_ref(),
            git.and_then(|it| it.branch.as_ref()),
            git.and_then(|it| it.origin.as_ref()),
            git.and_then(|it| it.sha.as_ref()),
        ] {
            // A missing text must differ from an empty one.
            let length = text.map_or(u64::MAX, |text| text.len() as u64);
            hash.update(length.to_le_bytes());
            hash.update(text.map_or("", String::as_str));
        }
        if self.has_activity {
            // Serialising names and numbers cannot fail.
            let members = (&summary.tenant, &summary.principal, &summary.activity);
            hash.update(serde_json::to_vec(&members).unwrap_or_default());
        }
        chain::short(hash)
    }

    /// Reads a list row, and verifies it against the checksum in the thread's row.
    pub(super) fn read(stored: &rusqlite::Row<'_>, row: &ThreadRow) -> Result<Self, Error> {
        let id: [u8; 16] = stored.get(1)?;
        let visibility = ListVisibility::of(stored.get(2)?).ok_or_else(changed)?;
        let rest: SummaryDetails = from_json(stored.get_ref(13)?.as_str()?)?;
        let has_activity = rest.activity.is_some();
        let summary = Summary {
            thread: uuid::Uuid::from_bytes(id).into(),
            tenant: rest.tenant,
            principal: rest.principal,
            archived: visibility == ListVisibility::Archived,
            recency_at: Timestamp(stored.get(3)?),
            created_at: Timestamp(stored.get(4)?),
            updated_at: Timestamp(stored.get(5)?),
            turns: stored.get::<_, i64>(6)?.unsigned_abs(),
            cwd: stored.get(7)?,
            provider: stored.get(8)?,
            model: rest.model,
            effort: rest.effort,
            origin: Origin {
                source: from_json(stored.get_ref(9)?.as_str()?)?,
                originator: stored.get(10)?,
                label: rest.label,
                version: rest.version,
                paginated: rest.paginated,
                git: rest.git,
                forked_from: rest.forked_from,
            },
            name: stored.get(11)?,
            preview: stored.get(12)?,
            activity: rest.activity.unwrap_or_default(),
            head: Seq::ZERO,
        };
        let listed = Self {
            visibility,
            has_activity,
            summary,
        };
        if row.listed != Some(listed.sum(row.number)) {
            return Err(changed());
        }
        Ok(listed)
    }

    /// Returns the columns of [`SUMMARY`], without the number.
    fn columns(&self) -> [Value; COLUMNS] {
        let summary = &self.summary;
        let origin = &summary.origin;
        let rest = SummaryDetails {
            model: summary.model.clone(),
            effort: summary.effort.clone(),
            label: origin.label.clone(),
            version: origin.version.clone(),
            paginated: origin.paginated,
            git: origin.git.clone(),
            forked_from: origin.forked_from,
            tenant: summary.tenant.clone(),
            principal: summary.principal.clone(),
            activity: self.has_activity.then(|| summary.activity.clone()),
        };
        [
            summary.thread.as_uuid().as_bytes().to_vec().into(),
            (self.visibility as i64).into(),
            summary.recency_at.0.into(),
            summary.created_at.0.into(),
            summary.updated_at.0.into(),
            i64::try_from(summary.turns).unwrap_or(i64::MAX).into(),
            summary.cwd.clone().into(),
            summary.provider.clone().into(),
            source(&origin.source).into(),
            origin.originator.clone().into(),
            summary.name.clone().into(),
            summary.preview.clone().into(),
            serde_json::to_string(&rest).unwrap_or_default().into(),
        ]
    }
}

fn changed() -> Error {
    error::damaged("the list entry of a thread is damaged: its checksum does not match")
}

fn from_json<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|_| changed())
}

/// Encodes the source of a thread as in its column.
pub(super) fn source(source: &ThreadSource) -> String {
    // Serialising names and text cannot fail.
    serde_json::to_string(source).unwrap_or_default()
}

/// Returns the list row of a thread, if there is one.
pub(super) fn list_row(connection: &Connection, row: &ThreadRow) -> Result<Option<ListRow>, Error> {
    let sql = format!("SELECT {SUMMARY} FROM summary WHERE number = ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([row.number])?;
    match rows.next()? {
        Some(stored) => ListRow::read(stored, row).map(Some),
        None if row.listed.is_none() => Ok(None),
        None => Err(changed()),
    }
}

/// Inserts the list row of a fork. Returns its checksum.
pub(super) fn begin_list(
    transaction: &Connection,
    number: i64,
    thread: ThreadId,
    summary: &Summary,
) -> Result<RowChecksum, Error> {
    let listed = ListRow::new(thread, summary.clone());
    insert_summary(transaction, number, &listed)?;
    Ok(listed.sum(number))
}

fn insert_summary(transaction: &Connection, number: i64, listed: &ListRow) -> Result<(), Error> {
    let sql = format!(
        "INSERT INTO summary ({SUMMARY})
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"
    );
    let values = std::iter::once(Value::from(number)).chain(listed.columns());
    let mut statement = transaction.prepare_cached(&sql)?;
    statement.execute(params_from_iter(values)).map(|_| ())
}

/// Writes only the changed columns, so that unaffected indexes are not touched.
fn update_summary(
    transaction: &Connection,
    number: i64,
    before: &ListRow,
    after: &ListRow,
) -> Result<(), Error> {
    let names = SUMMARY.split(", ").skip(1);
    let pairs = before.columns().into_iter().zip(after.columns());
    let changed = names
        .zip(pairs)
        .filter(|(_, (before, after))| before != after);
    let (names, values): (Vec<&str>, Vec<Value>) =
        changed.map(|(name, (_, after))| (name, after)).unzip();
    let set: Vec<String> = names.iter().map(|name| format!("{name} = ?")).collect();
    let sql = format!("UPDATE summary SET {} WHERE number = ?", set.join(", "));
    let values = values.into_iter().chain([number.into()]);
    let mut statement = transaction.prepare_cached(&sql)?;
    match statement.execute(params_from_iter(values))? {
        1 => Ok(()),
        other => Err(Error::StatementChangedRows(other)),
    }
}
