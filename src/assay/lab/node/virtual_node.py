"""A virtual node: its initial state (`make_initial_state`), and the files and NVML answers made from a state.

The state is a plain dict, stored as `state.json`. Times are ISO 8601 UTC of the lab's clock, durations lab seconds.

| key | meaning |
|---|---|
| name pool spec product serial site rack u has_bmc cmdline kernel | identity |
| driver | the version of NVIDIA's driver; "": this node has none, and no tool of NVIDIA |
| cpu_sockets cpu_threads memory_bytes | size |
| power | `{state: On or Off, on_at}`; state On and now < on_at: still powering on |
| boot | `{id, ready_at, count}`; unreachable before ready_at |
| boot_server | where the machine starts from at its next start, as a DHCP server tells it; "": from its disk |
| console | the last lines that its starts from the network showed on its serial console |
| network_start, asset_tag | whether it starts from there just now; what the machine reads when it starts |
| module_options | module → option → value, as the modules were loaded |
| next_boot | `kernel cmdline module_options` from the next boot on, as the node's boot menu has them |
| timing | `power_on_s boot_s flash_s bmc_reset_s` |
| firmware, staged, flashes, tasks, events | the BMC's firmware inventory, updates and event log |
| rollbacks | `[{at, firmware}]`: old versions that run again at a time (lab/bmc/power_transitions.py) |
| gpus, hcas, nics, nvme, disks, psus, fans, inlet_c | the devices, in slot order |
| box | the chassis, which only the BMC sees (lab/node/healthy_host.py) |
| host | firmware tables, kernel, clock, services (lab/node/healthy_host.py) |
| kernel_log | `[{at, text}]` since this boot |
| active | results of the burn-in tools: `bus_bandwidth_gb_s wrong memory_errors` |
| load | what the other load tools find (lab/node/healthy_host.py) |
| fails | planted failures: `probe_hangs bmc_silent flash settings`; `settings`: a reset loses pending BIOS settings |
| | `network_start`: it starts from its disk all the same; `start_hangs`: it stops after its kernel |
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from assay.lab.node.device_files import adapter_firmware_files, device_files, pci_files, with_firmware_settings
from assay.lab.node.healthy_devices import disks, fans, gpus, hcas, nics, nvme, psus, spec_limit
from assay.lab.node.healthy_host import (
    make_declared_accounts,
    make_healthy_chassis,
    make_healthy_host,
    make_healthy_load,
    make_syslog_subscriptions,
)
from assay.lab.node.host_files import host_files
from assay.lab.node.stub import stub_answers
from assay.lab.virtual_node_state import VirtualNodeState, write_json
from assay.model.node import Node
from assay.model.specs.firmware_bundle import FirmwareBundle
from assay.model.specs.image import IMAGE
from assay.model.specs.node.node_spec import NicSpec, NodeSpec

INITIAL_UPTIME = timedelta(days=14)
USUAL_PARTS: dict[str, Any] = {
    "product": "Virtual server",
    "cpu_sockets": 2,
    "cpu_threads": 64,
    "memory_gib": 256,
    "nics": [NicSpec(name="eth0", speed_mbps=10_000)],
}
"""Of a node whose spec does not give them: every machine has these."""
USUAL_FIRMWARE = {"BIOS": "2.7.3", "BMC": "01.05.11"}
USUAL_DRIVER = "570.172.08"
TIMING = {"power_on_s": 60, "boot_s": 120, "flash_s": 90, "bmc_reset_s": 30}
KERNEL = "6.8.0-64-generic"
DRIVE_BYTES = 2**20  # of a virtual drive's content; sysfs shows the size of the spec


def node_files(state: VirtualNodeState) -> dict[str, str]:
    """Return every file of the node's root, by path below it."""
    tree: dict[str, str] = {}
    for part in (host_files, pci_files, device_files, adapter_firmware_files):
        tree.update(part(state))
    return tree


