//! Differences between two snapshots, for programs and as text for git.

mod binary;
pub(crate) mod compare;
mod lines;
mod patch;
mod renames;

use std::collections::HashMap;
use std::convert::Infallible;

pub use compare::PathChange;
pub use lines::FileHunk;

use crate::{ContentHash, EntryKind, Error, FileEntry, Gap, Snapshot, Workspace, WorkspacePath};
use patch::PatchWriter;

/// Limits of the contents that a diff shows.
#[derive(Clone, Copy, Debug)]
pub struct DiffLimits {
    /// Bytes of a text, on either side; a larger one has no hunks.
    pub text_bytes_max: u64,
    /// Bytes of a binary content, on either side; of a larger one the patch says only that it
    /// differs, and git refuses to apply that.
    pub binary_bytes_max: u64,
    /// Bytes of all patches together. Once a patch exceeded it, further contents are not read; the
    /// lines that name omitted files come on top.
    pub total_bytes_max: u64,
}

impl Default for DiffLimits {
    fn default() -> Self {
        Self {
            // Limit: a text file in a diff; beyond it, the diff names the file without its content.
            text_bytes_max: 16 << 20,
            // Limit: a binary file in a diff; beyond it, the diff names the file without its content.
            binary_bytes_max: 1 << 20,
            // Limit: all patches of a diff; beyond it, the diff names files without their content.
            total_bytes_max: 8 << 20,
        }
    }
}

impl DiffLimits {
    /// Reports whether the sizes of both sides show that the change exceeds a limit.
    fn exceeded_by(&self, [old, new]: [u64; 2]) -> bool {
        // A patch has at least the bytes by which the lengths differ.
        old.max(new) > self.text_bytes_max.max(self.binary_bytes_max)
            || old.abs_diff(new) > self.total_bytes_max
            || self.total_bytes_max == 0
    }
}

/// Differences between two snapshots.
#[derive(Clone, Debug, Default)]
pub struct WorkspaceDiff {
    /// The changed files and links, sorted by path.
    pub files: Vec<FileChange>,
    /// Paths that one of the snapshots does not cover. Changes there do not show.
    pub gaps: Vec<Gap>,
}

impl WorkspaceDiff {
    /// Returns the patch of all files. `git apply` applies it, and `git apply -R` reverses it,
    /// unless a content is [`Content::Omitted`]. It is text in the encoding of the files.
    pub fn unified(&self) -> Vec<u8> {
        let patches: Vec<&[u8]> = self.files.iter().map(|it| &*it.patch).collect();
        patches.concat()
    }
}

/// Kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileChangeKind {
    /// The path is new.
    Added,
    /// The path is gone.
    Deleted,
    /// The content is another; the mode may be too.
    Modified,
    /// The file has another path; mode and content may differ too.
    Renamed,
    /// Only the mode is another. Git knows no more of a mode than whether the user may execute
    /// the file, so the patch may be empty.
    ModeChanged,
    /// A file became a link, or a link a file.
    TypeChanged,
}

/// One side of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSide {
    /// Path at that time.
    pub path: WorkspacePath,
    /// Kind, mode and content at that time.
    pub entry: FileEntry,
}

/// One changed file or link.
#[derive(Clone, Debug)]
pub struct FileChange {
    /// Kind of the change.
    pub kind: FileChangeKind,
    /// The file before, unless it was added. Its hash is the base of the hunks.
    pub before: Option<FileSide>,
    /// The file after, unless it was deleted. Its hash is the result of all hunks.
    pub after: Option<FileSide>,
    /// How the content changed.
    pub content: Content,
    /// The patch of this file for git.
    pub patch: Vec<u8>,
}

/// A file that is proposed and perhaps not on the disk, or the file that it would replace.
#[derive(Clone, Copy, Debug)]
pub struct ProposedFile<'a> {
    /// Its path.
    pub path: &'a WorkspacePath,
    /// Its permission bits.
    pub mode: u32,
    /// Its content.
    pub bytes: &'a [u8],
}

