"""Parts that somebody replaced by new ones of the same kind, and a whole machine. What was wrong with them is gone.

A new part is as the node's part was when the lab was made (LAB/nodes/N/new.json), with another identity. A node is off
while its GPUs, adapters, memory or chassis are replaced, and then starts. The module also plugs a node's cables wrong,
pulls them or makes them slow. A docstring is a line of `inject list`.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from assay.lab.bmc.certificates import renew_certificate
from assay.lab.bmc.power_transitions import reset_node
from assay.lab.fabric.cabling import (
    load_cabling,
    repair_cabling,
    replace_devices,
    slow_cable,
    swap_cables,
    unplug_cable,
)
from assay.lab.node.healthy_devices import derive_number_below, derive_serial_number
from assay.lab.virtual_node_state import VirtualNodeState
from assay.lab.world import LabWorld

Part = dict[str, Any]
GPU_SPEEDS = ("tensor_gflops", "host_copy_gb_s", "peer_copy_gb_s")
STAYS = ("name", "pool", "spec", "site", "rack", "u", "boot", "boot_server", "next_boot")
"""What belongs to the node's place, and not to its machine."""


def gpu_replaced(world: LabWorld, node: str, gpu: int) -> None:
    """A new GPU in place of this one."""
    with _replacing(world, node) as (state, new):
        state["gpus"][gpu] = _renew(new["gpus"][gpu], state["gpus"][gpu])
        for name in GPU_SPEEDS:
            state["load"][name][gpu] = new["load"][name][gpu]
        state["load"]["diagnosis"].pop(str(gpu), None)
        state["provoked"] = [fault for fault in state.get("provoked", []) if fault["gpu"] != gpu]


def hca_replaced(world: LabWorld, node: str, hca: str) -> None:
    """A new InfiniBand adapter in place of this one, with the same cable."""
    with _replacing(world, node) as (state, new):
        slot = next(number for number, each in enumerate(state["hcas"]) if each["name"] == hca)
        state["hcas"][slot] = _renew(new["hcas"][slot], state["hcas"][slot])
        state["load"]["write_gbps"][hca] = new["load"]["write_gbps"][hca]


def dimm_replaced(world: LabWorld, node: str, dimm: int) -> None:
    """A new memory module in place of this one."""
    with _replacing(world, node) as (state, new):
        old = state["host"]["dimms"][dimm]
        modules = state["box"]["dimms"]
        state["host"]["dimms"][dimm] = _renew(new["host"]["dimms"][dimm], old)
        state["memory_bytes"] += 0 if old["present"] else old["size_gib"] * 2**30
        state["active"]["memory_errors"] = 0
        modules[dimm : dimm + 1] = new["box"]["dimms"][dimm : dimm + 1]


def nvme_replaced(world: LabWorld, node: str, drive: int) -> None:
    """A new, empty drive in place of this one. The node keeps running."""
    with _replacing(world, node, is_hot=True) as (state, new):
        _remove_drive(world, node, state["nvme"][drive])
        state["nvme"][drive] = _renew(new["nvme"][drive], state["nvme"][drive])


def psu_replaced(world: LabWorld, node: str, psu: int) -> None:
    """A new power supply in place of this one. The node keeps running."""
    with _replacing(world, node, is_hot=True) as (state, new):
        state["psus"][psu] = _renew(new["psus"][psu], state["psus"][psu])


def chassis_replaced(world: LabWorld, node: str, serial: str = "") -> None:
    """Another machine of the same kind in the node's place, with other serial numbers, addresses and certificate."""
    with _replacing(world, node) as (state, new):
        for drive in state["nvme"]:
            _remove_drive(world, node, drive)
        kept = {key: state[key] for key in STAYS}
        machine = {**_renew(new, state), **({"serial": serial} if serial else {})}
        state.clear()
        state.update(machine | kept)
    renew_certificate(world, node)


def board_replaced(world: LabWorld, node: str) -> None:
    """Another system board of the same machine: its BMC and Ethernet ports are others, its serial number is the old."""
    with _replacing(world, node) as (state, new):
        state["nics"] = _renew(new["nics"], state["nics"])
    renew_certificate(world, node)


