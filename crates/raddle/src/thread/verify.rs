//! `raddle thread verify`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use raddle_console::{Printer, one_line};
use raddle_core::ThreadId;
use raddle_core::ports::ReadError;
use raddle_store::{Archive, Damage, DamageKind, VerifyReport};
use serde_json::json;

use super::{find, open, open_existing, unreadable};
use crate::cli::ThreadVerify;

pub(super) fn run(folder: &Path, args: &ThreadVerify) -> Result<ExitCode> {
    let mut verify = Verifier::new(args);
    if args.ids.is_empty() {
        let Some(archive) = open(folder)? else {
            // A home without a journal has no damage.
            return Ok(ExitCode::SUCCESS);
        };
        let problems = archive
            .check_file()
            .map_err(|error| unreadable(folder, error))?;
        verify.file(&problems)?;
        let threads = archive.threads();
        for thread in threads.map_err(|error| unreadable(folder, error))? {
            verify.thread(&archive, thread)?;
        }
    } else {
        let archive = open_existing(folder)?;
        for id in &args.ids {
            verify.thread(&archive, find(&archive, id)?)?;
        }
    }
    verify.end()
}

/// Printer of reports.
pub(super) struct Verifier {
    printer: Printer,
    json: bool,
    damaged: bool,
}

impl Verifier {
    pub(super) fn new(args: &ThreadVerify) -> Self {
        Self {
            printer: Printer::new(),
            json: args.json,
            damaged: false,
        }
    }

    pub(super) fn end(mut self) -> Result<ExitCode> {
        self.printer.flush()?;
        Ok(if self.damaged {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        })
    }

    fn file(&mut self, problems: &[String]) -> Result<()> {
        self.damaged |= !problems.is_empty();
        let advice = "stop every server of this home, copy the folder, run `raddle thread export --all \
                      --out DIR`, move the folder away and import the files into a new home";
        if self.json {
            let state = if problems.is_empty() {
                "whole"
            } else {
                "damaged"
            };
            let advice = (!problems.is_empty()).then_some(advice);
            let line = json!({ "file": state, "problems": problems, "advice": advice });
            self.printer.line(&line.to_string())?;
        } else if problems.is_empty() {
            self.printer.line("whole    the file")?;
        } else {
            self.printer.line("damaged  the file")?;
            for problem in problems {
                self.printer
                    .line(&format!("         {}", one_line(problem, 400)))?;
            }
            self.printer.line(&format!("         {advice}"))?;
        }
        Ok(())
    }

    fn thread(&mut self, archive: &Archive, thread: ThreadId) -> Result<()> {
        match archive.verify(thread) {
            // The thread was deleted meanwhile.
            Err(ReadError::NotFound) => Ok(()),
            report => self.report(&report?),
        }
    }

    pub(super) fn report(&mut self, report: &VerifyReport) -> Result<()> {
        let thread = report.thread;
        self.damaged |= !report.damage.is_empty();
        if self.json {
            self.printer.line(&line(report).to_string())?;
            return Ok(());
        }
        let state = if report.damage.is_empty() {
            "whole  "
        } else {
            "damaged"
        };
        let counts = format!("{} records, {} blobs", report.records, report.blobs);
        self.printer.line(&format!("{state}  {thread}  {counts}"))?;
        for damage in &report.damage {
            let what = one_line(&damage.what, 400);
            let line = format!("         at record {}: {what}", damage.at);
            self.printer.line(&line)?;
            let advice = advice(report, damage);
            self.printer.line(&format!("         {advice}"))?;
        }
        Ok(())
    }
}

/// Advice on how to handle the damage.
fn advice(report: &VerifyReport, damage: &Damage) -> String {
    let thread = report.thread;
    match damage.kind {
        DamageKind::Record => format!(
            "the thread takes nothing more; `raddle thread export --partial {thread}` saves what comes \
             before that record"
        ),
        DamageKind::Blob => format!(
            "the conversation is whole; `raddle thread export --partial {thread}` saves it without \
             those bytes"
        ),
        DamageKind::Derived => format!(
            "the records are whole; `raddle thread export {thread}`, delete it and import the file to \
             have this made again"
        ),
        DamageKind::Newer => "upgrade Raddle to read it".to_owned(),
    }
}

fn line(report: &VerifyReport) -> serde_json::Value {
    let damage: Vec<_> = report
        .damage
        .iter()
        .map(|it| {
            let kind = match it.kind {
                DamageKind::Record => "record",
                DamageKind::Blob => "blob",
                DamageKind::Derived => "derived",
                DamageKind::Newer => "newer",
            };
            json!({ "kind": kind, "at": it.at, "what": it.what, "advice": advice(report, it) })
        })
        .collect();
    let state = if damage.is_empty() {
        "whole"
    } else {
        "damaged"
    };
    json!({
        "thread": report.thread,
        "state": state,
        "head": report.head,
        "records": report.records,
        "blobs": report.blobs,
        "damage": damage,
    })
}
