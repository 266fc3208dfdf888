"""A scan runs the discovery with a real deadline, and what it could not learn is never a healthy fabric."""

import sys
import time
from datetime import UTC, datetime

import pytest

from assay.declare.loader import load_fleet
from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice
from assay.fabric.scan import find_discover_command, judge_scan, list_discovery_remarks, run_fabric_scan
from assay.lab.fabric.ibnetdiscover import format_net_file
from assay.model.clock import ScaledClock
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from tests.support.places import ROOT


def printed(plan, lost=0) -> str:
    cables = [DiscoveredCable(cable.a.port_id, cable.b.port_id, cable.rate) for cable in plan.cables[lost:]]
    return format_net_file(
        {g: DiscoveredDevice(g, d.kind, d.ports, d.description) for g, d in plan.devices.items()}, cables
    )


@pytest.fixture
def scan_with(design, make_fleet):
    def run(command, deadline_s=10.0):
        fleet = make_fleet(design, fabric_discover=command)
        return fleet, run_fabric_scan(fleet, design, deadline_s)

    return run


def say(text, stderr="", code=0):
    program = f"import sys; sys.stdout.write({text!r}); sys.stderr.write({stderr!r}); sys.exit({code})"
    return [sys.executable, "-c", program]


def test_a_scan_keeps_what_was_printed_and_judging_it_later_says_the_same(scan_with, design, small):
    fleet, evidence = scan_with(say(printed(small)))
    again = EvidenceDocument.from_json(evidence.as_json())
    assert judge_scan(fleet, design, evidence).verdict == judge_scan(fleet, design, again).verdict == "match"
    assert evidence.node == "fabric-small"
    assert evidence.read("discovery", "command").value[0] == sys.executable


@pytest.mark.parametrize(
    ("before", "stderr", "told"),
    [
        ("", "", []),
        ("admin@head:~$ ibnetdiscover\n", "", ["note: line 1 is none of ibnetdiscover's"]),
        ("Switch\n", "mad_rpc: timed out\n", ["could not tell: stderr: mad_rpc", "could not tell: line 1 cannot"]),
    ],
)
def test_what_was_foreign_or_unread_in_a_scan_can_be_told(scan_with, design, small, before, stderr, told):
    _, evidence = scan_with(say(before + printed(small), stderr))
    remarks = list_discovery_remarks(evidence)
    assert len(remarks) == len(told)
    assert all(remark.startswith(start) for remark, start in zip(remarks, told, strict=True))


def test_of_a_scan_that_read_nothing_the_reason_is_told(scan_with, design):
    for command in (["no-such-program"], say("nothing of a fabric\n")):
        (remark,) = list_discovery_remarks(scan_with(command)[1])
        assert remark.startswith("could not tell: ")


def test_a_scan_finds_a_lost_cable(scan_with, design, small):
    fleet, evidence = scan_with(say(printed(small, lost=1)))
    comparison = judge_scan(fleet, design, evidence)
    assert (comparison.verdict, [one.kind for one in comparison.discrepancies]) == ("mismatch", ["missing"])


def test_lost_packets_make_it_partial(scan_with, design, small):
    fleet, evidence = scan_with(say(printed(small, lost=1), "bad status 110; Connection timed out\n"))
    comparison = judge_scan(fleet, design, evidence)
    assert (comparison.verdict, comparison.discrepancies) == ("partial", ())


def test_what_no_tool_prints_is_partial_with_what_was_said_on_stderr(scan_with, design):
    fleet, evidence = scan_with(say("", "ibwarn: [7] bad status 110\n"))
    comparison = judge_scan(fleet, design, evidence)
    assert comparison.verdict == "partial"
    assert comparison.problems == ("the discovery is empty", "stderr: ibwarn: [7] bad status 110")


def links(plan, *gone):
    """What iblinkinfo -l says of the ports of cables: up, or disabled where they are gone."""
    line = '{guid} "x" 1 {port}[  ] ==( {link})==> {far} ( )\n'
    up = "4X 106.25 Gbps Active/ LinkUp"
    text = ""
    for cable in plan.cables:
        for end, far in ((cable.a, cable.b), (cable.b, cable.a)):
            if cable not in gone:
                text += line.format(guid=end.guid, port=end.port, link=up, far=f'{far.guid} 1 {far.port}[  ] "x"')
            elif not end.node:
                text += line.format(guid=end.guid, port=end.port, link="Down/ Disabled", far='[  ] ""')
    return text


