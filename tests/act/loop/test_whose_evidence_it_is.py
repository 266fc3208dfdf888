"""A pass belongs to a machine: another one behind a node's name proves nothing, gets no order, and closes the node."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.act.actions.action import EffectIntent
from assay.act.effects.gates import must_wait_for_trust
from assay.act.ingest.collection import WRONG_FAULT, NeighbourBatteries, identify_machine
from assay.act.ingest.fault_recording import record_agent_faults, record_faults
from assay.act.ingest.part_replacements import record_parts
from assay.act.loop.enrollment import enroll_nodes
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.decide.faults.detection import count_sightings
from assay.decide.faults.recovery import find_identity_recoveries
from assay.decide.moves.decide import decide
from assay.decide.state.decision_and_fault_entries import make_decision_entries, make_enrolled_entry, make_fault_entry
from assay.model.evidence import EvidenceBasis, EvidenceDocument, MachineIdentity
from assay.model.faults.sightings import FaultSighting
from assay.model.outcome import Outcome, RecordedOutcome, SuiteRun
from assay.observe.transports.push import ClockOffset, DeliveredItem, build_delivered_evidence
from tests.act.loop.test_nothing_leaves_at_watch import ACT
from tests.act.quiet_site import FLEET, NODES, START, Site
from tests.validate.active.battery_runs import make_branch

NODE, OTHER = NODES[0], NODES[1]
OWN = FLEET.nodes[NODE].serial
STRANGER = "A520112X4499999"
GPUS = ("1650923001", "1650923002")
XID = "NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus."


def tell(bmc: str = OWN, dmi: str = OWN, gpus: tuple[str, ...] = GPUS, lines: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the channels of a machine; "" is not read."""

    def leaf(text: str) -> dict[str, str]:
        return {"value": text} if text else {"failed": "for root only"}

    devices = {
        pci.lower(): {"serial": leaf(gpu), "uuid": leaf(gpu and f"GPU-{gpu}")}
        for pci, gpu in zip(FLEET.spec_of(NODE).gpus.pci, gpus, strict=False)
    }
    log = [{"seq": number, "t_s": 60.0 + number, "text": text} for number, text in enumerate(lines)]
    host = {"serial": leaf(dmi), "boot_id": {"value": "b1"}, "uptime_s": {"value": 100.0}}
    probe = {"host": host, "gpu": {"devices": devices}, "kernel_log": {"lines": {"value": log}}}
    return {"bmc": {"system": {"serial": leaf(bmc)}}, "probe": probe}


def look(site: Site, node: str = NODE, **machine: Any) -> EvidenceDocument:
    """Observe a node as a pass does; return its evidence as it is kept."""
    site.later(minutes=1)
    read = EvidenceDocument(node, site.clock.now(), tell(**machine), site.ledger.head())
    evidence = identify_machine(site.desk, read)
    site.desk.evidence.store_latest(evidence)
    record_parts(site.desk, {node: evidence})
    record_faults(site.desk, {node: evidence})
    return evidence


def moves(site: Site, node: str = NODE) -> list[tuple[str, str, str]]:
    """Decide, record the decisions about a node, and return its moves."""
    snapshot = FleetSnapshotCache(site.desk).build_snapshot([node])
    (view,) = (view for view in snapshot.nodes if view.name == node)
    made = decide(snapshot, [node])
    for decision in made:
        site.ledger.append(*make_decision_entries(snapshot.policy, view, decision, snapshot.now))
    return [(decision.to_state, decision.timing, decision.rule.split()[-1]) for decision in made]


def faults(site: Site, node: str = NODE) -> list[str]:
    """Return the open faults of a node in words."""
    state = FleetSnapshotCache(site.desk).node_states()[node]
    return [f"{fault.fault_class}: {fault.detail}" for fault in state.faults if fault.is_open]


@pytest.mark.parametrize("machine", [{"bmc": STRANGER}, {"dmi": STRANGER}, {"bmc": "", "dmi": STRANGER}])
def test_another_machine_in_service_is_closed_at_once_and_its_fault_tells_both(site: Site, machine: Any) -> None:
    look(site)
    site.fault(NODE)  # a reboot is due, of the machine that is gone
    evidence = look(site, **machine, gpus=("9990000001",))
    assert STRANGER in evidence.stranger
    (told,) = (fault for fault in faults(site) if fault.startswith("identity"))
    assert STRANGER in told
    assert OWN in told
    assert moves(site) == [("draining", "immediate", "other-machine-in-service")]
    act = replace(site.desk, fleet=ACT)
    assert must_wait_for_trust(act, EffectIntent("e", "reboot", NODE, "d", "x"))
    assert not must_wait_for_trust(act, EffectIntent("e", "cordon", NODE, "d", "x"))
    head = site.ledger.head()
    look(site, **machine, gpus=("9990000001",))
    assert site.ledger.head() == head, "it is told once"


