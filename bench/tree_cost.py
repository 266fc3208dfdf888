"""The cost of a command with all its children: CPU seconds, and the memory that all processes hold at once."""

from __future__ import annotations

import os
import resource
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

SAMPLE_EVERY_S = 0.003


class TreeCost(NamedTuple):
    """CPU seconds, and the peak memory of all processes together in MB; shared pages count once (PSS)."""

    cpu_s: float
    peak_mb: float


def tree_cost(command: Sequence[str], given: bytes = b"") -> TreeCost:
    """Run `command` with `given` on standard input. The memory of children that end between samples is not counted."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    reading, writing = os.memfd_create("given"), os.open(os.devnull, os.O_WRONLY)
    os.write(reading, given)
    os.lseek(reading, 0, os.SEEK_SET)
    with subprocess.Popen(command, stdin=reading, stdout=writing) as process:
        peak = 0
        while process.poll() is None:
            peak = max(peak, sum(map(_memory_kib, _process_tree(process.pid))))
            time.sleep(SAMPLE_EVERY_S)
    os.close(reading)
    os.close(writing)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return TreeCost(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, peak / 1024)


def _process_tree(pid: int) -> Iterator[int]:
    yield pid
    for child in _text(f"/proc/{pid}/task/{pid}/children").split():
        yield from _process_tree(int(child))


def _memory_kib(pid: int) -> int:
    lines = _text(f"/proc/{pid}/smaps_rollup").splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def _text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