def make_initial_state(node: Node, spec: NodeSpec, bundle: FirmwareBundle, now: datetime) -> VirtualNodeState:
    """Return a healthy node of `spec` with the firmware of `bundle`, booted two weeks before `now`.

    Serials, UUIDs and GUIDs are derived from the node's name, so the same fleet gives the same lab.
    """
    spec = spec.model_copy(update={name: part for name, part in USUAL_PARTS.items() if not getattr(spec, name)})
    on_at = now - INITIAL_UPTIME
    return {
        **_identity(node, spec),
        "power": {"state": "On", "on_at": on_at.isoformat()},
        "boot": {
            "id": str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{node.name}.boot1")),
            "ready_at": (on_at + timedelta(seconds=TIMING["boot_s"])).isoformat(),
            "count": 1,
        },
        "module_options": {module: dict(options) for module, options in spec.host.module_options.items()},
        "next_boot": {},
        "timing": dict(TIMING),
        "firmware": {id_: component.version for component in bundle.components for id_ in component.inventory}
        or USUAL_FIRMWARE,
        "staged": {},
        "flashes": [],
        "tasks": [],
        "events": [],
        "accounts": make_declared_accounts(spec),
        "subscriptions": make_syslog_subscriptions(spec),
        "gpus": gpus(node, spec),
        "hcas": with_firmware_settings(hcas(node, spec), spec, "ETH" if spec.roce else "IB"),
        "nics": with_firmware_settings(nics(node, spec), spec, "ETH"),
        "nvme": nvme(node, spec),
        "disks": disks(node, spec),
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
        "load": make_healthy_load(spec),
        "site_tools": sorted(node.settings.site_tools),
        "fails": {"probe_hangs": False, "bmc_silent": False, "flash": []},
    }


def _identity(node: Node, spec: NodeSpec) -> VirtualNodeState:
    kernel = spec.host.kernel or KERNEL
    image = [f"{IMAGE}={node.image}"] if node.image else []
    return {
        "name": node.name,
        "pool": node.pool,
        "spec": spec.name,
        "product": spec.product,
        "serial": node.serial,
        "site": node.site,
        "rack": node.rack,
        "u": node.u,
        "has_bmc": bool(node.bmc_address),
        "driver": spec.driver or (USUAL_DRIVER if spec.gpus.count and spec.gpus.vendor == "nvidia" else ""),
        "kernel": kernel,
        "cmdline": " ".join([f"BOOT_IMAGE=/vmlinuz-{kernel} root=/dev/md0 ro", *spec.kernel_cmdline, *image]),
        "boot_server": "",
        "console": [],
        "asset_tag": "",
        "cpu_sockets": spec.cpu_sockets,
        "cpu_threads": spec.cpu_threads,
        "memory_bytes": spec.memory_gib * 2**30,
    }


def render_node(state: VirtualNodeState, folder: Path) -> None:
    """Write the node's files to `folder/root/` and its NVML answers to `folder/nvml.json`."""
    write_file_tree(folder / "root", node_files(state), folder / "rendered.json")
    _lay_out_drives(state, folder / "root/dev")
    write_json(folder / "nvml.json", stub_answers(state))


def _lay_out_drives(state: VirtualNodeState, folder: Path) -> None:
    """Make the drives' block devices: empty files of a size, whose content stays until a tool writes it."""
    folder.mkdir(exist_ok=True)
    for drive in state["nvme"]:
        device = folder / f"{drive['name']}n1"
        if not drive["present"]:
            device.unlink(missing_ok=True)
        elif not device.exists():
            device.touch()
            os.truncate(device, DRIVE_BYTES)


def write_file_tree(root: Path, files: Mapping[str, str], record: Path) -> None:
    """Make the files below `root` that earlier calls wrote equal to `files`; `record` lists them.

    Only changed files are written, by rename: a reader sees the old content or the new. Files of others stay.
    Binary content comes as `bytes.decode("utf-8", "surrogateescape")`.
    """
    before: dict[str, str] = json.loads(record.read_text()) if record.exists() else {}
    if before == files:
        return
    changed = [path for path, content in files.items() if before.get(path) != content]
    # 100 folders a node: plain strings are 5 times as fast as Path
    for folder in {os.path.dirname(path) for path in changed if path not in before}:  # noqa: PTH120
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
        os.replace(scratch, path)  # noqa: PTH105 — as above


def _remove_file(root: Path, path: Path) -> None:
    path.unlink(missing_ok=True)
    for folder in path.parents:
        if folder == root or any(folder.iterdir()):
            return
        folder.rmdir()
