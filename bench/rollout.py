"""The cost of a rollout on the lab: new BMC firmware, which the running controller brings to every node.

The controller, its ledger on SQLite, its actions, ansible-runner and the checks are real; BMCs and hosts are virtual,
and their processes do not count. The policy is this repository's, without the day of burn-in. To know the lower bound,
bare `ansible-playbook` checks the same playbook on some nodes, one node a run. `python -m bench.rollout DIR NODES`
measures another size.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.act.ingest.silent_nodes import list_sources, open_last_seen
from assay.act.loop.context import ControllerContext
from assay.act.rollouts.commit_adoption import take_up_fleet
from assay.decide.rollouts.rollout_history import ROLLOUTS, Rollout
from assay.declare.loader import load_fleet
from assay.lab.world import LabWorld
from assay.ledger.store import Ledger
from assay.observe.evidence_store import EvidenceStore
from bench.cost import cost
from bench.measurement import Measurement
from bench.programs import ASSAY, BIN
from bench.table import format_table
from tests.support import serving_fleet

NODES, FLOOR_RUNS, VERSION = 8, 4, "01.05.12"
STARTED = "looks after"
"""What the controller says once it has started: its start is no node's cost."""
PATIENCE_S = 1200.0
"""How long a node may take on a machine that others keep busy: CPU time is what counts."""
LONG_HOURS = 1000
"""Longer than the rollout takes: so only nodes with news are observed. Lab time runs sixty times as fast as ours."""
CONTROLLER_S, TIMES_FLOOR, ENTRIES, PEAK_MB = 4.0, 5.0, 30.0, 400.0
"""Half more than on a busy machine, where polls go on while effects wait. A node has four moves with four effects, of
three entries each. Beside its playbook, it is probed after each move and judged by about 200 checks, under load too.
"""
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Spent:
    """CPU seconds of the controller and of what it started, its peak memory, and how long the rollout took.

    The controller's start (3 to 4 CPU s) does not count.
    """

    own_s: float
    children_s: float
    peak_mb: float
    wall_s: float


def measurements(folder: Path) -> Iterator[Measurement]:
    """Roll one change out to a small fleet below `folder`."""
    yield from roll_out(folder / "rollout", NODES)


def roll_out(root: Path, nodes: int) -> Iterator[Measurement]:
    """Measure a rollout over `nodes` nodes, and the playbooks that it cannot do without."""
    root.mkdir(parents=True)
    serving_fleet.make_serving_fleet(root, [f"n{number:04}" for number in range(1, nodes + 1)])
    serving_fleet.change_yaml(root / serving_fleet.POLICY, _make_quick)
    shutil.rmtree(root / "specs" / "schedules")
    serving_fleet.start_history(root)
    with _run_lab(root):
        context = _make_context(root)
        take_up_fleet(context)
        _note_contacts(context)
        before = context.ledger.head()
        serving_fleet.merge_bmc_image(root, VERSION)
        spent = _reconcile(context, PATIENCE_S * nodes)
        rollout, written = _find_rollout(context), context.ledger.entries(after=before)
        world = LabWorld(root / ".assay-lab/world")
        flashed = Counter(len(world.load(name)["flashes"]) for name in context.fleet.nodes)
        floor_s = _measure_floor(root, min(FLOOR_RUNS, nodes))
    if rollout.status != "finished" or flashed != {1: nodes}:
        raise RuntimeError(f"the rollout is {rollout.status} ({rollout.end_reason}); flashes of a node: {flashed}")
    parts = {"nodes": nodes, "wall_s": spent.wall_s, "children_cpu_s": spent.children_s, "floor_cpu_s_each": floor_s}
    what = f"a rollout over {nodes} lab nodes"
    yield Measurement(f"{what}: the controller, a node", spent.own_s / nodes, "CPU s", "at most", CONTROLLER_S, parts)
    whole = (spent.own_s + spent.children_s) / nodes
    yield Measurement(f"{what}: all, with checks / one bare playbook", whole / floor_s, "×", "at most", TIMES_FLOOR)
    yield Measurement(f"{what}: peak memory of the controller", spent.peak_mb, "MB", "at most", PEAK_MB)
    kinds = {kind: count / nodes for kind, count in Counter(entry.kind for entry in written).items()}
    yield Measurement(f"{what}: ledger entries of a node", len(written) / nodes, "", "at most", ENTRIES, kinds)


