"""The delay from a fault in the ledger to the cordon in Slurm, by `assay reconcile`: one fault, and 150 at once.

Another process writes the faults, as `assay serve` does. slurmctld is real; its nodes have no slurmd, which cordons do
not need. The policy ends with the cordon, and no node is due for observation.
"""

from __future__ import annotations

import getpass
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

import yaml

from assay.act.ingest.silent_nodes import list_sources, open_last_seen
from assay.act.loop.context import ControllerContext
from assay.decide.faults.detection import FaultObservation
from assay.decide.state import decision_and_fault_entries
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.model.ledger_entry import LedgerEntry
from assay.model.timestamps import format_time
from assay.observe.evidence_store import EvidenceStore
from bench.big_fleet import make, node_name
from bench.measurement import Measurement
from tests.support import slurm_cluster

SAMPLES, WAVE = 20, 150
ONE_S, WAVE_S = 0.5, 2.4
"""NVIDIA's NVSentinel reports 1.8 s for one fault, and 2.4 s for 6."""
FAULT = "gpu.xid.79"


def measurements(folder: Path) -> Iterator[Measurement]:
    """Measure both in a fleet below `folder`."""
    if not shutil.which("slurmctld"):
        print("· Slurm is not installed: cordons are not measured", file=sys.stderr)  # noqa: T201 — for people
        return
    names = [node_name(number) for number in range(SAMPLES + WAVE)]
    context = _make_context(_make_fleet(folder / "cordon", len(names)))
    (folder / "slurm").mkdir()
    with _run_slurmctld(folder / "slurm", names), _run_reconcile(context.fleet.root, folder):
        _seconds_to_cordon(context, names[:1], 60.0)  # the loop has started once its first node is cordoned
        singles = [_seconds_to_cordon(context, [name]) for name in names[1:SAMPLES]]
        parts = {"samples": len(singles), "longest_s": max(singles), "shortest_s": min(singles)}
        yield Measurement("a fault in the ledger → its cordon in Slurm", median(singles), "s", "at most", ONE_S, parts)
        wave = _seconds_to_cordon(context, names[SAMPLES:])
        yield Measurement(f"{WAVE} faults at once → all cordons in Slurm", wave, "s", "at most", WAVE_S)


def _make_fleet(root: Path, nodes: int) -> Path:
    """Make a fleet on Slurm whose policy ends with the cordon, without limits that would delay it."""
    make(root, nodes)
    for file in (root / "inventory").iterdir():
        file.write_text(file.read_text().replace("workloads: none", "workloads: slurm"))
    shutil.rmtree(root / "specs" / "schedules")
    path = root / "specs" / "lifecycle" / "default.yaml"
    policy = yaml.safe_load(path.read_text())
    policy["states"]["production-reboot"]["entry"] = ["cordon"]
    policy["limits"] |= {"pool_percent": 100, "rack_concurrent": nodes, "reboots_per_hour": nodes}
    policy["breaker"] |= {"min_nodes": nodes + 1, "percent": 100, "by_class": []}
    path.write_text(yaml.safe_dump(policy, sort_keys=False))
    return root


def _make_context(root: Path) -> ControllerContext:
    """Return the fleet's context; all nodes are in production and were just observed."""
    home, clock = root / ".assay", SystemClock()
    fleet, ledger = load_fleet(root), Ledger.open(home / "ledger.sqlite")
    context = ControllerContext(fleet, ledger, EvidenceStore(home / "evidence"), clock, home, root / "reports")
    ledger.append(
        *(
            decision_and_fault_entries.make_enrolled_entry(node.name, node.pool, "production", clock.now())
            for node in fleet.nodes.values()
        )
    )
    open_last_seen(context).record_polls(
        {(node.name, source): True for node in fleet.nodes.values() for source in list_sources(node)}, clock.now()
    )
    return context


@contextmanager
def _run_slurmctld(folder: Path, names: Sequence[str]) -> Iterator[None]:
    """Run a slurmctld with these nodes, none of which answers."""
    cluster = slurm_cluster.Cluster(folder, ())
    os.environ["SLURM_CONF"] = str(folder / "slurm.conf")
    control, *ports = slurm_cluster.reserve_ports(1 + len(names))
    words = {"CONTROL": control, "USER": getpass.getuser(), "FOLDER": folder}
    text = string.Template(slurm_cluster.SLURM_CONF).substitute(words)
    (folder / "slurm.conf").write_text(
        text + "".join(map(slurm_cluster.NODE.format, names, ports)) + slurm_cluster.PARTITION
    )
    (folder / "state").mkdir()
    try:
        cluster.control("-i")
        slurm_cluster.until(lambda: len(_read_states()) == len(names))
        yield
    finally:
        cluster.end()
        del os.environ["SLURM_CONF"]


@contextmanager
def _run_reconcile(root: Path, folder: Path) -> Iterator[None]:
    """Run `assay reconcile`."""
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


def _seconds_to_cordon(context: ControllerContext, names: Sequence[str], patience_s: float = 30.0) -> float:
    """Append a fault for each of these nodes; return the seconds until Slurm shows all their cordons."""
    time.sleep(random.uniform(0.5, 1.5))  # noqa: S311 — so that it hits the loop at a random moment
    entries = [_make_fault(context, name) for name in names]
    start = time.monotonic()
    context.ledger.append(*entries)
    while not set(names) <= {name for name, state in _read_states().items() if "DRAIN" in state}:
        if time.monotonic() - start > patience_s:
            raise RuntimeError(f"{len(names)} nodes were not cordoned within {patience_s:g} s")
        time.sleep(0.01)
    return time.monotonic() - start


def _make_fault(context: ControllerContext, name: str) -> LedgerEntry:
    now = datetime.now(UTC)
    at, treatment = format_time(now), context.fleet.fault_catalog.find_treatment(FAULT)
    fault = FaultObservation(
        f"fault-{name}", name, FAULT, f"{context.fleet.nodes[name].subject}/gpu0", treatment.severity, treatment.blame,
        treatment.remedy, 1, at, at, "as planted", {"kernel": "b:1"}, (at,),
    )  # fmt: skip
    return decision_and_fault_entries.make_fault_entry(fault, now)


def _read_states() -> dict[str, str]:
    """Return the state of each node, from `scontrol`."""
    answer = subprocess.run(["scontrol", "show", "nodes", "--oneliner"], capture_output=True, text=True, check=False)
    nodes = (dict(word.split("=", 1) for word in line.split() if "=" in word) for line in answer.stdout.splitlines())
    return {node["NodeName"]: node["State"] for node in nodes if "NodeName" in node}


if __name__ == "__main__":
    for measurement in measurements(Path(sys.argv[1])):
        print(json.dumps(measurement.as_json()), flush=True)  # noqa: T201 — the answer
