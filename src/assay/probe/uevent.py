"""What the kernel tells of a device in its `uevent` file: `KEY=value` lines."""

from __future__ import annotations

import re

ADDRESS = re.compile(r"^PCI_SLOT_NAME=([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])$", re.MULTILINE)


def pci_slot(text: str) -> str:
    """Return the PCI address of the device, as Linux writes it. Raises ValueError for a device of another bus."""
    found = ADDRESS.search(text)
    if found is None:
        raise ValueError("no PCI device")
    return found[1].lower()
