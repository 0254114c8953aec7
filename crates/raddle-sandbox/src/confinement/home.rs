//! The user's home, whose dotfiles control shells and other programs.

use std::path::{Path, PathBuf};

/// Returns the home of the user that the server runs as.
pub fn home() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    home.filter(|it| it.is_absolute())
}

/// Returns whether a folder is the user's home, or contains it.
pub fn is_around_home(folder: &Path) -> bool {
    home().is_some_and(|home| home.starts_with(folder))
}
