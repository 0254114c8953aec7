//! Public and non-public addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns whether an address is public on the internet. Addresses of this machine, of its network,
/// or with a special meaning are not: a name that resolves to one leads somewhere it should not.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !matches!(
        address.octets(),
        [0 | 10 | 127 | 224..=255, ..]
            | [100, 64..=127, ..]
            // The address at which one cloud serves its own machines.
            | [168, 63, 129, 16]
            | [169, 254, ..]
            | [172, 16..=31, ..]
            | [192, 0, 0 | 2, _]
            | [192, 88, 99, _]
            | [192, 168, ..]
            | [198, 18 | 19, ..]
            | [198, 51, 100, _]
            | [203, 0, 113, _]
    )
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let is_embedded_public = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        // An IPv4 address inside an IPv6 one leads to the same host.
        [0, 0, 0, 0, 0, 0xffff, high, low] => is_embedded_public(high, low),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => is_embedded_public(high, low),
        [0x2002, high, low, ..] => is_embedded_public(high, low),
        // Tunnels, documentation, and special protocols.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // The global unicast addresses that are assigned so far.
        [0x2000..=0x3fff, ..] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_addresses_are_recognised() {
        for (text, public) in [
            ("93.184.216.34", true),
            ("1.1.1.1", true),
            ("172.32.0.1", true),
            ("100.128.0.1", true),
            ("0.0.0.0", false),
            ("127.0.0.1", false),
            ("127.255.255.254", false),
            ("10.1.2.3", false),
            ("168.63.129.16", false),
            ("172.16.0.1", false),
            ("172.31.255.255", false),
            ("192.168.1.1", false),
            ("169.254.169.254", false),
            ("100.64.0.1", false),
            ("198.18.0.1", false),
            ("224.0.0.1", false),
            ("255.255.255.255", false),
            ("2606:4700:4700::1111", true),
            ("::", false),
            ("::1", false),
            ("::127.0.0.1", false),
            ("::ffff:127.0.0.1", false),
            ("::ffff:169.254.169.254", false),
            ("::ffff:93.184.216.34", true),
            ("64:ff9b::7f00:1", false),
            ("64:ff9b::5db8:d822", true),
            ("64:ff9b:1::1", false),
            ("2002:7f00:1::", false),
            ("2001:0:1::1", false),
            ("2001:db8::1", false),
            ("fc00::1", false),
            ("fd12::1", false),
            ("fe80::1", false),
            ("fec0::1", false),
            ("ff02::1", false),
            ("100::1", false),
            ("5f00::1", false),
        ] {
            let address = text.parse().expect("an address");
            assert_eq!(is_public(address), public, "{text}");
        }
    }
}
