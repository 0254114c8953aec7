//! The log: stderr only, because stdout carries the protocol.

mod file;

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, IsTerminal, Write};
use std::panic::PanicHookInfo;
use std::path::Path;

use raddle_console::{allows_colours, sanitize};
use serde_json::json;
use tracing::Level;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

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
    if is_json() {
        // The list of spans includes the current one.
        builder.json().with_current_span(false).init();
    } else {
        builder
            .with_ansi(colours && io::stderr().is_terminal() && allows_colours())
            .init();
    }
}

/// Redirects stderr to this file. The file is rotated when it is long; at most one older file is
/// kept. Panics are then logged as lines with a time, like everything else in the file.
pub(crate) fn move_to(path: &Path) -> io::Result<()> {
    file::move_to(path)?;
    std::panic::set_hook(Box::new(|panic| print(Level::ERROR, &panic_text(panic))));
    Ok(())
}

/// Returns the text of a panic: the thread, the message, and a backtrace if `RUST_BACKTRACE` asks
/// for one.
fn panic_text(panic: &PanicHookInfo<'_>) -> String {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("<unnamed>");
    let backtrace = Backtrace::capture();
    match backtrace.status() {
        BacktraceStatus::Captured => format!("thread '{name}' {panic}\n{backtrace}"),
        _ => format!("thread '{name}' {panic}"),
    }
}

/// Prints text for the operator at every log level. On stderr it is plain. In a file each line has a
/// time and the format of the log; in JSON the whole text is one record.
pub(crate) fn print(level: Level, text: &str) {
    if !file::is_open() {
        return print_line(&format!("raddle: {text}"));
    }
    let text = sanitize(text);
    let records: String = match is_json() {
        true => file_line(level, text.trim_end(), true),
        false => text.lines().map(|it| file_line(level, it, false)).collect(),
    };
    // Records that cannot be written are dropped.
    let _ = Stderr.write_all(records.as_bytes());
}

fn file_line(level: Level, text: &str, is_json: bool) -> String {
    let mut time = String::new();
    // Writing to a string does not fail.
    let _ = SystemTime.format_time(&mut Writer::new(&mut time));
    match is_json {
        true => {
            let fields = json!({ "message": text });
            let level = level.as_str();
            let line = json!({
                "timestamp": time, "level": level, "fields": fields, "target": "raddle",
            });
            format!("{line}\n")
        }
        false => format!("{time} {level:>5} raddle: {text}\n"),
    }
}

fn is_json() -> bool {
    std::env::var("RADDLE_LOG_FORMAT").is_ok_and(|format| format == "json")
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
