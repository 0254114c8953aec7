//! Checks of the stored threads.

use std::path::Path;

use raddle_core::ports::ReadError;
use raddle_store::Archive;

use super::Finding;
use crate::home::Home;

pub(super) const PART: &str = "threads";

/// Files up to this size are checked in full, which is quick enough for a user to wait.
const CHECKED_BYTES_MAX: u64 = 16 << 20;

/// With less free space than this, storing threads will soon fail.
const FREE_BYTES_MIN: u64 = 256 << 20;

pub(super) fn look(home: &Home) -> Finding {
    let folder = home.threads();
    let shown = folder.display();
    let free = free(&folder);
    let space = free
        .map(|it| format!(", {} free", size(it)))
        .unwrap_or_default();
    let archive = match Archive::open(&folder) {
        Ok(Some(archive)) => archive,
        Ok(None) => return space_finding(free, format!("none yet in {shown}{space}")),
        Err(error) => return broken(&folder, &error),
    };
    let count = match archive.threads() {
        Ok(threads) => threads.len(),
        Err(error) => return broken(&folder, &error),
    };
    let file = home.paths().threads;
    let bytes = file
        .and_then(|it| std::fs::metadata(it).ok())
        .map_or(0, |it| it.len());
    let checked = if bytes <= CHECKED_BYTES_MAX {
        match archive.check_file() {
            Ok(problems) if problems.is_empty() => ", whole",
            Ok(problems) => return damaged(&folder, &problems.join("; ")),
            Err(error) => return broken(&folder, &error),
        }
    } else {
        "; `raddle thread verify` reads them all"
    };
    space_finding(
        free,
        format!("{count} in {shown}, {}{space}{checked}", size(bytes)),
    )
}

fn space_finding(free: Option<u64>, message: String) -> Finding {
    match free {
        Some(free) if free < FREE_BYTES_MIN => Finding::warning(
            PART,
            message,
            "make room on that disk: when it is full, turns fail with storage_full",
        ),
        _ => Finding::ok(PART, message),
    }
}

fn broken(folder: &Path, error: &ReadError) -> Finding {
    match error {
        ReadError::Corrupt { what, .. } => damaged(folder, what),
        error => Finding::error(
            PART,
            format!("{} cannot be read: {error}", folder.display()),
            "see that you may read and write that folder, or name another home with RADDLE_HOME",
        ),
    }
}

fn damaged(folder: &Path, what: &str) -> Finding {
    Finding::error(
        PART,
        format!("{} is damaged: {what}", folder.display()),
        "stop every server of this home, copy the folder, and run `raddle thread export --all --out DIR`; docs/damage.md has more",
    )
}

/// Returns the bytes available to us on the disk of a folder, which may not exist yet.
fn free(folder: &Path) -> Option<u64> {
    let there = folder
        .ancestors()
        .find_map(|it| rustix::fs::statvfs(it).ok())?;
    Some(there.f_bavail.saturating_mul(there.f_frsize))
}

/// Formats a size for users.
pub(crate) fn size(bytes: u64) -> String {
    let mib = bytes >> 20;
    match mib {
        0 => format!("{} KiB", bytes >> 10),
        1..10240 => format!("{mib} MiB"),
        _ => format!("{} GiB", mib >> 10),
    }
}
