//! Folders on the disk, as a command would find them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Access, access};

/// Returns whether the path is a folder; a link to a folder is not one.
pub(super) fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|it| it.is_dir())
}

/// Returns whether a command can read a folder and its contents. Root can, but has no capabilities
/// inside: there the mode alone decides.
pub(super) fn can_be_entered(folder: &Path) -> bool {
    if !rustix::process::geteuid().is_root() {
        return access(folder, Access::READ_OK | Access::EXEC_OK) != Err(rustix::io::Errno::ACCESS);
    }
    let Ok(metadata) = fs::symlink_metadata(folder) else {
        return true;
    };
    let needed = if metadata.uid() == 0 {
        0o500
    } else if metadata.gid() == rustix::process::getegid().as_raw() {
        0o050
    } else {
        0o005
    };
    metadata.mode() & needed == needed
}
