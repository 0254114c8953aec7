//! A pseudo-terminal with a program in it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, OptionalActions, Winsize, tcgetattr, tcsetattr, tcsetwinsize};

/// Deadline for output; only a program that hangs reaches it.
const DEADLINE: Duration = Duration::from_secs(90);

pub struct Pty {
    user_side: File,
    /// Held until the program has it: without a holder, reading ends.
    program_side: Option<OwnedFd>,
    chunks: Receiver<Vec<u8>>,
}

impl Pty {
    /// Opens a terminal of this size that does not echo: the recording types its own text.
    pub fn open(columns: u16, rows: u16) -> Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let user_side = openpt(flags).context("cannot open a terminal")?;
        grantpt(&user_side)?;
        unlockpt(&user_side)?;
        let program_side = ioctl_tiocgptpeer(&user_side, flags)?;
        tcsetwinsize(
            &program_side,
            Winsize {
                ws_row: rows,
                ws_col: columns,
                ws_xpixel: 0,
                ws_ypixel: 0,
            },
        )?;
        let mut modes = tcgetattr(&program_side)?;
        modes.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&program_side, OptionalActions::Now, &modes)?;

        let user_side = File::from(user_side);
        let mut reader = user_side.try_clone()?;
        let (sender, chunks) = mpsc::channel();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The end of the program is an error of the terminal.
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            user_side,
            program_side: Some(program_side),
            chunks,
        })
    }

    /// Starts the program with its input and outputs on the terminal.
    pub fn start(&mut self, mut command: Command) -> Result<Child> {
        let side = self.program_side.take();
        let side = side.context("the terminal has a program already")?;
        command
            .stdin(Stdio::from(side.try_clone()?))
            .stdout(Stdio::from(side.try_clone()?))
            .stderr(Stdio::from(side));
        command.spawn().context("cannot start the program")
    }

    /// Enters a line.
    pub fn enter(&mut self, line: &str) -> Result<()> {
        Ok(self.user_side.write_all(format!("{line}\n").as_bytes())?)
    }

    /// Returns the output so far, once it ends with this text.
    pub fn read_until(&mut self, end: &str) -> Result<String> {
        let mut text = Vec::new();
        while !text.ends_with(end.as_bytes()) {
            let Ok(chunk) = self.chunks.recv_timeout(DEADLINE) else {
                let text = String::from_utf8_lossy(&text);
                bail!("the program did not show `{end}`, but:\n{text}");
            };
            text.extend(chunk);
        }
        Ok(String::from_utf8(text)?)
    }

    /// Returns the rest of the output, once the program has ended.
    pub fn read_to_end(&mut self) -> Result<String> {
        let mut text = Vec::new();
        loop {
            match self.chunks.recv_timeout(DEADLINE) {
                Ok(chunk) => text.extend(chunk),
                Err(RecvTimeoutError::Disconnected) => return Ok(String::from_utf8(text)?),
                Err(RecvTimeoutError::Timeout) => {
                    let text = String::from_utf8_lossy(&text);
                    bail!("the program did not end after:\n{text}");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_is_asked_and_answered() {
        let mut pty = Pty::open(80, 24).expect("a terminal");
        let mut shell = Command::new("sh");
        shell.args([
            "-c",
            "test -t 0 && printf 'yes? ' && read it && echo \"got $it\"",
        ]);
        let mut child = pty.start(shell).expect("a shell");
        assert_eq!(pty.read_until("? ").expect("a question"), "yes? ");
        pty.enter("y").expect("typed");
        assert_eq!(pty.read_to_end().expect("an end"), "got y\r\n");
        assert!(child.wait().expect("an end").success());
    }
}
