//! `raddle thread export`.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use raddle_console::{Printer, one_line};
use raddle_core::ThreadId;
use raddle_store::{ExportError, ExportSummary, Extent, Salvage};
use serde_json::json;

use super::{unreadable, usage};
use crate::cli::ThreadExport;
use crate::log;

pub(super) fn run(folder: &Path, args: &ThreadExport) -> Result<ExitCode> {
    let mut salvage = Salvage::new(folder);
    let mut damaged = false;
    let threads = if args.all {
        let stored = salvage
            .threads()
            .map_err(|error| unreadable(folder, error))?;
        for problem in &stored.problems {
            log::print_line(&format!("raddle: {}", one_line(problem, 400)));
            damaged = true;
        }
        stored.threads
    } else {
        let mut threads = Vec::with_capacity(args.ids.len());
        for id in &args.ids {
            threads.push(find(&mut salvage, id)?);
        }
        threads
    };
    write_files(args, &threads, damaged, &mut |thread, out, extent| {
        salvage.export(thread, out, extent)
    })
}

/// Exports one thread.
type ExportThread<'a> =
    dyn FnMut(ThreadId, &mut dyn Write, Extent) -> Result<ExportSummary, ExportError> + 'a;

/// Writes the files of threads. `damaged` is whether the journal lost some already.
pub(super) fn write_files(
    args: &ThreadExport,
    threads: &[ThreadId],
    mut damaged: bool,
    export: &mut ExportThread<'_>,
) -> Result<ExitCode> {
    let mut printer = Printer::new();
    let extent = if args.partial {
        Extent::Sound
    } else {
        Extent::Whole
    };
    let Some(out) = &args.out else {
        let [thread] = threads else {
            return Ok(usage(
                "several threads need a folder to go to: give --out DIR",
            ));
        };
        let exported = export(*thread, printer.file(), extent);
        return report_and_exit_code(
            *thread,
            exported.map_err(|error| failed(*thread, error)),
            "stdout",
        );
    };
    let target = Target::new(out, args.all || threads.len() > 1)?;
    for &thread in threads {
        let path = target.path(thread);
        let exported = write(&path, &mut |file| {
            let exported = export(thread, file, extent);
            exported.map_err(|error| failed(thread, error))
        });
        match exported {
            Ok(exported) => {
                damaged |= !exported.lacks.is_empty();
                if args.json {
                    let end = &exported.end;
                    let line = json!({
                        "thread": thread, "file": path, "records": end.records,
                        "blobs": end.blobs, "head": end.head, "lacks": exported.lacks,
                    });
                    printer.line(&line.to_string())?;
                } else {
                    report(thread, &exported, &path.display().to_string());
                }
            }
            Err(error) => {
                damaged = true;
                if args.json {
                    let line = json!({ "thread": thread, "error": format!("{error:#}") });
                    printer.line(&line.to_string())?;
                }
                log::print_line(&format!("raddle: {thread} was not written: {error:#}"));
            }
        }
    }
    printer.flush()?;
    Ok(if damaged {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn report_and_exit_code(
    thread: ThreadId,
    exported: Result<ExportSummary>,
    to: &str,
) -> Result<ExitCode> {
    let exported = exported?;
    report(thread, &exported, to);
    Ok(if exported.lacks.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn report(thread: ThreadId, exported: &ExportSummary, to: &str) {
    let end = &exported.end;
    let counts = format!("{} records, {} blobs", end.records, end.blobs);
    log::print_line(&format!("wrote {thread} to {to}: {counts}"));
    for lack in &exported.lacks {
        log::print_line(&format!("  it lacks: {}", one_line(lack, 400)));
    }
}

/// Returns the one thread with this prefix of its id, even in a journal that SQLite cannot read.
fn find(salvage: &mut Salvage, id: &str) -> Result<ThreadId> {
    match salvage.find(id)?.as_slice() {
        [] => bail!("no thread has an id that begins with {id}; see `raddle thread list`"),
        [thread] => Ok(*thread),
        _ => bail!("more than one thread has an id that begins with {id}; give more of it"),
    }
}

/// Describes why a thread was not written, with advice.
fn failed(thread: ThreadId, error: ExportError) -> anyhow::Error {
    use raddle_core::ports::ReadError;
    let advice = match &error {
        ExportError::Read(ReadError::Corrupt { .. }) => {
            "; --partial writes what comes before that record"
        }
        ExportError::Blob { .. } => "; --partial writes the thread without those bytes",
        ExportError::Read(_) | ExportError::Write(_) => "",
    };
    let what = anyhow!(error);
    anyhow!("thread {thread}: {what:#}{advice}")
}

/// The destination of the files.
enum Target {
    File(PathBuf),
    Folder(PathBuf),
}

impl Target {
    fn new(out: &Path, several: bool) -> Result<Self> {
        if several || out.is_dir() {
            fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
            return Ok(Self::Folder(out.to_owned()));
        }
        Ok(Self::File(out.to_owned()))
    }

    fn path(&self, thread: ThreadId) -> PathBuf {
        match self {
            Self::File(path) => path.clone(),
            Self::Folder(folder) => folder.join(format!("{thread}.jsonl")),
        }
    }
}

/// Writes a file atomically, readable by its owner only. Never replaces an existing file: it may be
/// better than the export of a damaged journal.
fn write(
    path: &Path,
    fill: &mut dyn FnMut(&mut dyn Write) -> Result<ExportSummary>,
) -> Result<ExportSummary> {
    if fs::symlink_metadata(path).is_ok() {
        bail!(
            "{} is there already; move it away or choose another place",
            path.display()
        );
    }
    let mut draft = path.as_os_str().to_owned();
    draft.push(".part");
    let draft = PathBuf::from(draft);
    let written = fill_draft(&draft, fill);
    let written = written.and_then(|exported| {
        fs::rename(&draft, path)?;
        Ok(exported)
    });
    if written.is_err() {
        // A partial file is of no use. It may not exist, so an error is ignored.
        let _ = fs::remove_file(&draft);
    }
    written
}

fn fill_draft(
    draft: &Path,
    fill: &mut dyn FnMut(&mut dyn Write) -> Result<ExportSummary>,
) -> Result<ExportSummary> {
    let mut options = fs::OpenOptions::new();
    options.create(true).truncate(true).write(true).mode(0o600);
    let file: File = options
        .open(draft)
        .with_context(|| format!("cannot write {}", draft.display()))?;
    let mut file = BufWriter::new(file);
    let exported = fill(&mut file)?;
    file.into_inner()
        .map_err(|error| error.into_error())
        .and_then(|file| file.sync_all())
        .with_context(|| format!("cannot write {}", draft.display()))?;
    Ok(exported)
}
