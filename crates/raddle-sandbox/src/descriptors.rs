//! Descriptors that go to another process over a socket, beside some bytes, and those that go to none.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// The most that go at once: stdin, stdout and stderr.
const MAX: usize = 3;

/// Sends these. Few bytes go whole or not at all.
pub(crate) fn send(
    socket: impl AsFd,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    let is_room = descriptors.len() <= MAX;
    if !is_room || !beside.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let bytes = [IoSlice::new(bytes)];
    sendmsg(socket, &bytes, &mut beside, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives so many bytes, and so many descriptors beside them; neither fewer nor more.
pub(crate) fn receive<const N: usize>(
    socket: impl AsFd,
    bytes: &mut [u8],
) -> io::Result<[OwnedFd; N]> {
    let length = bytes.len();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::WAITALL;
    let received = recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut beside, flags)?;
    let mut descriptors = Vec::new();
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(some) = message {
            descriptors.extend(some);
        }
    }
    if received.bytes < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let other = |_| io::Error::other("other descriptors came than were expected");
    descriptors.try_into().map_err(other)
}

/// Whoever started this process may have left descriptors open in it. No program that is started from here on gets
/// any but the first three.
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
        // SAFETY: it was open a moment ago, and nothing but its flag is touched.
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
    fn what_is_sent_arrives_and_in_no_other_number() {
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
        assert!(send(&ours, b"ab", &[other.as_fd(); MAX + 1]).is_err());
        send(&ours, b"a", &[other.as_fd()]).expect("too little is sent");
        drop(ours);
        assert!(receive::<1>(&theirs, &mut bytes).is_err());
    }
}
