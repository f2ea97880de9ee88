//! Which addresses of the internet protocol are for everybody, and which others an operator adds. What a name leads to
//! is asked for here before anything connects to it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use gesso::error::{Error, Result};

/// Networks of version 4 that are not for everybody: this host, private ones, link-local ones with the metadata of
/// clouds, those for examples and measurements, multicast, and one address by which a cloud reaches its hosts.
const CLOSED_4: [(Ipv4Addr, u8); 17] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 31, 196, 0), 24),
    (Ipv4Addr::new(192, 52, 193, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 3),
];

/// What is for everybody in version 6. Outside of it: this host, private and link-local networks, multicast, and
/// addresses of version 4 in other clothes (mapped, compatible, NAT64).
const OPEN_6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// What is not for everybody inside of [`OPEN_6`]: protocols (Teredo, too), examples, 6to4.
const CLOSED_6: [(Ipv6Addr, u8); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Networks that an operator allows beside those for everybody.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Networks(Vec<(IpAddr, u8)>);

impl Networks {
    /// Networks such as `10.1.0.0/16, fd00::/8, 127.0.0.1`.
    ///
    /// # Errors
    /// Invalid for what is none.
    pub fn parse(text: &str) -> Result<Self> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        parts.map(network).collect::<Result<_>>().map(Self)
    }

    /// Whether something may be fetched from `address`.
    pub fn allow(&self, address: IpAddr) -> bool {
        is_open(address) || self.0.iter().any(|network| holds(*network, address))
    }
}

fn network(text: &str) -> Result<(IpAddr, u8)> {
    let wrong = || {
        Error::invalid(format!(
            "`{}` is no network, expected one such as `10.1.0.0/16` or `fd00::/8`",
            text.escape_debug()
        ))
    };
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = match bits {
        Some(bits) => bits.parse::<u8>().ok().filter(|bits| *bits <= most).ok_or_else(wrong)?,
        None => most,
    };
    Ok((address, bits))
}

fn is_open(address: IpAddr) -> bool {
    let is_in = |(network, bits): (IpAddr, u8)| holds((network, bits), address);
    match address {
        IpAddr::V4(_) => !CLOSED_4.iter().any(|(network, bits)| is_in((IpAddr::V4(*network), *bits))),
        IpAddr::V6(_) => {
            let (open, bits) = OPEN_6;
            is_in((IpAddr::V6(open), bits))
                && !is_tunnel(address)
                && !CLOSED_6.iter().any(|(network, bits)| is_in((IpAddr::V6(*network), *bits)))
        }
    }
}

/// Whether an address of version 6 ends with one of version 4 as ISATAP writes it, in whichever network.
fn is_tunnel(address: IpAddr) -> bool {
    match address {
        IpAddr::V6(address) => matches!(address.segments(), [_, _, _, _, 0 | 0x200, 0x5efe, _, _]),
        IpAddr::V4(_) => false,
    }
}

/// Whether `network` holds `address`: those of the two versions hold none of one another.
fn holds((network, bits): (IpAddr, u8), address: IpAddr) -> bool {
    match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            network.to_bits() & mask == address.to_bits() & mask
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            network.to_bits() & mask == address.to_bits() & mask
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_not_for_everybody_is_refused() {
        let none = Networks::default();
        let closed = [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "::ffff:0:8.8.8.8",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "100::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2001::1",
            "2001:10::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "3fff::1",
            "4000::1",
            "2a00:1450::5efe:7f00:1",
            "2a00:1450::200:5efe:a00:1",
        ];
        let open = [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.0.1",
            "172.32.0.1",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2a00:1450::1",
            "2003::1",
        ];
        for text in closed {
            assert!(!none.allow(ip(text)), "{text}");
        }
        for text in open {
            assert!(none.allow(ip(text)), "{text}");
        }
    }

    #[test]
    fn an_operator_adds_networks() {
        let networks = Networks::parse(" 10.1.0.0/16,127.0.0.1 , fd00::/8,, ::ffff:192.168.0.0/112").unwrap();
        for text in ["10.1.255.1", "127.0.0.1", "fd12::1", "::ffff:192.168.9.9", "8.8.8.8"] {
            assert!(networks.allow(ip(text)), "{text}");
        }
        for text in ["10.2.0.1", "127.0.0.2", "fc00::1", "192.168.9.9", "::ffff:127.0.0.1", "::1"] {
            assert!(!networks.allow(ip(text)), "{text}");
        }
        let all = Networks::parse("0.0.0.0/0, ::/0").unwrap();
        assert!(all.allow(ip("127.0.0.1")) && all.allow(ip("::1")));
        for wrong in
            ["10.0.0.0/33", "10.0.0/8", "::/129", "localhost", "10.0.0.0/-1", "10.0.0.0/", "1.2.3.4 5.6.7.8"]
        {
            assert!(Networks::parse(wrong).unwrap_err().to_string().contains("is no network"), "{wrong}");
        }
    }
}
