"""`python -m assay.lab.daemon LAB`: the lab's process, with every BMC and the scheduler in one event loop.

It writes LAB/inventory.yml once everything answers and deletes it at its end; the world stays on disk. The file
overlays the repository's inventory, as `ansible-inventory -i inventory -i LAB/inventory.yml` would, and changes
addresses, and waits of playbooks: lab time passes faster. Its variables are set on hosts, because a pool's variables
outrank those of `all`.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import uvicorn
import yaml

from assay.lab.bmc.server import serve_bmcs
from assay.lab.fabric.cabling import has_ethernet, list_neighbours
from assay.lab.fabric.port_telemetry import ETHERNET_OUTPUTS, TOOL_OUTPUTS
from assay.lab.node.healthy_host import STORAGE
from assay.lab.scheduler import scheduler_app
from assay.lab.virtual_node_state import write_json
from assay.lab.world import LabWorld

SITE_TOOLS: dict[str, Any] = {
    "storage": STORAGE["point"],
    "training": {
        "command": ["assay-load", "train", "gpt", "--steps", "24"],
        "deadline_s": 600,
        "least_steps": 24,
        "step": {"pattern": r'"step": (\d+)'},
        "loss": {"pattern": r'"loss": \[([^],]+)'},
        "step_ms": {"pattern": r'"ms": ([\d.]+)'},
        "digest": {"pattern": r'"digests": \["(\w+)"'},
    },
}
"""What stands in for `load_tools` of the inventory, where it declares them."""


def write_inventory_overlay(world: LabWorld, bmc_ports: Mapping[str, int], scheduler_port: int) -> None:
    """Write LAB/inventory.yml by rename. The file exists as long as the lab is up."""
    rate = world.clock().rate
    bmc = {
        "bmc_address": "127.0.0.1",
        "bmc_ca": str(world.home / "ca.pem"),
        "bmc_fingerprint": "",
        "bmc_credentials": {"file": str(world.home / "credentials")},
    }
    everywhere: dict[str, Any] = {
        "probe_command": [],
        "load": None,
        "ansible_python_interpreter": sys.executable,
        "workloads": "lab",
        "lab_scheduler": f"http://127.0.0.1:{scheduler_port}",
        "firmware_read_back_s": max(1.0, 120 / rate),
        "firmware_steady_s": 30 / rate,
    }
    hosts = {
        node: {
            **everywhere,
            "load_tools": {name: SITE_TOOLS[name] for name in world.load(node).get("site_tools", ())} or None,
            **fabric,
            **({**bmc, "bmc_port": bmc_ports[node]} if world.load(node).get("has_bmc", True) else {}),
            "reach": _make_command("assay.lab.node.shell", world, node),
        }
        for node, fabric in zip(bmc_ports, _list_fabric_commands(world, bmc_ports), strict=True)
    }
    scratch = world.home / ".inventory.yml"
    scratch.write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
    scratch.replace(world.home / "inventory.yml")


def _list_fabric_commands(world: LabWorld, nodes: Iterable[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the commands that read the fabric of each node. Nodes of one fabric share them, which keeps YAML short."""
    known: dict[str, Mapping[str, Any]] = {}
    for node in nodes:
        if node not in known:
            module, outputs = "assay.lab.fabric.ibnetdiscover", TOOL_OUTPUTS
            if has_ethernet(world, node):
                module, outputs = "assay.lab.fabric.lldp", ETHERNET_OUTPUTS
            telemetry = {name: _make_command("assay.lab.fabric.port_telemetry", world, name, node) for name in outputs}
            commands = {
                "fabric_discover": _make_command(module, world, node),
                "fabric_facts": telemetry,
            }
            known |= dict.fromkeys([node, *list_neighbours(world, node)], commands)
        yield known[node]


def _make_command(module: str, world: LabWorld, *words: str) -> list[str]:
    return [sys.executable, "-m", module, str(world.home), *words]


async def run_daemon(world: LabWorld) -> None:
    """Serve until SIGTERM or SIGINT."""
    write_json(world.home / "lab.json", {"pid": os.getpid()})
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    async with serve_bmcs(world, credentials=_write_credentials(world)) as ports:
        scheduler, listening = _scheduler(world)
        serving = asyncio.create_task(scheduler.serve([listening]))
        write_inventory_overlay(world, ports, listening.getsockname()[1])
        await stop.wait()
        (world.home / "inventory.yml").unlink(missing_ok=True)
        scheduler.should_exit = True
        await serving


def _write_credentials(world: LabWorld) -> str:
    """Return new BMC credentials, `user:password`, and write them to a file that only its owner can read."""
    credentials = f"assay:{secrets.token_urlsafe(18)}"
    path = world.home / "credentials"
    path.touch(mode=0o600)
    path.write_text(credentials + "\n")
    return credentials


def _scheduler(world: LabWorld) -> tuple[uvicorn.Server, socket.socket]:
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(scheduler_app(world), log_level="warning", lifespan="off")
    server = uvicorn.Server(config)
    server.capture_signals = nullcontext  # type: ignore[assignment,method-assign]  # run_daemon handles the signals
    return server, listening


if __name__ == "__main__":
    asyncio.run(run_daemon(LabWorld(Path(sys.argv[1]))))
