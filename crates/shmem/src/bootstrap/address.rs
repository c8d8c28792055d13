//! The address where a host's agent listens.
#![allow(unsafe_code)] // reads the system's list of interfaces

use super::{BootstrapError, exchange, invalid};
use crate::world::config::{ConfigError, INTERFACE, read};
use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs};
use std::ptr;

/// An address of this host, and the interface's name.
type Local = (String, IpAddr);

/// What [`INTERFACE`] says; else `known`; else one of this host's name; else the first that others can reach.
///
/// # Errors
/// [`BootstrapError`].
pub(super) fn of_this_host(known: Option<IpAddr>) -> Result<IpAddr, BootstrapError> {
    let all = interfaces().map_err(exchange("this host's interfaces"))?;
    if let Some(wanted) = read(INTERFACE.name)? {
        let chosen = all.iter().find(|local| matches(&wanted, local));
        let (_, address) = chosen.ok_or(ConfigError {
            name: INTERFACE.name,
            value: wanted,
            wanted: "an interface of this host that is up, such as eth0, or a network that it is in, such as 10.0.0.0/8",
        })?;
        return Ok(*address);
    }
    if let Some(known) = known {
        return Ok(known);
    }
    let mut others: Vec<IpAddr> = all.iter().map(|&(_, address)| address).collect();
    others.retain(reachable);
    // Where there is no choice nobody is asked what this host's name stands for, which can take long.
    if let [only] = others[..] {
        return Ok(only);
    }
    let uname = rustix::system::uname();
    let name = uname.nodename().to_string_lossy().into_owned();
    // A name may stand for a loopback address or one of days gone by.
    let named = (name.as_str(), 0).to_socket_addrs().into_iter().flatten();
    let mut named = named.map(|address| address.ip());
    let ours = |address: &IpAddr| others.contains(address);
    let first = || {
        others
            .iter()
            .min_by_key(|address| address.is_ipv6())
            .copied()
    };
    named.find(ours).or_else(first).ok_or_else(|| {
        let what = "none is up; set CROSSWARP_INTERFACE";
        exchange("this host's interfaces")(invalid(what))
    })
}

/// Whether other hosts can use it without saying by which interface.
fn reachable(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !address.is_loopback() && !address.is_link_local(),
        IpAddr::V6(address) => !address.is_loopback() && !address.is_unicast_link_local(),
    }
}

/// Whether `wanted`, an interface, an address or a network, means this one.
fn matches(wanted: &str, (name, address): &Local) -> bool {
    if wanted == name {
        return true;
    }
    let (network, bits) = match wanted.split_once('/') {
        Some((network, bits)) => (network, bits.parse::<u32>().ok()),
        None => (wanted, Some(128)),
    };
    let (Ok(network), Some(bits)) = (network.parse::<IpAddr>(), bits) else {
        return false;
    };
    match (network, *address) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            let differing = u32::from(a) ^ u32::from(b);
            differing.leading_zeros() >= bits.min(32)
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            let differing = u128::from(a) ^ u128::from(b);
            differing.leading_zeros() >= bits
        }
        _ => false,
    }
}

/// Addresses of interfaces that are up.
fn interfaces() -> io::Result<Vec<Local>> {
    let mut first: *mut libc::ifaddrs = ptr::null_mut();
    // SAFETY: where a pointer to a list goes.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found = Vec::new();
    let mut next = first;
    // SAFETY: a list of the C library, whole until it is freed below; names are strings, and an address is of the type
    // that its family says.
    unsafe {
        while let Some(entry) = next.as_ref() {
            next = entry.ifa_next;
            let up = entry.ifa_flags & libc::IFF_UP as u32 != 0;
            let Some(address) = entry.ifa_addr.as_ref().filter(|_| up) else {
                continue;
            };
            let name = CStr::from_ptr(entry.ifa_name)
                .to_string_lossy()
                .into_owned();
            match i32::from(address.sa_family) {
                libc::AF_INET => {
                    let address = ptr::read_unaligned(entry.ifa_addr.cast::<libc::sockaddr_in>());
                    let bytes = address.sin_addr.s_addr.to_ne_bytes();
                    found.push((name, IpAddr::V4(Ipv4Addr::from(bytes))));
                }
                libc::AF_INET6 => {
                    let address = ptr::read_unaligned(entry.ifa_addr.cast::<libc::sockaddr_in6>());
                    let bytes = address.sin6_addr.s6_addr;
                    found.push((name, IpAddr::V6(Ipv6Addr::from(bytes))));
                }
                _ => {}
            }
        }
        libc::freeifaddrs(first);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_and_interfaces_are_told_apart() {
        let local = ("eth0".to_owned(), "10.66.3.1".parse().unwrap());
        for right in [
            "eth0",
            "10.66.3.1",
            "10.0.0.0/8",
            "10.66.3.0/24",
            "0.0.0.0/0",
            "10.66.3.1/32",
        ] {
            assert!(matches(right, &local), "{right}");
        }
        for wrong in [
            "eth1",
            "10.66.3.2",
            "10.67.0.0/16",
            "10.0.0.0/x",
            "::/0",
            "",
        ] {
            assert!(!matches(wrong, &local), "{wrong}");
        }
        let local = ("eth0".to_owned(), "fd00::1".parse().unwrap());
        assert!(matches("fd00::/8", &local) && !matches("fe00::/8", &local));
    }

    #[test]
    fn this_host_has_a_loopback_interface() {
        let all = interfaces().unwrap();
        assert!(
            all.iter().any(|(_, address)| address.is_loopback()),
            "{all:?}"
        );
    }
}
