"""What a process that gives no answer is doing, as far as /proc tells.

Only files that the kernel answers whatever the process is stuck in: never its command line or its memory, for which
a process in state D may hold the lock.
"""

from __future__ import annotations

import os
from collections.abc import Iterator


def doing(pid: int) -> str:
    """Return `state D in nfs_wait_bit_killable, system call 257`; of the tool that it waits for where it runs one."""
    own = _doing(pid)
    if not own.startswith("state D"):
        for child in children(pid):
            return f"{_text(child, 'comm')} in {_doing(child)}"
    return own


def starved(pid: int, lived_s: float) -> bool:
    """Say whether a process that has lived so long could go on, but gets less than half of a CPU to do it."""
    fields = _text(pid, "stat").rpartition(")")[2].split()
    if fields[:1] != ["R"]:
        return any(_doing(child).startswith("state R") for child in children(pid))
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") < lived_s / 2


def children(pid: int) -> Iterator[int]:
    """Yield the processes that `pid` has started and not yet taken leave of."""
    yield from map(int, _text(pid, f"task/{pid}/children").split())


def _doing(pid: int) -> str:
    state = _text(pid, "stat").rpartition(")")[2].split()[:1]
    where, call = _text(pid, "wchan"), _text(pid, "syscall").split()[:1]
    words = f"state {state[0] if state else '?'}"
    if where not in ("", "0"):
        words += f" in {where}"
    if call and call[0].isdecimal():
        words += f", system call {call[0]}"
    return words


def _text(pid: int, name: str) -> str:
    try:
        with open(f"/proc/{pid}/{name}", encoding="utf-8", errors="replace") as file:  # noqa: PTH123  # pathlib costs 10 ms to import
            return file.read().strip()
    except OSError:
        return ""
