//! The bound of the work that one survey does, whatever repositories name.

use std::io;
use std::path::Path;

/// A survey ends within a second or so, a look of a file tool within a tenth of that.
const SURVEY_BYTES_MAX: u64 = 32 << 20;
const FILE_BYTES_MAX: u64 = 2 << 20;
/// Cost of one question to the disk, in bytes, besides those of its path: it takes longer than to read a short path. A
/// survey asks some 300,000 questions at most, a look of a file tool some 4,000.
const SURVEY_LOOK_BYTES: usize = 64;
const FILE_LOOK_BYTES: usize = 512;
/// Bytes of an index that cost as much as one of configuration.
const INDEX_BYTES: u64 = 16;

/// Bytes that may still be looked at: of configuration, and of each path that the disk is asked about. Each question
/// costs some bytes more.
///
/// When the budget is spent, the rest of the folder may hold anything that git obeys, so the folder is read-only then.
#[derive(Debug)]
pub(super) struct SurveyBudget {
    left: u64,
    look_bytes: usize,
}

impl Default for SurveyBudget {
    fn default() -> Self {
        Self {
            left: SURVEY_BYTES_MAX,
            look_bytes: SURVEY_LOOK_BYTES,
        }
    }
}

impl SurveyBudget {
    /// The budget of one question about one file.
    pub fn of_file() -> Self {
        Self {
            left: FILE_BYTES_MAX,
            look_bytes: FILE_LOOK_BYTES,
        }
    }

    #[cfg(test)]
    pub fn of_bytes(left: u64) -> Self {
        Self {
            left,
            ..Self::of_file()
        }
    }

    pub fn spend(&mut self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.left = self.left.saturating_sub(bytes);
    }

    /// Counts that the disk is asked about a path, and refuses that when nothing is left.
    pub fn look(&mut self, path: &Path) -> io::Result<()> {
        self.spend(self.look_bytes + path.as_os_str().len());
        match self.is_spent() {
            true => Err(io::Error::other("there is too much to look at")),
            false => Ok(()),
        }
    }

    /// How much of an index may be read.
    pub fn index_bytes(&self) -> u64 {
        self.left.saturating_mul(INDEX_BYTES)
    }

    pub fn spend_index(&mut self, bytes: u64) {
        self.left = self.left.saturating_sub(bytes.div_ceil(INDEX_BYTES));
    }

    pub fn is_spent(&self) -> bool {
        self.left == 0
    }
}
