"""What other nodes of a kind reached is added to the evidence of a loaded node, once there are enough of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from assay.act.ingest.burn_ins import RunningBurnIn
from assay.act.ingest.collection import NeighbourBatteries, add_burn_in, add_fleet, find_starts, read_fleet_speeds
from assay.declare.loader import load_fleet
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceBasis, EvidenceDocument
from assay.model.outcome import Measurement, Outcome, RecordedOutcome
from assay.model.reading import ReadingTree
from assay.model.specs.check_catalog import CheckDeclaration
from assay.validate.active.golden import make_golden_key
from tests.support.places import ROOT
from tests.validate.active.battery_runs import make_branch, make_run

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


@pytest.fixture(autouse=True)
def _nothing_is_known_of_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Votes of exchanged parts, with states of a ledger: tests/act/loop/test_whose_evidence_it_is.py."""
    monkeypatch.setattr("assay.act.ingest.collection.read_node_states", lambda _: {})


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


TRAY = ("NVIDIA GB200",) * 4
COMPARED = CheckDeclaration.model_validate(
    {
        "id": "suites/test/test_battery.py::test_gpu_computes_as_its_peers",
        "subject": "gpu",
        "phases": ["confirm"],
        "active": True,
        "parts": ["battery"],
        "fault": "gpu.sdc",
    }
)


def loaded(node: str, units: dict[str, Any]) -> EvidenceDocument:
    return EvidenceDocument(node, NOW, {"active": {"battery": make_branch({"gemm": units}, TRAY)}})


def site_of_trays(stored: dict[str, EvidenceDocument], golden: list[Any], *, is_one_machine: bool = False) -> Any:
    """Five trays, the second of which stands in another rack; each in `stored` has passed on that evidence."""

    def get(digest: str) -> EvidenceDocument:
        if digest not in stored:
            raise AssayError("there is no evidence")
        return stored[digest]

    nodes = {
        f"n{number}": SimpleNamespace(
            name=f"n{number}",
            spec="tray",
            serial="",
            rack=(rack := "b" if number == 1 else "a"),
            rack_place=("s", rack),
        )
        for number in range(5)
    }
    found = [
        replace(one, outcome=replace(one.outcome, check=COMPARED.id, evidence=one.outcome.node))
        for one in (passed(name, 0, 1.0) for name in [*stored, "n4"])
    ]
    fleet = SimpleNamespace(
        check_catalogs={"c": SimpleNamespace(checks=[COMPARED])},
        nodes=nodes,
        list_golden=lambda spec: golden,
        node_specs={"tray": SimpleNamespace(rack=is_one_machine)},
    )
    ledger = SimpleNamespace(newest_passes=lambda check: found if check == COMPARED.id else [])
    return SimpleNamespace(fleet=fleet, ledger=ledger, now=NOW.isoformat(), evidence=SimpleNamespace(get=get))


def add(context: Any, evidence: EvidenceDocument, neighbours: NeighbourBatteries | None = None) -> ReadingTree:
    """Return the channel that is added to evidence."""
    return add_fleet(context, evidence, neighbours or NeighbourBatteries(context)).channels["fleet"]


def test_a_node_whose_gpus_disagree_gets_what_its_nearest_sound_neighbours_computed() -> None:
    split = ["aaaaaaaa", "aaaaaaaa", "bbbbbbbb", "aaaaaaaa"]
    stored = {
        "n1": loaded("n1", {"7": "aaaaaaaa", "9": "aaaaaaaa"}),
        "n2": loaded("n2", {"7": split}),
        "n3": loaded("n3", {"7": "aaaaaaaa"}),
    }
    context = site_of_trays(stored, [])
    told = add(context, loaded("n0", {"7": split}))["other_nodes"]["value"]
    assert told == {"nodes": ["n3", "n1"], "digests": {"gemm": {"7": {"aaaaaaaa": 8}}}}, "the nearest first"
    assert "other_nodes" not in add(context, loaded("n0", {"7": "aaaaaaaa"})), "it needs nobody"
    assert "other_nodes" not in add(context, EvidenceDocument("n0", NOW, {}))


