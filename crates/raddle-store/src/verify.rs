//! Verifies that a thread is intact, and that derived data still matches its records.

use std::collections::HashSet;

use raddle_core::ports::{ItemEntry, Page, PageQuery, ReadError, Summary, TurnEntry};
use raddle_core::{Base, Blob, Event, ItemId, Record, RecordBody, Seq, Thread, ThreadId};
use sha2::{Digest, Sha256};

use crate::ThreadStore;
use crate::blob::{self, Hash};
use crate::export::PAGE_BYTES;
use crate::records::item_of;
use crate::reverted_ranges::RevertedRanges;

/// Maximum number of damages reported of one thread, or of the file.
pub(crate) const DAMAGE_MAX: usize = 20;

/// Page sizes for comparing turns and items.
pub(crate) const TURNS: usize = 500;
pub(crate) const ITEMS: usize = 50;

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

/// Verifies a thread of any store, through its ports: that every record can be read and folded, the blobs
/// against their hashes, and the pages and bases against the records. The store verifies its own hash
/// chain where it reads. Fails with [`ReadError::Unavailable`] if the thread is written meanwhile.
pub async fn verify(store: &dyn ThreadStore, thread: ThreadId) -> Result<VerifyReport, ReadError> {
    let head = store.head(thread).await?;
    let mut walk = VerifyWalk::new(thread, bases(store, thread).await?);
    match read(store, thread, head, &mut walk).await {
        Ok(()) => {
            let pages = compare_pages(store, thread, &mut walk).await;
            if store.head(thread).await? != head {
                let what = "the thread is written at the moment; verify it again later";
                return Err(ReadError::Unavailable(what.to_owned()));
            }
            pages?;
        }
        Err(ReadError::Corrupt { at, what }) => walk.damaged(DamageKind::Record, at, what),
        Err(ReadError::Newer(what)) => {
            let at = walk.report.head.next();
            walk.damaged(DamageKind::Newer, at, what);
        }
        Err(error) => return Err(error),
    }
    // A staged copy, which is no thread of its own.
    if walk.report.damage.is_empty() && walk.folded.id() != Some(thread) {
        return Err(ReadError::NotFound);
    }
    Ok(walk.finish())
}

/// Reads the records up to a number, and the blobs that they name.
async fn read(
    store: &dyn ThreadStore,
    thread: ThreadId,
    head: Seq,
    walk: &mut VerifyWalk,
) -> Result<(), ReadError> {
    let mut bytes_max = PAGE_BYTES;
    while walk.report.head < head {
        let page = match store.read(thread, walk.report.head, bytes_max).await {
            // The page is damaged somewhere; the records before that are intact and count.
            Err(ReadError::Corrupt { .. } | ReadError::Newer(_)) if bytes_max > 0 => {
                bytes_max = 0;
                continue;
            }
            page => page?,
        };
        if page.is_empty() {
            break;
        }
        for record in page.iter().filter(|it| it.seq <= head) {
            for blob in walk.record(record) {
                if let Err(error) = store.get(thread, blob.clone()).await {
                    walk.lost_blob(record.seq, &blob, &error.to_string());
                }
            }
        }
    }
    Ok(())
}

async fn compare_pages(
    store: &dyn ThreadStore,
    thread: ThreadId,
    walk: &mut VerifyWalk,
) -> Result<(), ReadError> {
    let mut turns = walk.take_turns();
    let mut query = PageQuery {
        limit: TURNS,
        ..PageQuery::default()
    };
    loop {
        let page = store.turns(thread, query.clone()).await;
        match turns.compare(page, |it, expected| it == expected)? {
            PageMatch::Continue(cursor) => query.cursor = Some(cursor),
            PageMatch::Same => break,
            PageMatch::Different => {
                walk.derived("the pages of turns differ from its records");
                break;
            }
        }
    }
    let mut items = walk.take_items();
    let mut query = PageQuery {
        limit: ITEMS,
        ..PageQuery::default()
    };
    loop {
        let page = store.items(thread, None, query.clone()).await;
        match items.compare(page, |it: &ItemEntry, expected| it.item.id == *expected)? {
            PageMatch::Continue(cursor) => query.cursor = Some(cursor),
            PageMatch::Same => break,
            PageMatch::Different => {
                walk.derived("the pages of items differ from its records");
                break;
            }
        }
    }
    Ok(())
}

/// Returns the usable bases of a thread, newest first.
async fn bases(store: &dyn ThreadStore, thread: ThreadId) -> Result<BaseHashes, ReadError> {
    let mut bases = BaseHashes::default();
    while let Some(at) = bases.next
        && let Some(base) = store.base(thread, at).await?
    {
        bases.add(&base);
    }
    Ok(bases)
}

/// Heads of the bases of a thread, with a hash of the content of each. A base is as large as the state of
/// the thread.
#[derive(Debug)]
pub(crate) struct BaseHashes {
    /// Newest first.
    entries: Vec<(Seq, Hash)>,
    /// Where the next one is searched; `None` after the last.
    pub(crate) next: Option<Option<Seq>>,
}

impl Default for BaseHashes {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            next: Some(None),
        }
    }
}

impl BaseHashes {
    pub(crate) fn add(&mut self, base: &Base) {
        let head = base.thread.head();
        self.entries
            .extend(digest(base).map(|digest| (head, digest)));
        self.next = head.0.checked_sub(1).map(|before| Some(Seq(before)));
    }
}

