"""What a tool said against a part in one run ends the burn-in, also where the next run passes before anybody reads."""

from __future__ import annotations

import json
from typing import Any

import pytest

from assay.act.loop.snapshot import FleetSnapshotCache
from assay.model.entries.effects import BurnInEndedEntry
from assay.model.entries.faults import FaultEntry
from assay.model.specs.burn_in import PART_FAULTS
from tests.act.ingest.test_following_a_burn_in import NODE, ToldNode, far, look  # noqa: F401 — a fixture
from tests.act.quiet_site import FLEET, Site
from tests.node.load_tools.test_load_tools import CASES, READERS, output_of

WARNED = {"devices": {"0": {"tests": {"pcie": {"value": "Warn: replays"}}, "skipped": {"value": []}}}}
MULTI = {"devices": {"1": {"mnubergemm": {"value": "Fail: GPU 1 stalled"}}}, "hosts": {}}
"""As the parsers of `dcgmi diag` and `dcgmi mndiag` give them (tests/node/load_tools/test_load_tools.py)."""


def read_case(tool: str, number: int) -> Any:
    return READERS[tool](output_of(tool, CASES[tool][number]))


SAID: dict[str, tuple[str, Any, str, str]] = {
    "a GPU fails": (
        "dcgm_diag_3",
        read_case("dcgm_diag", 0),
        "gpu1",
        "dcgm_diag_3 says of memory: Fail: GPU 1 reports a memory mismatch at offset 5368709120",
    ),
    "a GPU is warned of": ("dcgm_diag_1", WARNED, "gpu0", "dcgm_diag_1 says of pcie: Warn: replays"),
    "a processor fails": ("dcgm_diag_2", read_case("dcgm_diag", 6), "", "dcgm_diag_2 says of cpu_eud CPU0: Fail"),
    "a GPU of a rack fails": ("dcgm_mndiag", MULTI, "gpu1", "dcgm_mndiag says of mnubergemm: Fail: GPU 1 stalled"),
    "a GPU is fried": ("gpu_fryer", read_case("gpu_fryer", 0), "gpu1", "gpu_fryer says LowFlops"),
}


def make_passed(result: Any) -> Any:
    """Return a result with the same tests, all passed and without a problem."""
    if not isinstance(result, dict):
        return result
    if isinstance(said := result.get("value"), str):
        return {"value": "Pass" if said.startswith(("Fail", "Warn")) else "" if said == "LowFlops" else said}
    return {name: make_passed(below) for name, below in result.items()}


@pytest.mark.parametrize("name", SAID)
def test_a_later_pass_hides_no_failure(site: Site, memory: FleetSnapshotCache, far: ToldNode, name: str) -> None:  # noqa: F811
    part, result, subject, words = SAID[name]
    far.page = 20
    far.add(0, run={"boot": "b1", "serials": {}})
    far.add(600, unit=part, s=600, result=json.loads(json.dumps(result)))
    far.add(1200, unit=part, s=600, result=make_passed(result))
    look(memory, far)
    (ended,) = [BurnInEndedEntry.read(entry) for entry in site.ledger.entries(NODE, kinds=[BurnInEndedEntry.kind])]
    (seen,) = [FaultEntry.read(entry) for entry in site.ledger.entries(NODE, kinds=[FaultEntry.kind])]
    declared = [check for catalog in FLEET.check_catalogs.values() for check in catalog.checks if part in check.parts]
    assert (ended.outcome, ended.reason) == ("failed", f"{subject or 'node'}: {words}")
    assert ended.fault == seen.fault_class
    assert seen.fault_class in {check.fault for check in declared}
    assert seen.subject == f"{FLEET.nodes[NODE].subject}/{subject}".rstrip("/")
    assert far.orders[-1] == "stop"


@pytest.mark.parametrize("name", SAID)
def test_passes_end_nothing(site: Site, memory: FleetSnapshotCache, far: ToldNode, name: str) -> None:  # noqa: F811
    part, result, _, _ = SAID[name]
    far.page = 20
    far.add(0, run={"boot": "b1", "serials": {}})
    for t in (600, 1200):
        far.add(t, unit=part, s=600, result=make_passed(result))
    look(memory, far)
    assert not list(site.ledger.entries(NODE, kinds=[BurnInEndedEntry.kind]))


def test_the_journal_has_the_fault_of_each_diagnosis() -> None:
    checks = [check for catalog in FLEET.check_catalogs.values() for check in catalog.checks]
    parts = {part for check in checks if check.fault == "gpu.diag.failed" for part in check.parts}
    assert {part: PART_FAULTS.get(part) for part in parts} == dict.fromkeys(parts, "gpu.diag.failed")
    assert len(parts) == 5
