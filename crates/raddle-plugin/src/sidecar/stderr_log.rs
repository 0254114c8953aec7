//! The stderr of a plugin, which is its log.

use raddle_sandbox::Output;
use tokio::sync::watch;
use tracing::Instrument;

/// Last part of a plugin's stderr that is kept.
const KEPT_BYTES_MAX: usize = 4 << 10;

/// Last lines of a plugin's stderr.
pub(super) struct StderrLog(watch::Receiver<String>);

impl StderrLog {
    /// Reads a stderr to its end, in the background.
    pub(super) fn follow(plugin: String, stderr: Option<Output>) -> Self {
        let (sender, receiver) = watch::channel(String::new());
        let reading = async move {
            let Some(stderr) = stderr else { return };
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
                let text = String::from_utf8_lossy(&buffer[..count]);
                for line in text.lines().filter(|it| !it.trim().is_empty()) {
                    tracing::debug!(plugin, line, "a plugin writes to stderr");
                }
                sender.send_modify(|end| {
                    end.push_str(&text);
                    let excess = end.len().saturating_sub(KEPT_BYTES_MAX);
                    end.drain(..end.ceil_char_boundary(excess));
                });
            }
        };
        tokio::spawn(reading.in_current_span());
        Self(receiver)
    }

    /// Waits until all of it was read, and returns the last lines.
    pub(super) async fn end(mut self) -> String {
        while self.0.changed().await.is_ok() {}
        self.0.borrow().clone()
    }
}
