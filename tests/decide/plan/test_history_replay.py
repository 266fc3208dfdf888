"""What a new version would have done with the stored history: evidence, lines that the ledger recorded, and checks."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assay.act.loop.history_replay import HealthProofs, StoredHistory, replay_upgrade
from assay.decide.plan.backtest import StateTimeline
from assay.decide.plan.history_replay import HistoryReplay, make_recorded_documents
from assay.decide.plan.inputs import FleetRevision, HistoryReport
from assay.decide.state import decision_and_fault_entries
from assay.decide.state.node_projection import project_node_states
from assay.declare.loader import load_fleet
from assay.declare.starter.starter_record import StarterRecord
from assay.declare.starter.upgrade_plan import FileChange, UpgradePlan
from assay.ledger.store import Ledger
from assay.model.evidence import EvidenceDocument
from assay.model.fleet import Fleet
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import Outcome, RecordedOutcome, SuiteRun
from assay.model.reading import value
from assay.model.specs.fault_catalog import FaultClass
from assay.model.specs.schedules import HistoryBound
from assay.observe.evidence_store import EvidenceStore
from tests.support.forked_assay import run_assay
from tests.support.places import ROOT

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
SEEN = NOW - timedelta(days=2)
HARMLESS = (
    "mlx5_core 0000:18:00.0: mlx5_pcie_event:299:(pid 268269): Detected insufficient power on the PCIe slot (27W)."
)
PANIC = "Kernel panic - not syncing: Fatal exception"
HEAT = "suites/production/test_gpu.py::test_gpu_temperature"
NEW_CLASS = """\
kind: FaultCatalog
name: new
description: A rule of a new version.
owner: acme
sources: ["a test"]
classes:
  hca.power.low:
    summary: The slot says that it gives too little power.
    source: "a test"
    kernel_log: "^mlx5_core .*Detected insufficient power"
    severity: catastrophic
    blame: hardware
    remedy: rma