def test_full_limits_keep_no_other_machine_in_service(site: Site) -> None:
    limits = FLEET.policy.limits.model_copy(update={"rack_concurrent": 1, "pool_percent": 1})
    policy = FLEET.policy.model_copy(update={"limits": limits})
    site.desk = replace(site.desk, fleet=replace(FLEET, policies={policy.name: policy}))
    for node in NODES[:3]:
        look(site, node, bmc=STRANGER)
        assert moves(site, node) == [("draining", "immediate", "other-machine-in-service")]
    site.fault(NODES[3], "gpu.missing")
    assert moves(site, NODES[3]) == [("production-reboot", "record", "catastrophic-in-production")], "of others"


def test_another_machine_tells_nothing_of_the_nodes_parts_or_faults(site: Site) -> None:
    look(site)
    site.fault(NODE, "gpu.thermal")
    before = FleetSnapshotCache(site.desk).node_states()[NODE]
    look(site, dmi=STRANGER, gpus=("9990000001",), lines=(XID,))
    after = FleetSnapshotCache(site.desk).node_states()[NODE]
    assert after.gpus == before.gpus
    assert [fault for fault in after.faults if fault.fault_class != "identity.changed"] == list(before.faults)
    assert after.repairs == ()


def test_a_gpu_that_was_never_there_is_another_machine_only_where_passes_lead_into_service(site: Site) -> None:
    assert look(site).stranger == ""
    assert look(site, gpus=GPUS[:1]).stranger == "", "a lost GPU is a fault of this machine"
    assert look(site, gpus=GPUS[::-1]).stranger == "", "in another slot"
    assert "9990000001" in look(site, gpus=(GPUS[0], "9990000001")).stranger
    assert moves(site) == [("draining", "immediate", "other-machine-in-service")]
    assert look(site, gpus=(GPUS[0], "9990000001")).stranger == "", "now people work on it"
    assert FleetSnapshotCache(site.desk).node_states()[NODE].gpus["gpu1"] == ("9990000001", "GPU-9990000001")


def test_a_gpu_that_was_gone_when_the_others_were_first_read_is_no_other_machine(site: Site) -> None:
    assert look(site, gpus=("", GPUS[1])).stranger == ""
    assert look(site).stranger == "", "a restart brought it back"
    assert (faults(site), moves(site)) == ([], [])
    assert "9990000001" in look(site, gpus=("9990000001", GPUS[1])).stranger, "from now on it is known"


def test_the_same_serial_number_with_another_uuid_is_another_gpu(site: Site) -> None:
    look(site)
    channels = tell()
    for device in channels["probe"]["gpu"]["devices"].values():
        device["uuid"] = {"value": "GPU-of-another"}
    read = EvidenceDocument(NODE, site.clock.now(), channels)
    assert "GPU-of-another" in identify_machine(site.desk, read).stranger


def test_whoever_told_of_another_machine_must_tell_of_the_nodes_again(site: Site) -> None:
    site.say("move", NODE, to="triage")
    moves(site)
    moves(site)
    look(site, bmc=STRANGER)
    assert faults(site)
    look(site, bmc="")
    assert faults(site), "its BMC is silent now"
    look(site)
    assert faults(site) == []


@pytest.mark.parametrize(("verdict", "left"), [("pass", 0), ("skip", 0), ("fail", 1)])
def test_a_fault_that_a_check_told_of_too_ends_as_the_nodes_machine_answers_and_no_check_fails(
    site: Site, verdict: Any, left: int
) -> None:
    site.say("move", NODE, to="triage")
    moves(site)
    moves(site)
    evidence = look(site, bmc=STRANGER)
    told, catalog = FleetSnapshotCache(site.desk).node_states()[NODE], FLEET.fault_catalog
    sighting = FaultSighting("identity.changed", "", site.clock.now().isoformat(), "by a check", "check", "o1")
    for fault in count_sightings(catalog, FLEET.nodes[NODE], told, [sighting], 99):
        site.ledger.append(make_fault_entry(fault, site.clock.now()))
    (fault,) = FleetSnapshotCache(site.desk).node_states()[NODE].faults
    assert set(fault.marks) == {"identity", "check"}
    own = replace(evidence, at=site.clock.now() + timedelta(minutes=1), channels=tell())
    check = "suites/seatrial/test_host.py::test_serial_is_the_inventorys"
    outcome = Outcome(check, fault.subject, NODE, verdict, "x", "identity.changed")
    recorded = RecordedOutcome("o2", site.clock.now().isoformat(), outcome)
    state = FleetSnapshotCache(site.desk).node_states()[NODE]
    assert len(find_identity_recoveries(state, own, [recorded])) == 1 - left


