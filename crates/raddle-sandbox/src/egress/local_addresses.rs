//! The addresses of this machine.
#![expect(unsafe_code, reason = "a list of the C library's, walked by hand")]

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ptr;

/// Those of its interfaces. Others that lead to it by way of a router it does not know itself.
pub(super) fn addresses() -> io::Result<Vec<IpAddr>> {
    let mut list = ptr::null_mut();
    // SAFETY: the call writes a pointer to a list, which is freed below.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found = Vec::new();
    let mut at = list;
    // SAFETY: each entry is whole and lives until the list is freed; the last one points nowhere.
    while let Some(entry) = unsafe { at.as_ref() } {
        // SAFETY: as above.
        found.extend(unsafe { address(entry.ifa_addr) });
        at = entry.ifa_next;
    }
    // SAFETY: it is the list from above, and nothing of it is used any more.
    unsafe { libc::freeifaddrs(list) };
    Ok(found)
}

/// # Safety
///
/// It points nowhere, or to an address as long as its family says.
unsafe fn address(at: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: the caller's.
    let family = unsafe { at.as_ref() }?.sa_family;
    match i32::from(family) {
        libc::AF_INET => {
            // SAFETY: this family's.
            let it = unsafe { ptr::read_unaligned(at.cast::<libc::sockaddr_in>()) };
            Some(Ipv4Addr::from(u32::from_be(it.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: this family's.
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
        let found = addresses().expect("a list");
        assert!(found.contains(&Ipv4Addr::LOCALHOST.into()), "{found:?}");
    }
}
