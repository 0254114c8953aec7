//! The log: stderr only, because stdout is the wire.

mod file;

use std::io::{self, Write};
use std::path::Path;

use tracing_subscriber::EnvFilter;

use crate::print::sanitize;

/// Starts logging: levels by `RADDLE_LOG`, JSON lines by `RADDLE_LOG_FORMAT=json`.
pub(crate) fn start(colours: bool) {
    let filter =
        EnvFilter::builder().parse_lossy(std::env::var("RADDLE_LOG").as_deref().unwrap_or("warn"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // It would be printed to the same stderr, and that panics where stderr cannot be written.
        .log_internal_errors(false)
        .with_writer(|| Stderr);
    if std::env::var("RADDLE_LOG_FORMAT").is_ok_and(|format| format == "json") {
        builder.json().init();
    } else {
        builder
            .with_ansi(colours && io::IsTerminal::is_terminal(&io::stderr()))
            .init();
    }
}

/// From now on stderr is this file, which is set aside when it is long: there are never more than two, and what an
/// older one held is gone.
pub(crate) fn move_to(path: &Path) -> io::Result<()> {
    file::move_to(path)
}

/// A line for the person who started us, whatever the log level. It may hold what files and vendors say.
pub(crate) fn print_line(line: &str) {
    // Nobody may be reading; that is no reason to fail.
    let _ = writeln!(io::stderr(), "{}", sanitize(line));
}

/// Where lines of the log go. One that cannot be written, as on a full disk, is dropped: what is logged goes on.
struct Stderr;

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = io::stderr().write(bytes);
        file::keep_short();
        Ok(written.unwrap_or(bytes.len()))
    }

    fn flush(&mut self) -> io::Result<()> {
        // As above.
        let _ = io::stderr().flush();
        Ok(())
    }
}
