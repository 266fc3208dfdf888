"""What a load costs and finds: the supervisor of a burn-in beside its tools, and the battery by minute of device time.

The tool under the supervisor is a program that sleeps, so that its own work does not count. The battery runs on this
CPU (`backend: cpu`, small sizes): on a GPU, its units take other times, which `make gpu-check` records.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.measurement import Measurement

SECONDS, UNIT_S, WATCH_S = 60, 10, 30
"""The shipped day looks at the node each 30 s, too."""
RATE, SURELY = 1 / 1000, 0.95
SLEEPER = """#!/bin/sh
for word do case $word in --timeout) next=1;; *) [ -n "$next" ] && exec sleep "${word%s}";; esac; done
"""
PLAN = {
    "id": "bench",
    "watch_s": WATCH_S,
    "phases": [
        {"name": "memory", "seconds": SECONDS, "unit_s": UNIT_S, "rows": [["memory"]], "cycles": [], "hertz": []}
    ],
}
TICKS = os.sysconf("SC_CLK_TCK")


def measurements(folder: Path) -> Iterator[Measurement]:
    """Supervise a load below `folder`, and run the battery."""
    yield _measure_supervisor(folder / "load")
    yield from _measure_battery()


def _measure_supervisor(home: Path) -> Measurement:
    """Return the share of one core that the supervisor and its readings take."""
    root, tools = home / "root", home / "tools"
    for path in (root / "proc/sys/kernel/random", tools):
        path.mkdir(parents=True)
    (root / "proc/sys/kernel/random/boot_id").write_text("bench\n")
    (tools / "stress-ng").write_text(SLEEPER)
    (tools / "stress-ng").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}

    def ask(*words: str) -> dict[str, Any]:
        command = [sys.executable, "-m", "assay.node.probe", "--root", str(root), *words]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
        answer: dict[str, Any] = json.loads(done.stdout)["burn_in"]
        return answer

    ask("--burn-in", "start", "--plan", json.dumps(PLAN))
    pid = int((root / "var/lib/assay/burn-in/lock").read_text())
    spent, answer = 0.0, ask("--burn-in", "read")
    while answer["running"]:
        spent = max(spent, _read_cpu_s(pid))
        time.sleep(1)
        answer = ask("--burn-in", "read")
    kinds = [next(iter(line.keys() & {"result", "watch", "end"}), "") for line in answer["lines"]]
    parts = {"cpu_s": spent, "watches": kinds.count("watch"), "lines": len(kinds)}
    if "end" not in kinds:
        raise RuntimeError(f"the burn-in did not end: {answer}")
    return Measurement("burn-in: the supervisor, of a core", 100 * spent / SECONDS, "%", "at most", 1.5, parts)


def _read_cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process and of its children that have ended, 0 once it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS


def _measure_battery() -> Iterator[Measurement]:
    command = [
        sys.executable,
        "-m",
        "assay.node.load",
        "battery",
        "--engine",
        "numpy",
        "--size",
        "small",
        "--seeds",
        "8",
    ]
    done = subprocess.run([*command, "--devices", "8"], stdout=subprocess.PIPE, text=True, check=True)
    units = [line["device_ms"] for line in map(json.loads, done.stdout.splitlines()) if "test" in line]
    minutes = sum(map(sum, units)) / 8 / 60_000
    by_minute = len(units) / minutes
    what = "battery: units by minute of device time (CPU, small)"
    yield Measurement(what, by_minute, "units", "at least", 100_000, {"units": len(units)})
    needed = math.log(1 - SURELY) / math.log(1 - RATE)
    what = "battery: device time until a fault in one of 1,000 units is found with 95 % (CPU, small)"
    yield Measurement(what, needed / by_minute, "min", "at most", 0.05)
