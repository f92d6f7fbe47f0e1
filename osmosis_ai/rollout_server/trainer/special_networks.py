"""Networks that are not one machine on the whole internet, and who may be there instead.

From IANA's registries of special-purpose addresses (RFC 6890 and later), and the addresses at which
clouds serve metadata. `ipaddress.is_global` differs between versions of Python, and knows no cloud.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address

IPV4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",  # private
            "100.64.0.0/10",  # shared by customers of a provider; Alibaba's metadata
            "127.0.0.0/8",  # loopback
            "168.63.129.16/32",  # Azure's platform services
            "169.254.0.0/16",  # link-local; metadata of most clouds
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # protocol assignments; Oracle's metadata
            "192.0.2.0/24",  # documentation
            "192.31.196.0/24",  # AS112
            "192.52.193.0/24",  # AMT
            "192.88.99.0/24",  # 6to4 relays
            "192.168.0.0/16",  # private
            "192.175.48.0/24",  # AS112
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, broadcast
        ),
    )
)
IPV6_PUBLIC = IPv6Network("2000::/3")
"""All that is given out for use on the internet; loopback, link-local, … are outside."""
IPV6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocol assignments
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4
            "2620:4f:8000::/48",  # AS112
            "3fff::/20",  # documentation
        ),
    )
)
NAT64 = IPv6Network("64:ff9b::/96")
MAPPED = IPv6Network("::ffff:0:0/96")


def is_special(address: Address) -> bool:
    """Return whether the address is none of one machine on the whole internet."""
    if isinstance(address, IPv6Address):
        if address in NAT64 or address in MAPPED:  # packets reach the IPv4 address inside
            return is_special(IPv4Address(int(address) & 0xFFFFFFFF))
        return address not in IPV6_PUBLIC or any(address in network for network in IPV6)
    return any(address in network for network in IPV4)
