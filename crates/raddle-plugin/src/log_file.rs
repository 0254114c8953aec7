//! The log file of a plugin: its stderr, and the events that the host noticed.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tokio::sync::mpsc;

/// Limit: size of a plugin's log file; beyond it, a new file is begun, and one older file is kept.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Limit: pieces of a plugin's log that wait for the disk; beyond it, further ones are dropped.
const QUEUE_MAX: usize = 64;

/// Limit: acts in a plugin's log that wait for the disk; beyond it, further ones are dropped. No other
/// text takes their places.
const ACTS_QUEUE_MAX: usize = 1_000;

/// A log file. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct LogFile(mpsc::Sender<String>);

impl LogFile {
    /// Opens a log file. It is created with the first text.
    pub(crate) fn open(path: PathBuf) -> Self {
        let (sender, queue) = mpsc::channel(QUEUE_MAX + ACTS_QUEUE_MAX);
        tokio::spawn(write(path, queue));
        Self(sender)
    }

    /// Appends text, without waiting.
    pub(crate) fn append(&self, text: impl Into<String>) {
        // Text for which the disk is too slow is dropped.
        if self.0.capacity() > ACTS_QUEUE_MAX {
            let _ = self.0.try_send(text.into());
        }
    }

    /// Appends the description of an act, without waiting. Other text does not displace it.
    pub(crate) fn append_act(&self, text: impl Into<String>) {
        let _ = self.0.try_send(text.into());
    }
}

/// Returns the text of a log: of the older file, and then of the current one. It may block on the
/// disk.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    for path in [older(path).as_path(), path] {
        match fs::read(path) {
            Ok(bytes) => text.push_str(&String::from_utf8_lossy(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(text)
}

fn older(path: &Path) -> PathBuf {
    path.with_added_extension("old")
}

async fn write(path: PathBuf, mut queue: mpsc::Receiver<String>) {
    let mut pieces = Vec::new();
    while queue.recv_many(&mut pieces, QUEUE_MAX).await > 0 {
        let text: String = pieces.drain(..).collect();
        let path = path.clone();
        let written = tokio::task::spawn_blocking(move || append(&path, &text)).await;
        if let Ok(Err(error)) = written {
            tracing::debug!(%error, "the log of a plugin cannot be written");
        }
    }
}

fn append(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    let mut file = open(path)?;
    if file.metadata()?.len() >= FILE_BYTES_MAX {
        fs::rename(path, older(path))?;
        file = open(path)?;
    }
    file.write_all(text.as_bytes())
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_log_keeps_one_older_file() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let path = folder.path().join("logs/org.example.log");
        assert_eq!(read(&path).expect("no log"), "");
        let line = format!("{}\n", "x".repeat(1 << 18));
        for _ in 0..20 {
            append(&path, &line).expect("it is written");
        }
        append(&path, "last\n").expect("it is written");
        let text = read(&path).expect("a log");
        assert!(text.ends_with("x\nlast\n"));
        assert!(text.len() as u64 <= 2 * (FILE_BYTES_MAX + line.len() as u64));
        let files = fs::read_dir(path.parent().expect("a folder")).expect("a folder");
        assert_eq!(files.count(), 2);
    }
}
