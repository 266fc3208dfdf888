"""What decides about a CPU's bits, in place of a GPU's name and driver."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path

from assay.node.load.device_order import settle_order
from assay.node.load.engine import DeviceFacts, LoadError

VECTOR_UNITS = ("avx512f", "avx2", "avx", "asimd")


def name_instruction_set() -> str:
    """Return such as `x86_64 avx512f`: libraries choose other kernels, and so other last bits, by these."""
    try:
        words = set(Path("/proc/cpuinfo").read_text().split())
    except OSError:
        words = set()
    found = next((unit for unit in VECTOR_UNITS if unit in words), "")
    return f"{platform.machine()} {found}".strip()


def list_made_devices(count: int, order: Sequence[int], uuids: Sequence[str], kind: str) -> tuple[DeviceFacts, ...]:
    """Return `count` devices in `order` that stand for GPUs on a CPU. Raises LoadError or ValueError."""
    chosen = settle_order(order, count)
    if uuids and len(uuids) != count:
        raise LoadError(f"--uuids names {len(uuids)} devices, and there are {count}")
    return tuple(DeviceFacts(index, uuids[index] if uuids else f"CPU-{index}", kind or "cpu") for index in chosen)