/// Result of comparing a page with the records.
pub(crate) enum PageMatch {
    /// It is the same, and there is another page.
    Continue(String),
    /// All pages are the same.
    Same,
    Different,
}

/// Entries that the pages should have.
pub(crate) struct ExpectedEntries<E>(std::vec::IntoIter<E>);

impl<E> ExpectedEntries<E> {
    /// Compares the next page.
    pub(crate) fn compare<T>(
        &mut self,
        page: Result<Page<T>, ReadError>,
        is_same: impl Fn(&T, &E) -> bool,
    ) -> Result<PageMatch, ReadError> {
        let page = match page {
            Err(ReadError::Corrupt { .. }) => return Ok(PageMatch::Different),
            page => page?,
        };
        let agree = page
            .entries
            .iter()
            .all(|it| self.0.next().is_some_and(|expected| is_same(it, &expected)));
        Ok(match page.next {
            _ if !agree => PageMatch::Different,
            Some(cursor) => PageMatch::Continue(cursor),
            None if self.0.next().is_none() => PageMatch::Same,
            None => PageMatch::Different,
        })
    }
}

/// A walk over a thread's records, and the data derived from them.
pub(crate) struct VerifyWalk {
    folded: Thread,
    summary: Option<Summary>,
    reverted: RevertedRanges,
    turns: Vec<TurnEntry>,
    items: Vec<(Seq, ItemId)>,
    bases: BaseHashes,
    blobs: HashSet<Hash>,
    pub(crate) report: VerifyReport,
}

impl VerifyWalk {
    pub(crate) fn new(thread: ThreadId, bases: BaseHashes) -> Self {
        Self {
            folded: Thread::new(),
            summary: None,
            reverted: RevertedRanges::default(),
            turns: Vec::new(),
            items: Vec::new(),
            bases,
            blobs: HashSet::new(),
            report: VerifyReport {
                thread,
                head: Seq::ZERO,
                records: 0,
                blobs: 0,
                damage: Vec::new(),
            },
        }
    }

    /// Folds a record. Returns the blobs that it is the first to refer to.
    pub(crate) fn record(&mut self, record: &Record) -> Vec<Blob> {
        self.report.head = record.seq;
        self.report.records += 1;
        self.folded.apply(record);
        Summary::fold(&mut self.summary, record);
        let blobs = match &record.body {
            RecordBody::Event(event) => self.event(record, event),
            RecordBody::Delta(_) => Vec::new(),
        };
        let bases = &mut self.bases.entries;
        while let Some((head, expected)) = bases.pop_if(|(head, _)| *head <= record.seq) {
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
                let what = "the base that ends here differs from the folded records".to_owned();
                self.report.add(DamageKind::Derived, record.seq, what);
            }
        }
        blobs
    }

    fn event(&mut self, record: &Record, event: &Event) -> Vec<Blob> {
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
        let mut first = Vec::new();
        for blob_ref in blob::named(event) {
            let Some(hash) = blob::parse(&blob_ref.hash) else {
                let what = format!("{:?} is not a blob hash", blob_ref.hash);
                self.damaged(DamageKind::Blob, record.seq, what);
                continue;
            };
            if self.blobs.insert(hash) {
                first.push(blob_ref.clone());
            }
        }
        first
    }

    /// Reports a blob that cannot be read.
    pub(crate) fn lost_blob(&mut self, at: Seq, blob: &Blob, why: &str) {
        let what = format!("the blob {} that it refers to: {why}", blob.hash);
        self.damaged(DamageKind::Blob, at, what);
    }

    /// Takes the entry that a list of threads should have.
    pub(crate) fn take_summary(&mut self) -> Option<Summary> {
        let thread = self.report.thread;
        self.summary.take().filter(|it| it.thread == thread)
    }

    /// Takes the turns that pages should have.
    pub(crate) fn take_turns(&mut self) -> ExpectedEntries<TurnEntry> {
        let mut turns = std::mem::take(&mut self.turns);
        turns.retain(|it| !self.reverted.holds(it.from));
        ExpectedEntries(turns.into_iter())
    }

    /// Takes the items that pages should have.
    pub(crate) fn take_items(&mut self) -> ExpectedEntries<ItemId> {
        let items = std::mem::take(&mut self.items).into_iter();
        let live = items.filter(|(at, _)| !self.reverted.holds(*at));
        let live: Vec<ItemId> = live.map(|(_, id)| id).collect();
        ExpectedEntries(live.into_iter())
    }

    /// Reports derived data that differs from the records.
    pub(crate) fn derived(&mut self, what: &str) {
        self.damaged(DamageKind::Derived, self.report.head, what.to_owned());
    }

    pub(crate) fn damaged(&mut self, kind: DamageKind, at: Seq, what: String) {
        self.report.add(kind, at, what);
    }

    pub(crate) fn finish(mut self) -> VerifyReport {
        self.report.blobs = self.blobs.len() as u64;
        self.report.damage.sort_by_key(|it| it.kind as u8);
        self.report
    }
}

impl VerifyReport {
    fn add(&mut self, kind: DamageKind, at: Seq, what: String) {
        if self.damage.len() < DAMAGE_MAX {
            self.damage.push(Damage { kind, at, what });
        }
    }
}

/// Hashes a base. A base is as large as a thread's state, so only its hash is stored for the
/// comparison.
fn digest(base: &Base) -> Option<Hash> {
    let json = serde_json::to_vec(base).ok()?;
    Some(Sha256::digest(json).into())
}
