"""`python -m bench.made_runs FLEET [N]` stores N runs of a fleet, without judging anything.

Each node has a given number of outcomes of declared checks. Most pass; planted failures hit a rack, a switch, single
nodes, known issues and observed checks.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from assay.declare.loader import load_fleet
from assay.ledger.runs.writer import OutcomeWriter
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.outcome import Measurement, Outcome, SuiteRun
from assay.model.specs.check_catalog import CheckDeclaration
from assay.validate.runs.subjects import NodeSelection, list_declared_checks

NEWEST = datetime(2026, 11, 21, 12, tzinfo=UTC)
EVERY = timedelta(hours=12)
FRESH_HOURS = 48
PLACE = "specs/nodes/hgx-h100.yaml:58"


@dataclass(frozen=True)
class Planted:
    """A planted failure: checks with `word` in their id, on `nodes` and `part` ("" any), in runs `since` to `until`.

    Runs are counted backwards; 0 is the newest.
    """

    word: str
    reason: str
    nodes: frozenset[str]
    part: str = ""
    since: int = 0
    until: int = -1
    verdict: str = "fail"
    known: str = ""
    observed: bool = False

    def meets(self, check: str, node: str, part: str, ago: int) -> bool:
        """Return whether an outcome of the run `ago` runs before the newest fails."""
        return (
            self.until < ago <= self.since and node in self.nodes and self.word in check and part.startswith(self.part)
        )


def make(fleet: Fleet, reports: Path, each: int, runs: int) -> list[Path]:
    """Store `runs` runs with `each` outcomes a node below `reports`; return their files, oldest first."""
    nodes = list(fleet.nodes.values())
    planted = faults(nodes)
    late = {node.name for node in nodes[len(nodes) // 3 : len(nodes) // 3 + 2]}
    return [_run(fleet, reports, each, ago, planted, late) for ago in reversed(range(runs))]


def faults(nodes: list[Node]) -> list[Planted]:
    """Return the planted failures for these nodes."""
    racks: dict[str, list[str]] = {}
    for node in nodes:
        racks.setdefault(node.rack, []).append(node.name)
    rack = [frozenset(names) for names in racks.values()]
    one = [frozenset({node.name}) for node in nodes]
    unit = frozenset(node.name for node in nodes[len(nodes) // 2 :][: min(32, len(nodes) // 4)])
    known = "https://example.net/issues/41"
    return [
        Planted("test_temperatures", "inlet 41 °C, expected at most 35", rack[len(rack) // 2]),
        Planted("test_fans_turn_alike", "fan3 18,000 rpm, expected at most 14,000", rack[len(rack) // 2]),
        Planted("test_link_is_clean", "symbol_errors 5,312, expected at most 0", unit, part="mlx5_3"),
        Planted("gpu", "gpu3 does not answer: NVML says GPU is lost", one[len(one) // 4], part="gpu3"),
        Planted("test_memory_size", "memory_gib 1984 GiB, expected at least 2048", one[0]),
        Planted("test_clock_is_right", "offset 3 s, expected at most 1", one[1]),
        Planted("test_", "no evidence: ssh: connect to host: no route", one[-3], verdict="error"),
        Planted("test_pcie_link", "pcie_width 8 lanes, expected at least 16", one[len(one) // 5], since=9),
        Planted("test_bmc_clock", "offset 70 s, expected at most 60", one[-1] | one[3], since=9, known=known),
        Planted("test_root_file_system", "used 96 %, expected at most 90", one[0] | one[5], since=9, until=0),
        Planted("test_boot_order", "PXE comes second", one[7] | one[9], since=9, observed=True),
    ]


def _run(fleet: Fleet, reports: Path, each: int, ago: int, planted: list[Planted], late: set[str]) -> Path:
    at = NEWEST - ago * EVERY
    run = SuiteRun(f"{at:%Y%m%dT%H%M%S}.000-{ago:06x}", at.isoformat(), spec_commit=fleet.commit, who="bench")
    path = reports / "runs" / run.id / "run.sqlite"
    path.parent.mkdir(parents=True)
    write = OutcomeWriter(path, run)
    for node in fleet.nodes.values():
        if node.name not in late or ago > 5:
            for outcome in _outcomes(fleet, node, each, at, ago, planted):
                write(outcome)
    fresh_hours = dict.fromkeys((check.id for check in list_declared_checks(fleet)), FRESH_HOURS)
    write.set_about(ended=at.isoformat(), fresh_hours=json.dumps(fresh_hours))
    write.close()
    return path


def _outcomes(fleet: Fleet, node: Node, each: int, at: datetime, ago: int, planted: list[Planted]) -> Iterator[Outcome]:
    seen = (at - timedelta(minutes=5)).isoformat()
    observed = {failure.word for failure in planted if failure.observed}
    for check, part in _judged(fleet, node, each):
        met = next((failure for failure in planted if failure.meets(check.id, node.name, part, ago)), None)
        subject = f"{node.subject}/{part}" if part else node.subject
        measured = (Measurement("pcie_width", 8 if met else 16, "lanes", 16.0, None, PLACE),)
        yield Outcome(
            check.id,
            subject,
            node.name,
            met.verdict if met else "pass",  # type: ignore[arg-type]
            met.reason if met else "",
            check.fault,
            tuple(check.phases),
            evidence=f"{ago:032x}{int(node.u):032x}",
            evidence_at=seen,
            duration_s=0.0001,
            measurements=measured if "pcie" in check.id else (),
            known=met.known if met else "",
            observed=any(word in check.id for word in observed),
        )


def _judged(fleet: Fleet, node: Node, each: int) -> list[tuple[CheckDeclaration, str]]:
    """Return `each` checks and parts of a node, evenly spread over all of them."""
    key = node.spec
    if key not in _SHAPES:
        selection, checks = NodeSelection(fleet, (node.name,)), list_declared_checks(fleet)
        due = [(check, *each) for check in checks for each in selection.due_subjects(check)]
        own = [(check, subject.part) for check, subject, name in due if name == node.name]
        step = max(1.0, len(own) / each)
        _SHAPES[key] = [own[int(at * step)] for at in range(min(each, len(own)))]
    return _SHAPES[key]


_SHAPES: dict[str, list[tuple[CheckDeclaration, str]]] = {}


if __name__ == "__main__":
    root = Path(sys.argv[1])
    make(load_fleet(root), root / "reports", each=100, runs=int(sys.argv[2]) if len(sys.argv) > 2 else 3)
