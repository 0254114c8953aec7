//! System calls that no safe crate has. What else is `unsafe` is in `attempt`, `egress`, `process` and
//! `descriptors`.
#![expect(unsafe_code, reason = "system calls that no safe crate has")]

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use libc::{c_long, c_uint};

/// Sees to it that no descriptor but the first three reaches the next program.
pub(super) fn close_on_exec() -> io::Result<()> {
    // SAFETY: the call takes three numbers. It closes nothing now, so no descriptor that someone owns goes
    // stale.
    check(unsafe {
        libc::syscall(
            libc::SYS_close_range,
            3 as c_uint,
            c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    })
    .map(drop)
}

/// Whether the descriptor of this number is a terminal.
pub(super) fn is_terminal(number: i32) -> bool {
    // SAFETY: the call takes a number and changes nothing; one that is not open is no terminal.
    unsafe { libc::isatty(number) == 1 }
}

/// Leaves the terminal that this process belongs to.
pub(super) fn leave_terminal(terminal: impl AsFd) -> io::Result<()> {
    let terminal = terminal.as_fd().as_raw_fd();
    // SAFETY: the descriptor is borrowed for the call, which takes no further argument.
    check(unsafe { libc::ioctl(terminal, libc::TIOCNOTTY as _) }.into()).map(drop)
}

/// The keys of a terminal that interrupt whoever is in front of it.
const INTERRUPTS: [libc::c_int; 2] = [libc::SIGINT, libc::SIGQUIT];

/// Leaves what a terminal's keys interrupt to the command. Call it where a fenced command is started in
/// front of a terminal: bubblewrap stands in front of it too, and would end, and the command with it,
/// before the command could decide. What is started afterwards inherits this; inside the fence it is undone.
pub fn ignore_interrupts() {
    set(&INTERRUPTS, libc::SIG_IGN);
}

/// Leaves also to the command what asks a program to end: bubblewrap would end at once, and the command with it,
/// before it could tidy up.
pub(crate) fn ignore_endings() {
    set(&INTERRUPTS, libc::SIG_IGN);
    set(&[libc::SIGTERM], libc::SIG_IGN);
}

/// As every program expects to be started.
pub(super) fn reset_interrupts() {
    set(&INTERRUPTS, libc::SIG_DFL);
    set(&[libc::SIGTERM], libc::SIG_DFL);
}

fn set(signals: &[libc::c_int], what: libc::sighandler_t) {
    for signal in signals.iter().copied() {
        // SAFETY: neither of the two is a function, so nothing of ours runs when a signal comes. It can only fail
        // for signals that do not exist.
        unsafe { libc::signal(signal, what) };
    }
}

/// The version of Landlock in this kernel; 0 without it.
pub(super) fn landlock_version() -> i64 {
    const VERSION: c_uint = 1;
    // SAFETY: with this flag the call reads no memory and answers with a number.
    let found = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            VERSION,
        )
    };
    found.max(0)
}

/// A system call as it is, for the attempts to break out.
///
/// # Safety
///
/// As for the call: pointers among the words are valid for what it does with them, and descriptors that it
/// closes are nobody's.
pub(crate) unsafe fn call(number: c_long, words: [usize; 6]) -> io::Result<i64> {
    let [a, b, c, d, e, f] = words;
    // SAFETY: the caller's.
    check(unsafe { libc::syscall(number, a, b, c, d, e, f) })
}

fn check(answer: c_long) -> io::Result<i64> {
    if answer < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(answer)
    }
}
