//! Bounds the work of one survey, whatever repositories name.

use std::io;
use std::path::Path;

/// Limit: bytes read to find the files that control git, for one command (a lookup counts as 64);
/// beyond it, the workspace is read-only.
const SURVEY_BYTES_MAX: u64 = 32 << 20;
/// Limit: bytes read to find the files that control git, for one file that a tool writes (a lookup
/// counts as 512); beyond it, file tools write nothing in the repository.
const FILE_BYTES_MAX: u64 = 2 << 20;
/// Cost of one lookup on the disk, in bytes, besides those of its path: it takes longer than to
/// read a short path. A survey makes some 300,000 lookups at most, a check by a file tool some
/// 4,000.
const SURVEY_LOOK_BYTES: usize = 64;
const FILE_LOOK_BYTES: usize = 512;
/// Bytes of an index that cost as much as one of configuration.
const INDEX_BYTES: u64 = 16;

/// Bytes that the survey may still examine: those of configuration, and of each path that it looks
/// up. Each lookup costs some bytes more.
///
/// When the budget is spent, the rest of the folder may hold anything that controls git, so the
/// folder becomes read-only.
#[derive(Debug)]
pub(super) struct SurveyBudget {
    remaining: u64,
    look_bytes: usize,
}

impl Default for SurveyBudget {
    fn default() -> Self {
        Self {
            remaining: SURVEY_BYTES_MAX,
            look_bytes: SURVEY_LOOK_BYTES,
        }
    }
}

impl SurveyBudget {
    /// Returns the budget for a check of one file.
    pub fn of_file() -> Self {
        Self {
            remaining: FILE_BYTES_MAX,
            look_bytes: FILE_LOOK_BYTES,
        }
    }

    #[cfg(test)]
    pub fn of_bytes(remaining: u64) -> Self {
        Self {
            remaining,
            ..Self::of_file()
        }
    }

    pub fn spend(&mut self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.remaining = self.remaining.saturating_sub(bytes);
    }

    /// Charges a lookup of a path; fails when the budget is spent.
    pub fn look(&mut self, path: &Path) -> io::Result<()> {
        self.spend(self.look_bytes + path.as_os_str().len());
        match self.is_spent() {
            true => Err(io::Error::other("the survey exceeds its budget")),
            false => Ok(()),
        }
    }

    /// Returns how many bytes of an index may be read.
    pub fn index_bytes(&self) -> u64 {
        self.remaining.saturating_mul(INDEX_BYTES)
    }

    pub fn spend_index(&mut self, bytes: u64) {
        self.remaining = self.remaining.saturating_sub(bytes.div_ceil(INDEX_BYTES));
    }

    pub fn is_spent(&self) -> bool {
        self.remaining == 0
    }
}