def _make_quick(policy: dict[str, Any]) -> None:
    """Let there be no burn-in, and half the nodes be out. Let nothing expire: lab time passes fast."""
    policy["states"]["test"] |= {"soak_hours": 0, "burn_in": [], "entry": []}
    for state in policy["states"].values():
        for want in (*state.get("requires", []), *filter(None, [state.get("deadline")])):
            want |= {name: LONG_HOURS for name in ("fresh_hours", "hours") if name in want}
    policy["limits"] |= {"pool_percent": 50, "effects_at_once": {"pool": 4, "rack": 1}}


@contextmanager
def _run_lab(root: Path) -> Iterator[None]:
    subprocess.run([*ASSAY, "lab", "up"], cwd=root, check=True, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        subprocess.run([*ASSAY, "lab", "down"], cwd=root, check=True, stdout=subprocess.DEVNULL)


def _make_context(root: Path) -> ControllerContext:
    home, world = root / ".assay-lab", LabWorld(root / ".assay-lab" / "world")
    fleet, ledger = load_fleet(root, [world.home / "inventory.yml"]), Ledger.open(home / "ledger.sqlite", context="lab")
    return ControllerContext(fleet, ledger, EvidenceStore(home / "evidence"), world.clock(), home, root / "reports")


def _note_contacts(context: ControllerContext) -> None:
    """Let every node have answered just now, so that only the nodes of the rollout are observed."""
    answered = {(node.name, source): True for node in context.fleet.nodes.values() for source in list_sources(node)}
    open_last_seen(context).record_polls(answered, context.clock.now())


def _find_rollout(context: ControllerContext) -> Rollout:
    return list(ROLLOUTS.fold(context.ledger.entries(kinds=ROLLOUTS.kinds)).rollouts.values())[-1]


def _reconcile(context: ControllerContext, patience_s: float) -> Spent:
    """Run `assay reconcile` until the rollout has ended or is paused; return what that took."""
    start, seq, log_file = time.monotonic(), context.ledger.head(), context.home / "reconcile.log"
    ends, begun_s = ["rollout.finished", "rollout.paused"], (0.0, 0.0)
    with log_file.open("wb") as log:
        command = [*ASSAY, "reconcile", "--interval", str(LONG_HOURS * 3600)]
        running = subprocess.Popen(command, cwd=context.fleet.root, stdout=log, stderr=log, start_new_session=True)
    try:
        while not context.ledger.entries(after=seq, kinds=ends):
            if running.poll() is not None or time.monotonic() - start > patience_s:
                raise RuntimeError(log_file.read_text()[-2000:])
            if not any(begun_s) and STARTED in log_file.read_text():
                begun_s = _read_cpu_s(running.pid)
            time.sleep(0.5)
        own_s, children_s = (now - begun for now, begun in zip(_read_cpu_s(running.pid), begun_s, strict=True))
        return Spent(own_s, children_s, _read_peak_mb(running.pid), time.monotonic() - start)
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait()


def _read_peak_mb(pid: int) -> float:
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) / 1024


def _read_cpu_s(pid: int) -> tuple[float, float]:
    """Return the CPU seconds of a process, and of all that it started: what runs still (the forker of checks), too."""
    spent, parents = {}, {}
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            fields = (place / "stat").read_text().rpartition(") ")[2].split()
            parents[int(place.name)] = int(fields[1])
            spent[int(place.name)] = [(int(fields[at]) + int(fields[at + 1])) / TICKS for at in (11, 13)]
    below = {pid}
    while more := {one for one, parent in parents.items() if parent in below} - below:
        below |= more
    return spent[pid][0], spent[pid][1] + sum(sum(spent[one]) for one in below - {pid})


def _measure_floor(root: Path, count: int) -> float:
    """Return the CPU seconds of one bare run of the playbook on one node of `count`, which changes nothing."""
    where = ["-i", "inventory", "-i", ".assay-lab/world/inventory.yml"]
    runs = [
        [str(BIN / "ansible-playbook"), *where, "--limit", f"n{number:04}", "playbooks/zap.yml"]
        for number in range(1, count + 1)
    ]
    return sum(cost(command, root, times=1).cpu_s for command in runs) / len(runs)


if __name__ == "__main__":
    taken = list(roll_out(Path(sys.argv[1]), int(sys.argv[2])))
    lines = [json.dumps(measurement.as_json(), ensure_ascii=False) for measurement in taken]
    print(*lines, sep="\n")  # noqa: T201 — the answer
    print(format_table(taken), file=sys.stderr)  # noqa: T201 — for people
