//! Bringing in a thread from a file.
//!
//! The records go to a thread of another name first, which no list shows, in pieces. Only when the file's
//! seal was reached and found right, the thread itself begins as a fork of that one, in one step; so an
//! import that is cut off anywhere leaves nothing that anyone sees.
//!
//! A seal says that a file is whole, not who wrote it. So an imported thread is history and no authority:
//! its settings become those that allow least, and records of our own end what the file's leave open.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use raddle_core::ports::{AppendError, Blobs, ForkError, Journal, ReadError};
use raddle_core::{
    ApprovalPolicy, Class, Epoch, Event, Forked, Grant, Record, RecordBody, Recovery, Reviewer,
    Sandbox, Seq, Settings, Step, Thread, ThreadId, ThreadWriter, Timestamp, WriterNode,
};

use super::LocalJournal;
use super::archive::Archive;
use crate::blob;
use crate::bundle::{BundleEntry, BundleError, BundleReader};

/// How much of a file goes into one append.
const PIECE_BYTES: usize = 512 << 10;

/// The largest number that a file may use for a record or an epoch. What follows needs numbers too.
const NUMBER_MAX: u64 = 1 << 53;

/// How a thread is brought in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// As a fork, with an id of its own.
    pub as_new: bool,
    /// Where the file lacks bytes that a record names, up to before that record.
    pub partial: bool,
    /// The time.
    pub now: Timestamp,
}

/// What was brought in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportSummary {
    /// The thread's id here.
    pub thread: ThreadId,
    /// How many records of the file it has.
    pub records: u64,
    /// How many blobs the file had.
    pub blobs: u64,
    /// The newest record of the file that it has.
    pub head: Seq,
    /// The newest record that the thread had when the file was made.
    pub had: Seq,
}

/// Why a thread was not brought in.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The thread is here already.
    #[error("the thread {0} is here already; delete it first, or give this one an id of its own")]
    Exists(ThreadId),
    /// The file is not to be trusted.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// The records are not those of the thread that the header names.
    #[error("the records in the file are not those of the thread {0}; export it again")]
    Foreign(ThreadId),
    /// After the records something is open that cannot be ended.
    #[error(
        "the records in the file leave something open that no thread has; the file was not made by an export"
    )]
    Open,
    /// The file was made without bytes that a record names.
    #[error("record {at} names the blob {hash}, which was lost before the file was made")]
    Lost {
        /// The record.
        at: Seq,
        /// The name.
        hash: String,
    },
    /// The journal did not take it.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The journal could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// What marks an import that is under way could not be made.
    #[error("the folder of the journal cannot be written: {0}")]
    Mark(#[from] io::Error),
}

impl LocalJournal {
    /// Brings in a thread from a file, under the same numbers, so that cursors stay good.
    pub async fn import(
        &self,
        file: BundleReader<impl BufRead>,
        options: ImportOptions,
    ) -> Result<ImportSummary, ImportError> {
        let marks = marks(&self.folder);
        self.sweep(&marks).await;
        let thread = file.header().thread;
        if !options.as_new && self.head(thread).await? != Seq::ZERO {
            return Err(ImportError::Exists(thread));
        }
        let staged = ThreadId::mint();
        // Should this process die, the next import finds the mark and removes what was staged.
        let mark = ImportMark::take(&marks, staged)?;
        let import = Import {
            journal: self,
            staged,
            folded: Thread::new(),
            piece: Vec::new(),
            piece_bytes: 0,
            stored: Seq::ZERO,
            lost: HashSet::new(),
            partial: options.partial,
            full: false,
            imported: ImportSummary {
                thread,
                records: 0,
                blobs: 0,
                head: Seq::ZERO,
                had: file.header().head,
            },
        };
        let outcome = import.run(file, options).await;
        let kept = options.as_new && outcome.is_ok();
        if !kept && self.delete(staged).await.is_err() {
            // Nobody sees it, and the mark stays so that it is removed later.
            return outcome;
        }
        mark.remove();
        outcome
    }

