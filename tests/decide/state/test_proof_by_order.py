"""What admits a node is newer than its faults and its repair by the ledger's order and by boot, whatever clocks say."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from assay.decide.faults.detection import FaultObservation, count_sightings
from assay.decide.moves.required_checks import judge_state_requirements, list_due_phases
from assay.decide.state import decision_and_fault_entries
from assay.decide.state.outstanding_effects import list_outstanding_effects
from assay.model.evidence import EvidenceBasis, EvidenceDocument
from assay.model.faults.sightings import FaultSighting
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.reading import value
from assay.model.timestamps import format_time

OLD, NEW, OTHER = "aaaa-old", "bbbb-new", "cccc-other"


def head(paper) -> int:
    return len(paper.log)


def restart(paper, name="n1", boot=NEW):
    """Carry out what the node is owed; its restart reads back this boot."""
    while wanted := list_outstanding_effects(paper.policy, paper.story(name)):
        one = wanted[0]
        effect = derive_id(one.decision, one.action)
        before = {"boot_id": OLD} if one.action == "reboot" else {}
        body = {"effect": effect, "action": one.action, "decision": one.decision, "before": before, "params": {}}
        paper.write(LedgerEntry(effect, paper.now.isoformat(), "effect.intent", name, body))
        facts = {"boot_id": boot} if one.action == "reboot" else {}
        told = {"effect": effect, "reason": "as planted", "facts": facts}
        paper.write(LedgerEntry(derive_id(effect, "v"), paper.now.isoformat(), "effect.verified", name, told))
        paper.later(seconds=1)


@pytest.fixture
def rebooted(paper):
    """Return a fleet whose node n1 was rebooted because of a fault, and waits for its proof."""
    paper.add("n1")
    paper.fault("n1", "gpu.xid.151", "gpu0", marks={"kernel": f"{OLD}:7"})
    paper.step()
    assert paper.story("n1").state == "production-reboot"
    restart(paper)
    paper.later(minutes=5)
    return paper


def prove(paper, **basis):
    """Let both phases pass on evidence that began now, unless the basis says otherwise."""
    rests_on = EvidenceBasis(**{"after_entry": head(paper), "boot_id": NEW, **basis})
    for phase in ("test", "production"):
        paper.judge("n1", phase, basis=rests_on)


def lacks(paper) -> set[str]:
    found = judge_state_requirements(paper.situation(), paper.view("n1"))
    return {text.partition(": ")[2] for result in found for text in result.missing}


def state(paper) -> str:
    paper.step()
    return paper.story("n1").state


def test_evidence_of_the_verified_boot_after_all_faults_admits(rebooted):
    prove(rebooted)
    assert lacks(rebooted) == set()
    assert state(rebooted) == "production"
    assert not any(fault.is_open for fault in rebooted.story("n1").faults)


@pytest.mark.parametrize("fault", ["nvme.slow", "nvme.failing", "host.file-system", "psu.failed", "fan.failed"])
def test_a_fault_that_entered_the_ledger_after_the_evidence_keeps_the_node_out(rebooted, fault):
    prove(rebooted)
    rebooted.fault("n1", fault, "gpu2", marks={"kernel": f"{NEW}:9"})
    assert lacks(rebooted) == {f"fault {fault} on a/n1/gpu2 was recorded after the evidence"}
    assert state(rebooted) == "production-reboot"
    view = rebooted.view("n1")
    assert set(list_due_phases(rebooted.situation(), view)) == {"test", "production"}, "newer evidence can prove it"
    rebooted.later(minutes=1)
    prove(rebooted)
    assert state(rebooted) == "production"


@pytest.mark.parametrize("proved", ["before", "after", "never"])
@pytest.mark.parametrize(
    ("fault", "part"),
    [("gpu.xid.119", "gpu2"), ("gpu.xid.151", "gpu0"), ("gpu.xid.151", "gpu2"), ("host.kernel.oops", "kernel")],
)
def test_a_fault_while_a_repair_is_verified_drains_as_the_policy_says_even_if_a_later_load_is_clean(
    rebooted, fault, part, proved
):
    if proved == "before":
        prove(rebooted)
    raised = rebooted.fault("n1", fault, part, marks={"kernel": f"{NEW}:9"})
    if proved == "after":
        prove(rebooted)
    assert state(rebooted) == "draining"
    assert next(one for one in rebooted.story("n1").faults if one.id == raised).is_open, "triage has to see it"


def test_an_old_line_of_the_boot_before_does_not_count_against_the_repair(rebooted):
    rebooted.fault("n1", "gpu.xid.151", "gpu0", marks={"kernel": f"{OLD}:8"})
    prove(rebooted)
    assert state(rebooted) == "production"


def test_a_fault_that_only_people_mend_does_not_count_against_the_repair(rebooted):
    rebooted.fault("n1", "nvswitch.sxid.11004", "nvswitch0", marks={"kernel": f"{NEW}:9"})
    prove(rebooted)
    assert state(rebooted) == "production"


def test_a_fault_that_is_seen_again_after_the_evidence_keeps_the_node_out(rebooted):
    first = rebooted.fault("n1", "nvme.slow", "nvme2", marks={"kernel": f"{NEW}:9"})
    prove(rebooted)
    assert lacks(rebooted) == set()
    known = next(fault for fault in rebooted.story("n1").faults if fault.id == first)
    seen = FaultObservation(
        **{name: getattr(known, name) for name in ("id", "fault_class", "subject", "severity", "blame", "remedy")},
        node="n1",
        count=2,
        first_seen=known.first_seen,
        last_seen=format_time(rebooted.now),
        detail="",
        marks={"kernel": f"{NEW}:12"},
        times=(),
    )
    rebooted.write(decision_and_fault_entries.make_fault_entry(seen, rebooted.now))
    assert len(lacks(rebooted)) == 1


def test_an_informational_fault_after_the_evidence_does_not_matter_and_stays_open(rebooted):
    prove(rebooted)
    rebooted.fault("n1", "gpu.xid.13", "gpu2", severity="informational")
    assert state(rebooted) == "production"
    assert [fault.fault_class for fault in rebooted.story("n1").faults if fault.is_open] == ["gpu.xid.13"]


def test_evidence_of_which_nobody_noted_the_order_proves_nothing_against_an_open_fault(rebooted):
    prove(rebooted, after_entry=None)
    assert lacks(rebooted) == set(), "all faults are answered by the reboot"
    rebooted.fault("n1", "gpu.xid.151", "gpu2", marks={"kernel": f"{NEW}:9"})
    prove(rebooted, after_entry=None)
    assert len(lacks(rebooted)) == 1


def test_what_is_seen_between_decision_and_entry_is_not_cleared(rebooted):
    """The decision was made, and the fault comes in again before its entries are written."""
    fault = rebooted.fault("n1", "nvme.slow", "nvme2", marks={"kernel": f"{NEW}:9"})
    rebooted.later(minutes=1)
    prove(rebooted)
    (made,) = [one for one in rebooted.decide() if one.timing == "immediate"]
    entries = decision_and_fault_entries.make_decision_entries(rebooted.policy, rebooted.view("n1"), made, rebooted.now)
    again = next(entry for entry in rebooted.log.values() if entry.kind == "fault" and entry.body["fault"] == fault)
    rebooted.write(LedgerEntry("again", again.at, "fault", "n1", {**again.body, "count": 2}))
    rebooted.write(*entries)
    story = rebooted.story("n1")
    assert story.state == "production"
    assert [known.id for known in story.faults if known.is_open] == [fault]


@pytest.mark.parametrize(
    ("boot", "why"),
    [
        (OLD, "its evidence is of another boot (aaaa-old); the verified reboot shows bbbb-new"),
        (OTHER, "its evidence is of another boot (cccc-oth); the verified reboot shows bbbb-new"),
        ("", "its evidence names no boot; the verified reboot shows bbbb-new"),
    ],
)
def test_evidence_of_another_boot_than_the_verified_one_admits_nobody(rebooted, boot, why):
    prove(rebooted, boot_id=boot)
    assert lacks(rebooted) == {why}
    assert state(rebooted) == "production-reboot"


def test_without_a_restart_all_evidence_is_of_the_boot_of_the_newest(paper):
    paper.add("n1", "test")
    paper.later(hours=1)
    paper.judge("n1", "test", basis=EvidenceBasis(head(paper), OLD))
    paper.judge("n1", "production", basis=EvidenceBasis(head(paper), OLD))
    assert lacks(paper) == set()
    paper.fault("n1", "gpu.xid.13", severity="informational")
    paper.judge("n1", "production", basis=EvidenceBasis(head(paper), NEW))
    assert lacks(paper) == {"its evidence is of another boot (aaaa-old); later evidence shows bbbb-new"}


def test_evidence_that_names_no_machine_leads_no_node_to_service(rebooted):
    prove(rebooted, is_nameless=True)
    assert lacks(rebooted) == {"its evidence names no machine: no serial number and no GPU of it could be read"}
    assert state(rebooted) == "production-reboot"


def test_what_the_load_may_have_written_must_have_been_read(rebooted):
    prove(rebooted, log_gap="12 lines of the kernel log are lost")
    assert lacks(rebooted) == {"its evidence may lack what the load caused: 12 lines of the kernel log are lost"}


def test_a_pass_that_was_judged_by_an_older_spec_is_stale_and_due_again(rebooted):
    prove(rebooted)
    check = rebooted.checks["test"].id
    view = replace(rebooted.view("n1"), judging_hashes={check: "today"})
    (result, other) = judge_state_requirements(rebooted.situation(), view)
    assert [text.partition(": ")[2] for text in result.missing] == [
        "judged by an older spec: its limits, its values or its code have changed since"
    ]
    assert other.is_met
    assert list_due_phases(rebooted.situation(), view) == ("test",)
    outcome = replace(rebooted.outcomes["n1"][check].outcome, judged_by="today")
    rebooted.outcomes["n1"][check] = replace(rebooted.outcomes["n1"][check], outcome=outcome)
    view = replace(rebooted.view("n1"), judging_hashes={check: "today"})
    assert all(one.is_met for one in judge_state_requirements(rebooted.situation(), view))


def test_passes_count_by_the_ledgers_order_though_the_clock_is_set_back(rebooted):
    rebooted.later(hours=-3)
    prove(rebooted)
    assert lacks(rebooted) == set()
    prove(rebooted, after_entry=rebooted.story("n1").repaired_seq - 1)
    assert lacks(rebooted) == {"its evidence is older than the last repair"}


@pytest.mark.parametrize("hours", [-30, -1, 0, 1])
def test_a_clock_that_is_set_hides_no_fault_of_the_verified_boot(rebooted, hours):
    rebooted.later(hours=hours)
    rebooted.fault("n1", "gpu.xid.119", "gpu2", marks={"kernel": f"{NEW}:9"})
    assert state(rebooted) == "draining"


@pytest.mark.parametrize("hours", [-30, 0, 30])
def test_a_line_of_the_boot_before_is_older_than_the_repair_however_late_it_comes(rebooted, hours):
    rebooted.later(hours=hours)
    rebooted.fault("n1", "gpu.xid.119", "gpu2", marks={"kernel": f"{OLD}:9"})
    assert state(rebooted) == "production-reboot"
    prove(rebooted)
    assert lacks(rebooted) == set()


def test_a_line_of_a_boot_that_nobody_knew_is_newer(rebooted):
    rebooted.fault("n1", "gpu.xid.119", "gpu2", marks={"kernel": f"{OTHER}:9"})
    assert state(rebooted) == "draining"


@pytest.mark.parametrize("hours", [-30, 0, 30])
def test_a_fault_without_a_boot_is_ordered_by_the_ledger(rebooted, hours):
    rebooted.later(hours=hours)
    rebooted.fault("n1", "gpu.xid.119", "gpu2", marks={"sel": "x"})
    assert state(rebooted) == "draining"


def test_a_late_line_of_the_boot_before_does_not_take_a_newer_fault_with_it(rebooted):
    catalog, node = rebooted.catalog, rebooted.nodes["n1"]

    def see(boot, number):
        at = format_time(rebooted.now + timedelta(seconds=number))
        seen = FaultSighting("gpu.xid.119", "gpu2", at, "", "kernel", f"{boot}:{number}")
        for fault in count_sightings(catalog, node, rebooted.story("n1"), [seen], 128):
            rebooted.write(decision_and_fault_entries.make_fault_entry(fault, rebooted.now))

    see(NEW, 1)
    see(OLD, 20)
    faults = [fault for fault in rebooted.story("n1").faults if fault.fault_class == "gpu.xid.119"]
    assert [rebooted.story("n1").is_repaired(fault) for fault in faults] == [False, True]
    assert state(rebooted) == "draining"


def test_a_pending_decision_is_not_withdrawn_because_a_clock_was_set_back(paper):
    paper.add("n1")
    paper.say("certified", "n1")
    paper.later(hours=-5)
    paper.jobs["n1"] = ("train",)
    paper.fault("n1", "gpu.xid.151", "gpu0", marks={"kernel": f"{OLD}:1"})
    paper.step()
    assert paper.story("n1").pending
    paper.step()
    assert paper.story("n1").pending


def document(**channels) -> EvidenceDocument:
    host = {"boot_id": value(NEW)}
    probe = {"host": host, **channels.pop("probe", {})}
    return EvidenceDocument("n1", datetime(2026, 11, 21, tzinfo=UTC), {"probe": probe, **channels}, 7)


LOADED = {"active": {"gpu_burn": value(1)}, "before": {"host": value(1)}}


@pytest.mark.parametrize(
    ("evidence", "gap"),
    [
        (document(), ""),
        (document(**LOADED, probe={"kernel_log": {"missed": value(0)}}), ""),
        (
            document(**LOADED, probe={"kernel_log": {"missed": value(3)}}),
            "3 lines of the kernel log were overwritten before they were read",
        ),
        (document(**LOADED, probe={"kernel_log": {"failed": "no permission"}}), "no permission"),
        (document(**LOADED), "probe.kernel_log is not in the evidence"),
        (document(active={}, probe={"kernel_log": {"missed": value(0)}}), "how the node was before the load"),
    ],
)
def test_a_document_says_what_it_rests_on(evidence, gap):
    basis = EvidenceBasis.of_document(EvidenceDocument.from_json(evidence.as_json()))
    assert (basis.after_entry, basis.boot_id) == (7, NEW)
    assert gap in basis.log_gap if gap else not basis.log_gap
    assert EvidenceBasis.decode(basis.encode()) == basis
