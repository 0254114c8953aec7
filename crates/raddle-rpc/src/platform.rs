//! Socket and pipe options that only Linux has. Other systems do without them: this crate compiles
//! there for clients, and is not tested.

use std::os::fd::AsFd;
use std::time::Duration;

use rustix::net::SendFlags;
use socket2::SockRef;

/// Flags of a write that neither waits nor raises a signal.
#[cfg(target_os = "linux")]
pub(crate) const SEND_NOW: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
/// Flags of a write that does not wait. A Rust program ignores the signal.
#[cfg(not(target_os = "linux"))]
pub(crate) const SEND_NOW: SendFlags = SendFlags::DONTWAIT;

/// Returns the capacity of a pipe; `None` for other descriptors.
#[cfg(target_os = "linux")]
pub(crate) fn pipe_capacity(descriptor: &impl AsFd) -> Option<usize> {
    rustix::pipe::fcntl_getpipe_size(descriptor).ok()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn pipe_capacity(_: &impl AsFd) -> Option<usize> {
    None
}

/// Limits the unsent bytes that the kernel accepts, and the time that it waits for the peer.
/// Failures are ignored.
#[cfg(target_os = "linux")]
pub(crate) fn limit_unsent(socket: &SockRef<'_>, bytes_max: u32, timeout: Option<Duration>) {
    let _ = socket.set_tcp_notsent_lowat(bytes_max);
    let _ = socket.set_tcp_user_timeout(timeout);
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn limit_unsent(_: &SockRef<'_>, _: u32, _: Option<Duration>) {}