def test_a_node_that_answers_as_another_does_not_harm_that(site: Site) -> None:
    look(site)
    twin = FLEET.nodes[OTHER].serial
    evidence = look(site, OTHER, bmc=OWN, dmi=OWN)
    assert OWN in evidence.stranger
    assert twin in evidence.stranger
    assert faults(site) == []
    site.fault(NODE)
    assert [timing for _, timing, _ in moves(site)] == ["immediate"]
    act = replace(site.desk, fleet=ACT)
    assert not must_wait_for_trust(act, EffectIntent("e", "reboot", NODE, "d", "x"))
    assert must_wait_for_trust(act, EffectIntent("e", "powercycle", OTHER, "d", "x"))


def test_lines_of_an_agent_on_another_machine_are_no_fault_of_the_node(site: Site) -> None:
    line = DeliveredItem(1, "kernel", 100.0, {"boot": "b9", "seq": 7, "t_s": 90.0, "text": XID})
    clocks = ClockOffset(100.0, site.clock.now())
    record_agent_faults(site.desk, list(build_delivered_evidence(NODE, [line], clocks, STRANGER)))
    (told,) = faults(site)
    assert told.startswith("identity.changed: ")
    record_agent_faults(site.desk, list(build_delivered_evidence(OTHER, [line], clocks, FLEET.nodes[OTHER].serial)))
    assert [fault.partition(":")[0] for fault in faults(site, OTHER)] == ["gpu.xid.79"]


@pytest.mark.parametrize(("state", "expected"), [("production", 1), ("test", 1), ("triage", 0), ("onboard", 0)])
def test_a_machine_in_the_place_of_one_that_served_has_a_fault_unless_that_was_taken_out(
    site: Site, state: str, expected: int
) -> None:
    new = replace(FLEET.nodes[NODE], name="n0099", serial=STRANGER)
    site.ledger.append(make_enrolled_entry("n0099", new.pool, state, site.clock.now(), OWN))
    site.later(hours=1)
    enroll_nodes(replace(site.desk, fleet=replace(FLEET, nodes={**FLEET.nodes, "n0099": new})))
    told = faults(site, "n0099")
    assert len(told) == expected
    assert all(STRANGER in fault and OWN in fault and state in fault for fault in told)


def test_what_another_machine_passed_under_this_name_is_not_the_nodes(site: Site) -> None:
    site.judge(NODE)
    check = next(iter(FLEET.check_catalogs.values())).checks[0].id
    at = site.clock.at.isoformat()
    basis = EvidenceBasis(1, "b", "", STRANGER)
    passed = Outcome(check, FLEET.nodes[NODE].subject, NODE, "pass", evidence_at=at, basis=basis)
    site.ledger.record(SuiteRun("run-of-another", at), [passed])
    (view,) = (v for v in FleetSnapshotCache(site.desk).build_snapshot([NODE]).nodes if v.name == NODE)
    assert view.latest
    assert not [recorded for recorded in view.latest if recorded.outcome.basis.serial == STRANGER]


