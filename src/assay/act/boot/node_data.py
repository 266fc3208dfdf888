"""The four documents that cloud-init (NoCloud) fetches when a node boots.

Everything is built as data and written by the YAML library, so no name and no file can change the document around it.
cloud-init takes a key of the user-data and leaves out the same key of the vendor-data, so the two share none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from assay.act.boot.authorities import read_authorities
from assay.act.boot.network_config import make_network_config
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.provisioning_spec import NodeFile, NodeUser, Provisioning

HEADER = "#cloud-config\n"
JOIN_UNIT, AGENT_UNIT = "assay-join.service", "assay-agent.service"
"""The image brings both. The agent starts again and again until the node has fetched its token."""
UNPROVEN = "assay/unproven"
"""The taint of a Kubernetes node that assay has not proved yet."""


@dataclass(frozen=True, slots=True)
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
    data: dict[str, Any] = {
        "hostname": boot.node.name,
        "timezone": provisioning.timezone,
        "write_files": [_make_file(file) for file in _list_files(boot)],
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


def _make_file(file: NodeFile) -> dict[str, Any]:
    made = {"path": file.path, "content": file.content, "permissions": file.mode, "owner": file.owner}
    return made if file.owner == "root:root" else made | {"defer": True}  # its owner is made after the first files


def _dump(data: dict[str, Any]) -> str:
    text: str = yaml.safe_dump(data, sort_keys=False, default_flow_style=False, width=10_000)
    return text
