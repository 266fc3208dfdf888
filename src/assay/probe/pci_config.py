"""A bridge's configuration space: what kind of port it is, and which access controls (ACS) it enforces.

Read in pieces of a few bytes: the whole 4 KiB would ask the device a thousand times. Only root is given more than
the first 64 bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from assay.model.reading import failed, value
from assay.probe.files import Root, Tree, unread

PCI_EXPRESS = 0x10  # capability; PCI Express Base Specification 6.2, 7.5.3
ACS = 0x0D  # extended capability; 7.7.11
FIRST_EXTENDED = 0x100
MOST_STEPS = 64
PORTS = {4: "root port", 5: "switch upstream", 6: "switch downstream", 7: "to PCI", 8: "from PCI"}
CONTROLS = (
    "source_validation",
    "translation_blocking",
    "request_redirect",
    "completion_redirect",
    "upstream_forwarding",
    "egress_control",
    "direct_translated",
)


class TooShort(Exception):
    """The configuration space ends before the answer."""


Word = Callable[[int, int], int]
"""(offset, size in bytes) → number. Raises TooShort."""


def read_bridge(root: Root, folder: str) -> Tree:
    """Return a bridge's branch: `kind`, the `buses` behind it (first, last), the `acs` controls that are on."""
    path = f"{folder}/config"
    try:
        descriptor = os.open(root.here(path), os.O_RDONLY)
    except OSError as error:
        return unread(path, error)
    try:
        return _bridge(path, lambda offset, size: _number(descriptor, offset, size))
    except OSError as error:
        return unread(path, error)
    finally:
        os.close(descriptor)


def _bridge(path: str, word: Word) -> Tree:
    why = f"{path}: too short for this answer; only root is given all of it"
    return {
        "kind": _or_failed(lambda: _kind(word), why),
        "buses": _or_failed(lambda: value([word(0x19, 1), word(0x1A, 1)]), why),
        "acs": _or_failed(lambda: _acs(word), why),
    }


def _or_failed(ask: Callable[[], Tree], why: str) -> Tree:
    try:
        return ask()
    except TooShort:
        return failed(why)


def _kind(word: Word) -> Tree:
    at = _express(word)
    if not at:
        return value("bridge")
    return value(PORTS.get(word(at + 2, 2) >> 4 & 0xF, "bridge"))


def _acs(word: Word) -> Tree:
    at = _extended(word, ACS) if _express(word) else 0
    control = word(at + 6, 2) if at else 0
    return value([name for bit, name in enumerate(CONTROLS) if control >> bit & 1])


def _express(word: Word) -> int:
    """Return where the PCI Express capability is, 0 for a device without one."""
    at = word(0x34, 1) if word(0x06, 2) & 0x10 else 0
    for _ in range(MOST_STEPS):
        if not at or word(at, 1) == PCI_EXPRESS:
            return at
        at = word(at + 1, 1) & 0xFC
    return 0


def _extended(word: Word, wanted: int) -> int:
    """Return where an extended capability is, 0 for none."""
    at = FIRST_EXTENDED
    for _ in range(MOST_STEPS):
        header = word(at, 4)
        if header & 0xFFFF == wanted:
            return at
        at = header >> 20 & 0xFFC
        if at < FIRST_EXTENDED or header == 0xFFFFFFFF:
            return 0
    return 0


def _number(descriptor: int, offset: int, size: int) -> int:
    part = os.pread(descriptor, size, offset)
    if len(part) < size:
        raise TooShort
    return int.from_bytes(part, "little")
