"""What a look at real evidence adds to the ledger, with a real inventory: once, and never half."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import event

from assay.act.ingest.part_replacements import record_parts
from assay.act.loop.context import ControllerContext
from assay.decide.state.node_projection import project_node_states
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.model.evidence import EvidenceDocument
from assay.model.ledger_entry import LedgerEntry
from assay.observe.evidence_store import EvidenceStore

AT = datetime(2026, 11, 22, 9, tzinfo=UTC)
FAULT = {"fault": "f1", "class": "gpu.xid.79", "subject": "h100-a/n0003/gpu1", "severity": "catastrophic"}
SEEN = {
    "blame": "hardware",
    "count": 1,
    "first_seen": AT.isoformat(),
    "last_seen": AT.isoformat(),
    "detail": "fell off",
}


@pytest.fixture
def desk(ann):
    home = ann.root / ".assay"
    return ControllerContext(
        load_fleet(ann.root), ann.ledger(), EvidenceStore(home / "evidence"), SystemClock(), home, ann.root / "reports"
    )


def gpus(**serials: str):
    return {
        f"0000:{slot}:00.0": {"serial": {"value": serial}} if serial else {"failed": "GPU is lost"}
        for slot, serial in serials.items()
    }


def seen(node: str, serial: str, minutes: int = 0, **serials: str) -> EvidenceDocument:
    slots = {"x1b" if name == "gpu0" else "x43": one for name, one in serials.items()}
    devices = gpus(**{slot.removeprefix("x"): one for slot, one in slots.items()})
    channels = {"bmc": {"system": {"serial": {"value": serial}}}, "probe": {"gpu": {"devices": devices}}}
    return EvidenceDocument(node, AT + timedelta(minutes=minutes), channels)


def noted(desk: ControllerContext, *looks: EvidenceDocument) -> list[LedgerEntry]:
    before = desk.ledger.head()
    for evidence in looks:
        desk.evidence.store_latest(evidence)
    record_parts(desk, {evidence.node: evidence for evidence in looks})
    return desk.ledger.entries(after=before)


def looked(desk: ControllerContext, node: str, serial: str, minutes: int = 0, **serials: str) -> list[LedgerEntry]:
    """Return what a look adds about parts."""
    return [entry for entry in noted(desk, seen(node, serial, minutes, **serials)) if entry.kind != "setup.seen"]


def test_a_setup_is_noted_once_and_again_when_a_version_changes(desk):
    def look(driver: str) -> list[LedgerEntry]:
        evidence = seen("n0003", "S0000001", gpu0="1650923001")
        evidence.channels["probe"]["gpu"]["driver"] = {"value": driver} if driver else {"failed": "no NVML"}
        return [entry for entry in noted(desk, evidence) if entry.kind == "setup.seen"]

    (first,) = look("570.1")
    node = desk.fleet.nodes["n0003"]
    assert first.body["versions"] == {"driver": "570.1"}
    assert (first.body["rack"], first.body["u"], first.body["spec"]) == (f"lab1/{node.rack}", node.u, node.spec)
    assert look("570.1") == []
    assert look("") == [], "a version that cannot be read is no other version"
    (second,) = look("580.2")
    assert second.body["versions"] == {"driver": "580.2"}


def test_parts_are_noted_by_the_names_that_faults_give_them_and_once(desk):
    serial = desk.fleet.nodes["n0003"].serial
    (entry,) = looked(desk, "n0003", serial, gpu0="1650923001", gpu1="1650923002")
    assert entry.body["parts"] == {
        "gpu0": {"kind": "gpu", "serial": "1650923001"},
        "gpu1": {"kind": "gpu", "serial": "1650923002"},
    }
    assert entry.body["node"] == {"inventory": serial, "bmc": serial}
    assert looked(desk, "n0003", serial, gpu0="1650923001", gpu1="1650923002") == []
    assert looked(desk, "n0003", serial, gpu0="1650923001", gpu1="") == [], "a lost GPU is a fault, not another GPU"


def test_a_new_node_takes_the_place_and_none_of_the_old_ones_faults(desk):
    serial = desk.fleet.nodes["n0003"].serial
    looked(desk, "n0003", serial)
    desk.ledger.append(LedgerEntry("f1", AT.isoformat(), "fault", "n0003", {**FAULT, **SEEN}))
    assert [entry.kind for entry in looked(desk, "n0003", "NEW0001")] == [
        "parts.seen",
        "part.replaced",
        "fault.cleared",
    ]
    story = project_node_states(desk.ledger.entries())["n0003"]
    assert not any(known.is_open for known in story.faults)
    assert story.repairs[-1].kind == "replaced"
    assert looked(desk, "n0003", "NEW0001") == []
    desk.fleet.nodes["n0003"] = replace(desk.fleet.nodes["n0003"], serial="NEW0001")
    assert [entry.kind for entry in looked(desk, "n0003", "NEW0001")] == ["parts.seen"], "the inventory follows"


def test_a_gpu_that_wanders_is_missed_where_it_was_and_two_nodes_with_one_number_do_not_quarrel(desk):
    looked(desk, "n0003", "S0000001", gpu0="1650923001")
    told = looked(desk, "n0004", "S0000002", gpu1="1650923001")
    assert [(entry.node, bool(entry.body.get("gone"))) for entry in told] == [("n0004", False)], "n0003 has it as well"
    looked(desk, "n0003", "S0000001")
    told = looked(desk, "n0001", "S0000003", gpu1="1650923001")
    assert told[-1].node == "n0001", "n0004 still reads it"
    looked(desk, "n0001", "S0000003")
    looked(desk, "n0004", "S0000002")
    told = looked(desk, "n0002", "S0000004", gpu0="1650923001")
    assert (told[-1].node, told[-1].body["gone"]["gpu1"]["to"]) == ("n0001", "n0002")


def test_the_ledger_of_another_process_is_what_counts(desk, ann):
    looked(desk, "n0003", "S0000001", gpu0="1650923001")
    other = replace(desk, ledger=Ledger.open(ann.root / ".assay" / "ledger.sqlite"))
    assert looked(other, "n0003", "S0000001", gpu0="1650923001") == []


@pytest.mark.parametrize("together", [True, False])
def test_parts_that_change_places_between_two_looks_are_told_alike_in_one_pass_and_in_two(desk, together):
    first = [seen("n0003", "S0000001", gpu0="1650923001"), seen("n0004", "S0000002", gpu0="1650923002")]
    noted(desk, *first)
    then = [seen("n0003", "S0000001", 1, gpu0="1650923002"), seen("n0004", "S0000002", 1, gpu0="1650923001")]
    for evidence in then:
        desk.evidence.store_latest(evidence)
    told = noted(desk, *then) if together else [entry for one in then for entry in noted(desk, one)]
    assert [(entry.node, entry.body["parts"], entry.body.get("gone", {})) for entry in told] == [
        ("n0003", {"gpu0": {"kind": "gpu", "serial": "1650923002", "was": "1650923001"}}, {}),
        ("n0004", {}, {"gpu0": {"serial": "1650923002", "to": "n0003", "to_place": "gpu0"}}),
        ("n0004", {"gpu0": {"kind": "gpu", "serial": "1650923001"}}, {}),
    ]
    assert noted(desk, *then) == []


def test_the_ledger_is_asked_once_for_all_nodes_of_a_pass(desk):
    looks = [seen(name, f"S{name}", gpu0="") for name in desk.fleet.nodes]
    noted(desk, *looks)
    asked: list[str] = []
    event.listen(desk.ledger._engine, "before_cursor_execute", lambda *said: asked.append(said[2]))
    assert noted(desk, *looks) == []
    assert len([one for one in asked if "kind IN" in one]) == 1
