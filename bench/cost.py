"""The cost of a command: CPU seconds and peak memory, with its children."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

MEASURED = """
import json, os, sys
silent = [(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)]
pid = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=silent)
_, status, usage = os.wait4(pid, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss]))
"""
"""A small process that starts the command: the peak memory of a process begins with that of the one that starts it."""

SPREADS: list[float] = []
"""By how much of the cheapest run the dearest cost more, of each command since the last measurement was taken."""


@dataclass(frozen=True, order=True)
class Cost:
    """CPU seconds (user and system), and the peak memory of the largest process in MB."""

    cpu_s: float
    peak_mb: float


def cost(
    command: Sequence[str],
    folder: Path,
    *,
    times: int = 3,
    well: Collection[int] = (0,),
    environment: Mapping[str, str] = os.environ,
) -> Cost:
    """Return the cheapest of `times` runs in `folder`. Raises RuntimeError for an exit code that is not in `well`.

    Python keeps what it compiles, as on any machine of a user, whatever the environment says.
    """
    kept = {name: value for name, value in environment.items() if name != "PYTHONDONTWRITEBYTECODE"}
    runs = [_once(command, folder, well, kept) for _ in range(times)]
    SPREADS.append(max(runs).cpu_s / min(runs).cpu_s - 1)
    return min(runs)


def _once(command: Sequence[str], folder: Path, well: Collection[int], environment: Mapping[str, str]) -> Cost:
    with tempfile.TemporaryFile() as errors:
        starter = [sys.executable, "-I", "-S", "-c", MEASURED, *command]
        done = subprocess.run(starter, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=errors, check=True)
        code, cpu_s, peak_kib = json.loads(done.stdout)
        if code not in well:
            errors.seek(0)
            tail = errors.read()[-500:].decode(errors="replace")
            raise RuntimeError(f"{' '.join(command)} ended {code}: {tail}")
    return Cost(cpu_s, peak_kib / 1024)
