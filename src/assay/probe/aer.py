"""PCIe errors that the kernel has counted since boot (Advanced Error Reporting)."""

from __future__ import annotations

import re

from assay.model.reading import absent
from assay.probe.files import Root, unread
from assay.probe.lazy import Lazy

DEVICES = "/sys/bus/pci/devices"
SEVERITIES = ("correctable", "nonfatal", "fatal")


def read_aer(root: Root) -> Lazy:
    """Return the `aer` branch: every PCI device that reports errors, by address."""
    try:
        addresses = root.names(DEVICES)
    except OSError as error:
        return unread(DEVICES, error)
    counting = [pci for pci in addresses if root.exists(f"{DEVICES}/{pci}/aer_dev_fatal")]
    return {pci.lower(): _device(root, f"{DEVICES}/{pci}") for pci in counting} or absent(
        f"no device in {DEVICES} reports errors"
    )


def _device(root: Root, folder: str) -> Lazy:
    return {severity: root.later(f"{folder}/aer_dev_{severity}", total) for severity in SEVERITIES}


def total(text: str) -> int:
    """Return the number on the `TOTAL_ERR_…` line. Raises ValueError unless there is exactly one."""
    (count,) = re.findall(r"^TOTAL_ERR_\w+ (\d+)$", text, re.MULTILINE)
    return int(count)
