//! Imports a thread from a file.
//!
//! The records go, in pieces, to a staged thread with a new id, which no list shows. Once the
//! file's seal is verified, the thread itself begins as a fork of the staged one, in one step. So
//! an import that is interrupted anywhere leaves nothing visible.
//!
//! A seal proves that a file is complete, not who wrote it. So an imported thread is history
//! without authority: its settings become the most restrictive ones, and the import appends records
//! that end everything that the file leaves open.

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

/// Bytes of a file that go into one append.
const PIECE_BYTES: usize = 512 << 10;

/// Largest number that a file may use for a record or an epoch. Later records need numbers too.
const NUMBER_MAX: u64 = 1 << 53;

/// Options of an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// Whether to import as a fork with a new id.
    pub as_new: bool,
    /// Whether to stop before a record that refers to a lost blob, instead of failing.
    pub partial: bool,
    /// Time of the import.
    pub now: Timestamp,
}

/// Result of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportSummary {
    /// Id of the thread in this journal.
    pub thread: ThreadId,
    /// Number of imported records of the file.
    pub records: u64,
    /// Number of blobs in the file.
    pub blobs: u64,
    /// Newest imported record of the file.
    pub head: Seq,
    /// Newest record of the thread when the file was exported.
    pub source_head: Seq,
}

/// Reason for a failed import.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The thread already exists in this journal.
    #[error("the thread {0} already exists; delete it first, or import it with a new id")]
    Exists(ThreadId),
    /// The file is invalid.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// The records are not those of the thread that the header names.
    #[error("the records in the file are not those of the thread {0}; export it again")]
    Foreign(ThreadId),
    /// The records leave something open that cannot be ended.
    #[error(
        "the records in the file leave something open that cannot be ended; the file was not made by an export"
    )]
    Open,
    /// The file lacks a blob that a record refers to.
    #[error("record {at} refers to the blob {hash}, which was lost before the export")]
    Lost {
        /// Number of the record.
        at: Seq,
        /// Hash of the blob.
        hash: String,
    },
    /// The journal rejected the records.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The journal could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The marker file of the import could not be created.
    #[error("the folder of the journal cannot be written: {0}")]
    Mark(#[from] io::Error),
}

impl LocalJournal {
    /// Imports a thread from a file, with the same record numbers, so that cursors stay valid.
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
        // If this process dies, the next import finds the mark and deletes the staged thread.
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
                source_head: file.header().head,
            },
        };
        let outcome = import.run(file, options).await;
        let keep_staged = options.as_new && outcome.is_ok();
        if !keep_staged && self.delete(staged).await.is_err() {
            // The staged thread is invisible, and the mark stays so that a later import deletes it.
            return outcome;
        }
        mark.remove();
        outcome
    }

    /// Whether lists show a thread; they do not show a staged one.
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

    /// Deletes the staged threads of imports whose process died.
    async fn sweep(&self, marks: &Path) {
        let Ok(entries) = fs::read_dir(marks) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(thread) = name.to_str().and_then(|name| name.parse::<ThreadId>().ok()) else {
                continue;
            };
            let Some(mark) = ImportMark::take_abandoned(entry.path()) else {
                continue;
            };
            // The staged thread may have been published just before its process died.
            let finished = match self.is_shown(thread) {
                Ok(true) => true,
                Ok(false) => self.delete(thread).await.is_ok(),
                Err(_) => false,
            };
            if finished {
                mark.remove();
            }
        }
    }
}

/// Marker file that names a staged thread. It is locked while the import runs.
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

    /// Returns a mark that no process holds any more.
    fn take_abandoned(path: PathBuf) -> Option<Self> {
        let file = fs::File::open(&path).ok()?;
        file.try_lock().ok()?;
        Some(Self { path, _file: file })
    }

    fn remove(self) {
        // A mark that stays behind costs the next import one check: visible threads are not
        // deleted.
        let _ = fs::remove_file(&self.path);
    }
}

