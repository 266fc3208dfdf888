"""What a pass looks at, loads and judges, and when it is over."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.act.ingest.collection import collect_node_evidence, find_due_parts
from assay.act.ingest.right_clock import WrongClock
from assay.act.ingest.suite_runs import group_by_due_phases
from assay.act.loop import reconcile_pass
from assay.act.loop.reconcile_pass import (
    MAX_PASSES,
    PassReport,
    observe_nodes,
    reconcile_once,
    record_decisions,
    repeat_until_unchanged,
)
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.adapters.scheduler import CustomerJob
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.ledger_entry import LedgerEntry
from assay.model.specs.load_parts import USUAL_PARTS
from tests.act.quiet_site import NODES, Site

ONE, OTHER = NODES[0], NODES[1]


def rebooted(site: Site) -> FleetSnapshotCache:
    """Let one node have been rebooted for a fault, and wait for its proof."""
    memory = FleetSnapshotCache(site.desk)
    site.fault(ONE)
    record_decisions(memory)
    site.settle(ONE)
    site.later(minutes=3)
    return memory


def test_what_is_watched_is_judged_of_quiet_nodes_and_what_is_required_of_the_others(site: Site):
    memory = rebooted(site)
    groups = group_by_due_phases(memory.build_snapshot(), memory.node_states(), [ONE, OTHER, OTHER, "a stranger"])
    assert groups == {("production", "test"): [ONE], ("fabric", "production"): [OTHER]}


def test_nothing_that_is_required_is_judged_before_the_repair_is_proved(site: Site):
    memory = FleetSnapshotCache(site.desk)
    site.fault(ONE)
    record_decisions(memory)
    assert group_by_due_phases(memory.build_snapshot(), memory.node_states(), [ONE]) == {}


@pytest.mark.parametrize("jobs", [(), (CustomerJob("7", "llama", "customer", ""),), None])
def test_only_a_node_that_waits_for_its_proof_and_is_known_to_be_idle_is_loaded(site: Site, jobs):
    memory = rebooted(site)
    site.far.jobs[ONE] = jobs or ()
    site.far.silent = jobs is None
    situation = memory.build_snapshot([OTHER])
    loaded = {view.name: find_due_parts(situation, view) for view in situation.nodes}
    of_fault = ("dcgm_diag_3", "dcgmproftester")
    assert loaded == {ONE: (*USUAL_PARTS, *of_fault) if jobs == () else (), OTHER: ()}


@pytest.mark.parametrize(
    ("offsets", "problem"),
    [
        ([-90000, -90001, -90000], "the clock of this machine is 25 h ahead of the clocks of 3 of 3 BMCs"),
        ([7200, 7201, 0, 7199], "the clock of this machine is 120 min behind the clocks of 3 of 4 BMCs"),
        ([-90000, 0, 1], ""),
        ([-90000, 4000, 70], ""),
        ([-90000, -90000], ""),
    ],
)
def test_a_wrong_clock_of_the_controller_blames_no_node_and_decides_nothing(
    site: Site, monkeypatch, offsets: list[float], problem: str
):
    memory, names = FleetSnapshotCache(site.desk), NODES[: len(offsets)]

    def collect(*_, **__):
        for name, offset in zip(names, offsets, strict=False):
            bmc = {"manager": {"clock_off_s": {"value": offset}}}
            yield EvidenceDocument(name, site.clock.now(), {"bmc": bmc})

    monkeypatch.setattr("assay.act.ingest.collection.stream_evidence", collect)
    if not problem:
        collect_node_evidence(site.desk, memory.build_snapshot(), names)
        return
    with pytest.raises(WrongClock, match=problem):
        observe_nodes(memory, names)
    assert all(site.desk.evidence.latest(name) is None for name in names), "evidence with a wrong time is not kept"
    site.fault(ONE)
    assert record_decisions(memory) == 0


def test_nothing_is_judged_by_files_that_broke_while_evidence_was_collected(site: Site, monkeypatch):
    is_usable, judged = True, list[str]()

    def collect(_fleet, names, **_):
        nonlocal is_usable
        is_usable = OTHER not in names
        yield from (EvidenceDocument(name, site.clock.now(), {"probe": {"v": {"value": 1}}}) for name in names)

    monkeypatch.setattr("assay.act.ingest.collection.stream_evidence", collect)
    monkeypatch.setattr(reconcile_pass, "prepare_judgement", lambda *_: None)
    monkeypatch.setattr(reconcile_pass, "run_due_suites", lambda _, names: judged.extend(names) or ["run"])
    memory = FleetSnapshotCache(site.desk)
    assert observe_nodes(memory, [ONE], may_judge=lambda: is_usable) == ["run"]
    assert observe_nodes(memory, [OTHER], may_judge=lambda: is_usable) == []
    assert judged == [ONE]
    assert site.desk.evidence.latest(OTHER), "the evidence is kept, and judged with the next round"


def test_a_channel_that_falls_silent_is_told_when_it_does_and_not_again(site: Site, monkeypatch):
    memory, answers = (
        FleetSnapshotCache(site.desk),
        iter([{"v": {"value": 1}}, {"failed": "no answer"}, {"failed": "no answer"}]),
    )
    memory.take_new_entries()

    def collect(_fleet, names, **_):
        channels = {"probe": next(answers)}
        yield from (EvidenceDocument(name, site.clock.now(), channels) for name in names)

    monkeypatch.setattr("assay.act.ingest.collection.stream_evidence", collect)
    told = []
    for _ in range(3):
        site.later(minutes=5)
        collect_node_evidence(site.desk, memory.build_snapshot(), [ONE])
        told.append([(one.kind, one.body["channel"]) for one in memory.take_new_entries()])
    assert told == [[], [("observe.failed", "probe")], []]


def test_documents_are_kept_as_they_arrive_so_that_a_large_fleet_fills_no_memory(site: Site, monkeypatch):
    memory, kept = FleetSnapshotCache(site.desk), list[int]()
    latest, names = site.desk.evidence.folder / "latest", list(site.desk.fleet.nodes)

    def collect(_fleet, names, **_):
        for name in names:
            kept.append(len(list(latest.glob("*.json"))))
            yield EvidenceDocument(name, site.clock.now(), {"probe": {"v": {"value": 1}}})

    monkeypatch.setattr("assay.act.ingest.collection.stream_evidence", collect)
    monkeypatch.setattr("assay.act.ingest.collection.NODES_AT_ONCE", 1)
    found = collect_node_evidence(site.desk, memory.build_snapshot(), names)
    assert kept == list(range(len(names)))
    assert {name: found[name].node for name in found} == {name: name for name in names}


def test_passes_are_repeated_until_one_changes_nothing():
    busy, quiet = PassReport("now", [LedgerEntry("1", "now", "fault")]), PassReport("now")
    numbers: list[int] = []
    assert repeat_until_unchanged(lambda number: (numbers.append(number), quiet if number == 2 else busy)[1]) == [
        busy,
        busy,
        quiet,
    ]
    assert numbers == [0, 1, 2]
    assert len(repeat_until_unchanged(lambda _: busy)) == MAX_PASSES


def test_a_pass_over_a_node_that_the_inventory_lacks_is_refused(tmp_path: Path, site: Site):
    with pytest.raises(AssayError, match="the inventory has no node n9999"):
        reconcile_once(site.desk, ["n9999"])


def test_a_pass_over_no_node_changes_nothing(tmp_path: Path, site: Site):
    before = site.ledger.head()
    report = reconcile_once(site.desk, [], scan_fabric=False)
    assert [entry.kind for entry in report.entries if entry.node in (ONE, OTHER)] == []
    assert (report.runs, Ledger.head(site.ledger) - before) == ([], len(report.entries))
