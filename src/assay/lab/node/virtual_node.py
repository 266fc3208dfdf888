"""A virtual node: what a healthy one is (`make_initial_state`), and the file tree and NVML answers made from it (`render_node`).

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
| box | what only the BMC sees (lab/node/healthy_host.py) |
| host | what firmware, kernel, clock and services say (lab/node/healthy_host.py) |
| kernel_log | `[{at, text}]` since this boot |
| active | what burn-in tools find: `bus_bandwidth_gb_s wrong memory_errors` |
| fails | `probe_hangs bmc_silent flash` |

Write a tree of small files, touching only those that changed.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

from assay.lab.node.device_files import node_files
from assay.lab.node.healthy_devices import fans, gpus, hcas, nics, nvme, psus, spec_limit
from assay.lab.node.healthy_host import make_healthy_chassis, make_healthy_host
from assay.lab.nvml.stub_answers import stub_answers
from assay.lab.world import VirtualNodeState, write_json
from assay.model.fleet import Node
from assay.model.specs.firmware_bundle import FirmwareBundle
from assay.model.specs.node_spec import NodeSpec


def write_file_tree(root: Path, files: Mapping[str, str], record: Path) -> None:
    """Make the files below `root` that this wrote before (it keeps `record` of them) be exactly `files`.

    A changed file is replaced by rename, so that a reader sees the old content or the new. Files that others
    put there stay. Content that is no text comes as `bytes.decode("utf-8", "surrogateescape")`.
    """
    before: dict[str, str] = json.loads(record.read_text()) if record.exists() else {}
    if before == files:
        return
    changed = [path for path, content in files.items() if before.get(path) != content]
    for folder in {os.path.dirname(path) for path in changed if path not in before}:  # noqa: PTH120  # 100 per node: plain strings are 5 times as fast
        (root / folder).mkdir(parents=True, exist_ok=True)
    for path in changed:
        _write_file(f"{root}/{path}", files[path], new=path not in before)
    for path in before.keys() - files.keys():
        _remove_file(root, root / path)
    write_json(record, dict(files))


def _write_file(path: str, content: str, *, new: bool) -> None:
    scratch = path if new else f"{path}.new"
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        os.write(descriptor, content.encode("utf-8", "surrogateescape"))
    finally:
        os.close(descriptor)
    if not new:
        os.replace(scratch, path)  # noqa: PTH105  # see write_tree


def _remove_file(root: Path, path: Path) -> None:
    path.unlink(missing_ok=True)
    for folder in path.parents:
        if folder == root or any(folder.iterdir()):
            return
        folder.rmdir()


INITIAL_UPTIME = timedelta(days=14)
TIMING = {"power_on_s": 60, "boot_s": 120, "flash_s": 90, "bmc_reset_s": 30}
KERNEL = "6.8.0-64-generic"


def make_initial_state(node: Node, spec: NodeSpec, bundle: FirmwareBundle, now: datetime) -> VirtualNodeState:
    """Return a healthy node of `spec` that carries `bundle` and booted two weeks before `now`.

    Serials, UUIDs and GUIDs follow from the node's name, so the same fleet gives the same lab.
    """
    on_at = now - INITIAL_UPTIME
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
        "host": make_healthy_host(node, spec),
        "psus": psus(node, spec),
        "fans": fans(spec),
        "inlet_c": 24,
        "box": make_healthy_chassis(spec),
        "kernel_log": [],
        "active": {
            "bus_bandwidth_gb_s": max(470.0, round(1.02 * spec_limit(spec, "all_reduce_bus_bandwidth", 460))),
            "wrong": 0,
            "memory_errors": 0,
        },
        "fails": {"probe_hangs": False, "bmc_silent": False, "flash": []},
    }


def _identity(node: Node, spec: NodeSpec) -> VirtualNodeState:
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


def render_node(state: VirtualNodeState, folder: Path) -> None:
    """Make `folder/root/` and `folder/nvml.json` say what `state` says; files that say it already are left alone."""
    write_file_tree(folder / "root", node_files(state), folder / "rendered.json")
    write_json(folder / "nvml.json", stub_answers(state))
