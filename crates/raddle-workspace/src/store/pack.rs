//! Packs: the contents that one snapshot added, in one file.
//!
//! One file for many contents needs one synchronisation and no inode for each. The contents come
//! first; then a table of hash, place and length of each; then the length and the hash of the
//! table, and the mark of the form.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Seek as _, SeekFrom, Write};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::files::{TEMPORARY, create_private, sync_folder_of};
use crate::{ContentHash, Error};

/// Last bytes of a pack. The last but one is the version of the form.
const MARK: &[u8; 16] = b"raddle pack   1\n";

/// Length of the table's entry of one content.
const ENTRY_BYTES: u64 = 32 + 8 + 8 + 8 + 1;

/// Length of everything after the table.
const FOOT_BYTES: u64 = 8 + 32 + 16;

/// Compression level: the fastest of the ordinary ones.
const LEVEL: i32 = 1;

/// Contents below this length are not compressed: there is nothing to gain.
const COMPRESSED_MIN: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    Plain,
    Zstd,
}

/// Place of a content in its pack.
#[derive(Clone, Copy, Debug)]
pub(super) struct Location {
    pub offset: u64,
    /// Number of stored bytes.
    pub stored: u64,
    /// Number of bytes of the content.
    pub size: u64,
    pub packing: Packing,
}

pub(super) struct OpenPack {
    pub path: PathBuf,
    pub file: File,
    pub bytes: u64,
}

impl OpenPack {
    pub fn open(path: &Path) -> Result<(Self, Vec<(ContentHash, Location)>), Error> {
        let disk = |it| Error::disk(path, it);
        let file = File::open(path).map_err(disk)?;
        let bytes = file.metadata().map_err(disk)?.len();
        let damaged = || Error::damaged(path, "its table cannot be read");
        let foot_at = bytes.checked_sub(FOOT_BYTES).ok_or_else(damaged)?;
        let mut foot = [0; FOOT_BYTES as usize];
        file.read_exact_at(&mut foot, foot_at).map_err(disk)?;
        let (count, rest) = foot.split_first_chunk::<8>().ok_or_else(damaged)?;
        let (sum, mark) = rest.split_at(32);
        let table_bytes = u64::from_le_bytes(*count).checked_mul(ENTRY_BYTES);
        let table_at = table_bytes.and_then(|it| foot_at.checked_sub(it));
        let (Some(table_at), true) = (table_at, mark == MARK) else {
            return Err(damaged());
        };
        let mut table = vec![0; usize::try_from(foot_at - table_at).map_err(|_| damaged())?];
        file.read_exact_at(&mut table, table_at).map_err(disk)?;
        if ContentHash::of(&table).as_bytes() != sum {
            return Err(damaged());
        }
        let entries = table.chunks_exact(ENTRY_BYTES as usize);
        let entries = entries.map(|it| decode_entry(it).ok_or_else(damaged));
        let pack = Self {
            path: path.to_owned(),
            file,
            bytes,
        };
        Ok((pack, entries.collect::<Result<_, _>>()?))
    }
}

/// A pack that is being written under a temporary name.
pub(crate) struct PackWriter {
    path: PathBuf,
    file: BufWriter<File>,
    offset: u64,
    table: Vec<(ContentHash, Location)>,
    present: HashMap<ContentHash, u64>,
    compressor: zstd::bulk::Compressor<'static>,
}

impl PackWriter {
    pub(super) fn new(folder: &Path) -> Result<Self, Error> {
        let path = folder.join("new").with_extension(TEMPORARY);
        let disk = |it| Error::disk(&path, it);
        let options = &mut OpenOptions::new();
        let file = create_private(&path, options.read(true).write(true).truncate(true))?;
        let compressor = zstd::bulk::Compressor::new(LEVEL).map_err(disk)?;
        Ok(Self {
            file: BufWriter::with_capacity(1 << 18, file),
            path,
            offset: 0,
            table: Vec::new(),
            present: HashMap::new(),
            compressor,
        })
    }

    pub fn contains(&self, hash: &ContentHash) -> bool {
        self.present.contains_key(hash)
    }

    /// Adds a content that neither the store nor this pack has.
    pub fn put(&mut self, hash: ContentHash, content: &[u8]) -> Result<(), Error> {
        let packed = match content.len() < COMPRESSED_MIN {
            true => None,
            false => self.compressor.compress(content).ok(),
        };
        let packed = packed.filter(|it| it.len() < content.len());
        let packing = packed.as_ref().map_or(Packing::Plain, |_| Packing::Zstd);
        let stored = packed.as_deref().unwrap_or(content);
        self.file
            .write_all(stored)
            .map_err(|it| Error::disk(&self.path, it))?;
        self.add(hash, stored.len() as u64, content.len() as u64, packing);
        Ok(())
    }