def test_all_trays_of_a_rack_vote_as_they_are_loaded_now_or_as_they_passed() -> None:
    stored = {name: loaded(name, {"7": "aaaaaaaa"}) for name in ("n1", "n2", "n3")}
    context = site_of_trays(stored, [], is_one_machine=True)
    neighbours = NeighbourBatteries(context)
    neighbours.add([loaded("n3", {"7": ["aaaaaaaa", "bbbbbbbb", None, "aaaaaaaa"]}), EvidenceDocument("n4", NOW, {})])
    neighbours.add([replace(loaded("n4", {"7": "cccccccc"}), stranger="another machine")])
    wrong = loaded("n0", {"7": "cccccccc"})
    told = add(context, wrong, neighbours)["other_nodes"]["value"]
    votes = {"aaaaaaaa": 6, "bbbbbbbb": 1}
    assert told == {"nodes": ["n3", "n2"], "digests": {"gemm": {"7": votes}}}, "n1 is in another rack"


def find(context: Any, active: dict[str, list[str]]) -> dict[str, str]:
    return find_starts(context, active, NeighbourBatteries(context))


def test_a_battery_begins_where_a_neighbour_began_unless_golden_digests_are_for_its_key() -> None:
    stored = {"n1": loaded("n1", {"7": "aaaaaaaa"})}
    assert find(site_of_trays(stored, []), {"n0": ["battery"], "n2": ["memory"]}) == {"n0": "6:all"}
    key = make_golden_key(make_run({"gemm": {"7": "aaaaaaaa"}}, TRAY))
    assert find(site_of_trays(stored, [SimpleNamespace(computed_by=key)]), {"n0": ["battery"]}) == {"n0": ""}


def test_in_a_burn_in_what_runs_beside_nothing_is_held_to_the_fleet_and_checks_see_other_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The shipped day: `site_training` runs in a phase of its own, and `all_reduce` beside `memory` too."""
    fleet = load_fleet(ROOT)
    monkeypatch.setattr("assay.act.ingest.collection.find_burn_in", lambda fleet, _: fleet.burn_ins["day"])
    found = []
    for check, speed in ((TRAINED, "site_tokens"), (REDUCED, "bus_bandwidth")):
        measured = (Measurement(speed, 100.0, "tokens/s"),)
        passes = [
            Outcome(check, f"a/{name}", name, "pass", evidence_at=NOW.isoformat(), measurements=measured)
            for name in fleet.nodes
        ]
        found += [RecordedOutcome("run", NOW.isoformat(), outcome) for outcome in passes]
    ledger = SimpleNamespace(newest_passes=lambda check: [one for one in found if one.outcome.check == check])
    context: Any = SimpleNamespace(fleet=fleet, ledger=ledger, now=NOW.isoformat())
    node = next(name for name in fleet.nodes if fleet.nodes[name].spec == "hgx-h100")
    results = {"site_training": {"steps": {"value": 24}}, "all_reduce": {"bus_gb_s": {"value": 400}}}
    others = {"other_nodes": {"value": {"nodes": [], "digests": {}}}}
    running = RunningBurnIn(NOW.isoformat(), results, others)
    told = add_burn_in(context, running, EvidenceDocument(node, NOW, {}), None).channels["fleet"]
    assert told.keys() == {"site_tokens", "other_nodes"}
    quiet = add_burn_in(context, RunningBurnIn(NOW.isoformat(), {}), EvidenceDocument(node, NOW, {}), None)
    assert "fleet" not in quiet.channels


TRAINED = "suites/test/test_site_training.py::test_site_training_tells_its_speed"
REDUCED = "suites/test/test_collectives.py::test_all_reduce_bandwidth"
