//! Imports a thread from a file.
//!
//! The records go, in pieces, to a staged thread with another id, which no list shows. Once the
//! file's seal is verified, the thread itself begins as a fork of the staged one, in one step. So
//! an import that is interrupted anywhere leaves nothing visible.
//!
//! A seal proves that a file is complete, not who wrote it. So an imported thread is history
//! without authority: its settings become the most restrictive ones, and the import appends records
//! that end everything that the file leaves open.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, BufRead};

use raddle_core::ports::{AppendError, ForkError, ReadError};
use raddle_core::{
    ApprovalPolicy, Class, Epoch, Event, Forked, Grant, Record, RecordBody, Recovery, Reviewer,
    Sandbox, Seq, Settings, Step, Thread, ThreadId, ThreadWriter, Timestamp, WriterNode,
};

use crate::ThreadStore;
use crate::blob;
use crate::bundle::{BundleEntry, BundleError, BundleReader};
use crate::transfer::staged_id;

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

/// Imports a thread into any store, through its ports, with the same record numbers, so that cursors stay
/// valid. An import that was interrupted leaves a staged thread, which the next import of the same thread
/// removes.
pub async fn import(
    store: &dyn ThreadStore,
    file: BundleReader<impl BufRead>,
    options: ImportOptions,
) -> Result<ImportSummary, ImportError> {
    let staged = staged_id(file.header().thread);
    let import = Import::begin(store, staged, &file, options).await?;
    store.delete(staged).await?;
    let outcome = import.run(file, options.now).await;
    // Nothing shows it, if it stays.
    let _ = store.delete(staged).await;
    outcome
}

/// An import in progress.
pub(crate) struct Import<'a> {
    store: &'a dyn ThreadStore,
    staged: ThreadId,
    /// Id of the thread in the file.
    source: ThreadId,
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

impl<'a> Import<'a> {
    pub(crate) async fn begin(
        store: &'a dyn ThreadStore,
        staged: ThreadId,
        file: &BundleReader<impl BufRead>,
        options: ImportOptions,
    ) -> Result<Self, ImportError> {
        let source = file.header().thread;
        if !options.as_new && store.head(source).await? != Seq::ZERO {
            return Err(ImportError::Exists(source));
        }
        Ok(Self {
            store,
            staged,
            source,
            folded: Thread::new(),
            piece: Vec::new(),
            piece_bytes: 0,
            stored: Seq::ZERO,
            lost: HashSet::new(),
            partial: options.partial,
            full: false,
            imported: ImportSummary {
                thread: match options.as_new {
                    true => ThreadId::mint(),
                    false => source,
                },
                records: 0,
                blobs: 0,
                head: Seq::ZERO,
                source_head: file.header().head,
            },
        })
    }

    pub(crate) async fn run(
        mut self,
        mut file: BundleReader<impl BufRead>,
        now: Timestamp,
    ) -> Result<ImportSummary, ImportError> {
        while let Some(entry) = file.next()? {
            match entry {
                BundleEntry::Blob(bytes) => {
                    self.store.put(self.staged, bytes, String::new()).await?;
                    self.imported.blobs += 1;
                }
                BundleEntry::Lost(hash, _) => {
                    self.lost.insert(hash);
                }
                BundleEntry::Record(record) => self.record(*record, file.line_bytes()).await?,
            }
        }
        self.store().await?;
        if self.folded.id() != Some(self.source) || self.folded.is_deleted() {
            return Err(ImportError::Foreign(self.source));
        }
        self.close(now).await?;
        let thread = self.imported.thread;
        let forked = self.store.fork(self.staged, self.stored, thread).await;
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
        let append = self.store.append(staged, after, &piece, Class::Process);
        self.stored = append.await?;
        Ok(())
    }

    /// Ends everything that the file's records leave open, with the record that a fork begins with.
    async fn close(&mut self, now: Timestamp) -> Result<(), ImportError> {
        let thread = self.imported.thread;
        let numbers = [self.folded.head(), self.folded.reserved()];
        let is_high = numbers.iter().any(|it| it.0 > NUMBER_MAX);
        if is_high || self.folded.epoch().0 > NUMBER_MAX {
            return Err(ImportError::Open);
        }
        let fork = Forked {
            thread,
            from: self.source,
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
            return Err(ImportError::Foreign(self.source));
        };
        records.push(Record {
            seq: writer.thread().head().next(),
            at: now,
            body: Event::Released {}.into(),
        });
        for record in &records {
            self.folded.apply(record);
        }
        if self.folded.id() != Some(thread) || !is_closed(&self.folded, now) {
            return Err(ImportError::Open);
        }
        let append = self.store.append(self.staged, after, &records, class);
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