    fn add(&mut self, hash: ContentHash, stored: u64, size: u64, packing: Packing) {
        let offset = self.offset;
        self.offset += stored;
        self.present.insert(hash, size);
        self.table.push((
            hash,
            Location {
                offset,
                stored,
                size,
                packing,
            },
        ));
    }

    /// Adds a content of any length in bounded memory, and returns its hash and length. A content
    /// that `is_known` or this pack has takes no space.
    pub fn put_stream(
        &mut self,
        from: &mut impl Read,
        is_known: impl Fn(&ContentHash) -> bool,
    ) -> Result<Result<(ContentHash, u64), io::Error>, Error> {
        let disk = |it| Error::disk(&self.path, it);
        let start = self.offset;
        let mut hasher = Sha256::new();
        let mut size = 0;
        let mut buffer = vec![0; 1 << 18];
        let mut encoder = zstd::stream::write::Encoder::new(&mut self.file, LEVEL).map_err(disk)?;
        let read = loop {
            match from.read(&mut buffer) {
                Ok(0) => break Ok(()),
                Ok(count) => {
                    hasher.update(&buffer[..count]);
                    size += count as u64;
                    encoder.write_all(&buffer[..count]).map_err(disk)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        encoder.finish().map_err(disk)?;
        let end = self.file.stream_position().map_err(disk)?;
        let hash = ContentHash::from_bytes(hasher.finalize().into());
        if read.is_err() || is_known(&hash) || self.contains(&hash) {
            self.file.seek(SeekFrom::Start(start)).map_err(disk)?;
            self.file.get_ref().set_len(start).map_err(disk)?;
        } else {
            self.add(hash, end - start, size, Packing::Zstd);
        }
        Ok(read.map(|()| (hash, size)))
    }

    /// Copies a stored content of another pack.
    pub(super) fn put_stored(
        &mut self,
        hash: ContentHash,
        from: &Location,
        stored: &mut impl Read,
    ) -> Result<(), Error> {
        io::copy(stored, &mut self.file).map_err(|it| Error::disk(&self.path, it))?;
        self.add(hash, from.stored, from.size, from.packing);
        Ok(())
    }

    /// Writes the table and gives the pack its name; `None` if it holds nothing.
    pub(super) fn finish(mut self) -> Result<Option<PathBuf>, Error> {
        if self.table.is_empty() {
            return Ok(None);
        }
        let mut table = Vec::with_capacity(self.table.len() * ENTRY_BYTES as usize);
        for (hash, location) in &self.table {
            encode_entry(&mut table, hash, location);
        }
        let sum = ContentHash::of(&table);
        let path = self.path.with_file_name(format!("{sum}.pack"));
        let written = self
            .file
            .write_all(&table)
            .and_then(|()| {
                self.file
                    .write_all(&(self.table.len() as u64).to_le_bytes())
            })
            .and_then(|()| self.file.write_all(sum.as_bytes()))
            .and_then(|()| self.file.write_all(MARK))
            .and_then(|()| self.file.flush())
            .and_then(|()| self.file.get_ref().sync_all())
            .and_then(|()| fs::rename(&self.path, &path));
        written.map_err(|it| Error::disk(&self.path, it))?;
        sync_folder_of(&path)?;
        Ok(Some(path))
    }
}

impl Drop for PackWriter {
    fn drop(&mut self) {
        // Absent after `finish`; otherwise the pack was given up.
        let _ = fs::remove_file(&self.path);
    }
}

fn encode_entry(table: &mut Vec<u8>, hash: &ContentHash, location: &Location) {
    table.extend(hash.as_bytes());
    table.extend(location.offset.to_le_bytes());
    table.extend(location.stored.to_le_bytes());
    table.extend(location.size.to_le_bytes());
    table.push(u8::from(location.packing == Packing::Zstd));
}

fn decode_entry(entry: &[u8]) -> Option<(ContentHash, Location)> {
    let (hash, rest) = entry.split_first_chunk::<32>()?;
    let number = |at: usize| Some(u64::from_le_bytes(*rest.get(at..)?.first_chunk::<8>()?));
    let location = Location {
        offset: number(0)?,
        stored: number(8)?,
        size: number(16)?,
        packing: match rest.get(24)? {
            0 => Packing::Plain,
            _ => Packing::Zstd,
        },
    };
    Some((ContentHash::from_bytes(*hash), location))
}
