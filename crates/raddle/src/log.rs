//! The log: stderr only, because stdout is the wire.

use std::io::Write as _;

use tracing_subscriber::EnvFilter;

/// Starts logging: levels by `RADDLE_LOG`, JSON lines by `RADDLE_LOG_FORMAT=json`.
pub(crate) fn start() {
    let filter =
        EnvFilter::builder().parse_lossy(std::env::var("RADDLE_LOG").as_deref().unwrap_or("warn"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    if std::env::var("RADDLE_LOG_FORMAT").is_ok_and(|format| format == "json") {
        builder.json().init();
    } else {
        builder
            .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
            .init();
    }
}

/// A line for the person who started us, whatever the log level.
pub(crate) fn say(line: &str) {
    // Nobody may be reading; that is no reason to fail.
    let _ = writeln!(std::io::stderr(), "{line}");
}
