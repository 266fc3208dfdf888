"""From a fault in the ledger to the cordon that Slurm shows: one at a time, and 150 in one wave, by `assay reconcile`.

The ledger is written to by another process, as `assay serve` does. slurmctld is a real one; its nodes have no slurmd,
which a cordon needs not. What follows the cordon is left out of the policy, and nobody's turn to be looked at comes.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import shutil
import signal
import string
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from assay.controller.context import ControllerContext
from assay.controller.ingest.silent_nodes import list_sources, open_last_seen
from assay.fleet.fleet_loader import load_fleet
from assay.ledger.store import Ledger
from assay.lifecycle import ledger_entries
from assay.lifecycle.faults.detection import FaultObservation
from assay.model.clock import SystemClock
from assay.model.ledger_entry import LedgerEntry
from assay.model.timestamps import format_time
from assay.observe.evidence_store import EvidenceStore
from bench.big_fleet import make, node_name
from bench.measurement import Measurement

SAMPLES, WAVE = 20, 150
ONE_S, WAVE_S = 0.5, 2.4
"""NVIDIA's NVSentinel reports 1.8 s for one, and 6 in 2.4 s."""
FAULT = "gpu.xid.79"


def measurements(folder: Path) -> Iterator[Measurement]:
    """Measure both in a fleet made below `folder`."""
    if not shutil.which("slurmctld"):
        print("· no Slurm here: cordons are not measured", file=sys.stderr)  # noqa: T201 — for people
        return
    names = [node_name(number) for number in range(SAMPLES + WAVE)]
    desk = _desk(_fleet(folder / "cordon", len(names)))
    (folder / "slurm").mkdir()
    with _slurm(folder / "slurm", names), _reconciling(desk.fleet.root, folder):
        _warmed_up(desk, names)
        singles = [_seconds(desk, [name]) for name in names[1:SAMPLES]]
        told = {"samples": len(singles), "longest_s": max(singles), "shortest_s": min(singles)}
        yield Measurement("a fault in the ledger → its cordon in Slurm", median(singles), "s", "at most", ONE_S, told)
        wave = _seconds(desk, names[SAMPLES:])
        yield Measurement(f"{WAVE} faults at once → all cordons in Slurm", wave, "s", "at most", WAVE_S)


def _fleet(root: Path, nodes: int) -> Path:
    """Make a fleet on Slurm whose policy ends with the cordon, and that no limit keeps from it."""
    make(root, nodes)
    for file in (root / "inventory").iterdir():
        file.write_text(file.read_text().replace("workloads: none", "workloads: slurm"))
    shutil.rmtree(root / "specs" / "schedules")
    path = root / "specs" / "lifecycle" / "default.yaml"
    policy = yaml.safe_load(path.read_text())
    policy["states"]["production-reboot"]["entry"] = ["cordon"]
    policy["limits"] |= {"pool_percent": 100, "rack_concurrent": nodes, "reboots_per_hour": nodes}
    policy["breaker"] |= {"min_nodes": nodes + 1, "percent": 100}
    path.write_text(yaml.safe_dump(policy, sort_keys=False))
    return root


def _desk(root: Path) -> ControllerContext:
    """Return the fleet's desk, its nodes all in production and just looked at."""
    home, clock = root / ".assay", SystemClock()
    fleet, ledger = load_fleet(root), Ledger.open(home / "ledger.sqlite")
    desk = ControllerContext(fleet, ledger, EvidenceStore(home / "evidence"), clock, home, root / "reports")
    ledger.append(
        *(
            ledger_entries.make_enrolled_entry(node.name, node.pool, "production", clock.now())
            for node in fleet.nodes.values()
        )
    )
    open_last_seen(desk).record_polls(
        {(node.name, one): True for node in fleet.nodes.values() for one in list_sources(node)}, clock.now()
    )
    return desk


@contextmanager
def _slurm(folder: Path, names: Sequence[str]) -> Iterator[None]:
    """Give a slurmctld that knows these nodes, none of which answers."""
    told: Any = importlib.import_module("tests.slurm_cluster")
    made = told.Cluster(folder, ())
    os.environ["SLURM_CONF"] = str(folder / "slurm.conf")
    control, *ports = told.free_ports(1 + len(names))
    words = {"CONTROL": control, "USER": told.getpass.getuser(), "FOLDER": folder}
    text = string.Template(told.SLURM_CONF).substitute(words)
    (folder / "slurm.conf").write_text(text + "".join(map(told.NODE.format, names, ports)) + told.PARTITION)
    (folder / "state").mkdir()
    try:
        made.control("-i")
        told.until(lambda: len(_states()) == len(names))
        yield
    finally:
        made.end()
        del os.environ["SLURM_CONF"]


@contextmanager
def _reconciling(root: Path, folder: Path) -> Iterator[None]:
    """Give a running `assay reconcile`."""
    command = [sys.executable, "-m", "assay", "reconcile", "--interval", "86400", "--fleet", str(root)]
    with (folder / "reconcile.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        yield
        if process.poll() is not None:
            raise RuntimeError((folder / "reconcile.log").read_text()[-2000:])
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def _warmed_up(desk: ControllerContext, names: Sequence[str]) -> None:
    """Let the loop cordon its first node, for which it must have begun."""
    _seconds(desk, names[:1], 60.0)


def _seconds(desk: ControllerContext, names: Sequence[str], patience_s: float = 30.0) -> float:
    """Store one fault for each of these nodes, and return how long it took until Slurm shows all their cordons."""
    time.sleep(random.uniform(0.5, 1.5))  # noqa: S311 — so that it meets the loop at any moment
    entries = [_fault(desk, name) for name in names]
    begun = time.monotonic()
    desk.ledger.append(*entries)
    while not set(names) <= {name for name, state in _states().items() if "DRAIN" in state}:
        if time.monotonic() - begun > patience_s:
            raise RuntimeError(f"{len(names)} nodes were not cordoned within {patience_s:g} s")
        time.sleep(0.01)
    return time.monotonic() - begun


def _fault(desk: ControllerContext, name: str) -> LedgerEntry:
    now = datetime.now(UTC)
    at, treatment = format_time(now), desk.fleet.fault_catalog.find_treatment(FAULT)
    seen = FaultObservation(
        f"fault-{name}", name, FAULT, f"{desk.fleet.nodes[name].subject}/gpu0", treatment.severity, treatment.blame,
        treatment.remedy, 1, at, at, "as planted", {"kernel": "b:1"}, (at,),
    )  # fmt: skip
    return ledger_entries.make_fault_entry(seen, now)


def _states() -> dict[str, str]:
    """Return Slurm's state of each node, as `scontrol` says it."""
    said = subprocess.run(["scontrol", "show", "nodes", "--oneliner"], capture_output=True, text=True, check=False)
    words = (dict(word.split("=", 1) for word in line.split() if "=" in word) for line in said.stdout.splitlines())
    return {one["NodeName"]: one["State"] for one in words if "NodeName" in one}


if __name__ == "__main__":
    for one in measurements(Path(sys.argv[1])):
        print(json.dumps(one.as_json()), flush=True)  # noqa: T201 — the answer
