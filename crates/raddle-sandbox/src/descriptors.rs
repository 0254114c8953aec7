//! Passes descriptors to another process over a socket, together with some bytes, and closes those
//! that no child may inherit.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// Maximum number of descriptors in one message: stdin, stdout and stderr.
const DESCRIPTORS_MAX: usize = 3;

/// Sends bytes and descriptors. Few bytes are sent as a whole or not at all.
pub(crate) fn send(
    socket: impl AsFd,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let fits = descriptors.len() <= DESCRIPTORS_MAX;
    if !fits || !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let bytes = [IoSlice::new(bytes)];
    sendmsg(socket, &bytes, &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives exactly so many bytes and so many descriptors.
pub(crate) fn receive<const N: usize>(
    socket: impl AsFd,
    bytes: &mut [u8],
) -> io::Result<[OwnedFd; N]> {
    let length = bytes.len();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::WAITALL;
    let received = recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut ancillary, flags)?;
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(some) = message {
            descriptors.extend(some);
        }
    }
    if received.bytes < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let other = |_| io::Error::other("received an unexpected number of descriptors");
    descriptors.try_into().map_err(other)
}

/// Marks every descriptor but the first three as close-on-exec, because the parent of this process
/// may have left some open. No program that is started later inherits them.
pub fn set_cloexec() {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else {
        return;
    };
    let numbers = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<RawFd>().ok());
    for number in numbers.filter(|number| *number > 2) {
        #[expect(
            unsafe_code,
            reason = "these descriptors came from elsewhere, so nothing here owns them"
        )]
        // SAFETY: it was open a moment ago, and only its flag is changed.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        let _ = fcntl_setfd(descriptor, FdFlags::CLOEXEC);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn descriptors_arrive_only_in_the_expected_number() {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let (mut end, other) = UnixStream::pair().expect("a pair");
        send(&ours, b"ab", &[other.as_fd()]).expect("it is sent");
        let mut bytes = [0; 2];
        let [received] = receive(&theirs, &mut bytes).expect("it arrives");
        assert_eq!(&bytes, b"ab");
        let mut received = UnixStream::from(received);
        received.write_all(b"x").expect("it is written");
        end.read_exact(&mut bytes[..1]).expect("it is read");
        assert_eq!(&bytes, b"xb");

        send(&ours, b"ab", &[other.as_fd(), other.as_fd()]).expect("they are sent");
        assert!(receive::<1>(&theirs, &mut bytes).is_err());
        send(&ours, b"ab", &[]).expect("nothing is sent");
        assert!(receive::<1>(&theirs, &mut bytes).is_err());
        assert!(send(&ours, b"ab", &[other.as_fd(); DESCRIPTORS_MAX + 1]).is_err());
        send(&ours, b"a", &[other.as_fd()]).expect("too little is sent");
        drop(ours);
        assert!(receive::<1>(&theirs, &mut bytes).is_err());
    }
}
