//! Raw system calls.

use std::ffi::CString;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use libc::{c_int, c_long};

/// Makes a system call whose arguments are numbers, or point to memory that outlives the call and
/// is large enough.
pub fn call(number: c_long, words: &[usize]) -> io::Result<i64> {
    let word = |at: usize| words.get(at).copied().unwrap_or(0);
    // SAFETY: the callers in this program pass numbers, or pointers to locals of theirs that are as
    // large as the call requires.
    let answer =
        unsafe { libc::syscall(number, word(0), word(1), word(2), word(3), word(4), word(5)) };
    if answer < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(answer)
    }
}

/// Makes a call. Any result but a refusal means that the kernel looked at it.
pub fn probe(number: c_long, words: &[usize]) -> io::Result<()> {
    match call(number, words) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOSYS)) => {
            Err(error)
        }
        _ => Ok(()),
    }
}

pub fn path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// Returns an argument that points to this text.
pub fn at(text: &CString) -> usize {
    text.as_ptr() as usize
}

pub fn socket(family: c_int, kind: c_int, protocol: c_int) -> io::Result<RawFd> {
    let words = [family, kind, protocol].map(|it| it as usize);
    Ok(call(libc::SYS_socket, &words)? as RawFd)
}

/// Takes ownership of a descriptor that a call has just returned.
pub fn owned(answer: i64) -> OwnedFd {
    // SAFETY: the callers in this program have it from the kernel, and from nowhere else.
    unsafe { OwnedFd::from_raw_fd(answer as RawFd) }
}

/// Enters namespaces of its own, where it is root.
pub fn own_namespaces(flags: c_int) -> io::Result<()> {
    call(libc::SYS_unshare, &[(libc::CLONE_NEWUSER | flags) as usize]).map(drop)
}

/// The process in which `fork` returned.
pub enum Fork {
    Parent,
    Child,
}

/// # Safety
///
/// This process has one thread.
pub unsafe fn fork() -> io::Result<Fork> {
    // SAFETY: the caller upholds it.
    match unsafe { libc::fork() } {
        0 => Ok(Fork::Child),
        pid if pid > 0 => Ok(Fork::Parent),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Ends a child of a fork without running the exit handlers of its parent.
pub fn exit_now() -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(0) }
}
