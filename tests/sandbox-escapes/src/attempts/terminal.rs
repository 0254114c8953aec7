//! The terminal of the person who started the server.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;

use raddle_sandbox::attempt::Attempt;
use raddle_sandbox::attempt::SecondTier::Stopped;

use crate::syscalls;

/// Attempts that get a terminal of their own.
pub const ON_TERMINAL: &[&str] = &[
    "type-into-terminal",
    "type-hidden-in-upper-half",
    "line-discipline",
];

const TIOCSTI: usize = 0x5412;
const TIOCSETD: usize = 0x5423;

pub const ATTEMPTS: &[Attempt] = &[
    Attempt {
        name: "type-into-terminal",
        shows: "a command cannot type into the terminal that it was given",
        second_tier: Stopped,
        run: |_| type_in(TIOCSTI),
    },
    Attempt {
        name: "type-hidden-in-upper-half",
        shows: "not even with a number that only looks like another",
        second_tier: Stopped,
        run: |_| type_in(TIOCSTI | 1 << 32),
    },
    Attempt {
        name: "line-discipline",
        shows: "a terminal cannot be turned into something else",
        second_tier: Stopped,
        run: |_| {
            let plain = 0_i32;
            syscalls::call(libc::SYS_ioctl, &[0, TIOCSETD, (&raw const plain) as usize]).map(drop)
        },
    },
    Attempt {
        name: "server-terminal",
        shows: "a command without a terminal does not find the server's",
        second_tier: Stopped,
        run: |_| {
            OpenOptions::new()
                .write(true)
                .open("/dev/tty")?
                .write_all(b"x")
        },
    },
    Attempt {
        name: "other-terminals",
        shows: "nor any other terminal of the user",
        second_tier: Stopped,
        run: |_| {
            let mut last = io::Error::other("there are none");
            for entry in fs::read_dir("/dev/pts")?.flatten() {
                if entry.file_name() == "ptmx" {
                    continue;
                }
                let mut options = OpenOptions::new();
                // So that it does not become this program's controlling terminal.
                options.read(true).write(true).custom_flags(libc::O_NOCTTY);
                match options.open(entry.path()) {
                    Ok(_) => return Ok(()),
                    Err(error) => last = error,
                }
            }
            Err(last)
        },
    },
];

fn type_in(request: usize) -> io::Result<()> {
    let letter = b'x';
    syscalls::call(libc::SYS_ioctl, &[0, request, (&raw const letter) as usize]).map(drop)
}
