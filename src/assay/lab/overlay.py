"""The inventory overlay: where the virtual BMCs, nodes, fabric and scheduler answer, in Ansible's format.

It is laid over the repository's own inventory, as `ansible-inventory -i inventory -i LAB/inventory.yml` would,
and changes addresses only. Everything stands on the hosts, since a pool's own variables outrank those of `all`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

import yaml

from assay.lab.world import World


def write_overlay(world: World, bmc_ports: Mapping[str, int], scheduler_port: int) -> None:
    """Write LAB/inventory.yml, by rename; its presence says that the lab is up."""
    everywhere = {
        "bmc_address": "127.0.0.1",
        "bmc_ca": str(world.home / "ca.pem"),
        "bmc_credentials": {"file": str(world.home / "credentials")},
        "fabric_discover": [sys.executable, "-m", "assay.lab.discover", str(world.home)],
        "fabric_facts": {
            name: [sys.executable, "-m", "assay.lab.port_facts", str(world.home), name]
            for name in ("errors", "subnet", "telemetry")
        },
        "workloads": "lab",
        "lab_scheduler": f"http://127.0.0.1:{scheduler_port}",
    }
    hosts = {node: {**everywhere, "bmc_port": port, "reach": _reach(world, node)} for node, port in bmc_ports.items()}
    scratch = world.home / ".inventory.yml"
    scratch.write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
    scratch.replace(world.home / "inventory.yml")


def _reach(world: World, node: str) -> list[str]:
    return [sys.executable, "-m", "assay.lab.shell", str(world.home), node]
