//! A server that this process starts and stops.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use raddle_rpc::{Connection, ConnectionLimits, pipes};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{ChildStderr, Command};
use tokio::time::timeout;

use crate::server_address::{Program, Stderr};

/// Maximum length of a stderr line that is forwarded in one piece.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// A child process that runs the server. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct Child(tokio::process::Child);

pub(crate) fn start(
    program: &Program,
    limits: ConnectionLimits,
) -> io::Result<(Connection, Child)> {
    let stderr = match &program.stderr {
        Stderr::Inherit => Stdio::inherit(),
        Stderr::Null => Stdio::null(),
        Stderr::Lines(_) => Stdio::piped(),
    };
    let mut command = Command::new(&program.program);
    command
        .args(&program.args)
        .envs(program.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(stderr)
        // Terminal signals such as Ctrl-C go to this process, which then stops the child itself.
        .process_group(0)
        .kill_on_drop(true);
    if let Some(dir) = &program.dir {
        command.current_dir(dir);
    }
    let mut child = command.spawn().map_err(|error| {
        let program = program.program.display();
        io::Error::new(error.kind(), format!("cannot start {program}: {error}"))
    })?;
    let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("the child has no pipes"));
    };
    if let (Stderr::Lines(callback), Some(stderr)) = (&program.stderr, child.stderr.take()) {
        tokio::spawn(forward_lines(stderr, callback.clone()));
    }
    let connection = pipes(stdout.into_owned_fd()?, stdin.into_owned_fd()?, limits)?;
    Ok((connection, Child(child)))
}

async fn forward_lines(stderr: ChildStderr, callback: Arc<dyn Fn(&str) + Send + Sync>) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut piece = (&mut reader).take(LINE_BYTES_MAX);
        match piece.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => callback(String::from_utf8_lossy(&line).trim_end()),
        }
    }
}

impl Child {
    /// Waits until the child exits, and kills it after the timeout.
    pub(crate) async fn end(mut self, exit_timeout: Duration) -> Option<ExitStatus> {
        if let Ok(Ok(status)) = timeout(exit_timeout, self.0.wait()).await {
            return Some(status);
        }
        tracing::warn!("the server did not end in time and is killed");
        if let Err(error) = self.0.kill().await {
            tracing::warn!(%error, "the server cannot be killed");
        }
        None
    }
}
