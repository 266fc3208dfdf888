"""Reads the hardware errors that the kernel counts since boot: PCIe (AER), memory (EDAC) and machine checks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial

from assay.model.reading import ReadingTree, absent, value
from assay.node.probe.devices.pci import PCI_DEVICES
from assay.node.probe.node_access import LazyTree, NodeRoot, leaf_for_error

SEVERITIES = ("correctable", "nonfatal", "fatal")

EDAC = "/sys/devices/system/edac/mc"

INTERRUPTS = "/proc/interrupts"
ARM = (b"Err:", b"IPI0")
X86 = b"LOC:"  # the local timers, which every x86 kernel counts
MACHINE_CHECK_LINES = {  # arch/x86/kernel/irq.c
    "exceptions": b"MCE:",
    "polls": b"MCP:",
    "thresholds": b"THR:",
    "deferred": b"DFR:",
}


def read_aer(root: NodeRoot) -> LazyTree:
    """Return the `aer` branch: every PCI device that counts errors, by address."""
    try:
        addresses = root.list_names(PCI_DEVICES)
    except OSError as error:
        return leaf_for_error(PCI_DEVICES, error)
    devices = {}
    for pci in addresses:
        folder = f"{PCI_DEVICES}/{pci}"
        if root.exists(f"{folder}/aer_dev_fatal"):
            counters = {name: root.defer_read(f"{folder}/aer_dev_{name}", parse_aer_total) for name in SEVERITIES}
            devices[pci.lower()] = counters
    return devices or absent(f"no device in {PCI_DEVICES} reports errors")


def parse_aer_total(text: str) -> int:
    """Return the number on the `TOTAL_ERR_…` line. Raises ValueError unless there is exactly one."""
    (count,) = re.findall(r"^TOTAL_ERR_\w+ (\d+)$", text, re.MULTILINE)
    return int(count)


def read_edac(root: NodeRoot) -> LazyTree:
    """Return the `memory.edac` branch by controller; `unplaced` counts errors that name no module."""
    try:
        names = [name for name in root.list_names(EDAC) if name.startswith("mc") and name[2:].isdecimal()]
    except OSError as error:
        return leaf_for_error(EDAC, error)
    none = absent(f"{EDAC} has no controller: no EDAC driver took the memory controllers")
    return {name: _controller(root, f"{EDAC}/{name}") for name in names} or none


def _controller(root: NodeRoot, folder: str) -> LazyTree:
    return {
        "unplaced": {
            "corrected": root.defer_read(f"{folder}/ce_noinfo_count", int),
            "uncorrected": root.defer_read(f"{folder}/ue_noinfo_count", int),
        },
        "dimms": partial(_modules, root, folder),
    }


def _modules(root: NodeRoot, folder: str) -> LazyTree:
    try:
        names = [name for name in root.list_names(folder) if name.rstrip("0123456789") in ("dimm", "rank")]
    except OSError as error:
        return leaf_for_error(folder, error)
    return {name: _module(root, f"{folder}/{name}") for name in names} or absent(f"{folder} has no module")


def _module(root: NodeRoot, folder: str) -> LazyTree:
    return {
        "label": root.defer_read(f"{folder}/dimm_label"),
        "corrected": root.defer_read(f"{folder}/dimm_ce_count", int),
        "uncorrected": root.defer_read(f"{folder}/dimm_ue_count", int),
    }


def read_machine_checks(root: NodeRoot) -> ReadingTree:
    """Return the `memory.machine_checks` branch, summed over all CPUs; it is empty on Arm, whose kernel counts none.

    `exceptions` counts machine checks that were raised, `polls` the kernel's polls for them. `thresholds` counts
    interrupts for many corrected errors, `deferred` (AMD) those for bad data that nothing has used yet.
    """
    try:
        with open(root.local_path(INTERRUPTS), "rb") as file:  # noqa: PTH123  # as in node_access
            sums = sum_interrupts(file)
    except OSError as error:
        return leaf_for_error(INTERRUPTS, error)
    if not sums:
        return absent(f"{INTERRUPTS} counts nothing")
    if X86 not in sums:
        return {}
    return {
        name: value(sums[mark]) if mark in sums else absent(f"{INTERRUPTS} has no line {mark.decode()}")
        for name, mark in MACHINE_CHECK_LINES.items()
    }


def sum_interrupts(lines: Iterable[bytes]) -> dict[bytes, int]:
    """Return the sum over all CPUs of each line of interest, by its mark.

    /proc/interrupts has a column for each CPU, megabytes on a large node, so `lines` is read one line at a time.
    """
    marks = {X86, *ARM, *MACHINE_CHECK_LINES.values()}
    sums = {}
    for line in lines:
        if line.lstrip()[:4] in marks:
            mark, *words = line.split()
            sums[mark] = sum(int(word) for word in words if word.isdigit())
    return sums
