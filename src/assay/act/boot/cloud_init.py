"""The four documents that cloud-init (NoCloud) fetches when a node boots.

Everything is built as data and written by the YAML library, so no name and no file can change the document around it.
cloud-init takes a key of the user-data and leaves out the same key of the vendor-data, so the two share none. It reads
the network (version 2) from a server since version 24.3 (cloud-init issue 5603); an older one asks by DHCP on the first
interface that has a link.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import yaml

from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.provisioning import (
    BondLink,
    EthernetLink,
    NetworkLink,
    NodeFile,
    NodeNetwork,
    NodeUser,
    Provisioning,
    VlanLink,
)

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
                servers = {"addresses": list(network.nameservers), "search": list(network.search)}
                config[kind][name]["nameservers"] = {key: values for key, values in servers.items() if values}
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


CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----\n[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----\n?")


def read_authorities(root: Path, provisioning: Provisioning) -> dict[str, str]:
    """Return the certificates (PEM) of each authority that a provisioning names, by the name of its file.

    Anything else in a file stays out: nodes must not get a key that stands beside a certificate. Raises AssayError for
    a file that cannot be read, or that has no certificate.
    """
    kubernetes = provisioning.joins.kubernetes
    names = {provisioning.ca_file, kubernetes.ca_file if kubernetes else ""} - {""}
    return {name: _read_certificates(root / name, provisioning.name) for name in sorted(names)}


def _read_certificates(path: Path, provisioning: str) -> str:
    where, fix = f"provisioning {provisioning}", f"put the authority's certificate (PEM) into {path}"
    try:
        certificates = CERTIFICATE.findall(path.read_text("ascii", errors="replace").replace("\r\n", "\n"))
    except OSError as error:
        raise AssayError(f"{path} cannot be read: {error.strerror}", where=where, fix=fix) from None
    if not certificates:
        raise AssayError(f"{path} has no certificate", where=where, fix=fix)
    return "".join(f"{certificate.rstrip()}\n" for certificate in certificates)


HEADER = "#cloud-config\n"
JOIN_UNIT, AGENT_UNIT = "assay-join.service", "assay-agent.service"
"""The image brings both. The agent starts again and again until the node has fetched its token."""
UNPROVEN = "assay/unproven"
"""The taint of a Kubernetes node that assay has not proved yet."""


@frozen
class NodeBoot:
    """One start of a node. `time_servers`: of its node spec. `authorities`: certificates by the name of their file."""

    node: Node
    provisioning: Provisioning
    attempt: str
    time_servers: list[str] = field(default_factory=list)
    authorities: Mapping[str, str] = field(default_factory=dict)


def make_node_boot(fleet: Fleet, node: str, provisioning: Provisioning, attempt: str) -> NodeBoot:
    """Return a start of a node of the fleet. Raises AssayError where an authority's file cannot be read."""
    declared = fleet.nodes[node]
    servers = fleet.node_specs[declared.spec].host.time_servers
    return NodeBoot(declared, provisioning, attempt, servers, read_authorities(fleet.root, provisioning))


def render_node_data(boot: NodeBoot) -> dict[str, str]:
    """Return the text of each document by its name. A node without declared network gets no `network-config`."""
    network = boot.node.settings.node_network
    documents = {
        "meta-data": _dump({"instance-id": boot.attempt, "local-hostname": boot.node.name}),
        "user-data": HEADER + _dump(make_user_data(boot)),
        "vendor-data": HEADER + _dump(make_vendor_data()),
    }
    return documents | ({"network-config": _dump(make_network_config(network))} if network else {})


def make_vendor_data() -> dict[str, Any]:
    """Return what assay asks of every node: nobody logs in by password or as root."""
    return {"preserve_hostname": False, "disable_root": True, "ssh_pwauth": False}


def make_user_data(boot: NodeBoot) -> dict[str, Any]:
    """Return the node's system as it is declared."""
    provisioning = boot.provisioning
    units = [*provisioning.units, JOIN_UNIT, AGENT_UNIT]
    files = []
    for file in _list_files(boot):
        made: dict[str, Any] = {"path": file.path, "content": file.content, "permissions": file.mode}
        made["owner"] = file.owner
        if file.owner != "root:root":  # its owner is made after the first files
            made["defer"] = True
        files.append(made)
    data: dict[str, Any] = {
        "hostname": boot.node.name,
        "timezone": provisioning.timezone,
        "write_files": files,
        "runcmd": [["systemctl", "enable", "--now", unit] for unit in dict.fromkeys(units)],
    }
    if provisioning.users:  # without, the image's own user stays, which has neither password nor key
        data["users"] = [_make_user(user) for user in provisioning.users]
    if boot.time_servers:
        data["ntp"] = {"enabled": True, "ntp_client": "chrony", "servers": list(boot.time_servers)}
    if provisioning.packages:
        data |= {"package_update": True, "packages": list(provisioning.packages)}
    return data


def make_join_plan(boot: NodeBoot) -> dict[str, Any]:
    """Return what the node joins, and where it fetches the secrets for that with its proven identity."""
    joins = boot.provisioning.joins
    plan: dict[str, Any] = {
        "node": boot.node.name,
        "attempt": boot.attempt,
        "secure_url": boot.provisioning.secure_url,
        "proofs": list(boot.provisioning.proofs),
        "joins": {"agent": {}},
    }
    if kubernetes := joins.kubernetes:
        taints = [{"key": UNPROVEN, "effect": "NoSchedule"}] if kubernetes.taint_unproven else []
        plan["joins"]["kubernetes"] = {
            "api_server": kubernetes.api_server,
            "ca": boot.authorities.get(kubernetes.ca_file, ""),
            "labels": dict(kubernetes.labels),
            "taints": taints,
        }
    if slurm := joins.slurm:
        plan["joins"]["slurm"] = {"conf_server": slurm.conf_server, "key_path": slurm.key_path}
    return plan


def _list_files(boot: NodeBoot) -> Iterator[NodeFile]:
    provisioning = boot.provisioning
    yield from provisioning.files
    yield NodeFile(path="/etc/assay-agent/env", content=f"ASSAY_SERVER={provisioning.secure_url}\n")
    if authority := boot.authorities.get(provisioning.ca_file, ""):
        yield NodeFile(path="/etc/assay-agent/ca.pem", content=authority)
    yield NodeFile(path="/etc/assay/joins.json", content=json.dumps(make_join_plan(boot), indent=1) + "\n")


def _make_user(user: NodeUser) -> dict[str, Any]:
    made: dict[str, Any] = {"name": user.name, "lock_passwd": True, "shell": "/bin/bash"}
    if user.groups:
        made["groups"] = ",".join(user.groups)
    if user.sudo:
        made["sudo"] = "ALL=(ALL) NOPASSWD:ALL"
    return made | {"ssh_authorized_keys": list(user.ssh_keys)}


def _dump(data: dict[str, Any]) -> str:
    text: str = yaml.safe_dump(data, sort_keys=False, default_flow_style=False, width=10_000)
    return text
