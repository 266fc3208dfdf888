"""Machine checks that the processors raised since boot, as /proc/interrupts counts them.

That file has a column a CPU and a line an interrupt, megabytes on a large node, so it is read line by line.
"""

from __future__ import annotations

from collections.abc import Iterable

from assay.model.reading import absent, value
from assay.probe.files import Root, Tree, unread

INTERRUPTS = "/proc/interrupts"
ARM = (b"Err:", b"IPI0")
X86 = b"LOC:"  # the local timers, which every x86 kernel counts
LINES = {  # arch/x86/kernel/irq.c
    "exceptions": b"MCE:",
    "polls": b"MCP:",
    "thresholds": b"THR:",
    "deferred": b"DFR:",
}


def read_machine_checks(root: Root) -> Tree:
    """Return the `memory.machine_checks` branch, counted over all CPUs; an empty one on Arm, whose kernel counts none.

    `exceptions` were raised, `polls` only looked, `thresholds` tell of many corrected errors, `deferred` (AMD) of data
    that was found bad before anyone used it.
    """
    try:
        with open(root.here(INTERRUPTS), "rb") as file:  # noqa: PTH123  # see files.py
            found = counted(file)
    except OSError as error:
        return unread(INTERRUPTS, error)
    if not found:
        return absent(f"{INTERRUPTS} counts nothing")
    if X86 not in found:
        return {}
    return {
        name: value(found[mark]) if mark in found else absent(f"{INTERRUPTS} has no line {mark.decode()}")
        for name, mark in LINES.items()
    }


def counted(lines: Iterable[bytes]) -> dict[bytes, int]:
    """Return the sums of the lines of interest, by their mark."""
    marks = {X86, *ARM, *LINES.values()}
    found = (line for line in lines if line.lstrip()[:4] in marks)
    return {line.split()[0]: sum(int(word) for word in line.split()[1:] if word.isdigit()) for line in found}