def test_a_missing_cable_has_the_scan_ask_whether_somebody_disabled_it(design, make_fleet, small):
    said = say(links(small, small.cables[0]))
    fleet = make_fleet(design, fabric_discover=say(printed(small, lost=1)), fabric_facts={"links": said})
    evidence = run_fabric_scan(fleet, design)
    (one,) = judge_scan(fleet, design, evidence).discrepancies
    assert (one.kind, [pair.expected for pair in one.cables]) == ("disabled", [small.cables[0]])


@pytest.mark.parametrize("said", [["no-such-tool"], say("nothing that a tool prints"), say("", code=1)])
def test_where_nobody_says_why_a_cable_is_only_missing(said, design, make_fleet, small):
    fleet = make_fleet(design, fabric_discover=say(printed(small, lost=1)), fabric_facts={"links": said})
    comparison = judge_scan(fleet, design, run_fabric_scan(fleet, design))
    assert (comparison.verdict, [one.kind for one in comparison.discrepancies]) == ("mismatch", ["missing"])


@pytest.mark.parametrize(("lost", "stderr"), [(0, ""), (1, "bad status 110; Connection timed out\n")])
def test_nobody_is_asked_for_states_where_nothing_is_missing_or_the_discovery_is_partial(
    lost, stderr, design, make_fleet, small
):
    facts = {"links": ["no-such-tool"], "errors": say("errors")}
    fleet = make_fleet(design, fabric_discover=say(printed(small, lost), stderr), fabric_facts=facts)
    assert set(run_fabric_scan(fleet, design).channels["ports"]) == {"errors"}


def test_a_discovery_that_hangs_ends_at_the_deadline_with_all_that_it_started(scan_with, design):
    start = time.monotonic()
    fleet, evidence = scan_with(["sh", "-c", "sleep 60 & sleep 60"], deadline_s=0.3)
    assert time.monotonic() - start < 30
    assert "no answer within 0.3 s" in evidence.read("discovery", "text").reason
    assert judge_scan(fleet, design, evidence).problems == (evidence.read("discovery").reason,)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["no-such-discovery"], "no-such-discovery: No such file or directory"),
        (say("", "ibwarn: can't open UMAD port\n", 1), "exit code 1: ibwarn: can't open UMAD port"),
        (say("", "", 3), "exit code 3: it printed nothing"),
    ],
)
def test_a_discovery_that_cannot_be_made_is_a_failed_reading_and_a_partial_comparison(
    scan_with, design, command, reason
):
    fleet, evidence = scan_with(command)
    assert evidence.read("discovery").kind == "failed"
    assert evidence.read("discovery").reason.endswith(reason)
    comparison = judge_scan(fleet, design, evidence)
    assert (comparison.verdict, comparison.expected, comparison.found) == ("partial", 56, 0)


def test_evidence_without_a_discovery_is_partial(fleet, design):
    empty = EvidenceDocument("fabric-small", datetime.now(UTC))
    assert judge_scan(fleet, design, empty).verdict == "partial"


def test_the_evidence_carries_the_fleets_time(design, make_fleet):
    origin = datetime(2030, 1, 1, tzinfo=UTC)
    fleet = make_fleet(design, fabric_discover=["true"])
    assert run_fabric_scan(fleet, design, 5, ScaledClock(origin, time.time(), 1)).at.year == 2030


def test_ibnetdiscover_is_run_where_the_inventory_says_nothing(fleet, design):
    assert find_discover_command(fleet, design) == ["ibnetdiscover"]


def test_a_command_that_is_no_list_is_refused(tmp_path):
    overlay = tmp_path / "overlay.yml"
    overlay.write_text("all: {vars: {fabric_discover: ibnetdiscover -p}}\n")
    with pytest.raises(AssayError, match="should be a valid list") as trouble:
        load_fleet(ROOT, [overlay])
    assert "fabric_discover" in str(trouble.value)
    assert trouble.value.fix
