//! Detects whether a file is on a local disk. Others, such as network mounts, may hang forever.

use std::path::Path;

/// Magic numbers of local file systems.
const LOCAL_FILE_SYSTEMS: [u64; 8] = [
    0xEF53,      // ext2, ext3, ext4
    0x5846_5342, // xfs
    0x9123_683E, // btrfs
    0x2FC1_2FC1, // zfs
    0xF2F5_2010, // f2fs
    0xCA45_1A4E, // bcachefs
    0x0102_1994, // tmpfs
    0x794C_7630, // overlayfs
];

/// Whether a file, existing or not, is or would be on such a disk.
pub(crate) fn is_local(file: &Path) -> bool {
    let file_system = file.ancestors().find_map(|it| rustix::fs::statfs(it).ok());
    // The type is signed on some machines; only its lower half is significant.
    file_system.is_some_and(|stat| LOCAL_FILE_SYSTEMS.contains(&(stat.f_type as u64 & 0xFFFF_FFFF)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_file_systems_are_not_local_disks() {
        assert!(!is_local(Path::new("/proc/self/status")));
        assert!(!is_local(Path::new("/proc/none/at/all")));
    }
}