impl ProposedFile<'_> {
    fn side(&self) -> FileSide {
        let entry = FileEntry {
            kind: EntryKind::File,
            mode: self.mode,
            size: self.bytes.len() as u64,
            hash: ContentHash::of(self.bytes),
        };
        let path = self.path.clone();
        FileSide { path, entry }
    }
}

impl FileChange {
    /// Returns an id that follows from both sides: their paths, kinds, modes and contents.
    pub fn id(&self) -> ContentHash {
        let mut bytes = Vec::new();
        for side in [&self.before, &self.after] {
            if let Some(FileSide { path, entry }) = side {
                let (kind, mode, hash) = (entry.kind, entry.mode, entry.hash);
                bytes.extend_from_slice(path.as_bytes());
                bytes.extend_from_slice(format!("\0{kind:?} {mode:o} {hash}").as_bytes());
            }
            bytes.push(0);
        }
        ContentHash::of(&bytes)
    }

    /// Compares a file with a proposed one, without a snapshot; `None` if they are equal.
    pub fn proposed(
        before: Option<ProposedFile<'_>>,
        after: Option<ProposedFile<'_>>,
        limits: &DiffLimits,
    ) -> Option<Self> {
        let sides = [before, after].map(|it| it.map(|it| (it.side(), it.bytes)));
        let bytes_of = |wanted: &FileSide| -> Result<Vec<u8>, Infallible> {
            let mut known = sides.iter().flatten().filter(|(side, _)| side == wanted);
            Ok(known
                .next()
                .map_or_else(Vec::new, |(_, bytes)| bytes.to_vec()))
        };
        let [old, new] = [&sides[0], &sides[1]].map(|it| it.as_ref().map(|(side, _)| side.clone()));
        if old == new {
            return None;
        }
        let Ok(change) = describe((old, new), bytes_of, &mut limits.clone());
        Some(change)
    }

    /// Returns the path after the change, or before it if the file was deleted.
    pub fn path(&self) -> Option<&WorkspacePath> {
        let side = self.after.as_ref().or(self.before.as_ref())?;
        Some(&side.path)
    }

    /// Returns the hunks of a text.
    pub fn hunks(&self) -> &[FileHunk] {
        match &self.content {
            Content::Text(hunks) => hunks,
            _ => &[],
        }
    }
}

/// How a content changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Not at all.
    Same,
    /// By these hunks.
    Text(Vec<FileHunk>),
    /// By another kind of entry, with another content. The patch deletes the one and adds the
    /// other.
    Replaced,
    /// One of the sides is no text: it has a zero byte. The patch has both contents.
    Binary,
    /// One of the sides, or the whole diff, exceeds a limit. The patch only says that they differ.
    Omitted,
}

impl Workspace {
    /// Compares two snapshots of this workspace.
    pub fn diff(&self, before: &Snapshot, after: &Snapshot) -> Result<WorkspaceDiff, Error> {
        self.diff_within(before, after, &DiffLimits::default())
    }

    /// Compares two snapshots, with limits for large files.
    pub fn diff_within(
        &self,
        before: &Snapshot,
        after: &Snapshot,
        limits: &DiffLimits,
    ) -> Result<WorkspaceDiff, Error> {
        let changes = before.changes(after);
        let mut contents = Contents {
            workspace: self,
            read: HashMap::new(),
        };
        let pairs = renames::pair(changes, &mut contents)?;
        let read = |side: &FileSide| contents.get(&side.entry.hash);
        let mut rest = *limits;
        let mut files = Vec::with_capacity(pairs.len());
        for sides in pairs {
            let change = describe(sides, read, &mut rest)?;
            files.push(change);
        }
        let mut gaps = [before.gaps(), after.gaps()].concat();
        gaps.sort();
        gaps.dedup();
        Ok(WorkspaceDiff { files, gaps })
    }
}

/// Contents that were read for the renames, for use in the hunks.
struct Contents<'a> {
    workspace: &'a Workspace,
    read: HashMap<ContentHash, Vec<u8>>,
}

