//! A log in memory.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use tracing::subscriber::DefaultGuard;

/// The log of the tasks on the current thread until it is dropped.
pub struct MemoryLog {
    written: WrittenLog,
    _guard: DefaultGuard,
}

#[derive(Clone, Default)]
struct WrittenLog(Arc<Mutex<Vec<u8>>>);

impl MemoryLog {
    /// A log at the level `info`.
    pub fn start() -> Self {
        Self::with_filter("info")
    }

    /// A log with this filter, which is written as `RADDLE_LOG` is.
    pub fn with_filter(filter: &str) -> Self {
        let written = WrittenLog::default();
        let writer = written.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_ansi(false)
            .without_time()
            .with_target(false)
            .with_writer(move || writer.clone())
            .finish();
        Self {
            written,
            _guard: tracing::subscriber::set_default(subscriber),
        }
    }

    /// The lines with this text, without their level.
    pub fn lines_with(&self, text: &str) -> Vec<String> {
        let written = self.written.0.lock().expect("a log").clone();
        let written = String::from_utf8(written).expect("text");
        let lines = written.lines().filter(|line| line.contains(text));
        let lines = lines.map(|line| line.trim_start().trim_start_matches("INFO "));
        lines.map(str::to_owned).collect()
    }
}

impl Write for WrittenLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("a log").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
