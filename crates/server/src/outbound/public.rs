//! Which addresses and names are of the public internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Names that never leave the machine or its network (RFC 6761, RFC 6762, RFC 8375, RFC 9476).
pub(super) fn is_local_name(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    !name.contains('.')
        || ["localhost", "local", "internal", "home.arpa", "alt"]
            .iter()
            .any(|zone| name == *zone || name.strip_suffix(zone).is_some_and(|rest| rest.ends_with('.')))
}

/// Whether an address is one of the public internet (the IANA special-purpose address registries). Addresses that carry an
/// IPv4 address are judged by that.
pub fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => match embedded(ip) {
            Some(inner) => is_public_v4(inner),
            None => is_public_v6(ip) && isatap(ip).is_none_or(is_public_v4),
        },
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    !(a == 0
        || ip.is_private()
        || ip.is_loopback()
        || ip.is_link_local()
        || ip.is_documentation()
        // Shared by carriers (RFC 6598), of protocols (RFC 6890), of benchmarks (RFC 2544), 6to4 relays (RFC 7526).
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (18..20).contains(&b))
        || (a == 192 && b == 88 && c == 99)
        // Multicast, reserved, broadcast.
        || a >= 224
        // What a machine in Azure has its metadata and its agent from, at an address that is public otherwise.
        || ip == Ipv4Addr::new(168, 63, 129, 16))
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let [first, second, ..] = ip.segments();
    // Global unicast is all that was ever handed out.
    (first & 0xe000) == 0x2000
        // Of protocols (RFC 2928; Teredo and ORCHID among them), documentation (RFC 3849, RFC 9637), the old 6bone.
        && !(first == 0x2001 && second < 0x200)
        && !(first == 0x2001 && second == 0x0db8)
        && !(first == 0x3fff && second < 0x1000)
        && first != 0x3ffe
}

/// The IPv4 address that an IPv6 address stands for: mapped and compatible ones (RFC 4291), NAT64 (RFC 6052, RFC 8215), 6to4
/// (RFC 3056).
fn embedded(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let s = ip.segments();
    let low = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match s {
        [0, 0, 0, 0, 0, 0xffff, a, b] | [0, 0, 0, 0, 0xffff, 0, a, b] => Some(low(a, b)),
        [0, 0, 0, 0, 0, 0, a, b] => Some(low(a, b)),
        [0x64, 0xff9b, 0, 0, 0, 0, a, b] => Some(low(a, b)),
        // Where a network puts the address in its own NAT64 prefix is not known: none of it is public.
        [0x64, 0xff9b, 1, ..] => Some(Ipv4Addr::UNSPECIFIED),
        [0x2002, a, b, ..] => Some(low(a, b)),
        _ => None,
    }
}

/// The IPv4 address of a machine behind an ISATAP router (RFC 5214, 6.1), which stands in the last half of any address.
fn isatap(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    match ip.segments() {
        [_, _, _, _, 0 | 0x200, 0x5efe, a, b] => Some(Ipv4Addr::from(u32::from(a) << 16 | u32::from(b))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn only_addresses_of_the_public_internet_are_public() {
        for public in ["1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1", "192.0.1.1"]
            .into_iter()
            .chain(["198.17.0.1", "198.20.0.1", "223.255.255.255", "2606:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8"])
            .chain(["64:ff9b::8.8.8.8", "2002:0808:0808::1", "2001:200::1"])
        {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for other in ["0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.9.9.9", "169.254.169.254"]
            .into_iter()
            .chain(["172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.88.99.1", "192.168.1.1"])
            .chain([
                "168.63.129.16",
                "198.18.0.1",
                "198.51.100.1",
                "203.0.113.1",
                "224.0.0.1",
                "240.0.0.1",
                "255.255.255.255",
            ])
            .chain(["::", "::1", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "2001::1", "2001:db8::1"])
            .chain(["3fff::1", "100::1", "::ffff:10.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b:1::8.8.8.8", "2002:a00:1::"])
            .chain([
                "2a00:1450::5efe:127.0.0.1",
                "2a00:1450::200:5efe:10.0.0.1",
                "fd00::5efe:8.8.8.8",
                "::ffff:168.63.129.16",
            ])
        {
            assert!(!is_public(other.parse().unwrap()), "{other}");
        }
    }
}
