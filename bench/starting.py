"""The time until a small verb answers, on the example fleet."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from assay.cli.workspace import Workspace
from assay.model.ledger_entry import LedgerEntry
from bench.cost import cost
from bench.measurement import Measurement
from bench.programs import ANSIBLE, ASSAY, CHECK, PROBE, PYTHON, ROOT, STATUS

START_S = 0.4
TIMES_ANSIBLE = 2.0
"""Ansible reads the inventory; `check` also reads 56 specs, 58 suites and the playbooks, and applies 188 rules."""


def measurements(folder: Path) -> Iterator[Measurement]:
    """Measure starts, as multiples of other programs and in seconds; those with a ledger in a fleet below `folder`."""
    yield against("assay check of the example fleet / ansible-inventory --list", CHECK, ANSIBLE, at_most=TIMES_ANSIBLE)
    yield against("the probe on this machine / python -c pass", PROBE, PYTHON, at_most=25)
    yield start("assay --help", [*ASSAY, "--help"], ROOT)
    yield start("assay status --help", [*STATUS, "--help"], ROOT)
    fleet = folder / "starting"
    for part in ("inventory", "specs", "suites"):
        shutil.copytree(ROOT / part, fleet / part)
    yield start("assay status, no ledger", STATUS, fleet)
    write_ledger(fleet)
    yield start("assay status, with a ledger", STATUS, fleet)


def against(what: str, ours: list[str], floor: list[str], *, at_most: float) -> Measurement:
    """Return the CPU time of `ours` as a multiple of that of `floor`."""
    mine, theirs = cost(ours, ROOT).cpu_s, cost(floor, ROOT).cpu_s
    return Measurement(what, mine / theirs, "×", "at most", at_most, {"cpu_s": mine, "against_cpu_s": theirs})


def start(what: str, command: list[str], folder: Path) -> Measurement:
    """Return the CPU seconds of a command."""
    return Measurement(what, cost(command, folder).cpu_s, "CPU s", "at most", START_S)


def write_ledger(fleet: Path) -> None:
    """Write a ledger with a history for every node."""
    workspace = Workspace(fleet)
    for node in workspace.fleet.nodes.values():
        workspace.ledger.append(*history(node.name, node.pool))
    workspace.ledger.close()


def history(node: str, pool: str) -> Iterator[LedgerEntry]:
    """Yield a node's enrolment and two hundred transitions, an hour apart."""
    yield LedgerEntry(f"{node}-0", at(0), "node.enrolled", node, {"pool": pool, "state": "production"})
    moves = [("production", "production-reboot"), ("production-reboot", "production")] * 100
    for number, (here, there) in enumerate(moves, 1):
        yield LedgerEntry(
            f"{node}-{number}", at(number), "transition", node, {"from": here, "to": there, "decision": ""}
        )


def at(hours: int) -> str:
    """Return the time `hours` after the start of 2026."""
    return (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=hours)).isoformat()
