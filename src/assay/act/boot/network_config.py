"""The network of a node as cloud-init takes it: network configuration, version 2.

cloud-init reads it from a server since version 24.3 (cloud-init issue 5603). An older one asks by DHCP on the first
interface that has a link.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

from assay.model.specs.node_network import BondLink, EthernetLink, NetworkLink, NodeNetwork, VlanLink

MONITOR_MS = 100
"""How often a bond looks whether its interfaces have a link. Without it, the kernel never looks (bonding.txt)."""


def make_network_config(network: NodeNetwork) -> dict[str, Any]:
    """Return the configuration as plain data."""
    resolving = _choose_resolving(network)
    config: dict[str, Any] = {"version": 2}
    links: tuple[tuple[str, Mapping[str, NetworkLink]], ...] = (
        ("ethernets", network.ethernets),
        ("bonds", network.bonds),
        ("vlans", network.vlans),
    )
    for kind, named in links:
        if named:
            config[kind] = {name: _make_link(name, link) for name, link in named.items()}
            for name in resolving & named.keys():
                config[kind][name]["nameservers"] = _make_nameservers(network)
    return config


def _make_link(name: str, link: NetworkLink) -> dict[str, Any]:
    made: dict[str, Any] = _make_kind(name, link)
    made["dhcp4"] = link.dhcp
    if link.addresses:
        made["addresses"] = list(link.addresses)
    if link.gateway:  # not `default`: versions before 22 know only the network's address
        everywhere = "0.0.0.0/0" if ip_address(link.gateway).version == 4 else "::/0"
        made["routes"] = [{"to": everywhere, "via": link.gateway}]
    if link.mtu:
        made["mtu"] = link.mtu
    return made


def _make_kind(name: str, link: NetworkLink) -> dict[str, Any]:
    if isinstance(link, EthernetLink) and link.mac:
        return {"match": {"macaddress": link.mac.lower()}, "set-name": name}
    if isinstance(link, BondLink):
        parameters: dict[str, Any] = {"mode": link.mode, "mii-monitor-interval": MONITOR_MS}
        if link.mode == "802.3ad":
            parameters |= {"lacp-rate": "fast", "transmit-hash-policy": "layer3+4"}
        return {"interfaces": list(link.interfaces), "parameters": parameters}
    if isinstance(link, VlanLink):
        return {"id": link.id, "link": link.link}
    return {}


def _choose_resolving(network: NodeNetwork) -> set[str]:
    """Return the links that lead to the name servers: those with a way to other networks, else all with an address."""
    if not (network.nameservers or network.search):
        return set()
    links: dict[str, NetworkLink] = {**network.ethernets, **network.bonds, **network.vlans}
    leading = {name for name, link in links.items() if link.gateway or link.dhcp}
    return leading or {name for name, link in links.items() if link.addresses}


def _make_nameservers(network: NodeNetwork) -> dict[str, list[str]]:
    named = {"addresses": list(network.nameservers), "search": list(network.search)}
    return {name: values for name, values in named.items() if values}
