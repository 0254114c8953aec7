//! Verifies that stored data is intact, and that derived data still matches it.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use raddle_core::ports::{Activity, PageQuery, ReadError, Summary, TurnEntry};
use raddle_core::{Base, Event, ItemId, Record, RecordBody, Seq, Thread, ThreadId};
use rusqlite::Connection;
use sha2::{Digest, Sha256};

use super::archive::{self, Archive};
use super::export::PAGE_BYTES;
use super::fence::ThreadRow;
use super::wal::{self, Frames};
use super::{error, pages, read, summary};
use crate::blob::{self, Hash};
use crate::records::item_of;
use crate::reverted_ranges::RevertedRanges;

/// Maximum number of damages reported of one thread, or of the file.
const DAMAGE_MAX: usize = 20;

/// Page sizes for comparing turns and items.
const TURNS: usize = 500;
const ITEMS: usize = 50;

/// Result of verifying a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyReport {
    /// Id of the verified thread.
    pub thread: ThreadId,
    /// Newest record that can be trusted.
    pub head: Seq,
    /// Number of intact records.
    pub records: u64,
    /// Number of blobs that they refer to.
    pub blobs: u64,
    /// Damages, the worst first; empty if the thread is intact.
    pub damage: Vec<Damage>,
}

/// Data that differs from what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Kind of the damaged data.
    pub kind: DamageKind,
    /// Record at which the damage was detected.
    pub at: Seq,
    /// Description of the damage.
    pub what: String,
}

/// Kinds of damage, by possible remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamageKind {
    /// A record. Nothing from it on can be trusted.
    Record,
    /// A blob that a record refers to. The records are intact.
    Blob,
    /// Data that was derived from the records and can be rebuilt.
    Derived,
    /// No damage, but a newer version wrote the record and this one cannot verify it.
    Newer,
}

impl Archive {
    /// Returns the problems that SQLite finds in its file, and damage to the WAL; empty if it is
    /// intact.
    pub fn check_file(&self) -> Result<Vec<String>, ReadError> {
        let check = || -> Result<Vec<String>, rusqlite::Error> {
            let sql = format!("PRAGMA integrity_check({DAMAGE_MAX})");
            let mut statement = self.connection.prepare(&sql)?;
            let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
            lines.filter(|line| line.as_deref() != Ok("ok")).collect()
        };
        let mut problems = match check().map_err(error::open) {
            // Damage can be so bad that the check itself fails.
            Err(ReadError::Corrupt { what, .. }) => vec![what],
            problems => problems?,
        };
        // Checked twice, because a writer may be appending to the WAL.
        if broken_log(&self.folder).is_some() {
            problems.extend(broken_log(&self.folder));
        }
        Ok(problems)
    }

    /// Verifies a whole thread: the hash chain, the checksums, that every record can be read and
    /// folded, the blobs against their hashes, and the lists, pages and bases against the records.
    pub fn verify(&self, thread: ThreadId) -> Result<VerifyReport, ReadError> {
        // One transaction, so that the records and the derived data are of one snapshot.
        let transaction = self.begin()?;
        let report = VerifyReport {
            thread,
            head: Seq::ZERO,
            records: 0,
            blobs: 0,
            damage: Vec::new(),
        };
        let row = match read::existing(&transaction, thread) {
            // Without its row a thread cannot be read in order, though its records may be intact.
            Err(ReadError::Corrupt { at, what }) => {
                let kind = DamageKind::Record;
                let damage = vec![Damage { kind, at, what }];
                return Ok(VerifyReport { damage, ..report });
            }
            row => row?,
        };
        let mut walk = VerifyWalk {
            archive: self,
            thread,
            row,
            folded: Thread::new(),
            summary: None,
            reverted: RevertedRanges::default(),
            turns: Vec::new(),
            items: Vec::new(),
            bases: bases(&transaction, &row)?,
            blobs: HashSet::new(),
            report,
        };
        match walk.records(&transaction) {
            Ok(()) => walk.derived(&transaction)?,
            Err(ReadError::Corrupt { at, what }) => walk.damaged(DamageKind::Record, at, what),
            Err(ReadError::Newer(what)) => {
                let at = walk.report.head.next();
                walk.damaged(DamageKind::Newer, at, what);
            }
            Err(error) => return Err(error),
        }
        let mut report = walk.report;
        report.blobs = walk.blobs.len() as u64;
        report.damage.sort_by_key(|it| it.kind as u8);
        Ok(report)
    }
}

