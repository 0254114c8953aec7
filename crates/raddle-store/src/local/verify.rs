//! Verifies threads of the local journal, and its file.

use std::fs;
use std::path::Path;

use raddle_core::ThreadId;
use raddle_core::ports::{Activity, PageQuery, ReadError};
use rusqlite::Connection;

use super::archive::{self, Archive};
use super::fence::ThreadRow;
use super::wal::{self, Frames};
use super::{error, pages, read, summary};
use crate::blob;
use crate::export::PAGE_BYTES;
use crate::verify::{
    BaseHashes, DAMAGE_MAX, Damage, DamageKind, ITEMS, PageMatch, TURNS, VerifyReport, VerifyWalk,
};

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
        let row = match read::existing(&transaction, thread) {
            // Without its row a thread cannot be read in order, though its records may be intact.
            Err(ReadError::Corrupt { at, what }) => {
                let mut report = VerifyWalk::new(thread, BaseHashes::default()).finish();
                let kind = DamageKind::Record;
                report.damage.push(Damage { kind, at, what });
                return Ok(report);
            }
            row => row?,
        };
        let snapshot = ThreadSnapshot {
            archive: self,
            connection: &transaction,
            thread,
            row,
        };
        let mut walk = VerifyWalk::new(thread, snapshot.bases()?);
        match snapshot.records(&mut walk) {
            Ok(()) => snapshot.derived(&mut walk)?,
            Err(ReadError::Corrupt { at, what }) => walk.damaged(DamageKind::Record, at, what),
            Err(ReadError::Newer(what)) => {
                let at = walk.report.head.next();
                walk.damaged(DamageKind::Newer, at, what);
            }
            Err(error) => return Err(error),
        }
        Ok(walk.finish())
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

/// A thread, in one transaction.
struct ThreadSnapshot<'a> {
    archive: &'a Archive,
    connection: &'a Connection,
    thread: ThreadId,
    row: ThreadRow,
}

impl ThreadSnapshot<'_> {
    fn records(&self, walk: &mut VerifyWalk) -> Result<(), ReadError> {
        let (files, connection) = (&self.archive.files, self.connection);
        let mut bytes_max = PAGE_BYTES;
        loop {
            let after = walk.report.head;
            let page = read::records(connection, files, self.thread, &self.row, after, bytes_max);
            let page = match page {
                // The page is damaged somewhere; the records before that are intact and count.
                Err(ReadError::Corrupt { .. } | ReadError::Newer(_)) if bytes_max > 0 => {
                    bytes_max = 0;
                    continue;
                }
                page => page?,
            };
            if page.is_empty() {
                return Ok(());
            }
            for record in &page {
                for blob in walk.record(record) {
                    let hash = blob::parse(&blob.hash).unwrap_or_default();
                    if let Err(error) = files.read(&hash) {
                        walk.lost_blob(record.seq, &blob, &error.to_string());
                    }
                }
            }
        }
    }

    /// Compares lists and pages with the records.
    fn derived(&self, walk: &mut VerifyWalk) -> Result<(), ReadError> {
        let mut summary = walk.take_summary();
        // A row of an older version lacks these members until the next listed event, and is intact.
        let is_older = matches!(summary::list_row(self.connection, &self.row), Ok(Some(it)) if !it.has_activity);
        if let Some(summary) = summary.as_mut().filter(|_| is_older) {
            (summary.tenant, summary.principal) = (None, None);
            summary.activity = Activity::default();
        }
        let listed = match archive::summary(self.connection, self.thread) {
            Err(ReadError::Corrupt { .. }) => None,
            listed => Some(listed?),
        };
        if listed != Some(summary) {
            walk.derived("its entry in the list of threads differs from its records");
        }
        if !self.turns_agree(walk)? {
            walk.derived("the pages of turns differ from its records");
        }
        if !self.items_agree(walk)? {
            walk.derived("the pages of items differ from its records");
        }
        Ok(())
    }

    fn turns_agree(&self, walk: &mut VerifyWalk) -> Result<bool, ReadError> {
        let mut expected = walk.take_turns();
        let mut query = PageQuery {
            limit: TURNS,
            ..PageQuery::default()
        };
        loop {
            let page = pages::turns(self.connection, &self.archive.files, &self.row, &query);
            match expected.compare(page, |it, expected| it == expected)? {
                PageMatch::Continue(cursor) => query.cursor = Some(cursor),
                PageMatch::Same => return Ok(true),
                PageMatch::Different => return Ok(false),
            }
        }
    }

    fn items_agree(&self, walk: &mut VerifyWalk) -> Result<bool, ReadError> {
        let mut expected = walk.take_items();
        let mut query = PageQuery {
            limit: ITEMS,
            ..PageQuery::default()
        };
        loop {
            let files = &self.archive.files;
            let page = pages::items(self.connection, files, &self.row, None, &query);
            match expected.compare(page, |it, expected| it.item.id == *expected)? {
                PageMatch::Continue(cursor) => query.cursor = Some(cursor),
                PageMatch::Same => return Ok(true),
                PageMatch::Different => return Ok(false),
            }
        }
    }

    /// Returns the usable bases. If they cannot be read, reading the records reports the damage.
    fn bases(&self) -> Result<BaseHashes, ReadError> {
        let mut bases = BaseHashes::default();
        while let Some(at) = bases.next {
            match read::base_of(self.connection, &self.row, at) {
                Ok(Some(base)) => bases.add(&base),
                Ok(None) | Err(ReadError::Corrupt { .. }) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(bases)
    }
}