impl Contents<'_> {
    /// Reads a content that will be asked for again.
    fn load(&mut self, hash: &ContentHash) -> Result<(), Error> {
        if !self.read.contains_key(hash) {
            self.read.insert(*hash, self.workspace.content(hash)?);
        }
        Ok(())
    }

    /// Returns a loaded content.
    fn loaded(&self, hash: &ContentHash) -> &[u8] {
        self.read.get(hash).map_or(&[], Vec::as_slice)
    }

    fn get(&self, hash: &ContentHash) -> Result<Vec<u8>, Error> {
        match self.read.get(hash) {
            Some(content) => Ok(content.clone()),
            None => self.workspace.content(hash),
        }
    }
}

/// Before and after of one change; at least one of them is there.
type Sides = (Option<FileSide>, Option<FileSide>);

/// Describes one change, and takes its patch from the bytes that remain for all.
fn describe<E>(
    (before, after): Sides,
    read: impl Fn(&FileSide) -> Result<Vec<u8>, E>,
    rest: &mut DiffLimits,
) -> Result<FileChange, E> {
    let kind = kind_of_change(before.as_ref(), after.as_ref());
    let sizes = [&before, &after].map(|it| it.as_ref().map_or(0, |it| it.entry.size));
    let hash = |side: &Option<FileSide>| side.as_ref().map(|it| it.entry.hash);
    let mut writer = PatchWriter::new(kind, before.as_ref(), after.as_ref());
    let content = if hash(&before) == hash(&after) && kind != FileChangeKind::TypeChanged {
        writer.same();
        Content::Same
    } else if rest.exceeded_by(sizes) {
        writer.omitted();
        Content::Omitted
    } else {
        let read = |side: &Option<FileSide>| side.as_ref().map_or(Ok(Vec::new()), &read);
        let (old, new) = (read(&before)?, read(&after)?);
        let size = sizes[0].max(sizes[1]);
        let is_binary = old.contains(&0) || new.contains(&0);
        let content = if !is_binary && size <= rest.text_bytes_max {
            let path = after.as_ref().or(before.as_ref()).map(|it| &it.path);
            let hunks = lines::hunks(path, &old, &new);
            writer.text(&old, &new, &hunks);
            match kind {
                FileChangeKind::TypeChanged => Content::Replaced,
                _ => Content::Text(hunks),
            }
        } else if is_binary && size <= rest.binary_bytes_max {
            writer.binary(&old, &new);
            Content::Binary
        } else {
            writer.omitted();
            Content::Omitted
        };
        match rest.total_bytes_max.checked_sub(writer.bytes()) {
            Some(bytes) => {
                rest.total_bytes_max = bytes;
                content
            }
            None => {
                rest.total_bytes_max = 0;
                writer.clear();
                writer.omitted();
                Content::Omitted
            }
        }
    };
    Ok(FileChange {
        kind,
        patch: writer.finish(),
        before,
        after,
        content,
    })
}

fn kind_of_change(before: Option<&FileSide>, after: Option<&FileSide>) -> FileChangeKind {
    let (Some(before), Some(after)) = (before, after) else {
        return match before {
            Some(_) => FileChangeKind::Deleted,
            None => FileChangeKind::Added,
        };
    };
    if before.path != after.path {
        FileChangeKind::Renamed
    } else if before.entry.kind != after.entry.kind {
        FileChangeKind::TypeChanged
    } else if before.entry.hash == after.entry.hash {
        FileChangeKind::ModeChanged
    } else {
        FileChangeKind::Modified
    }
}

/// Reports whether git sees the file as one that the user may execute, and its kind.
fn git_mode(entry: &FileEntry) -> &'static str {
    match entry.kind {
        EntryKind::Symlink => "120000",
        _ if entry.mode & 0o100 != 0 => "100755",
        _ => "100644",
    }
}

fn sides_of(change: PathChange) -> Sides {
    let path = change.path;
    let side = |entry: Option<FileEntry>| {
        entry.map(|entry| FileSide {
            path: path.clone(),
            entry,
        })
    };
    (side(change.before), side(change.after))
}
