//! `raddle thread import`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use raddle_config::clock::now;
use raddle_console::Printer;
use raddle_store::{
    BundleReader, ImportError, ImportOptions, ImportSummary, LocalJournal, Options,
};
use serde_json::json;

use super::unreadable;
use crate::cli::ThreadImport;
use crate::log;

/// How much of the file is read at a time.
const BUFFER_BYTES: usize = 1 << 20;

pub(super) fn run(folder: &Path, args: &ThreadImport) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .context("cannot start the runtime")?;
    read(args, |file, options| {
        let journal = LocalJournal::open(&Options {
            folder: folder.to_owned(),
        });
        let journal = journal.map_err(|error| unreadable(folder, error))?;
        let imported = runtime.block_on(journal.import(file, options));
        imported.map_err(failed)
    })
}

/// Reads a file, and reports what the closure imported from it.
pub(super) fn read(
    args: &ThreadImport,
    import: impl FnOnce(BundleReader<Box<dyn BufRead>>, ImportOptions) -> Result<ImportSummary>,
) -> Result<ExitCode> {
    let imported = if args.file.as_os_str() == "-" {
        import_file(args, Box::new(std::io::stdin().lock()), import)?
    } else {
        let name = args.file.display();
        let file = File::open(&args.file).with_context(|| {
            format!("cannot open {name}; name a file that `raddle thread export` wrote")
        })?;
        let file = Box::new(BufReader::with_capacity(BUFFER_BYTES, file));
        import_file(args, file, import).with_context(|| name.to_string())?
    };
    let ImportSummary {
        thread,
        records,
        blobs,
        head,
        source_head: had,
    } = imported;
    let mut printer = Printer::new();
    if args.json {
        let line = json!({
            "thread": thread, "records": records, "blobs": blobs, "head": head, "had": had,
        });
        printer.line(&line.to_string())?;
    } else {
        printer.line(&thread.to_string())?;
        log::print_line(&format!(
            "imported {thread}: {records} records, {blobs} blobs"
        ));
        log::print_line("its commands may only read; name a sandbox when you resume it");
    }
    printer.flush()?;
    if head < had {
        log::print_line(&format!(
            "it ends with record {head}; the thread had {had}, and what is missing was lost before"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn import_file(
    args: &ThreadImport,
    file: Box<dyn BufRead>,
    import: impl FnOnce(BundleReader<Box<dyn BufRead>>, ImportOptions) -> Result<ImportSummary>,
) -> Result<ImportSummary> {
    // An invalid file is rejected before it would create a home.
    let file = BundleReader::open(file)?;
    let options = ImportOptions {
        as_new: args.as_new,
        partial: args.partial,
        now: now(),
    };
    import(file, options)
}

/// Describes why a thread was not imported, with advice.
pub(super) fn failed(error: ImportError) -> anyhow::Error {
    match error {
        ImportError::Exists(thread) => anyhow!(
            "the thread {thread} already exists here; give --as-new to import it as a fork, or delete it \
             first with `raddle thread delete {thread}`"
        ),
        ImportError::Lost { .. } => {
            anyhow!("{error}; give --partial to import what comes before that record")
        }
        error => error.into(),
    }
}
