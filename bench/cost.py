"""The cost of a command: CPU seconds and peak memory, with its children."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, order=True)
class Cost:
    """CPU seconds (user and system), and the peak memory of the largest process in MB."""

    cpu_s: float
    peak_mb: float


def cost(command: Sequence[str], folder: Path, *, times: int = 3, well: Collection[int] = (0,)) -> Cost:
    """Return the cheapest of `times` runs in `folder`. Raises RuntimeError for an exit code that is not in `well`."""
    return min(_once(command, folder, well) for _ in range(times))


def _once(command: Sequence[str], folder: Path, well: Collection[int]) -> Cost:
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in well:
            errors.seek(0)
            tail = errors.read()[-500:].decode(errors="replace")
            raise RuntimeError(f"{' '.join(command)} ended {process.returncode}: {tail}")
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
