"""Makes a fleet with evidence to judge, and its checks a second time as plain parametrized pytest."""

from __future__ import annotations

import copy
import hashlib
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
"""GPUs of a bad node that are too hot, and with too few PCIe lanes: 2 % of its outcomes fail."""

PHASES = ["--phase", ",".join(JUDGED)]

PLAIN = """
from functools import cache
from pathlib import Path

import pytest

from assay.fleet.fleet_loader import load_fleet
from assay.harness.selection.command_line_selection import find_subject_kind
from assay.harness.selection.node_selection import NodeSelection
from assay.harness.fixtures.check_fixtures import CheckFixtures
from assay.harness.judging.evidence_cache import EvidenceCache
from assay.harness.judging.verdict import CheckContext
from assay.model.outcome import CheckSubject

CONTEXT = pytest.StashKey()
CACHE = pytest.StashKey()
FLEET = load_fleet(Path({fleet!r}))
SELECTION = NodeSelection(FLEET, tuple(FLEET.nodes))


@cache
def ids_of(kind):
    return [str(subject) for subject, _ in SELECTION.subjects(kind)]


def pytest_configure(config):
    config.stash[CACHE] = EvidenceCache(Path(config.getoption("--evidence")), 10**6)
    config.pluginmanager.register(CheckFixtures(FLEET, "", CONTEXT))


def pytest_generate_tests(metafunc):
    ids = ids_of(find_subject_kind(metafunc.function))
    metafunc.parametrize("subject", ids, ids=ids, indirect=True)


def pytest_runtest_setup(item):
    subject = CheckSubject.parse(item.callspec.params["subject"])
    node = subject.name if subject.name in FLEET.nodes else ""
    item.stash[CONTEXT] = CheckContext(item.originalname, subject, node, item.config.stash[CACHE])
"""
"""A conftest.py with fixtures of the same classes, for the same subjects. Verdicts are pytest's own: checks that ignore
an unavailable reading pass, and there are no outcomes and measurements.
"""


def small_fleet(folder: Path, nodes: int) -> Path:
    """Make a fleet with the suites about nodes and racks, and with the same checks below `plain`."""
    fleet = make(folder / "fleet", nodes)
    for suite in (fleet / "suites").iterdir():
        if suite.name not in JUDGED:
            shutil.rmtree(suite)
    plain = fleet / "plain"
    shutil.copytree(fleet / "suites", plain)
    (plain / "conftest.py").write_text(PLAIN.format(fleet=str(fleet)))
    return fleet


def evidence(folder: Path, nodes: int, *, ill: bool = False, first: int = 0, hot: int = 0) -> Path:
    """Write evidence of `nodes` nodes, from `first` on, into a new folder, and return the folder.

    `hot` GPUs of each are too hot; where they are `ill`, some are too hot and some have too few lanes.
    """
    folder.mkdir(parents=True)
    recorded = json.loads((ROOT / "suites" / "recordings" / "hgx-h100.json").read_text())
    for number in range(first, first + nodes):
        document = copy.deepcopy(recorded)
        _fit(document, number)
        gpus = document["channels"]["probe"]["gpu"]["devices"]
        if ill:
            _spoil(gpus)
        for gpu in list(gpus.values())[:hot]:
            gpu["temperature"]["gpu_c"] = {"value": 120}
        text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        _store(folder, node_name(number), text.encode())
    return folder


def _store(folder: Path, node: str, content: bytes) -> None:
    """Store a document as `assay observe` does: as an object by its digest, and as the latest of its node."""
    digest = hashlib.sha256(content).hexdigest()
    stored = folder.parent / "objects" / digest[:2] / f"{digest}.json"
    stored.parent.mkdir(parents=True, exist_ok=True)
    stored.write_bytes(content)
    (folder / f"{node}.json").write_bytes(content)


def counts_of(file: Path) -> Counter[str]:
    """Return the number of outcomes of each verdict in a run's file."""
    with StoredRun.open(file) as stored:
        return stored.counts()


def _fit(document: dict[str, Any], number: int) -> None:
    """Change the recording to another node: name, serial number, GUIDs of the adapters."""
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
