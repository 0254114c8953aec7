//! Processes of the program under test. None outlives the trial.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process_group};

/// Script of the process that leads a group. Its stdin is a pipe from the trial, so `read` returns
/// when the trial ends in whatever way. Zero is the group of the script itself.
const LEADER: &str = "read -r _; kill -KILL 0";

/// A process that is killed when this is dropped, with every descendant in its process group. The
/// same happens when the trial itself is killed.
///
/// The process does not lead its group: a shell that waits for the end of the trial does. A
/// parent-death signal would need `unsafe`, and would arrive with the end of the starting thread.
pub struct ChildGuard {
    /// The process.
    pub child: Child,
    group: ProcessGroup,
}

impl ChildGuard {
    /// Starts a process.
    pub fn spawn(command: &mut Command) -> Result<Self> {
        let group = ProcessGroup::open()?;
        let child = command.process_group(group.id()?).spawn();
        let child =
            child.with_context(|| format!("cannot start {}", command.get_program().display()))?;
        Ok(Self { child, group })
    }

    /// Kills the process alone, as the system does when memory is short, and waits for its end.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Kills the process with its group, and waits for its end. Dropping it does the same.
    pub fn end(&mut self) {
        self.group.kill();
        // It may have left the group. An exited process cannot be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        self.end();
    }
}

/// A process group, and the shell that leads it.
struct ProcessGroup {
    leader: Child,
}

impl ProcessGroup {
    fn open() -> Result<Self> {
        let leader = Command::new("/bin/sh")
            .args(["-c", LEADER])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("cannot start /bin/sh")?;
        Ok(Self { leader })
    }

    fn id(&self) -> Result<i32> {
        Ok(i32::try_from(self.leader.id())?)
    }

    /// Kills every process of the group. Its id cannot have been reused, because the leader is not
    /// waited for before this is dropped.
    fn kill(&self) {
        let _ = kill_process_group(Pid::from_child(&self.leader), Signal::KILL);
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
        let _ = self.leader.wait();
    }
}

/// Returns the command `raddle app-server` with this home, which is also its working directory.
/// Its stdin and stdout are closed; a caller with a client on stdio sets them.
pub fn app_server(raddle: &Path, home: &Path) -> Command {
    let mut command = Command::new(raddle);
    command
        .arg("app-server")
        .env("RADDLE_HOME", home)
        .current_dir(home)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

/// Opens a log file for the stderr of processes.
pub fn append_to(log: &Path) -> Result<File> {
    let file = File::options().create(true).append(true).open(log);
    file.with_context(|| format!("cannot open {}", log.display()))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read};
    use std::os::unix::process::ExitStatusExt;
    use std::path::PathBuf;
    use std::process::ChildStdout;

    use super::*;

    /// Starts a process with a child of its own. Both hold the pipe that this returns, and the
    /// child has the folder in `/proc`.
    fn spawn_two() -> (ChildGuard, BufReader<ChildStdout>, PathBuf) {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "sleep 1000 & echo $!; wait"]);
        let mut guard = ChildGuard::spawn(command.stdout(Stdio::piped())).expect("a process");
        let mut stdout = BufReader::new(guard.child.stdout.take().expect("a pipe"));
        let mut pid = String::new();
        stdout.read_line(&mut pid).expect("a line");
        (guard, stdout, Path::new("/proc").join(pid.trim_end()))
    }

    #[test]
    fn drop_kills_descendants() {
        let (guard, mut stdout, _) = spawn_two();
        drop(guard);
        // The pipe ends with the last process that holds it.
        assert_eq!(stdout.read_to_end(&mut Vec::new()).expect("the end"), 0);
    }

    #[test]
    fn end_of_the_trial_kills_descendants() {
        let (mut guard, mut stdout, _) = spawn_two();
        // The system closes this pipe when the trial is killed.
        drop(guard.group.leader.stdin.take());
        assert_eq!(stdout.read_to_end(&mut Vec::new()).expect("the end"), 0);
        let status = guard.child.wait().expect("a child");
        assert_eq!(status.signal(), Some(9));
    }

    #[test]
    fn kill_ends_the_process_alone() {
        let (mut guard, mut stdout, descendant) = spawn_two();
        guard.kill().expect("a running process");
        assert!(descendant.exists(), "{} is gone", descendant.display());
        drop(guard);
        assert_eq!(stdout.read_to_end(&mut Vec::new()).expect("the end"), 0);
    }
}