def bmc_replaced(world: LabWorld, node: str) -> None:
    """Another BMC of the same machine, with a certificate of its own. The node keeps running."""
    renew_certificate(world, node)


def node_moved(world: LabWorld, node: str, rack: str, u: int) -> None:
    """A node that stands in another place now, and started there. Its cables are as before."""
    with _replacing(world, node) as (state, _):
        state.update(rack=rack, u=u)


def switch_replaced(world: LabWorld, node: str, switch: str) -> None:
    """Another switch in place of this one, such as leaf-su01-r0, with the same cables."""
    guid = load_cabling(world, node).port(switch).guid
    replace_devices(world, {guid: IDENTITIES["guid"](guid)})


@contextmanager
def _replacing(world: LabWorld, node: str, *, is_hot: bool = False) -> Iterator[tuple[VirtualNodeState, Part]]:
    """Yield a node's state to edit, and how the node was when it was new; then start it, unless the part is hot."""
    new = json.loads((world.folder(node) / "new.json").read_text())
    with world.change(node) as state:
        before = [each["guid"] for each in state["hcas"]]
        yield state, new
        if not is_hot:
            state.update(reset_node({**state, "power": {"state": "Off", "on_at": None}}, "On", world.clock().now()))
        after = [each["guid"] for each in state["hcas"]]
    replace_devices(world, dict(zip(before, after, strict=True)))


def _renew(new: Any, old: Any) -> Any:
    """Return what is new with other identities than the old has, at any depth."""
    if isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        return [_renew(*both) for both in zip(new, old, strict=True)]
    if not (isinstance(new, dict) and isinstance(old, dict)):
        return new
    return {
        key: IDENTITIES[key](old[key]) if key in IDENTITIES else _renew(content, old.get(key))
        for key, content in new.items()
    }


def _next_serial(old: str) -> str:
    return re.sub(r"\d+", lambda digits: derive_serial_number(old, f"next {digits.start()}", len(digits[0])), old)


IDENTITIES: Mapping[str, Callable[[str], str]] = {
    "guid": lambda old: f"{old[:8]}{derive_number_below(old, 'next', 2**40):010x}",
    "mac": lambda old: old[:9] + derive_number_below(old, "next", 2**24).to_bytes(3, "big").hex(":"),
    "serial": _next_serial,
    "uuid": lambda old: f"GPU-{uuid.uuid5(uuid.NAMESPACE_DNS, old)}",
}
"""Key of a state → what follows this identity. The same old part is always followed by the same new one."""


def _remove_drive(world: LabWorld, node: str, drive: Part) -> None:
    (world.folder(node) / f"root/dev/{drive['name']}n1").unlink(missing_ok=True)


def cable_swapped(world: LabWorld, node: str, hca: str, other: str) -> None:
    """An adapter's cable, swapped with that of another end, such as n0006/mlx5_3 or leaf-su01-r0[33]."""
    swap_cables(world, f"{node}/{hca}", other)


def cable_unplugged(world: LabWorld, node: str, hca: str) -> None:
    """An adapter without its cable."""
    unplug_cable(world, f"{node}/{hca}")


def cable_slow(world: LabWorld, node: str, hca: str, rate: str = "4xHDR") -> None:
    """An adapter's cable that came up at a lower rate."""
    slow_cable(world, f"{node}/{hca}", rate)


def cables_repaired(world: LabWorld, node: str) -> None:
    """All cables of the fabrics as they are designed."""
    del node
    repair_cabling(world)


WORLD_FAULTS: Mapping[str, Callable[..., None]] = {
    "bmc.replaced": bmc_replaced,
    "board.replaced": board_replaced,
    "cable.slow": cable_slow,
    "cable.swapped": cable_swapped,
    "cable.unplugged": cable_unplugged,
    "cables.repaired": cables_repaired,
    "chassis.replaced": chassis_replaced,
    "dimm.replaced": dimm_replaced,
    "gpu.replaced": gpu_replaced,
    "hca.replaced": hca_replaced,
    "node.moved": node_moved,
    "nvme.replaced": nvme_replaced,
    "psu.replaced": psu_replaced,
    "switch.replaced": switch_replaced,
}
