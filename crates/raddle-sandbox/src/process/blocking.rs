//! Runs one command under a keeper and blocks, for a caller without a runtime.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::ExitReport;
use super::spawner::KeeperCommand;
use super::wire::{self, KeeperOrder, KeeperReport};
use crate::confinement::ConfinedLaunch;

/// Timeout for a keeper's last report after the request to end. It gives up earlier.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs a sandboxed command without stdin, whose stderr goes to this file. Returns `None` if it
/// timed out; then it is killed. If this process dies, the keeper ends the command.
pub(crate) fn run(
    keeper: &KeeperCommand,
    confined: &ConfinedLaunch,
    errors: &File,
    timeout: Duration,
) -> io::Result<Option<ExitReport>> {
    let null_device = File::options().read(true).write(true).open("/dev/null")?;
    let order = KeeperOrder {
        launch: confined.launch.clone(),
        has_terminal: false,
        is_confined: confined.is_confined(),
    };
    let order = order.write();
    let (ours, theirs) = UnixStream::pair()?;
    let mut keeper = keeper.start(theirs.into())?;
    let streams = [null_device.as_fd(), null_device.as_fd(), errors.as_fd()];
    let report = wire::send_head(ours.as_fd(), order.len(), &streams)
        .and_then(|()| (&ours).write_all(&order))
        .and_then(|()| read_reports(&ours, timeout));
    // Closing the socket ends the keeper in every case.
    let _ = ours.shutdown(Shutdown::Both);
    keeper.wait()?;
    report
}

/// Reads the keeper's reports.
fn read_reports(socket: &UnixStream, timeout: Duration) -> io::Result<Option<ExitReport>> {
    let mut reports = BufReader::new(socket);
    let mut deadline = Instant::now() + timeout;
    let (mut exit_report, mut is_late) = (ExitReport::default(), false);
    let mut line = String::new();
    loop {
        let remaining = deadline.saturating_duration_since(Instant::now());
        // A timeout of zero is an error.
        socket.set_read_timeout(Some(remaining.max(Duration::from_millis(1))))?;
        match reports.read_line(&mut line) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && !is_late => {
                is_late = true;
                deadline = Instant::now() + EXIT_TIMEOUT;
                socket.shutdown(Shutdown::Write)?;
                continue;
            }
            Err(error) => return Err(error),
        }
        match KeeperReport::read(line.trim_end_matches('\n')) {
            Some(KeeperReport::NoFolder(errno) | KeeperReport::NoProgram(errno)) => {
                return Err(io::Error::from_raw_os_error(errno));
            }
            Some(report) => {
                if exit_report.apply(report) {
                    return Ok((!is_late).then_some(exit_report));
                }
            }
            None => return Err(io::ErrorKind::InvalidData.into()),
        }
        line.clear();
    }
}
