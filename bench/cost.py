"""What a command costs: CPU seconds and peak memory, its children included."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, order=True)
class Cost:
    """CPU seconds, user and system, and the peak memory of the largest process in MB."""

    cpu_s: float
    peak_mb: float


def cost(command: Sequence[str], folder: Path, *, times: int = 3, well: Collection[int] = (0,)) -> Cost:
    """Return the least of `times` runs in `folder`. Raises RuntimeError for a run that does not end `well`."""
    return min(_once(command, folder, well) for _ in range(times))


def _once(command: Sequence[str], folder: Path, well: Collection[int]) -> Cost:
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in well:
            said.seek(0)
            tail = said.read()[-500:].decode(errors="replace")
            raise RuntimeError(f"{' '.join(command)} ended {process.returncode}: {tail}")
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
