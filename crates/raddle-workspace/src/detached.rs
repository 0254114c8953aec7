//! Snapshots of other folders than the workspace of a store, and snapshots in files of their own.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::opened::open_workspace;
use crate::scan::{IgnoreFiles, Scanner};
use crate::snapshot::{decode_cache, decode_gaps, encode_cache, encode_gaps};
use crate::store::write_durably;
use crate::{ContentHash, Error, Snapshot, Workspace, WorkspacePath};

impl Workspace {
    /// Takes a snapshot of another folder, such as a copy of this one. Its contents are in this
    /// store. `previous` is the last snapshot of that folder: what it proves unchanged is not read.
    pub fn snapshot_of(
        &mut self,
        folder: &Path,
        previous: Option<&Snapshot>,
    ) -> Result<Snapshot, Error> {
        self.refuse_interrupted()?;
        let root = open_workspace(folder)?;
        let mut ignore_files = IgnoreFiles::default();
        let named = BTreeSet::new();
        let scanner = Scanner::new(
            &self.store,
            self.store_folder,
            &self.limits,
            &named,
            &mut ignore_files,
        );
        let previous = previous.map(|it| &it.root);
        // Contents that the store no longer has are read again.
        let previous = previous.filter(|it| self.store.has_all(it));
        let scanned = scanner.scan(&root, previous)?;
        let snapshot = Snapshot::new(scanned.root, scanned.gaps, named);
        self.store.put_snapshot(&snapshot, scanned.pack)?;
        Ok(snapshot)
    }

    /// Stores the contents that these paths have in a snapshot of another workspace.
    pub fn import(
        &mut self,
        from: &Self,
        snapshot: &Snapshot,
        paths: &BTreeSet<WorkspacePath>,
    ) -> Result<(), Error> {
        let entries = paths.iter().filter_map(|it| snapshot.entry(it)?.leaf());
        let hashes: BTreeSet<ContentHash> = entries.map(|it| it.hash).collect();
        self.store.import(&from.store, &hashes)
    }

    /// Returns a snapshot in which a file has another content, which is stored. It must have the
    /// file already.
    pub fn with_content(
        &mut self,
        base: &Snapshot,
        path: &WorkspacePath,
        content: &[u8],
    ) -> Result<Option<Snapshot>, Error> {
        let hash = self.store.put(content)?;
        Ok(base.with_file_content(path, hash, content.len() as u64))
    }
}

impl Snapshot {
    /// Writes the state of the folder to a file, with the times at which files were read but without
    /// their contents. The paths that callers named are not written.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        let gaps = encode_gaps(&self.gaps);
        let mut bytes = (gaps.len() as u64).to_le_bytes().to_vec();
        bytes.extend(gaps);
        bytes.extend(encode_cache(&self.root));
        write_durably(path, &bytes)
    }

    /// Reads a snapshot that [`Snapshot::save`] wrote.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let bytes = fs::read(path).map_err(|it| Error::disk(path, it))?;
        decode(&bytes).ok_or_else(|| Error::damaged(path, "it is no snapshot"))
    }
}

fn decode(bytes: &[u8]) -> Option<Snapshot> {
    let (length, rest) = bytes.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (gaps, root) = rest.split_at_checked(length)?;
    let root = Arc::new(decode_cache(root)?);
    Some(Snapshot::new(root, decode_gaps(gaps)?, BTreeSet::new()))
}
