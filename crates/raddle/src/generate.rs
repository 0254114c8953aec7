//! Writes the files generated from the method table.

use std::fs;

use anyhow::{Context, Result};
use raddle_protocol::export::{self, File};

use crate::cli::Generate;
use crate::log;

pub(crate) fn json_schema(args: &Generate) -> Result<()> {
    write(args, export::json_schema(args.experimental))
}

pub(crate) fn typescript(args: &Generate) -> Result<()> {
    write(args, export::typescript(args.experimental))
}

pub(crate) fn reference(args: &Generate) -> Result<()> {
    write(args, export::reference())
}

fn write(args: &Generate, files: Vec<File>) -> Result<()> {
    let count = files.len();
    for file in files {
        let path = args.out.join(&file.path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot make {}", folder.display()))?;
        }
        fs::write(&path, file.text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    log::print_line(&format!("wrote {count} files to {}", args.out.display()));
    Ok(())
}
