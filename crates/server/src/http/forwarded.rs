//! Whom a request comes from where a trusted proxy passes it on.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;
use ipnet::IpNet;

/// Where each proxy writes, at the end, whom it had the request from.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// Reads a proxy that is trusted: an address, or a network in CIDR notation (RFC 4632).
///
/// # Errors
/// What it takes.
pub fn trusted(text: &str) -> Result<IpNet, String> {
    let net = text.parse::<IpNet>().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
    net.map(|net| net.trunc())
        .ok_or_else(|| "an address or a network, like 127.0.0.1, 10.0.0.0/8 or 2001:db8::/32".to_owned())
}

/// The address that a request is counted by. From a trusted proxy it is the right-most address of `X-Forwarded-For` that is not
/// one of a trusted proxy; from anybody else the peer's own, whatever they write. What can't be read ends the search: to its left
/// anybody may have written anything.
pub fn client(peer: IpAddr, headers: &HeaderMap, proxies: &[IpNet]) -> IpAddr {
    let is_trusted = |address: IpAddr| proxies.iter().any(|net| net.contains(&address));
    let lines: Vec<&str> = headers.get_all(FORWARDED_FOR).iter().map(|line| line.to_str().unwrap_or("?")).collect();
    let mut hops = lines.iter().flat_map(|line| line.split(',')).rev();
    let mut client = peer.to_canonical();
    while is_trusted(client) {
        match hops.next().and_then(hop) {
            Some(address) => client = address,
            None => break,
        }
    }
    client
}

/// An address as proxies write it, some of them with a port.
fn hop(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse::<IpAddr>().ok().or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()));
    address.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn of(peer: &str, lines: &[&[u8]]) -> String {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(FORWARDED_FOR, axum::http::HeaderValue::from_bytes(line).unwrap());
        }
        let proxies = ["127.0.0.1", "10.0.0.0/8", "2001:db8:1::/48"].map(|text| trusted(text).unwrap());
        client(peer.parse().unwrap(), &headers, &proxies).to_string()
    }

    #[test]
    fn a_header_counts_from_trusted_peers_alone() {
        assert_eq!(of("203.0.113.9", &[b"198.51.100.1"]), "203.0.113.9");
        assert_eq!(of("2001:db8:2::1", &[b"198.51.100.1"]), "2001:db8:2::1");
        assert_eq!(of("127.0.0.1", &[b"198.51.100.1"]), "198.51.100.1");
        assert_eq!(of("::ffff:127.0.0.1", &[b"198.51.100.1"]), "198.51.100.1");
        assert_eq!(of("127.0.0.1", &[]), "127.0.0.1", "a proxy's own request");
    }

    #[test]
    fn what_a_client_forges_stands_to_the_left_and_is_not_read() {
        assert_eq!(of("127.0.0.1", &[b"1.1.1.1, 198.51.100.1"]), "198.51.100.1");
        assert_eq!(of("127.0.0.1", &[b"10.0.0.7, 127.0.0.1, 198.51.100.1"]), "198.51.100.1");
        assert_eq!(of("127.0.0.1", &[b"1.1.1.1", b"2.2.2.2, 198.51.100.1"]), "198.51.100.1", "lines are one list");
    }

    #[test]
    fn chains_of_trusted_proxies_are_gone_through() {
        assert_eq!(of("127.0.0.1", &[b"198.51.100.1, 10.1.2.3,10.9.9.9"]), "198.51.100.1");
        assert_eq!(of("10.0.0.1", &[b"10.1.2.3, 10.9.9.9"]), "10.1.2.3", "all of it is within the network");
    }

    #[test]
    fn addresses_of_ipv6_and_ports_are_read() {
        for line in ["2001:db8:7::1", "[2001:db8:7::1]", "[2001:db8:7::1]:4711", " 2001:DB8:7:0::1 , 2001:db8:1::5"] {
            assert_eq!(of("2001:db8:1::2", &[line.as_bytes()]), "2001:db8:7::1", "{line}");
        }
        assert_eq!(of("127.0.0.1", &[b"198.51.100.1:4711"]), "198.51.100.1");
        assert_eq!(of("127.0.0.1", &[b"::ffff:198.51.100.1"]), "198.51.100.1");
    }

    #[test]
    fn what_cannot_be_read_ends_the_search() {
        for line in [
            &b"unknown"[..],
            b"",
            b"1.1.1.1, _hidden",
            b"1.1.1.1,",
            b"1.1.1.1, 999.1.1.1",
            b"1.1.1.1, \xff",
            b"1.1.1.1 2.2.2.2",
        ] {
            assert_eq!(of("127.0.0.1", &[line]), "127.0.0.1", "{line:?}");
        }
        assert_eq!(of("127.0.0.1", &[b"1.1.1.1, ?, 10.0.0.4"]), "10.0.0.4");
    }

    #[test]
    fn a_proxy_is_an_address_or_a_network() {
        assert_eq!(trusted("10.1.2.3/8").unwrap().to_string(), "10.0.0.0/8");
        assert_eq!(trusted("::1").unwrap().to_string(), "::1/128");
        for bad in ["", "localhost", "10.0.0.0/33", "10.0.0", "*"] {
            assert!(trusted(bad).unwrap_err().contains("10.0.0.0/8"), "{bad}");
        }
    }
}
