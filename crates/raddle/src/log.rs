//! The log: stderr only, because stdout carries the protocol.

mod file;

use std::io::{self, Write};
use std::path::Path;

use tracing_subscriber::EnvFilter;

pub(crate) use raddle_console::print_line;

/// Starts logging: levels from `RADDLE_LOG`, JSON lines with `RADDLE_LOG_FORMAT=json`.
pub(crate) fn start(colours: bool) {
    let filter =
        EnvFilter::builder().parse_lossy(std::env::var("RADDLE_LOG").as_deref().unwrap_or("warn"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // Internal errors would go to the same stderr, and panic if it cannot be written.
        .log_internal_errors(false)
        .with_writer(|| Stderr);
    if std::env::var("RADDLE_LOG_FORMAT").is_ok_and(|format| format == "json") {
        // The list of spans includes the current one.
        builder.json().with_current_span(false).init();
    } else {
        builder
            .with_ansi(colours && io::IsTerminal::is_terminal(&io::stderr()))
            .init();
    }
}

/// Redirects stderr to this file. The file is rotated when it is long; at most one older file is
/// kept.
pub(crate) fn move_to(path: &Path) -> io::Result<()> {
    file::move_to(path)
}

/// The writer of log lines. A line that cannot be written, as on a full disk, is dropped.
struct Stderr;

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = io::stderr().write(bytes);
        file::keep_short();
        Ok(written.unwrap_or(bytes.len()))
    }

    fn flush(&mut self) -> io::Result<()> {
        // Errors are ignored, as above.
        let _ = io::stderr().flush();
        Ok(())
    }
}
