//! Bringing in a thread from a file.
//!
//! The records go to a thread of another name first, which no list shows, in pieces. Only when the file's
//! seal was reached and found right, the thread itself begins as a fork of that one, in one step; so an
//! import that is cut off anywhere leaves nothing that anyone sees.

use std::collections::HashSet;
use std::fs;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use raddle_core::ports::{AppendError, Blobs, ForkError, Journal, ReadError};
use raddle_core::{
    Body, Class, Epoch, Forked, Node, Owner, Record, Seq, Step, Thread, ThreadId, Timestamp,
};

use super::LocalJournal;
use super::archive::Archive;
use crate::blob;
use crate::bundle::{BundleEntry, BundleError, BundleReader};

/// How much of a file goes into one append.
const PIECE_BYTES: usize = 512 << 10;

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
pub struct Imported {
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
    ) -> Result<Imported, ImportError> {
        let marks = marks(&self.folder);
        self.sweep(&marks).await;
        let thread = file.header().thread;
        if !options.as_new && self.head(thread).await? != Seq::ZERO {
            return Err(ImportError::Exists(thread));
        }
        let staged = ThreadId::mint();
        // Should this process die, the next import finds the mark and removes what was staged.
        let mark = Mark::take(&marks, staged)?;
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
            imported: Imported {
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
            let Some(mark) = Mark::left_behind(entry.path()) else {
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
struct Mark {
    path: PathBuf,
    _file: fs::File,
}

impl Mark {
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
    imported: Imported,
}

impl Import<'_> {
    async fn run(
        mut self,
        mut file: BundleReader<impl BufRead>,
        options: ImportOptions,
    ) -> Result<Imported, ImportError> {
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
        if options.as_new {
            return self.fork_off(options.now).await;
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
        let Body::Event(event) = &record.body else {
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

    /// The staged thread becomes one of its own, by the record that a fork begins with.
    async fn fork_off(mut self, now: Timestamp) -> Result<Imported, ImportError> {
        let staged = self.staged;
        let fork = Forked {
            thread: staged,
            from: self.imported.thread,
            at: self.folded.head(),
            principal: None,
            lineage: self.folded.lineage().to_vec(),
            turns: self.folded.turns(),
            settings: self.folded.settings().clone(),
            ephemeral: false,
        };
        let node = Node {
            name: staged.to_string(),
            epoch: Epoch(self.folded.epoch().0 + 1),
            recovery: raddle_core::Recovery::Continue,
        };
        let mut owner = Owner::fork(std::mem::take(&mut self.folded), fork, node, now);
        let Step::Append {
            after,
            records,
            class,
        } = owner.step(now)
        else {
            return Err(ImportError::Foreign(self.imported.thread));
        };
        self.journal.append(staged, after, &records, class).await?;
        self.imported.thread = staged;
        Ok(self.imported)
    }
}
