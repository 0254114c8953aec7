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
            // Limit: files and symbolic links of a workspace; beyond it, the others are gaps of the
            // checkpoint.
            files_max: 500_000,
            // Limit: a file of a workspace; beyond it, the file is a gap of the checkpoint.
            file_bytes_max: 2 << 30,
            // Limit: all files of a workspace; beyond it, the others are gaps of the checkpoint.
            bytes_max: 8 << 30,
        }
    }
}
