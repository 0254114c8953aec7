//! The network, for a command without network access.

use std::io;
use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;

use raddle_sandbox::attempt::Attempt;
use raddle_sandbox::attempt::SecondTier::Stopped;

use crate::syscalls;

const IPPROTO_MPTCP: i32 = 262;

pub const ATTEMPTS: &[Attempt] = &[
    // The host checks whether it arrived.
    Attempt {
        name: "udp-to-host",
        shows: "no datagram reaches the host",
        second_tier: Stopped,
        run: |testbed| {
            let socket = UdpSocket::bind("127.0.0.1:0")?;
            socket.send_to(b"x", ("127.0.0.1", testbed.tcp))?;
            Err(io::Error::other("sent; the host checks whether it arrived"))
        },
    },
    Attempt {
        name: "mptcp-to-host",
        shows: "TCP over many paths is no way around",
        second_tier: Stopped,
        run: |testbed| {
            let socket = syscalls::socket(libc::AF_INET, libc::SOCK_STREAM, IPPROTO_MPTCP)?;
            let address = host(testbed.tcp);
            let words = [
                socket as usize,
                (&raw const address) as usize,
                size_of_val(&address),
            ];
            syscalls::call(libc::SYS_connect, &words).map(drop)
        },
    },
    Attempt {
        name: "fast-open-to-host",
        shows: "nor is a connection that is opened by its first bytes",
        second_tier: Stopped,
        run: |testbed| {
            let socket = syscalls::socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
            let address = host(testbed.tcp);
            let words = [
                socket as usize,
                b"x".as_ptr() as usize,
                1,
                libc::MSG_FASTOPEN as usize,
                (&raw const address) as usize,
                size_of_val(&address),
            ];
            syscalls::call(libc::SYS_sendto, &words).map(drop)
        },
    },
    Attempt {
        name: "unix-datagram-to-host",
        shows: "unix sockets of the host take no datagrams either",
        second_tier: Stopped,
        run: |testbed| {
            let socket = UnixDatagram::unbound()?;
            socket
                .send_to(b"x", testbed.workspace().join("datagrams"))
                .map(drop)
        },
    },
    Attempt {
        name: "datagram-pair-to-host",
        shows: "nor from a pair, each end of which could send elsewhere",
        second_tier: Stopped,
        run: |testbed| {
            let (ours, _theirs) = UnixDatagram::pair()?;
            ours.send_to(b"x", testbed.workspace().join("datagrams"))
                .map(drop)
        },
    },
    // The host checks whether it arrived.
    Attempt {
        name: "leaked-socket",
        shows: "a socket that someone left open is closed",
        second_tier: Stopped,
        run: |_| {
            for number in 3..64_usize {
                let flags = (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as usize;
                let words = [number, b"x".as_ptr() as usize, 1, flags, 0, 0];
                let _ = syscalls::call(libc::SYS_sendto, &words);
            }
            Err(io::Error::other(
                "sent to all open sockets; the host checks whether it arrived",
            ))
        },
    },
    Attempt {
        name: "raw-socket",
        shows: "no packets of its own making",
        second_tier: Stopped,
        run: |_| {
            syscalls::own_namespaces(libc::CLONE_NEWNET)?;
            syscalls::socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP).map(drop)
        },
    },
    Attempt {
        name: "packet-socket",
        shows: "no listening on a wire",
        second_tier: Stopped,
        run: |_| {
            syscalls::own_namespaces(libc::CLONE_NEWNET)?;
            syscalls::socket(libc::AF_PACKET, libc::SOCK_RAW, 0).map(drop)
        },
    },
    Attempt {
        name: "netlink-events",
        shows: "of netlink, only the list of addresses",
        second_tier: Stopped,
        run: |_| {
            syscalls::socket(
                libc::AF_NETLINK,
                libc::SOCK_RAW,
                libc::NETLINK_KOBJECT_UEVENT,
            )
            .map(drop)
        },
    },
    Attempt {
        name: "netlink-sockets",
        shows: "nor a list of the host's sockets",
        second_tier: Stopped,
        run: |_| {
            syscalls::socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_SOCK_DIAG).map(drop)
        },
    },
    Attempt {
        name: "crypto-socket",
        shows: "sockets that are really something else are out of reach",
        second_tier: Stopped,
        run: |_| match syscalls::socket(libc::AF_ALG, libc::SOCK_SEQPACKET, 0) {
            // The kernel examined the call, and does not support it.
            Err(error) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) => Ok(()),
            result => result.map(drop),
        },
    },
];

/// Returns the address on which the host listens.
fn host(port: u16) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from_ne_bytes([127, 0, 0, 1]),
        },
        sin_zero: [0; 8],
    }
}
