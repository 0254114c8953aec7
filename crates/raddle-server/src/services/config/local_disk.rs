//! Whether a file lies on a disk of this machine. Others, such as network mounts, may hang for ever.

use std::path::Path;

/// Kinds of file systems that answer from this machine, by the numbers the system gives them.
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

/// Whether a file, there or not, lies or would lie on such a disk.
pub(super) fn is_near(file: &Path) -> bool {
    let there = file.ancestors().find_map(|it| rustix::fs::statfs(it).ok());
    // The type is signed on some machines; only its lower half has a meaning.
    there.is_some_and(|disk| LOCAL_FILE_SYSTEMS.contains(&(disk.f_type as u64 & 0xFFFF_FFFF)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_makes_up_is_not_a_disk() {
        assert!(!is_near(Path::new("/proc/self/status")));
        assert!(!is_near(Path::new("/proc/none/at/all")));
    }
}
