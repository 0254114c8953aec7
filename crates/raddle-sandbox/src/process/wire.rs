//! Messages between the server and a keeper over their socket.
//!
//! The server sends one [`KeeperOrder`] with the three descriptors of the command, and later
//! nothing but the end: closing its side asks the keeper to end the command, and the kernel closes
//! it for a server that has died. The keeper answers with lines of text, each a [`KeeperReport`].

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;

use crate::descriptors;
use crate::launch::Launch;

/// Longest order that is accepted: twice the system's limit for the arguments of a program.
const ORDER_BYTES_MAX: usize = 16 << 20;

/// Descriptors that come with an order: stdin, stdout and stderr.
const STREAMS: usize = 3;

/// Order to a keeper to start a command.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KeeperOrder {
    pub(super) launch: Launch,
    /// Whether the command's stdin is a terminal that becomes its controlling one.
    pub(super) has_terminal: bool,
    /// Whether the program is a sandbox that starts the command.
    pub(super) is_confined: bool,
}

impl KeeperOrder {
    /// Encodes the order, without its length.
    pub(super) fn write(&self) -> Vec<u8> {
        let Launch {
            program,
            args,
            cwd,
            env,
        } = &self.launch;
        let mut bytes = vec![u8::from(self.has_terminal), u8::from(self.is_confined)];
        put(&mut bytes, cwd.as_os_str());
        put(&mut bytes, program);
        put_count(&mut bytes, args.len());
        args.iter().for_each(|arg| put(&mut bytes, arg));
        put_count(&mut bytes, env.len());
        for (name, value) in env {
            put(&mut bytes, name);
            put(&mut bytes, value);
        }
        bytes
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let ([terminal, confined], mut rest) = bytes.split_first_chunk()?;
        let cwd = take(&mut rest)?.into();
        let program = take(&mut rest)?;
        let mut args = Vec::new();
        for _ in 0..take_count(&mut rest)? {
            args.push(take(&mut rest)?);
        }
        let mut env = Vec::new();
        for _ in 0..take_count(&mut rest)? {
            env.push((take(&mut rest)?, take(&mut rest)?));
        }
        let launch = Launch {
            program,
            args,
            cwd,
            env,
        };
        rest.is_empty().then_some(Self {
            launch,
            has_terminal: *terminal == 1,
            is_confined: *confined == 1,
        })
    }
}

fn put_count(bytes: &mut Vec<u8>, count: usize) {
    bytes.extend((count as u32).to_le_bytes());
}

fn put(bytes: &mut Vec<u8>, text: &OsStr) {
    put_count(bytes, text.len());
    bytes.extend(text.as_bytes());
}

fn take_count(rest: &mut &[u8]) -> Option<usize> {
    let (count, after) = rest.split_first_chunk::<4>()?;
    *rest = after;
    Some(u32::from_le_bytes(*count) as usize)
}

fn take(rest: &mut &[u8]) -> Option<OsString> {
    let length = take_count(rest)?;
    let (text, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(OsString::from_vec(text.to_vec()))
}

/// Sends the length of an order and the command's descriptors. The order itself follows as plain
/// bytes.
pub(super) fn send_head(
    socket: BorrowedFd<'_>,
    length: usize,
    streams: &[BorrowedFd<'_>; STREAMS],
) -> io::Result<()> {
    if length > ORDER_BYTES_MAX {
        return Err(io::Error::from(io::ErrorKind::ArgumentListTooLong));
    }
    descriptors::send(socket, &(length as u32).to_le_bytes(), streams)
}

/// Receives an order and the command's descriptors; `None` if the server closed the socket before
/// the end of the order.
pub(super) fn receive(socket: &UnixStream) -> Option<(KeeperOrder, [OwnedFd; STREAMS])> {
    let mut head = [0; 4];
    let streams = descriptors::receive(socket, &mut head).ok()?;
    let mut bytes = vec![0; (u32::from_le_bytes(head) as usize).min(ORDER_BYTES_MAX)];
    let mut reader = socket;
    reader.read_exact(&mut bytes).ok()?;
    Some((KeeperOrder::read(&bytes)?, streams))
}

/// Report of a keeper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeeperReport {
    /// The command runs under this pid.
    Started(u32),
    /// Its working directory cannot be entered; with the `errno`.
    NoFolder(i32),
    /// It cannot be started; with the `errno`.
    NoProgram(i32),
    /// The command has exited.
    Exited(ExitStatus),
    /// These processes could not be killed, and remain.
    Survivors {
        /// The names of the first of them.
        names: Vec<String>,
    },
    /// No other process is left; these had to be killed.
    AllGone {
        /// Number of killed processes.
        killed: usize,
        /// The names of the first of them.
        names: Vec<String>,
    },
}

/// Exit status of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// It exited with this code.
    Exit(i32),
    /// This signal killed it.
    Signal(i32),
}

