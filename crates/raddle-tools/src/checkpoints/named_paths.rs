//! The paths that file tools wrote in a workspace: they are covered although ignored.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use raddle_workspace::WorkspacePath;

use super::log::HexPath;

/// Limit: paths written by file tools that a workspace covers although they are ignored; beyond it,
/// the oldest are covered no more.
const PATHS_MAX: usize = 1_000;

/// Name of the file in the store.
const NAME: &str = "named";

#[derive(Debug)]
pub(super) struct NamedPaths {
    pub paths: BTreeSet<WorkspacePath>,
    file: PathBuf,
}

impl NamedPaths {
    /// Reads the paths. Those that cannot be read are covered again once a tool writes them.
    pub fn load(store: &Path) -> Self {
        let file = store.join(NAME);
        let text = fs::read_to_string(&file).unwrap_or_default();
        let newest = text.lines().rev().take(PATHS_MAX);
        let paths = newest.filter_map(|it| HexPath::of_text(it).parse());
        let paths: BTreeSet<WorkspacePath> = paths.collect();
        if text.lines().count() > 2 * PATHS_MAX {
            let lines: String = paths.iter().map(|it| HexPath::new(it).line()).collect();
            let temporary = file.with_extension("tmp");
            let written = fs::write(&temporary, lines).and_then(|()| fs::rename(&temporary, &file));
            if let Err(error) = written {
                tracing::debug!(%error, "the list of written paths is not shortened");
            }
        }
        Self { paths, file }
    }

    /// Adds paths, of which the file has each once.
    pub fn add(&mut self, paths: &BTreeSet<WorkspacePath>) {
        let new: Vec<WorkspacePath> = paths.difference(&self.paths).cloned().collect();
        if new.is_empty() {
            return;
        }
        let lines: String = new.iter().map(|it| HexPath::new(it).line()).collect();
        let options = &mut OpenOptions::new();
        let options = options.create(true).append(true).mode(0o600);
        let written = options
            .open(&self.file)
            .and_then(|mut it| it.write_all(lines.as_bytes()));
        if let Err(error) = written {
            tracing::warn!(%error, "ignored files that a tool wrote are covered in this turn alone");
        }
        self.paths.extend(new);
    }
}