/// Returns a description of the damage to the WAL.
fn broken_log(folder: &Path) -> Option<String> {
    let log = fs::read(wal::path(folder)).ok()?;
    let frames = Frames::of(&log);
    if !wal::has_valid_header(&log) {
        let what = "the log has an invalid header, so nothing in it is served; the next process that opens \
                    the journal for writing overwrites it";
        return Some(what.to_owned());
    }
    frames.are_lost().then(|| {
        format!(
            "the log breaks off after {} pages. After a loss of power this is expected: the transactions \
             missing then had not been synced, and nothing need be done. Otherwise the log is damaged: \
             stored transactions are not served, and the next process that opens the journal for writing \
             overwrites them",
            frames.committed.len()
        )
    })
}

/// A walk over a thread's records, and the data derived from them.
struct VerifyWalk<'a> {
    archive: &'a Archive,
    thread: ThreadId,
    row: ThreadRow,
    folded: Thread,
    summary: Option<Summary>,
    reverted: RevertedRanges,
    turns: Vec<TurnEntry>,
    items: Vec<(Seq, ItemId)>,
    /// Newest first: the head of each base, and a hash of its content.
    bases: Vec<(Seq, Hash)>,
    blobs: HashSet<Hash>,
    report: VerifyReport,
}

impl VerifyWalk<'_> {
    fn records(&mut self, connection: &Connection) -> Result<(), ReadError> {
        let mut bytes_max = PAGE_BYTES;
        loop {
            let (files, after) = (&self.archive.files, self.report.head);
            match read::records(connection, files, self.thread, &self.row, after, bytes_max) {
                Ok(page) if page.is_empty() => return Ok(()),
                Ok(page) => page.iter().for_each(|record| self.record(record)),
                // The page is damaged somewhere; the records before that are intact and count.
                Err(ReadError::Corrupt { .. } | ReadError::Newer(_)) if bytes_max > 0 => {
                    bytes_max = 0;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn record(&mut self, record: &Record) {
        self.report.head = record.seq;
        self.report.records += 1;
        self.folded.apply(record);
        Summary::fold(&mut self.summary, record);
        if let RecordBody::Event(event) = &record.body {
            self.event(record, event);
        }
        while let Some((head, expected)) = self.bases.pop_if(|(head, _)| *head <= record.seq) {
            // A base that was made in the middle of an item holds text of deltas that were deleted
            // since.
            let mid_item = self
                .folded
                .turn()
                .is_some_and(|turn| !turn.items.is_empty());
            if head != record.seq || mid_item {
                continue;
            }
            if digest(&Base::of(&self.folded)) != Some(expected) {
                let what = "the base that ends here differs from the folded records";
                self.damaged(DamageKind::Derived, record.seq, what.to_owned());
            }
        }
    }

    fn event(&mut self, record: &Record, event: &Event) {
        if let Some((_, item)) = item_of(event) {
            self.items.push((record.seq, item.id.clone()));
        }
        match event {
            Event::TurnStarted(it) => self.turns.push(TurnEntry {
                turn: it.turn.clone(),
                root: it.root.clone(),
                from: record.seq,
                started_at: record.at,
                ended: None,
            }),
            Event::TurnEnded(it) => {
                if let Some(turn) = self.turns.last_mut().filter(|turn| turn.turn == it.turn) {
                    turn.ended = Some((it.end.clone(), record.at));
                }
            }
            Event::Reverted(it) => self.reverted.revert(it.at, record.seq),
            _ => {}
        }
        for blob_ref in blob::named(event) {
            let Some(hash) = blob::parse(&blob_ref.hash) else {
                let what = format!("{:?} is not a blob hash", blob_ref.hash);
                self.damaged(DamageKind::Blob, record.seq, what);
                continue;
            };
            if !self.blobs.insert(hash) {
                continue;
            }
            if let Err(error) = self.archive.files.read(&hash) {
                let what = format!("the blob {} that it refers to: {error}", blob_ref.hash);
                self.damaged(DamageKind::Blob, record.seq, what);
            }
        }
    }

    /// Compares lists and pages with the records.
    fn derived(&mut self, connection: &Connection) -> Result<(), ReadError> {
        let at = self.report.head;
        let mut summary = self.summary.take().filter(|it| it.thread == self.thread);
        // A row of an older version lacks these members until the next listed event, and is intact.
        let is_older =
            matches!(summary::list_row(connection, &self.row), Ok(Some(it)) if !it.has_activity);
        if let Some(summary) = summary.as_mut().filter(|_| is_older) {
            (summary.tenant, summary.principal) = (None, None);
            summary.activity = Activity::default();
        }
        let listed = match archive::summary(connection, self.thread) {
            Err(ReadError::Corrupt { .. }) => None,
            listed => Some(listed?),
        };
        if listed != Some(summary) {
            let what = "its entry in the list of threads differs from its records";
            self.damaged(DamageKind::Derived, at, what.to_owned());
        }
        if !self.turns_agree(connection)? {
            let what = "the pages of turns differ from its records";
            self.damaged(DamageKind::Derived, at, what.to_owned());
        }
        if !self.items_agree(connection)? {
            let what = "the pages of items differ from its records";
            self.damaged(DamageKind::Derived, at, what.to_owned());
        }
        Ok(())
    }

    fn turns_agree(&mut self, connection: &Connection) -> Result<bool, ReadError> {
        let turns = std::mem::take(&mut self.turns);
        let mut expected = turns.into_iter().filter(|it| !self.reverted.holds(it.from));
        let mut query = PageQuery {
            limit: TURNS,
            ..PageQuery::default()
        };
        loop {
            let files = &self.archive.files;
            let page = match pages::turns(connection, files, &self.row, &query) {
                Err(ReadError::Corrupt { .. }) => return Ok(false),
                page => page?,
            };
            let agree = page
                .entries
                .iter()
                .all(|it| expected.next().as_ref() == Some(it));
            query.cursor = page.next;
            if !agree || query.cursor.is_none() {
                return Ok(agree && expected.next().is_none());
            }
        }
    }

    fn items_agree(&mut self, connection: &Connection) -> Result<bool, ReadError> {
        let items = std::mem::take(&mut self.items);
        let live = items
            .into_iter()
            .filter(|(at, _)| !self.reverted.holds(*at));
        let mut expected = live.map(|(_, id)| id);
        let mut query = PageQuery {
            limit: ITEMS,
            ..PageQuery::default()
        };
        loop {
            let files = &self.archive.files;
            let page = match pages::items(connection, files, &self.row, None, &query) {
                Err(ReadError::Corrupt { .. }) => return Ok(false),
                page => page?,
            };
            let agree = page
                .entries
                .iter()
                .all(|it| expected.next().as_ref() == Some(&it.item.id));
            query.cursor = page.next;
            if !agree || query.cursor.is_none() {
                return Ok(agree && expected.next().is_none());
            }
        }
    }

    fn damaged(&mut self, kind: DamageKind, at: Seq, what: String) {
        if self.report.damage.len() < DAMAGE_MAX {
            self.report.damage.push(Damage { kind, at, what });
        }
    }
}

/// Returns the usable bases of a thread, newest first. If they cannot be read, reading the records
/// reports the damage.
fn bases(connection: &Connection, row: &ThreadRow) -> Result<Vec<(Seq, Hash)>, ReadError> {
    let mut bases = Vec::new();
    let mut at = None;
    loop {
        let base = match read::base_of(connection, row, at) {
            Err(ReadError::Corrupt { .. }) => None,
            base => base?,
        };
        let Some(base) = base else {
            return Ok(bases);
        };
        let head = base.thread.head();
        bases.extend(digest(&base).map(|digest| (head, digest)));
        match head.0.checked_sub(1) {
            Some(before) => at = Some(Seq(before)),
            None => return Ok(bases),
        }
    }
}

/// Hashes a base. A base is as large as a thread's state, so only its hash is stored for the
/// comparison.
fn digest(base: &Base) -> Option<Hash> {
    let json = serde_json::to_vec(base).ok()?;
    Some(Sha256::digest(json).into())
}
