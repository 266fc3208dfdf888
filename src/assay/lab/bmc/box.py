"""What only the BMC of a healthy node sees: memory modules, processors, BIOS settings, leaks, the lid, its clock."""

from __future__ import annotations

from typing import Any

from assay.lab.world import State
from assay.model.nodespec import NodeSpec

MODULE_GIB = 64
CPU_MODEL = "Intel(R) Xeon(R) Platinum 8480C"
USUAL_BIOS = {"BootMode": "UEFI", "QuietBoot": "Disabled"}
BOOT_OPTIONS = ({"name": "UEFI: PXE IPv4 Slot 1", "alias": "Pxe"}, {"name": "ubuntu", "alias": "Hdd"})


def box(spec: NodeSpec) -> State:
    """Return the parts that are well and the settings that the spec asks for.

    | key | meaning |
    |---|---|
    | dimms cpus | `[{present, health, gib}]`, `[{health, model, cores, threads}]`, in slot order |
    | bios bios_pending | attribute → value that runs; what waits for the next reset of the host |
    | boot_options boot_order secure_boot boot_mode | how it boots |
    | leaks | `[{state}]`: OK, Warning or Critical |
    | lid power_cap_w clock_s | the intrusion sensor; a power cap or None; how far the BMC's clock is off |
    """
    return {
        "dimms": _dimms(spec),
        "cpus": [_cpu(spec) for _ in range(spec.cpu_sockets)],
        "bios": {**USUAL_BIOS, **spec.bios},
        "bios_pending": {},
        "boot_options": [dict(option) for option in BOOT_OPTIONS],
        "boot_order": [0, 1],
        "boot_mode": spec.boot.mode,
        "secure_boot": bool(spec.boot.secure),
        "leaks": [{"state": "OK"} for _ in range(spec.leak_detectors)],
        "lid": "Normal",
        "power_cap_w": None,
        "clock_s": 0,
    }


def _dimms(spec: NodeSpec) -> list[dict[str, Any]]:
    """Return modules of 64 GiB where these make the spec's size, else one for each socket, as soldered memory is."""
    whole, rest = divmod(spec.memory_gib, MODULE_GIB)
    count, gib = (spec.cpu_sockets, spec.memory_gib // spec.cpu_sockets) if rest else (whole, MODULE_GIB)
    return [{"present": True, "health": "OK", "gib": gib} for _ in range(count)]


def _cpu(spec: NodeSpec) -> dict[str, Any]:
    threads = spec.cpu_threads // spec.cpu_sockets
    return {"health": "OK", "model": CPU_MODEL, "cores": threads // 2 or 1, "threads": threads}


def with_pending_bios(state: State) -> State:
    """Return the state after a reset of the host: the settings that waited for it run."""
    known = state["box"]
    return {**state, "box": {**known, "bios": {**known["bios"], **known["bios_pending"]}, "bios_pending": {}}}
