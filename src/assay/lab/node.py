"""A virtual node: what a healthy one is (`initial_state`), and the file tree and NVML answers made from it (`render`).

The state is a plain dict, kept as `state.json` (times ISO 8601 UTC of the lab's clock, durations in lab seconds):

| key | meaning |
|---|---|
| name pool spec product serial site rack u driver cmdline kernel | who the node is |
| cpu_sockets cpu_threads memory_bytes | the size of it |
| power | `{state: On or Off, on_at}`; asked for On, but now < on_at: still powering on |
| boot | `{id, ready_at, count}`; unreachable before ready_at |
| timing | `power_on_s boot_s flash_s bmc_reset_s` |
| firmware, staged, flashes, tasks, events | what the BMC says and is told |
| gpus, hcas, nics, nvme, psus, fans, inlet_c | the parts, in slot order |
| box | what only the BMC sees (lab/bmc/box.py) |
| host | what firmware, kernel, clock and services say (lab/host_parts.py) |
| kernel_log | `[{at, text}]` since this boot |
| active | what burn-in tools find: `bus_bandwidth_gb_s wrong memory_errors` |
| fails | `probe_hangs bmc_silent flash` |
"""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from pathlib import Path

from assay.lab.bmc.box import box
from assay.lab.host_parts import host
from assay.lab.nvml.answers import answers
from assay.lab.parts import fans, gpus, hcas, limit, nics, nvme, psus
from assay.lab.tree import files
from assay.lab.world import State, write_json
from assay.lab.writer import write_tree
from assay.model.firmware import FirmwareBundle
from assay.model.fleet import Node
from assay.model.nodespec import NodeSpec

UP_BEFORE = timedelta(days=14)
TIMING = {"power_on_s": 60, "boot_s": 120, "flash_s": 90, "bmc_reset_s": 30}
KERNEL = "6.8.0-64-generic"


def initial_state(node: Node, spec: NodeSpec, bundle: FirmwareBundle, now: datetime) -> State:
    """Return a healthy node of `spec` that carries `bundle` and booted two weeks before `now`.

    Serials, UUIDs and GUIDs follow from the node's name, so the same fleet gives the same lab.
    """
    on_at = now - UP_BEFORE
    return {
        **_identity(node, spec),
        "power": {"state": "On", "on_at": on_at.isoformat()},
        "boot": {
            "id": str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{node.name}.boot1")),
            "ready_at": (on_at + timedelta(seconds=TIMING["boot_s"])).isoformat(),
            "count": 1,
        },
        "timing": dict(TIMING),
        "firmware": {id_: component.version for component in bundle.components for id_ in component.inventory},
        "staged": {},
        "flashes": [],
        "tasks": [],
        "events": [],
        "gpus": gpus(node, spec),
        "hcas": hcas(node, spec),
        "nics": nics(node, spec),
        "nvme": nvme(node, spec),
        "host": host(node, spec),
        "psus": psus(node, spec),
        "fans": fans(spec),
        "inlet_c": 24,
        "box": box(spec),
        "kernel_log": [],
        "active": {
            "bus_bandwidth_gb_s": max(470.0, round(1.02 * limit(spec, "all_reduce_bus_bandwidth", 460))),
            "wrong": 0,
            "memory_errors": 0,
        },
        "fails": {"probe_hangs": False, "bmc_silent": False, "flash": []},
    }


def _identity(node: Node, spec: NodeSpec) -> State:
    kernel = spec.host.kernel or KERNEL
    return {
        "name": node.name,
        "pool": node.pool,
        "spec": spec.name,
        "product": spec.product,
        "serial": node.serial,
        "site": node.site,
        "rack": node.rack,
        "u": node.u,
        "driver": spec.driver,
        "kernel": kernel,
        "cmdline": " ".join([f"BOOT_IMAGE=/vmlinuz-{kernel} root=/dev/md0 ro", *spec.kernel_cmdline]),
        "cpu_sockets": spec.cpu_sockets,
        "cpu_threads": spec.cpu_threads,
        "memory_bytes": spec.memory_gib * 2**30,
    }


def render(state: State, folder: Path) -> None:
    """Make `folder/root/` and `folder/nvml.json` say what `state` says; files that say it already are left alone."""
    write_tree(folder / "root", files(state), folder / "rendered.json")
    write_json(folder / "nvml.json", answers(state))
