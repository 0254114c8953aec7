//! Names of files in a line: their length, where one ends, and the path that one stands for.

use std::path::{Path, PathBuf};

/// Maximum length of a path on the system.
pub(super) const NAME_BYTES_MAX: usize = 4096;

pub(super) fn is_end(letter: char) -> bool {
    letter.is_whitespace() || "'\"`;&|<>(){}$=,:@!\0".contains(letter)
}

pub(super) fn path(folder: &Path, name: &str) -> PathBuf {
    let home = name.strip_prefix("~/").zip(std::env::var_os("HOME"));
    match home {
        Some((rest, home)) => PathBuf::from(home).join(rest),
        None => folder.join(name),
    }
}
