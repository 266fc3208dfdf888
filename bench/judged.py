"""Makes a fleet with evidence to judge, and the same checks as plain parametrized pytest beside its suites."""

from __future__ import annotations

import copy
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

from assay.results.store.reader import StoredRun
from bench.big_fleet import make, node_name
from bench.programs import ROOT

JUDGED = ("seatrial", "zap", "test", "production")
ILL_SHARE = 0.02
HOT, NARROW = 8, 4
"""GPUs of a node that are too hot, and on too few lanes: with its serial number, 2 % of what is judged of it."""

PHASES = ["--phase", ",".join(JUDGED)]

PLAIN = """
from functools import cache
from pathlib import Path

import pytest

from assay.fleet.fleet_loader import load_fleet
from assay.harness.selection.command_line_selection import kind_of
from assay.harness.selection.declared_checks import Selection
from assay.harness.fixtures.check_fixtures import Fixtures
from assay.harness.judging.evidence_cache import Shelf
from assay.harness.judging.verdict import Trial
from assay.model.outcome import Subject

TRIAL = pytest.StashKey()
SHELF = pytest.StashKey()
FLEET = load_fleet(Path({fleet!r}))
SELECTION = Selection(FLEET, tuple(FLEET.nodes))


@cache
def ids_of(kind):
    return [str(subject) for subject, _ in SELECTION.subjects(kind)]


def pytest_configure(config):
    config.stash[SHELF] = Shelf(Path(config.getoption("--evidence")), most=10**6)
    config.pluginmanager.register(Fixtures(FLEET, "", TRIAL))


def pytest_generate_tests(metafunc):
    ids = ids_of(kind_of(metafunc.function))
    metafunc.parametrize("subject", ids, ids=ids, indirect=True)


def pytest_runtest_setup(item):
    subject = Subject.parse(item.callspec.params["subject"])
    node = subject.name if subject.name in FLEET.nodes else ""
    item.stash[TRIAL] = Trial(item.originalname, subject, node, item.config.stash[SHELF])
"""
"""Fixtures of the same classes, repeated over the same subjects. A check passes or fails as pytest has it: that it is
no pass to go on past a silent reading is left out, and so are outcomes and measurements.
"""


def small_fleet(folder: Path, nodes: int) -> Path:
    """Make a fleet whose suites are those that look at nodes and racks, with the same checks below `plain`."""
    fleet = make(folder / "fleet", nodes)
    for suite in (fleet / "suites").iterdir():
        if suite.name not in JUDGED:
            shutil.rmtree(suite)
    plain = fleet / "plain"
    shutil.copytree(fleet / "suites", plain)
    (plain / "conftest.py").write_text(PLAIN.format(fleet=str(fleet)))
    return fleet


def evidence(of: Path, nodes: int, *, ill: bool = False, first: int = 0) -> Path:
    """Write evidence of `nodes` nodes from `first` on into the folder `of`, and return the folder."""
    of.mkdir(parents=True)
    recorded = json.loads((ROOT / "suites" / "recordings" / "hgx-h100.json").read_text())
    for number in range(first, first + nodes):
        document = copy.deepcopy(recorded)
        _fit(document, number)
        if ill:
            _spoil(document["channels"]["probe"]["gpu"]["devices"])
        text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        (of / f"{node_name(number)}.json").write_text(text)
    return of


def counts_of(file: Path) -> Counter[str]:
    """Return how many outcomes of each verdict a file holds."""
    with StoredRun.open(file) as stored:
        return stored.counts()


def _fit(document: dict[str, Any], number: int) -> None:
    """Let the recording be of another node: its name, its serial number, its adapters' GUIDs."""
    document["node"] = node_name(number)
    probe, serial = document["channels"]["probe"], f"A52{number + 1:012}"
    for rail, name in enumerate(sorted(probe["hca"])):
        probe["hca"][name]["guid"] = {"value": f"0xa088c203{number + 1:06x}{rail}6"}
    for place in (probe["host"], document["channels"]["bmc"]["system"]):
        place["serial"] = {"value": serial}


def _spoil(gpus: dict[str, Any]) -> None:
    for gpu in list(gpus.values())[:HOT]:
        gpu["temperature"]["gpu_c"] = {"value": 120}
    for gpu in list(gpus.values())[:NARROW]:
        gpu["pcie"]["width"] = {"value": 4}
