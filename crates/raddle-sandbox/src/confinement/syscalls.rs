//! System calls that no safe crate has. The other `unsafe` code is in `attempt`, `egress`,
//! `process` and `descriptors`.
#![expect(unsafe_code, reason = "system calls that no safe crate has")]

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use libc::{c_long, c_uint};

/// Closes every descriptor but the first three when the next program starts.
pub(super) fn close_on_exec() -> io::Result<()> {
    // SAFETY: the call takes three numbers. It closes nothing now, so no owned descriptor goes
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

/// Returns whether the descriptor of this number is a terminal.
pub(super) fn is_terminal(number: i32) -> bool {
    // SAFETY: the call takes a number and changes nothing; one that is not open is no terminal.
    unsafe { libc::isatty(number) == 1 }
}

/// Detaches this process from its controlling terminal.
pub(super) fn leave_terminal(terminal: impl AsFd) -> io::Result<()> {
    let terminal = terminal.as_fd().as_raw_fd();
    // SAFETY: the descriptor is borrowed for the call, which takes no further argument.
    check(unsafe { libc::ioctl(terminal, libc::TIOCNOTTY as _) }.into()).map(drop)
}

/// The signals that the keys of a terminal send to its foreground processes.
const INTERRUPTS: [libc::c_int; 2] = [libc::SIGINT, libc::SIGQUIT];

/// Ignores the interrupt signals of a terminal, so that the command handles them. Call it where a
/// sandboxed command is started in front of a terminal: bubblewrap is in the foreground too, and
/// would end, and the command with it, before the command could decide. Child processes inherit
/// this; the helper undoes it inside the sandbox.
pub fn ignore_interrupts() {
    set(&INTERRUPTS, libc::SIG_IGN);
}

/// Ignores `SIGTERM` as well, so that the command handles it: bubblewrap would end at once, and the
/// command with it, before it could clean up.
pub(crate) fn ignore_termination() {
    set(&INTERRUPTS, libc::SIG_IGN);
    set(&[libc::SIGTERM], libc::SIG_IGN);
}

/// Restores the default handlers, which every program expects.
pub(super) fn reset_interrupts() {
    set(&INTERRUPTS, libc::SIG_DFL);
    set(&[libc::SIGTERM], libc::SIG_DFL);
}

fn set(signals: &[libc::c_int], handler: libc::sighandler_t) {
    for signal in signals.iter().copied() {
        // SAFETY: neither of the two handlers is a function, so nothing of ours runs when a signal
        // comes. The call can only fail for signals that do not exist.
        unsafe { libc::signal(signal, handler) };
    }
}

/// Returns the version of Landlock in this kernel; 0 without it.
pub(super) fn landlock_version() -> i64 {
    const VERSION: c_uint = 1;
    // SAFETY: with this flag the call reads no memory and returns a number.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            VERSION,
        )
    };
    version.max(0)
}

/// Makes a raw system call, for the attempts to break out.
///
/// # Safety
///
/// As for the call: pointers among the arguments are valid for what it does with them, and
/// descriptors that it closes have no owner.
pub(crate) unsafe fn call(number: c_long, words: [usize; 6]) -> io::Result<i64> {
    let [a, b, c, d, e, f] = words;
    // SAFETY: the caller upholds the requirements of the call.
    check(unsafe { libc::syscall(number, a, b, c, d, e, f) })
}

fn check(answer: c_long) -> io::Result<i64> {
    if answer < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(answer)
    }
}
