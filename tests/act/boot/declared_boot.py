"""A start of a node for which everything may be declared."""

from __future__ import annotations

from typing import Any

from assay.act.boot.cloud_init import NodeBoot
from assay.model.node import Node
from assay.model.specs.node_settings import NodeSettings
from assay.model.specs.provisioning import Provisioning

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIU\n-----END CERTIFICATE-----\n"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGk ann@example.org"
EVERYTHING = {
    "users": [{"name": "ops", "ssh_keys": [KEY], "groups": ["adm", "video"], "sudo": True}],
    "packages": ["chrony"],
    "units": ["nvidia-persistenced.service"],
    "ca_file": "ca.pem",
    "files": [{"path": "/etc/motd", "content": "hello\n"}, {"path": "/home/ops/x", "content": "", "owner": "ops:ops"}],
    "joins": {
        "kubernetes": {"api_server": "https://k8s.example:6443", "ca_file": "k8s.pem", "labels": {"a": "b"}},
        "slurm": {"conf_server": "slurm.example:6817", "key": {"env": "SLURM_KEY"}},
    },
}


def make_boot(network: dict[str, Any] | None = None, **changed: Any) -> NodeBoot:
    declared = {
        "kind": "Provisioning",
        "name": "p",
        "sources": ["us"],
        "url": "http://boot.example:8080",
        "secure_url": "https://boot.example:8443",
        **changed,
    }
    node_settings = NodeSettings.model_validate({"node_network": network} if network else {})
    node = Node("n1", "a", "s", "r", 1, "S1", "small", "managed", settings=node_settings)
    authorities = {"ca.pem": CERTIFICATE, "k8s.pem": CERTIFICATE}
    return NodeBoot(node, Provisioning.model_validate(declared), "7f" * 8, ["ntp1.example"], authorities)