impl ExitStatus {
    /// Returns the exit code that shells use for both.
    pub fn code(self) -> i32 {
        match self {
            Self::Exit(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }
}

impl KeeperReport {
    /// Encodes the report as a line, with its line end.
    pub(super) fn write(&self) -> String {
        match self {
            Self::Started(pid) => format!("started {pid}\n"),
            Self::NoFolder(errno) => format!("no-folder {errno}\n"),
            Self::NoProgram(errno) => format!("no-program {errno}\n"),
            Self::Exited(ExitStatus::Exit(code)) => format!("exit {code}\n"),
            Self::Exited(ExitStatus::Signal(signal)) => format!("signal {signal}\n"),
            Self::Survivors { names } => format!("left {}\n", names.join(" ")),
            Self::AllGone { killed, names } => format!("alone {killed} {}\n", names.join(" ")),
        }
    }

    /// Parses a line without its line end.
    pub(super) fn read(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ')?;
        let number = || rest.parse().ok();
        Some(match word {
            "started" => Self::Started(rest.parse().ok()?),
            "no-folder" => Self::NoFolder(number()?),
            "no-program" => Self::NoProgram(number()?),
            "exit" => Self::Exited(ExitStatus::Exit(number()?)),
            "signal" => Self::Exited(ExitStatus::Signal(number()?)),
            "left" => Self::Survivors { names: words(rest) },
            "alone" => {
                let (killed, names) = rest.split_once(' ')?;
                Self::AllGone {
                    killed: killed.parse().ok()?,
                    names: words(names),
                }
            }
            _ => return None,
        })
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_as_it_was_written_and_no_other_way() {
        let order = KeeperOrder {
            launch: Launch {
                program: "sh".into(),
                args: vec![
                    "-c".into(),
                    "".into(),
                    OsString::from_vec(vec![0xff, b'\n']),
                ],
                cwd: "/a b".into(),
                env: vec![("A".into(), "1".into()), ("B".into(), "".into())],
            },
            has_terminal: true,
            is_confined: false,
        };
        let bytes = order.write();
        assert_eq!(KeeperOrder::read(&bytes), Some(order));
        for end in 0..bytes.len() {
            assert_eq!(KeeperOrder::read(&bytes[..end]), None, "{end} bytes of it");
        }
        let longer = [bytes, vec![0]].concat();
        assert_eq!(KeeperOrder::read(&longer), None);
    }

    #[test]
    fn reports_are_read_as_they_were_written() {
        for report in [
            KeeperReport::Started(7),
            KeeperReport::NoFolder(2),
            KeeperReport::NoProgram(13),
            KeeperReport::Exited(ExitStatus::Exit(255)),
            KeeperReport::Exited(ExitStatus::Signal(9)),
            KeeperReport::Survivors {
                names: vec!["sudo".into(), "sh".into()],
            },
            KeeperReport::AllGone {
                killed: 0,
                names: vec![],
            },
            KeeperReport::AllGone {
                killed: 40,
                names: vec!["sleep".into(), "sh".into()],
            },
        ] {
            let line = report.write();
            assert_eq!(
                KeeperReport::read(line.trim_end_matches('\n')),
                Some(report)
            );
        }
        assert_eq!(KeeperReport::read("nonsense 1"), None);
        assert_eq!(KeeperReport::read("started x"), None);
    }
}
