//! Checks of the socket, the folders, the terminal and the clock.

use std::io::{self, IsTerminal};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::Finding;
use crate::daemon;
use crate::home::Home;

/// The maximum length of a socket's path.
const SOCKET_BYTES_MAX: usize = 107;

/// A clock before this time, in the middle of 2025, is wrong.
const BUILT_AFTER: Duration = Duration::from_secs(1_750_000_000);

pub(super) fn look(home: &Home) -> Vec<Finding> {
    let mut findings = vec![socket(home)];
    findings.push(folder("home", &home.state));
    if home.config != home.state {
        findings.push(folder("home", &home.config));
    }
    findings.extend(settings(home));
    findings.push(terminal());
    findings.push(clock(SystemTime::now()));
    findings
}

fn socket(home: &Home) -> Finding {
    let path = home.socket();
    let shown = path.display();
    if path.as_os_str().as_bytes().len() > SOCKET_BYTES_MAX {
        return Finding::warning(
            "socket",
            format!("{shown} is longer than a socket's path may be, {SOCKET_BYTES_MAX} bytes"),
            "name a shorter home with RADDLE_HOME, or listen elsewhere with --listen unix://PATH",
        );
    }
    match daemon::summary(home) {
        Ok(Some((summary, true))) => return Finding::ok("socket", summary),
        Ok(Some((summary, false))) => {
            return Finding::warning(
                "socket",
                summary,
                "`raddle daemon status` says more, `raddle daemon stop --now` ends it",
            );
        }
        Ok(None) => {}
        Err(error) => {
            return Finding::warning(
                "socket",
                format!("{error:#}"),
                "see that you may read the home",
            );
        }
    }
    let is_socket = std::fs::symlink_metadata(&path).map(|it| it.file_type().is_socket());
    match (is_socket, probe(&path)) {
        (_, Ok(_)) => Finding::ok("socket", format!("a server listens on {shown}")),
        (Err(_), _) => Finding::ok("socket", "no daemon runs; `raddle daemon start` starts one"),
        (Ok(true), Err(Errno::AGAIN)) => Finding::warning(
            "socket",
            format!("a server is there and accepts no connections: {shown}"),
            format!("find its process and stop it: ss -xlp src {shown}"),
        ),
        (Ok(true), Err(Errno::CONNREFUSED)) => Finding::ok(
            "socket",
            format!("{shown} was left by a server that has ended; the next one takes its place"),
        ),
        (Ok(true), Err(error)) => Finding::warning(
            "socket",
            format!("{shown} cannot be used: {error}"),
            format!("see who owns it: ls -l {shown}"),
        ),
        (Ok(false), _) => Finding::warning(
            "socket",
            format!("{shown} is there and is no socket"),
            format!("move it away: mv {shown} {shown}.old"),
        ),
    }
}

/// Connects without blocking: a server with a full backlog would block it for ever.
fn probe(path: &Path) -> Result<(), Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)
}

fn folder(part: &'static str, folder: &Path) -> Finding {
    let shown = folder.display();
    let Ok(metadata) = std::fs::metadata(folder) else {
        return missing_folder(part, folder);
    };
    if !metadata.is_dir() {
        return Finding::error(
            part,
            format!("{shown} is no folder"),
            format!("move it away: mv {shown} {shown}.old"),
        );
    }
    if access(folder, Access::WRITE_OK | Access::EXEC_OK | Access::READ_OK).is_err() {
        return Finding::error(
            part,
            format!("{shown} cannot be written"),
            "see who owns it, or name another with RADDLE_HOME",
        );
    }
    match metadata.permissions().mode() & 0o022 {
        0 => Finding::ok(part, shown.to_string()),
        _ => Finding::warning(
            part,
            format!("others may write {shown}"),
            format!("chmod go-w {shown}"),
        ),
    }
}

/// Reports settings files that are links into other folders, where commands could change them.
fn settings(home: &Home) -> Vec<Finding> {
    let real = |it: &Path| std::fs::canonicalize(it).ok();
    let own: Vec<PathBuf> = [&home.config, &home.state]
        .into_iter()
        .filter_map(|it| real(it))
        .collect();
    let paths = home.paths();
    let files = std::iter::once(&paths.user_config).chain(&paths.rules);
    let elsewhere = files.filter_map(|file| Some((file, real(file)?)));
    let elsewhere = elsewhere.filter(|(_, it)| {
        let is_safe = own.iter().any(|folder| it.starts_with(folder));
        !is_safe && !raddle_sandbox::is_owned_by_root(it)
    });
    elsewhere
        .map(|(file, real)| {
            let folder = real.parent().unwrap_or(&real).display();
            Finding::warning(
                "settings",
                format!(
                    "{} is in {folder}: commands that may write around that folder do not see it, and commands that work \
                     in it are refused",
                    file.display()
                ),
                format!("keep the file itself in {}", home.config.display()),
            )
        })
        .collect()
}

/// A missing folder is created on demand, if its parent is writable.
fn missing_folder(part: &'static str, folder: &Path) -> Finding {
    let shown = folder.display();
    let above = folder.ancestors().find(|it| it.is_dir());
    match above.is_some_and(|it| access(it, Access::WRITE_OK | Access::EXEC_OK).is_ok()) {
        true => Finding::ok(part, format!("{shown}, which is made when it is needed")),
        false => Finding::error(
            part,
            format!("{shown} is not there and cannot be made"),
            "make it, or name another with RADDLE_HOME",
        ),
    }
}

fn terminal() -> Finding {
    if !io::stdin().is_terminal() {
        return Finding::ok("terminal", "none, so no approvals can be given here");
    }
    let variable = |name: &str| std::env::var(name).ok().filter(|it| !it.is_empty());
    let name = variable("TERM").unwrap_or_else(|| "one without a name".to_owned());
    let locale = variable("LC_ALL")
        .or_else(|| variable("LC_CTYPE"))
        .or_else(|| variable("LANG"));
    let locale = locale.unwrap_or_default().to_lowercase();
    match locale.contains("utf-8") || locale.contains("utf8") {
        true => Finding::ok("terminal", format!("{name}, UTF-8")),
        false => Finding::warning(
            "terminal",
            format!("{name}; the locale is not UTF-8, so other scripts than Latin may look broken"),
            "export LANG=C.UTF-8",
        ),
    }
}

fn clock(now: SystemTime) -> Finding {
    match now.duration_since(UNIX_EPOCH) {
        Ok(since) if since > BUILT_AFTER => Finding::ok("clock", "plausible"),
        _ => Finding::error(
            "clock",
            "it is years behind, so that no certificate is valid yet",
            "set the clock of this machine",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn an_unset_clock_is_detected() {
        assert_eq!(clock(UNIX_EPOCH).state, State::Error);
        assert_eq!(clock(SystemTime::now()).state, State::Ok);
    }
}