    /// Whether lists show a thread: what is only staged they do not.
    fn is_shown(&self, thread: ThreadId) -> Result<bool, ReadError> {
        let Some(archive) = Archive::open(&self.folder)? else {
            return Ok(false);
        };
        match archive.summary(thread) {
            Ok(summary) => Ok(summary.is_some()),
            Err(ReadError::NotFound) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Removes what imports left behind whose process died.
    async fn sweep(&self, marks: &Path) {
        let Ok(entries) = fs::read_dir(marks) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(thread) = name.to_str().and_then(|name| name.parse::<ThreadId>().ok()) else {
                continue;
            };
            let Some(mark) = ImportMark::left_behind(entry.path()) else {
                continue;
            };
            // What was staged may have become a thread of its own just before its process died.
            let over = match self.is_shown(thread) {
                Ok(true) => true,
                Ok(false) => self.delete(thread).await.is_ok(),
                Err(_) => false,
            };
            if over {
                mark.remove();
            }
        }
    }
}

/// A file that names what an import staged. It is locked while the import lives.
struct ImportMark {
    path: PathBuf,
    _file: fs::File,
}

impl ImportMark {
    fn take(marks: &Path, staged: ThreadId) -> io::Result<Self> {
        fs::create_dir_all(marks)?;
        let path = marks.join(staged.to_string());
        let file = fs::File::create(&path)?;
        file.lock()?;
        Ok(Self { path, _file: file })
    }

    /// A mark that nobody holds any more.
    fn left_behind(path: PathBuf) -> Option<Self> {
        let file = fs::File::open(&path).ok()?;
        file.try_lock().ok()?;
        Some(Self { path, _file: file })
    }

    fn remove(self) {
        // Left behind, it costs the next import one look: what is shown is not removed.
        let _ = fs::remove_file(&self.path);
    }
}

/// Where imports that are under way leave their marks.
fn marks(folder: &Path) -> PathBuf {
    folder.join("imports")
}

/// An import that is under way.
struct Import<'a> {
    journal: &'a LocalJournal,
    staged: ThreadId,
    folded: Thread,
    piece: Vec<Record>,
    piece_bytes: usize,
    stored: Seq,
    lost: HashSet<String>,
    partial: bool,
    /// Nothing more is taken in, though the file is read on to its seal.
    full: bool,
    imported: ImportSummary,
}

impl Import<'_> {
    async fn run(
        mut self,
        mut file: BundleReader<impl BufRead>,
        options: ImportOptions,
    ) -> Result<ImportSummary, ImportError> {
        while let Some(entry) = file.next()? {
            match entry {
                BundleEntry::Blob(bytes) => {
                    self.journal.put(bytes, String::new()).await?;
                    self.imported.blobs += 1;
                }
                BundleEntry::Lost(hash, _) => {
                    self.lost.insert(hash);
                }
                BundleEntry::Record(record) => self.record(*record, file.line_bytes()).await?,
            }
        }
        self.store().await?;
        let thread = self.imported.thread;
        if self.folded.id() != Some(thread) || self.folded.is_deleted() {
            return Err(ImportError::Foreign(thread));
        }
        let becomes = match options.as_new {
            true => self.staged,
            false => thread,
        };
        self.close(becomes, options.now).await?;
        if options.as_new {
            self.imported.thread = becomes;
            return Ok(self.imported);
        }
        let forked = self.journal.fork(self.staged, self.stored, thread).await;
        forked.map_err(|error| match error {
            ForkError::Taken => ImportError::Exists(thread),
            ForkError::Read(error) => error.into(),
            ForkError::Append(error) => error.into(),
            error @ ForkError::Beyond { .. } => AppendError::Unknown(error.to_string()).into(),
        })?;
        Ok(self.imported)
    }

    async fn record(&mut self, record: Record, bytes: usize) -> Result<(), ImportError> {
        if let Some(hash) = self.lost_name(&record) {
            let at = record.seq;
            if !self.partial {
                return Err(ImportError::Lost { at, hash });
            }
            self.full = true;
        }
        if self.full {
            return Ok(());
        }
        let record = reset_record(record);
        self.folded.apply(&record);
        self.imported.records += 1;
        self.imported.head = record.seq;
        self.piece.push(record);
        self.piece_bytes += bytes;
        if self.piece_bytes >= PIECE_BYTES {
            self.store().await?;
        }
        Ok(())
    }

    /// Lost bytes that a record names.
    fn lost_name(&self, record: &Record) -> Option<String> {
        let RecordBody::Event(event) = &record.body else {
            return None;
        };
        let named = blob::named(event);
        let mut hashes = named.iter().map(|it| it.hash.clone());
        hashes.find(|hash| self.lost.contains(hash))
    }

    async fn store(&mut self) -> Result<(), ImportError> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = std::mem::take(&mut self.piece);
        self.piece_bytes = 0;
        let (staged, after) = (self.staged, self.stored);
        // Whether it survives the power is of no matter before the thread begins.
        let append = self.journal.append(staged, after, &piece, Class::Process);
        self.stored = append.await?;
        Ok(())
    }

    /// Ends what the file's records leave open, by the record that a fork begins with. With an id of its own
    /// the staged thread becomes a thread by this.
    async fn close(&mut self, becomes: ThreadId, now: Timestamp) -> Result<(), ImportError> {
        let numbers = [self.folded.head(), self.folded.reserved()];
        let is_high = numbers.iter().any(|it| it.0 > NUMBER_MAX);
        if is_high || self.folded.epoch().0 > NUMBER_MAX {
            return Err(ImportError::Open);
        }
        let fork = Forked {
            thread: becomes,
            from: self.imported.thread,
            at: self.folded.head(),
            principal: None,
            lineage: self.folded.lineage().to_vec(),
            turns: self.folded.turns(),
            settings: reset(self.folded.settings()),
            ephemeral: false,
        };
        let node = WriterNode {
            name: self.staged.to_string(),
            epoch: Epoch(self.folded.epoch().0 + 1),
            recovery: Recovery::Interrupt,
        };
        let mut owner = ThreadWriter::fork(self.folded.clone(), fork, node, now);
        let Step::Append {
            after,
            mut records,
            class,
        } = owner.step(now)
        else {
            return Err(ImportError::Foreign(self.imported.thread));
        };
        records.push(Record {
            seq: owner.thread().head().next(),
            at: now,
            body: Event::Released {}.into(),
        });
        for record in &records {
            self.folded.apply(record);
        }
        if self.folded.id() != Some(becomes) || !is_closed(&self.folded, now) {
            return Err(ImportError::Open);
        }
        let append = self.journal.append(self.staged, after, &records, class);
        self.stored = append.await?;
        Ok(())
    }
}

