//! The addresses of this machine.
#![expect(unsafe_code, reason = "a list of the C library's, walked by hand")]

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ptr;

/// Returns the addresses of the machine's interfaces. The machine does not know other addresses
/// that a router maps to it.
pub(super) fn addresses() -> io::Result<Vec<IpAddr>> {
    let mut list = ptr::null_mut();
    // SAFETY: the call writes a pointer to a list, which is freed below.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut addresses = Vec::new();
    let mut cursor = list;
    // SAFETY: each entry is complete and lives until the list is freed; the last one has a null
    // pointer.
    while let Some(entry) = unsafe { cursor.as_ref() } {
        // SAFETY: as above.
        addresses.extend(unsafe { address(entry.ifa_addr) });
        cursor = entry.ifa_next;
    }
    // SAFETY: it is the list from above, and nothing uses it any more.
    unsafe { libc::freeifaddrs(list) };
    Ok(addresses)
}

/// # Safety
///
/// The pointer is null, or points to an address as long as its family requires.
unsafe fn address(at: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: the caller upholds it.
    let family = unsafe { at.as_ref() }?.sa_family;
    match i32::from(family) {
        libc::AF_INET => {
            // SAFETY: the family says that it is a `sockaddr_in`.
            let it = unsafe { ptr::read_unaligned(at.cast::<libc::sockaddr_in>()) };
            Some(Ipv4Addr::from(u32::from_be(it.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: the family says that it is a `sockaddr_in6`.
            let it = unsafe { ptr::read_unaligned(at.cast::<libc::sockaddr_in6>()) };
            Some(Ipv6Addr::from(it.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_machine_has_its_loopback() {
        let local = addresses().expect("a list");
        assert!(local.contains(&Ipv4Addr::LOCALHOST.into()), "{local:?}");
    }
}
