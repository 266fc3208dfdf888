"""What a command costs with all its children: CPU seconds, and memory as the sum of what all hold at once."""

from __future__ import annotations

import os
import resource
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

LOOK_S = 0.003


class TreeCost(NamedTuple):
    """CPU seconds, and the most that all processes together held, in MB; shared pages count once (PSS)."""

    cpu_s: float
    peak_mb: float


def tree_cost(command: Sequence[str], given: bytes = b"") -> TreeCost:
    """Run `command` with `given` on standard input. Children that end before they are seen weigh nothing."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    reading, writing = os.memfd_create("given"), os.open(os.devnull, os.O_WRONLY)
    os.write(reading, given)
    os.lseek(reading, 0, os.SEEK_SET)
    with subprocess.Popen(command, stdin=reading, stdout=writing) as process:
        peak = 0
        while process.poll() is None:
            peak = max(peak, sum(map(_held, _family(process.pid))))
            time.sleep(LOOK_S)
    os.close(reading)
    os.close(writing)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return TreeCost(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, peak / 1024)


def _family(pid: int) -> Iterator[int]:
    yield pid
    for child in _text(f"/proc/{pid}/task/{pid}/children").split():
        yield from _family(int(child))


def _held(pid: int) -> int:
    lines = _text(f"/proc/{pid}/smaps_rollup").splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def _text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