/// Whether nothing of a thread is open, nothing goes on by itself, and nobody's yes holds.
fn is_closed(thread: &Thread, now: Timestamp) -> bool {
    let is_idle = thread.turn().is_none()
        && thread.requests().next().is_none()
        && thread.queue().is_empty()
        && thread.goal().is_none();
    let rests =
        thread.pending().is_empty() && thread.advance(now).is_empty() && thread.wake_at().is_none();
    let has_no_yes = thread.granted().is_empty() && thread.rights() == Grant::default();
    let settings = thread.settings();
    is_idle && rests && has_no_yes && *settings == reset(settings) && thread.owner().is_none()
}

/// A record without the authority that its settings gave: a fork may go on from anywhere in the history.
fn reset_record(mut record: Record) -> Record {
    if let RecordBody::Event(event) = &mut record.body {
        match &mut **event {
            Event::ThreadStarted(it) => it.settings = reset(&it.settings),
            Event::SettingsChanged(it) => it.settings = reset(&it.settings),
            Event::Forked(it) => it.settings = reset(&it.settings),
            _ => {}
        }
    }
    record
}

/// Settings that allow least. What says only where the thread was, which model it used and what it may use
/// at most stays.
fn reset(settings: &Settings) -> Settings {
    Settings {
        cwd: settings.cwd.clone(),
        roots: Vec::new(),
        real_paths: BTreeMap::new(),
        model: settings.model.clone(),
        provider: settings.provider.clone(),
        fallback: Vec::new(),
        effort: settings.effort.clone(),
        summary: settings.summary.clone(),
        tier: settings.tier.clone(),
        personality: settings.personality.clone(),
        base_instructions: None,
        developer_instructions: None,
        approval: ApprovalPolicy::OnRequest,
        reviewer: Reviewer::User,
        sandbox: Sandbox::ReadOnly {
            roots: Vec::new(),
            network: false,
        },
        profile: None,
        client_tools: Vec::new(),
        no_environment: settings.no_environment,
        window: settings.window,
        compact_above: settings.compact_above,
        turn_budget: settings.turn_budget,
        thread_budget: settings.thread_budget,
        recovery: None,
    }
}
