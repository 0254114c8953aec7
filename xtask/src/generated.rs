//! The command of a generated file.

use std::path::Path;

use anyhow::{Result, bail};

use crate::arguments::Arguments;
use crate::repository::{self, Tree};

/// Writes the file, or with `--check` fails if it is stale.
pub fn command(
    mut arguments: Arguments,
    stale: fn(&Tree) -> Result<Option<String>>,
    write: fn(&Path, &Tree) -> Result<()>,
) -> Result<()> {
    let is_check = arguments.flag("--check");
    arguments.end()?;
    let root = repository::root()?;
    let tree = Tree::read(&root)?;
    if !is_check {
        return write(&root, &tree);
    }
    match stale(&tree)? {
        Some(problem) => bail!(problem),
        None => Ok(()),
    }
}
