"""How long it takes to read one BMC whole that has 50, 200 or 481 resources and takes half a second for each answer."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from assay.adapters.bmc.request_time import READS_AT_ONCE
from assay.observe.evidence_collector import DEADLINE_S, read_bmc_channel
from bench.bmcs import nodes_at
from bench.measurement import Measurement
from bench.programs import ROOT
from bench.slow_bmc import SHARES

SIZES = (50, 200, 481)
ANSWER_S = 0.5
AT_MOST = 1.8
"""Of the time that the answers take if always as many are under way as may be. Login and logout come one by one."""


def measurements(folder: Path) -> Iterator[Measurement]:
    """Read one slow BMC of each size."""
    for size in SIZES:
        with serve(folder / f"slow-{size}", size) as port:
            [node] = nodes_at({"slow": port}, folder / f"slow-{size}" / "ca.pem")
            begun, cpu = time.monotonic(), time.process_time()
            tree = read_bmc_channel(node, ROOT, DEADLINE_S)
            wall_s, cpu_s = time.monotonic() - begun, time.process_time() - cpu
        sensors = len(tree.get("sensor", {}).get("temperature", {}))
        if sensors < SHARES["Sensors"] * size * 0.6 or "no answer within" in json.dumps(tree):
            raise RuntimeError(f"a BMC of {size} resources was not read whole")
        ideal_s = size * ANSWER_S / READS_AT_ONCE
        made_of = {"wall_s": wall_s, "cpu_s": cpu_s, "resources": size, "answer_s": ANSWER_S}
        what = f"read a BMC of {size} resources whole, {ANSWER_S} s an answer: wall / {READS_AT_ONCE} at once"
        yield Measurement(what, wall_s / ideal_s, "×", "at most", AT_MOST, made_of)


@contextmanager
def serve(folder: Path, size: int) -> Iterator[int]:
    """Serve a slow BMC during the block; yield its port."""
    folder.mkdir()
    command = [sys.executable, "-m", "bench.slow_bmc", str(folder), str(size), str(ANSWER_S)]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        while not (folder / "port").exists():
            if process.poll() is not None:
                raise RuntimeError("the slow BMC did not start")
            time.sleep(0.1)
        yield int((folder / "port").read_text())
    finally:
        process.kill()
        process.wait()