"""


def document(node: str, *texts: str, at: datetime = SEEN) -> EvidenceDocument:
    lines = [{"seq": number, "t_s": 5.0 + number, "text": text, "level": 4} for number, text in enumerate(texts, 1)]
    host = {"boot_id": value("b1"), "uptime_s": value(4000.0), "read_at": value(at.isoformat())}
    return EvidenceDocument(node, at, {"probe": {"host": host, "kernel_log": {"lines": value(lines)}}})


def enrolled(node: str) -> LedgerEntry:
    return decision_and_fault_entries.make_enrolled_entry(node, "h100-a", "production", NOW - timedelta(days=9))


def passed(node: str, verdict: str = "pass", at: datetime = NOW) -> RecordedOutcome:
    phases = ("test", "production")
    outcome = Outcome(HEAT, f"h100-a/{node}/gpu0", node, verdict, "", "gpu.thermal", phases, evidence_at=at.isoformat())
    return RecordedOutcome("r1", at.isoformat(), outcome)


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    """The example fleet, with 80 nodes of one kind."""
    known = load_fleet(ROOT)
    first = known.nodes["n0005"]
    return replace(known, nodes={f"m{number:03}": replace(first, name=f"m{number:03}") for number in range(80)})


def with_catalog(fleet: Fleet, **classes: FaultClass | None) -> Fleet:
    """Return the fleet with other classes; None takes one away."""
    name, catalog = next((n, c) for n, c in fleet.fault_catalogs.items() if "host.kernel.panic" in c.classes)
    changed = {key.replace("_", "."): each for key, each in classes.items()}
    left = {key: each for key, each in (catalog.classes | changed).items() if each}
    return replace(fleet, fault_catalogs={**fleet.fault_catalogs, name: catalog.model_copy(update={"classes": left})})


def too_little_power() -> FaultClass:
    return FaultClass(
        summary="Too little power.", source="a test", kernel_log="^mlx5_core .*insufficient power",
        severity="catastrophic", blame="hardware", remedy="rma",
    )  # fmt: skip


def judge(before: Fleet, after: Fleet, documents: list[EvidenceDocument], proven: set[str]) -> HistoryReport:
    entries = [enrolled(node) for node in before.nodes]
    states = project_node_states(entries)
    replay = HistoryReplay(FleetRevision(before), FleetRevision(after), states, StateTimeline(entries))
    for each in documents:
        replay.read_document(each)
    closed, lost = replay.compare(lambda node, since: node in proven)
    return HistoryReport(30, len(documents), 0, closed, lost, ())


def test_a_new_class_that_would_have_closed_77_healthy_nodes_is_told_and_needs_a_person(fleet) -> None:
    nodes = [f"m{number:03}" for number in range(77)]
    after = with_catalog(fleet, hca_power_low=too_little_power())
    report = judge(fleet, after, [document(node, HARMLESS) for node in nodes], set(nodes))
    (closing,) = report.closed
    assert (closing.fault, len(closing.nodes), len(closing.healthy)) == ("hca.power.low", 77, 77)
    assert report.lost == ()
    assert list(report.find_excess(HistoryBound())) == [
        ("wrongly_closed", "77 nodes (m000..m076) would have been closed, and proved healthy later; 1 may"),
        ("newly_closed", "77 nodes (m000..m076) would have been closed; 3 may"),
    ]
    assert list(report.find_excess(HistoryBound(wrongly_closed=77, newly_closed=77))) == []


def test_many_nodes_that_only_the_new_version_closes_need_a_person_though_nothing_came_later(fleet) -> None:
    after = with_catalog(fleet, hca_power_low=too_little_power())
    for count, names in ((3, []), (4, ["newly_closed"])):
        report = judge(fleet, after, [document(f"m{number:03}", HARMLESS) for number in range(count)], set())
        assert [name for name, _ in report.find_excess(HistoryBound())] == names


def test_the_same_catalogue_closes_and_loses_nothing(fleet) -> None:
    report = judge(fleet, fleet, [document("m001", HARMLESS, PANIC)], {"m001"})
    assert (report.closed, report.lost) == ((), ())


def test_a_version_that_loses_a_fault_is_told(fleet) -> None:
    report = judge(fleet, with_catalog(fleet, host_kernel_panic=None), [document("m001", PANIC)], set())
    assert [(each.fault, each.nodes) for each in report.lost] == [("host.kernel.panic", ("m001",))]
    assert [name for name, _ in report.find_excess(HistoryBound())] == ["lost_faults"]


def test_a_fault_that_gets_another_name_is_not_lost(fleet) -> None:
    panic = fleet.fault_catalog.classes["host.kernel.panic"]
    after = with_catalog(fleet, host_kernel_panic=None, host_kernel_died=panic)
    report = judge(fleet, after, [document("m001", PANIC)], set())
    assert report.lost == ()


def test_documents_that_come_twice_and_in_any_order_count_once(fleet) -> None:
    often = too_little_power().model_copy(update={"count": 3})
    after = with_catalog(fleet, hca_power_low=often)
    later = document("m001", HARMLESS, HARMLESS.replace("27W", "26W"))
    assert judge(fleet, after, [later, document("m001", HARMLESS), later], set()).closed == ()


def test_lines_that_only_the_ledger_has_are_read_as_well(fleet) -> None:
    first = judge_and_record(fleet, document("m001", "NVRM: GPU 0000:1b:00.0: a failure that nobody knows"))
    assert {fault.fault_class for fault in first.faults} == {"log.not-judged"}
    recorded = list(make_recorded_documents(first, NOW - timedelta(days=30)))
    known = too_little_power().model_copy(update={"kernel_log": "^NVRM: .*a failure that nobody knows"})
    report = judge(fleet, with_catalog(fleet, gpu_new=known), recorded, set())
    assert [(each.fault, each.nodes) for each in report.closed] == [("gpu.new", ("m001",))]
    assert list(make_recorded_documents(first, NOW)) == []


def judge_and_record(fleet: Fleet, read: EvidenceDocument):
    entries = [enrolled(read.node)]
    (state,) = project_node_states(entries).values()
    entries += decision_and_fault_entries.make_fault_entries(fleet, state, NOW, read)
    return project_node_states(replace(each, seq=number) for number, each in enumerate(entries, 1))[read.node]


def test_a_check_that_newly_fails_counts_where_its_state_watches_it(fleet) -> None:
    entries = [enrolled("m001")]
    revision, states = FleetRevision(fleet), project_node_states(entries)
    replay = HistoryReplay(revision, revision, states, StateTimeline(entries))
    replay.read_outcomes("m001", ([], [passed("m001", "fail", SEEN)]))
    closed, lost = replay.compare(lambda node, since: True)
    assert [(each.fault, each.healthy) for each in closed] == [("gpu.thermal", ("m001",))]
    assert lost == ()


def test_a_node_is_proven_healthy_by_later_passes_and_by_nothing_else(tmp_path) -> None:
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    ledger.append(*map(enrolled, ("m001", "m002", "m003")))
    for node, verdict, at in (("m001", "pass", NOW), ("m002", "fail", NOW), ("m003", "pass", SEEN)):
        recorded = passed(node, verdict, at)
        ledger.record(SuiteRun(f"r{node}", recorded.at), [recorded.outcome])
    states = project_node_states(ledger.entries())
    ledger.close()
    proofs = HealthProofs(states, tmp_path / "ledger.sqlite")
    assert [proofs.is_healthy(node, SEEN.isoformat()) for node in ("m001", "m002", "m003")] == [True, False, False]


def store_history(root: Path) -> list[str]:
    """Let a fleet have nodes that serve, with a line of their logs that says nothing, and passes after it."""
    now = datetime.now(UTC)
    nodes = [f"n{number:04}" for number in range(5, 13)]
    (root / ".assay").mkdir()
    ledger = Ledger.open(root / ".assay/ledger.sqlite")
    days = timedelta(days=9)
    ledger.append(
        *(decision_and_fault_entries.make_enrolled_entry(n, "h100-a", "production", now - days) for n in nodes)
    )
    store = EvidenceStore(root / ".assay/evidence")
    for node in nodes:
        store.store_latest(document(node, HARMLESS, at=now - timedelta(hours=3)))
    ledger.record(SuiteRun("r1", now.isoformat()), [passed(node, at=now).outcome for node in nodes])
    ledger.close()
    return nodes


def test_a_plan_is_refused_by_history_until_the_policy_in_git_allows_it(repository) -> None:
    nodes = store_history(repository.root)
    (repository.root / "specs/faults/new.yaml").write_text(NEW_CLASS)
    run = run_assay("plan", "--fleet", repository.root, "--base", "main", "--format", "json")
    assert run.returncode == 1, run.stderr
    plan = json.loads(run.stdout)
    assert [(each["fault"], each["healthy"]) for each in plan["history"]["closed"]] == [("hca.power.low", nodes)]
    assert "rollouts.history.wrongly_closed" in {each["limit"] for each in plan["refused"]}
    repository.policy("rollouts:\n", "rollouts:\n  history: {wrongly_closed: 8, newly_closed: 8}\n")
    run = run_assay("plan", "--fleet", repository.root, "--base", "main")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "would have closed 8 nodes (n0005..n0012), 8 of them proven healthy later: hca.power.low" in run.stdout


def test_an_upgrade_is_judged_before_a_file_is_written(repository) -> None:
    store_history(repository.root)
    new = FileChange("specs/faults/new.yaml", "new", after=NEW_CLASS.encode())
    plan = UpgradePlan(StarterRecord("1.0.0", "github", {}, {}), "2.0.0", (new,), {})
    root, store = repository.root, EvidenceStore(repository.root / ".assay/evidence")
    stored = StoredHistory(root / ".assay/ledger.sqlite", store, root / "reports", datetime.now(UTC))
    report, excess = replay_upgrade(plan, root, stored)
    assert report
    assert len(report.wrongly_closed) == 8
    assert excess.startswith(
        "8 nodes (n0005..n0012) would have been closed, and proved healthy later; 1 may (rollouts."
    )
    assert not (root / "specs/faults/new.yaml").exists()
    shutil.rmtree(root / ".assay/evidence")
    report, excess = replay_upgrade(plan, root, stored)
    assert report
    assert (report.documents, report.closed, excess) == (0, (), "")
