//! The stderr of MCP servers and plugins.

use raddle_sandbox::Output;
use tokio::sync::watch;
use tracing::Instrument;

use crate::log_file::LogFile;
use crate::read_pacer::ReadPacer;

/// Last part of a stderr that is kept.
const KEPT_BYTES_MAX: usize = 2 << 10;

/// Origin of a stderr, and where it is logged.
#[derive(Clone, Debug)]
pub(crate) enum StderrOrigin {
    McpServer,
    /// A plugin, with its log file if it is installed.
    Plugin(Option<LogFile>),
}

/// Last lines of a stderr. All of it is logged, at a limited pace.
pub(crate) struct StderrLog(watch::Receiver<String>);

impl StderrLog {
    /// Reads a stderr to its end, in the background.
    pub(crate) fn follow(origin: StderrOrigin, name: String, stderr: Option<Output>) -> Self {
        let (sender, receiver) = watch::channel(String::new());
        let reading = async move {
            let Some(stderr) = stderr else { return };
            let mut pacer = ReadPacer::new();
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
                pacer.spend_message(&buffer[..count]);
                let text = String::from_utf8_lossy(&buffer[..count]);
                log(&origin, &name, &text);
                sender.send_modify(|end| {
                    end.push_str(&text);
                    let excess = end.len().saturating_sub(KEPT_BYTES_MAX);
                    end.drain(..end.ceil_char_boundary(excess));
                });
                pacer.wait().await;
            }
            // The next entry of the log begins a line.
            if !sender.borrow().is_empty() && !sender.borrow().ends_with('\n') {
                log(&origin, &name, "\n");
            }
        };
        tokio::spawn(reading.in_current_span());
        Self(receiver)
    }

    /// Returns the last lines so far.
    pub(crate) fn last_lines(&self) -> String {
        self.0.borrow().clone()
    }

    /// Waits until all of it was read.
    pub(crate) async fn ended(&mut self) {
        while self.0.changed().await.is_ok() {}
    }
}

/// Logs a part of a stderr, which may begin and end inside a line.
fn log(origin: &StderrOrigin, name: &str, text: &str) {
    let lines = || text.lines().filter(|it| !it.trim().is_empty());
    match origin {
        StderrOrigin::McpServer => {
            for line in lines() {
                tracing::debug!(server = name, line, "an MCP server writes to stderr");
            }
        }
        StderrOrigin::Plugin(file) => {
            for line in lines() {
                tracing::debug!(plugin = name, line, "a plugin writes to stderr");
            }
            if let Some(file) = file {
                file.append(text);
            }
        }
    }
}
