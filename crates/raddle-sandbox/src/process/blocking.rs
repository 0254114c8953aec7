//! One command under a keeper, for a caller without a runtime that has nothing else to do meanwhile.

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

/// How long a keeper may take to say that nothing is left, once it is told to end. It gives up earlier.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs a fenced command that is given nothing to read, and whose errors go to this file. Nothing if it
/// did not end in time; then it is ended. Should this process die, the keeper ends it.
pub(crate) fn run(
    keeper: &KeeperCommand,
    fenced: &ConfinedLaunch,
    errors: &File,
    patience: Duration,
) -> io::Result<Option<ExitReport>> {
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    let order = KeeperOrder {
        launch: fenced.launch.clone(),
        has_terminal: false,
        is_confined: fenced.is_confined(),
    };
    let order = order.write();
    let (ours, theirs) = UnixStream::pair()?;
    let mut keeper = keeper.start(theirs.into())?;
    let streams = [nothing.as_fd(), nothing.as_fd(), errors.as_fd()];
    let heard = wire::send_head(ours.as_fd(), order.len(), &streams)
        .and_then(|()| (&ours).write_all(&order))
        .and_then(|()| read_reports(&ours, patience));
    // Whatever happened, this is its end.
    let _ = ours.shutdown(Shutdown::Both);
    keeper.wait()?;
    heard
}

/// Takes the keeper's reports.
fn read_reports(socket: &UnixStream, patience: Duration) -> io::Result<Option<ExitReport>> {
    let mut reports = BufReader::new(socket);
    let mut deadline = Instant::now() + patience;
    let (mut found, mut is_late) = (ExitReport::default(), false);
    let mut line = String::new();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        // No time at all would mean for ever.
        socket.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
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
                if found.apply(report) {
                    return Ok((!is_late).then_some(found));
                }
            }
            None => return Err(io::ErrorKind::InvalidData.into()),
        }
        line.clear();
    }
}
