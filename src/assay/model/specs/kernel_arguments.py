"""The arguments on a kernel's command line by which a running node shows how it was started."""

from __future__ import annotations

ATTEMPT, IMAGE = "assay.attempt", "assay.image"
"""Which start it is of (see `BootAttempt`), and the Image (`Image.label`)."""


def find_kernel_argument(command_line: str, name: str) -> str:
    """Return the value of an argument `NAME=VALUE` on a kernel's command line, the last one; "" without one."""
    found = [word.removeprefix(f"{name}=") for word in command_line.split() if word.startswith(f"{name}=")]
    return found[-1] if found else ""
