//! Limits of snapshots.

/// Maximum nesting of folders. Deeper ones are not covered.
pub(crate) const DEPTH_MAX: usize = 200;

/// Limits of what a snapshot covers. A file beyond a limit is a gap, never an error.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotLimits {
    /// Number of files and symbolic links.
    pub files_max: u64,
    /// Bytes of one file.
    pub file_bytes_max: u64,
    /// Bytes of all files.
    pub bytes_max: u64,
}

impl Default for SnapshotLimits {
    fn default() -> Self {
        Self {
            files_max: 500_000,
            file_bytes_max: 2 << 30,
            bytes_max: 8 << 30,
        }
    }
}