def test_what_a_gpu_passed_is_not_of_the_one_that_people_put_in_its_place(site: Site) -> None:
    new = (*GPUS[:-1], "9990000001")

    def see(gpus: tuple[str, ...]) -> EvidenceBasis:
        document = EvidenceDocument(NODE, site.clock.now(), tell(gpus=gpus), site.ledger.head())
        record_parts(site.desk, {NODE: document})
        return EvidenceBasis.of_document(document)

    def passes(run: str, basis: EvidenceBasis) -> list[str]:
        """Record a pass on this evidence; return the runs of the passes that count."""
        at = site.clock.at.isoformat()
        site.ledger.record(SuiteRun(run, at), [Outcome(check, subject, NODE, "pass", evidence_at=at, basis=basis)])
        views = FleetSnapshotCache(site.desk).build_snapshot([NODE]).nodes
        (view,) = (view for view in views if view.name == NODE)
        return [recorded.id.partition("/")[0] for recorded in view.latest if recorded.outcome.subject == subject]

    check, subject = next(iter(FLEET.check_catalogs.values())).checks[0].id, FLEET.nodes[NODE].subject
    former = see(GPUS)
    assert len(passes("before", former)) == 1
    site.later(minutes=5)
    assert former != see(new)
    assert passes("again", former) == [], "same chassis, same boot, another GPU"
    assert len(passes("new", see(new))) == 1
    site.later(minutes=5)
    assert see((new[-1], *new[:-1])).gpus == see(new).gpus, "in another place, each is the same"
    assert len(passes("moved", see(new))) == 1
    see(GPUS)
    assert len(passes("back", former)) == 1, "it is back, with what it proved"


def test_what_a_gpu_computed_is_no_vote_once_another_is_in_its_place(site: Site) -> None:
    def see(gpus: tuple[str, ...], **more: Any) -> EvidenceDocument:
        serial = FLEET.nodes[OTHER].serial
        channels = {**tell(bmc=serial, dmi=serial, gpus=gpus), **more}
        document = EvidenceDocument(OTHER, site.clock.now(), channels, site.ledger.head())
        site.desk.evidence.store_latest(document)
        record_parts(site.desk, {OTHER: document})
        site.later(minutes=1)
        return document

    def list_voters() -> list[str]:
        return [*NeighbourBatteries(site.desk).find(FLEET.nodes[NODE])]

    checks = [check for catalog in FLEET.check_catalogs.values() for check in catalog.checks]
    (check, *_) = (check for check in checks if {*check.parts} == {"battery"} and check.fault == WRONG_FAULT)
    battery = {"active": {"battery": make_branch({"gemm": {"7": "aaaaaaaa"}})}}
    for run, gpus in enumerate((GPUS, (*GPUS[:-1], "9990000001"))):
        document = see(gpus, **battery)
        assert list_voters() == [], "whatever its name passed with the former GPU"
        at, subject = document.at.isoformat(), f"{FLEET.nodes[OTHER].subject}/gpu0"
        basis, digest = EvidenceBasis.of_document(document), document.digest()
        passed = Outcome(check.id, subject, OTHER, "pass", evidence=digest, evidence_at=at, basis=basis)
        site.ledger.record(SuiteRun(f"run{run}", at), [passed])
        assert list_voters() == [OTHER]


@pytest.mark.parametrize(
    ("machine", "is_nameless"),
    [
        ({"bmc": "", "dmi": "", "gpus": ("", "")}, True),
        ({"bmc": "", "gpus": ()}, False),
        ({"bmc": "", "dmi": ""}, False),
    ],
)
def test_evidence_names_its_machine_by_a_serial_number_or_a_gpu(machine: Any, is_nameless: bool) -> None:
    basis = EvidenceBasis.of_document(EvidenceDocument(NODE, START, tell(**machine)))
    assert basis.is_nameless == is_nameless
    assert EvidenceBasis.decode(basis.encode()) == basis
    assert not EvidenceBasis.of_document(EvidenceDocument("fabric-ib", START, {})).is_nameless


SERIALS = st.sampled_from(["", OWN, OWN.lower(), STRANGER, "Default string"])
IDS = st.sampled_from(["", *GPUS, "9990000001"])


@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(bmc=SERIALS, dmi=SERIALS, gpus=st.lists(IDS, max_size=3))
def test_evidence_is_of_nobody_exactly_if_something_in_it_is_of_another_machine(
    bmc: str, dmi: str, gpus: list[str]
) -> None:
    known = MachineIdentity({"inventory": OWN}, tuple((gpu, f"GPU-{gpu}") for gpu in GPUS))
    evidence = EvidenceDocument(NODE, START, tell(bmc, dmi, tuple(gpus)))
    is_added = "9990000001" in gpus and {*GPUS} <= {*gpus}  # beside all that are known: it was gone before
    expected = STRANGER in (bmc, dmi) or ("9990000001" in gpus and not is_added)
    assert bool(evidence.find_stranger(OWN, known.gpus)) == expected
    marked = replace(evidence, stranger=evidence.find_stranger(OWN, known.gpus))
    assert EvidenceDocument.from_json(marked.as_json()) == marked
    assert marked.find_stranger(STRANGER) == marked.stranger or not expected, "what was another machine stays that"