/// Returns the folder of the marks of running imports.
fn marks(folder: &Path) -> PathBuf {
    folder.join("imports")
}

/// An import in progress.
struct Import<'a> {
    journal: &'a LocalJournal,
    staged: ThreadId,
    folded: Thread,
    piece: Vec<Record>,
    piece_bytes: usize,
    stored: Seq,
    lost: HashSet<String>,
    partial: bool,
    /// Whether to skip further records. The file is still read to its seal.
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
                    self.journal.put(self.staged, bytes, String::new()).await?;
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
        let final_id = match options.as_new {
            true => self.staged,
            false => thread,
        };
        self.close(final_id, options.now).await?;
        if options.as_new {
            self.imported.thread = final_id;
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

    /// Returns the hash of a lost blob that a record refers to.
    fn lost_name(&self, record: &Record) -> Option<String> {
        let RecordBody::Event(event) = &record.body else {
            return None;
        };
        let blobs = blob::named(event);
        let mut hashes = blobs.iter().map(|it| it.hash.clone());
        hashes.find(|hash| self.lost.contains(hash))
    }

    async fn store(&mut self) -> Result<(), ImportError> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = std::mem::take(&mut self.piece);
        self.piece_bytes = 0;
        let (staged, after) = (self.staged, self.stored);
        // Durability does not matter before the thread begins.
        let append = self.journal.append(staged, after, &piece, Class::Process);
        self.stored = append.await?;
        Ok(())
    }

    /// Ends everything that the file's records leave open, with the record that a fork begins with.
    /// For an import with a new id, this makes the staged thread a normal one.
    async fn close(&mut self, final_id: ThreadId, now: Timestamp) -> Result<(), ImportError> {
        let numbers = [self.folded.head(), self.folded.reserved()];
        let is_high = numbers.iter().any(|it| it.0 > NUMBER_MAX);
        if is_high || self.folded.epoch().0 > NUMBER_MAX {
            return Err(ImportError::Open);
        }
        let fork = Forked {
            thread: final_id,
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
        let mut writer = ThreadWriter::fork(self.folded.clone(), fork, node, now);
        let Step::Append {
            after,
            mut records,
            class,
        } = writer.step(now)
        else {
            return Err(ImportError::Foreign(self.imported.thread));
        };
        records.push(Record {
            seq: writer.thread().head().next(),
            at: now,
            body: Event::Released {}.into(),
        });
        for record in &records {
            self.folded.apply(record);
        }
        if self.folded.id() != Some(final_id) || !is_closed(&self.folded, now) {
            return Err(ImportError::Open);
        }
        let append = self.journal.append(self.staged, after, &records, class);
        self.stored = append.await?;
        Ok(())
    }
}

/// Whether a thread has nothing open, no pending work, and no approvals in force.
fn is_closed(thread: &Thread, now: Timestamp) -> bool {
    let is_idle = thread.turn().is_none()
        && thread.requests().next().is_none()
        && thread.queue().is_empty()
        && thread.goal().is_none();
    let has_no_work =
        thread.pending().is_empty() && thread.advance(now).is_empty() && thread.wake_at().is_none();
    let has_no_grants = thread.granted().is_empty() && thread.rights() == Grant::default();
    let settings = thread.settings();
    is_idle
        && has_no_work
        && has_no_grants
        && *settings == reset(settings)
        && thread.owner().is_none()
}

/// Removes the authority that a record's settings gave, because a fork may continue from anywhere
/// in the history.
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

/// Returns the most restrictive settings. Only the working folder, the model settings and the
/// budgets are preserved.
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
            // A limit on reads stays: without it the thread could read more than before.
            reads: settings.sandbox.reads().map(<[String]>::to_vec),
        },
        sandbox_without_grants: None,
        profile: None,
        client_tools: Vec::new(),
        no_environment: settings.no_environment,
        variables: BTreeMap::new(),
        window: settings.window,
        compact_above: settings.compact_above,
        turn_budget: settings.turn_budget,
        thread_budget: settings.thread_budget,
        recovery: None,
    }
}
