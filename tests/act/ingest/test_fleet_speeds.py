"""What other nodes of a kind reached is added to the evidence of a loaded node, once there are enough of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from assay.act.ingest.collection import read_fleet_speeds
from assay.model.evidence import EvidenceBasis
from assay.model.outcome import Measurement, Outcome, RecordedOutcome
from assay.model.specs.check_catalog import CheckDeclaration

NOW = datetime(2026, 11, 22, tzinfo=UTC)
CHECK = CheckDeclaration.model_validate(
    {
        "id": "suites/test/test_gpu.py::test_speed",
        "subject": "gpu",
        "phases": ["test"],
        "active": True,
        "parts": ["ubergemm"],
    }
)
NODES = {
    f"n{number}": SimpleNamespace(name=f"n{number}", spec="h100" if number < 8 else "b200", serial=f"SN-{number:04}")
    for number in range(9)
}


def passed(node: str, gpu: int, speed: float, days: float = 1) -> RecordedOutcome:
    at = (NOW - timedelta(days=days)).isoformat()
    measured = (Measurement("tensor_speed", speed, "Gflop/s"),)
    outcome = Outcome(CHECK.id, f"a/{node}/gpu{gpu}", node, "pass", evidence_at=at, measurements=measured)
    return RecordedOutcome("run", at, outcome)


def read(found: list[RecordedOutcome]) -> dict[str, Any]:
    fleet = SimpleNamespace(check_catalogs={"c": SimpleNamespace(checks=[CHECK])}, nodes=NODES)
    ledger = SimpleNamespace(newest_passes=lambda check: found if check == CHECK.id else [])
    context: Any = SimpleNamespace(fleet=fleet, ledger=ledger, now=NOW.isoformat())
    target: Any = NODES["n0"]
    return read_fleet_speeds(context, target)


def test_the_median_and_what_one_in_twenty_is_below() -> None:
    found = [passed(f"n{node}", gpu, 700.0 + 8 * node + gpu) for node in range(1, 8) for gpu in range(8)]
    told = read(found)["tensor_speed"]
    assert (told["gpus"], told["median"]) == ({"value": 56}, {"value": 735.5})
    assert 708 <= told["low"]["value"] < 712


def test_itself_other_kinds_strangers_and_old_passes_do_not_count() -> None:
    good = [passed(f"n{node}", gpu, 700.0) for node in range(1, 6) for gpu in range(8)]
    odd = [passed("n0", 0, 1.0), passed("n8", 0, 1.0), passed("gone", 0, 1.0), passed("n1", 9, 1.0, days=31)]
    assert read([*good, *odd])["tensor_speed"]["gpus"] == {"value": 40}
    undated = replace(good[0], outcome=replace(good[0].outcome, evidence_at=""))
    former = replace(good[0], outcome=replace(good[0].outcome, basis=EvidenceBasis(serial="SN-9999")))
    for other in (undated, former):
        assert "39 GPUs" in read([other, *good[1:]])["tensor_speed"]["unsupported"]


def test_a_fleet_without_passes_has_nothing_to_compare_with() -> None:
    assert read([]) == {}


def test_what_is_measured_of_whole_nodes_is_compared_with_twenty_nodes() -> None:
    whole = CHECK.model_copy(update={"id": "suites/test/test_x.py::test_all", "subject": "node"})
    nodes = {f"n{number}": SimpleNamespace(name=f"n{number}", spec="h100", serial="") for number in range(22)}
    found = [
        replace(one, outcome=replace(one.outcome, measurements=(Measurement("speed", 100.0 + number, "tokens/s"),)))
        for number in range(22)
        for one in [passed(f"n{number}", 0, 1.0)]
    ]
    target: Any = nodes["n0"]
    enough = {"median": {"value": 111.0}, "low": {"value": 101.1}, "nodes": {"value": 21}}
    too_few = {"unsupported": "19 nodes of this kind have passed with speed; 20 are needed"}
    for count, told in ((22, enough), (20, too_few)):
        fleet = SimpleNamespace(check_catalogs={"c": SimpleNamespace(checks=[whole])}, nodes=nodes)
        ledger = SimpleNamespace(newest_passes=lambda _, count=count: found[:count])
        context: Any = SimpleNamespace(fleet=fleet, ledger=ledger, now=NOW.isoformat())
        assert read_fleet_speeds(context, target) == {"speed": told}
