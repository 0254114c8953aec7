//! Whether what is stored is what was written, and whether what was made from it still fits.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use raddle_core::ports::{PageQuery, ReadError, Summary, TurnEntry};
use raddle_core::{Base, Event, ItemId, Record, RecordBody, Seq, Thread, ThreadId};
use rusqlite::Connection;
use sha2::{Digest, Sha256};

use super::archive::{self, Archive};
use super::export::PAGE_BYTES;
use super::fence::ThreadRow;
use super::wal::{self, Frames};
use super::{error, pages, read};
use crate::blob::{self, Hash};
use crate::records::item_of;
use crate::reverted_ranges::RevertedRanges;

/// How much damage is told of one thread, or of the file.
const DAMAGE_MAX: usize = 20;

/// How many entries of a list are compared at a time.
const TURNS: usize = 500;
const ITEMS: usize = 50;

/// What was found in a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyReport {
    /// The thread.
    pub thread: ThreadId,
    /// The newest record that could be trusted.
    pub head: Seq,
    /// How many records are there and sound.
    pub records: u64,
    /// How many blobs they name.
    pub blobs: u64,
    /// What is wrong, the worst first; empty if the thread is whole.
    pub damage: Vec<Damage>,
}

/// Something that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// What kind of thing it is.
    pub kind: DamageKind,
    /// The record at which it shows.
    pub at: Seq,
    /// In words.
    pub what: String,
}

/// Kinds of damage, by what can be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamageKind {
    /// A record. Nothing from it on can be trusted.
    Record,
    /// Bytes that a record names. The records are sound.
    Blob,
    /// Something that was made from the records and can be made again.
    Derived,
    /// Nothing is wrong, but a newer version wrote it and this one cannot judge.
    Newer,
}

impl Archive {
    /// What SQLite says of its own file, in its words; nothing if all is well.
    pub fn check_file(&self) -> Result<Vec<String>, ReadError> {
        let check = || -> Result<Vec<String>, rusqlite::Error> {
            let sql = format!("PRAGMA integrity_check({DAMAGE_MAX})");
            let mut statement = self.connection.prepare(&sql)?;
            let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
            lines.filter(|line| line.as_deref() != Ok("ok")).collect()
        };
        let mut problems = match check().map_err(error::open) {
            // Damage can be so bad that not even the check ends.
            Err(ReadError::Corrupt { what, .. }) => vec![what],
            problems => problems?,
        };
        // Looked at twice, because a writer may just be adding to it.
        if broken_log(&self.folder).is_some() {
            problems.extend(broken_log(&self.folder));
        }
        Ok(problems)
    }

    /// Reads a whole thread: the hash chain, the checksums, that every record can be read and folded,
    /// the blobs against their names, and the lists, pages and bases against what the records say.
    pub fn verify(&self, thread: ThreadId) -> Result<VerifyReport, ReadError> {
        // One transaction, so that the records and what was made from them are of one moment.
        let transaction = self.begin()?;
        let report = VerifyReport {
            thread,
            head: Seq::ZERO,
            records: 0,
            blobs: 0,
            damage: Vec::new(),
        };
        let row = match read::existing(&transaction, thread) {
            // Without its row nothing of it can be read in order, though it may well be sound.
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

/// What is wrong with the log beside the file.
fn broken_log(folder: &Path) -> Option<String> {
    let log = fs::read(wal::path(folder)).ok()?;
    let frames = Frames::of(&log);
    if !wal::is_headed(&log) {
        let what = "the log does not begin as it was written, and nothing in it is served; whoever opens \
                    the journal to write writes over it";
        return Some(what.to_owned());
    }
    frames.are_lost().then(|| {
        format!(
            "the log breaks off after {} pages. After a loss of power that is to be expected: what is \
             missing then had not been synced, and nothing need be done. Otherwise the log was hit: \
             transactions that were stored are not served, and whoever opens the journal to write \
             writes over them",
            frames.taken.len()
        )
    })
}

/// A way through a thread's records, and what should have been made from them.
struct VerifyWalk<'a> {
    archive: &'a Archive,
    thread: ThreadId,
    row: ThreadRow,
    folded: Thread,
    summary: Option<Summary>,
    reverted: RevertedRanges,
    turns: Vec<TurnEntry>,
    items: Vec<(Seq, ItemId)>,
    /// Newest first: the head of each, and a hash of what it says.
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
                // The page breaks off somewhere; what comes before that is sound and counts.
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
        while let Some((head, said)) = self.bases.pop_if(|(head, _)| *head <= record.seq) {
            // A base that was made in the middle of an item holds text of deltas that are gone since.
            let amid = self
                .folded
                .turn()
                .is_some_and(|turn| !turn.items.is_empty());
            if head != record.seq || amid {
                continue;
            }
            if digest(&Base::of(&self.folded)) != Some(said) {
                let what = "the base that ends here is not what the records fold to";
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
        for named in blob::named(event) {
            let Some(hash) = blob::parse(&named.hash) else {
                let what = format!("{:?} is no name of a blob", named.hash);
                self.damaged(DamageKind::Blob, record.seq, what);
                continue;
            };
            if !self.blobs.insert(hash) {
                continue;
            }
            if let Err(error) = self.archive.files.read(&hash) {
                let what = format!("the blob {} that it names: {error}", named.hash);
                self.damaged(DamageKind::Blob, record.seq, what);
            }
        }
    }

    /// Holds lists and pages against what the records say.
    fn derived(&mut self, connection: &Connection) -> Result<(), ReadError> {
        let at = self.report.head;
        let summary = self.summary.take().filter(|it| it.thread == self.thread);
        let listed = match archive::summary(connection, self.thread) {
            Err(ReadError::Corrupt { .. }) => None,
            listed => Some(listed?),
        };
        if listed != Some(summary) {
            let what = "the list of threads does not say of it what its records say";
            self.damaged(DamageKind::Derived, at, what.to_owned());
        }
        if !self.turns_agree(connection)? {
            let what = "the pages of turns are not those of its records";
            self.damaged(DamageKind::Derived, at, what.to_owned());
        }
        if !self.items_agree(connection)? {
            let what = "the pages of items are not those of its records";
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
        let kept = items
            .into_iter()
            .filter(|(at, _)| !self.reverted.holds(*at));
        let mut expected = kept.map(|(_, id)| id);
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

/// The bases of a thread that can be used, newest first. Whoever reads its records is told what is wrong if
/// they cannot be looked for.
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

/// A base is as large as a thread's state; its hash is enough to compare it.
fn digest(base: &Base) -> Option<Hash> {
    let json = serde_json::to_vec(base).ok()?;
    Some(Sha256::digest(json).into())
}
