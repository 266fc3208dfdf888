"""A scan's second half: what tools say of the ports, kept with the scan, and counted from the scan before."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.fabric.health import stored_scan, switch_facts
from assay.fabric.health.counters import SYMBOL
from assay.fabric.health.stored_scan import make_earlier_channel, read_scan
from assay.fabric.health.switch_facts import SwitchFacts, find_odd_firmware
from assay.fabric.scan import find_facts_commands, run_fabric_scan
from assay.model.evidence import EvidenceDocument
from assay.model.fleet import Fleet
from assay.model.reading import failed, unsupported, value
from assay.model.specs.fabric.cable import PortId
from assay.model.specs.node_settings import make_node_settings
from tests.support.places import ROOT

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
LEAF = "0x0000000000005000"
SUMMARY = "## Summary: 12 nodes checked, {bad} bad nodes found\n"
TAIL = "## 56 ports checked, {bad} ports have errors beyond threshold\n## Thresholds: \n## Suppressed:\n"


def errors(**counters: int) -> str:
    said = " ".join(f"[{name} == {count}]" for name, count in counters.items())
    listed = f'Errors for {LEAF} "leaf-1-0"\n   GUID {LEAF} port 3: {said}\n' if counters else ""
    return listed + (SUMMARY + TAIL).format(bad=int(bool(counters)))


def seen(hours: float, before: EvidenceDocument | None = None, **counters: int) -> EvidenceDocument:
    ports = {"errors": {"text": value(errors(**counters)), "stderr": value("")}}
    return EvidenceDocument(
        "fabric-small", NOON + timedelta(hours=hours), {"ports": ports, "earlier": make_earlier_channel(before)}
    )


def test_growth_is_counted_from_the_scan_before_and_kept_in_the_one_document():
    second = seen(4, seen(0, SymbolErrorCounter=10), SymbolErrorCounter=410)
    again = read_scan(EvidenceDocument.from_json(json.loads(json.dumps(second.as_json()))))
    assert (again.seconds, again.find_port_growth(PortId(LEAF, 3)).per_hour(SYMBOL)) == (4 * 3600, 100.0)
    assert again.find_port_growth(PortId(LEAF, 4)).find_growth(SYMBOL).count == 0


def test_the_first_scan_can_tell_nothing_of_growth():
    first = read_scan(seen(0, SymbolErrorCounter=10))
    assert (first.since, first.has_counters) == (None, True)
    assert first.growth_unknown_reason.startswith("this is the first scan")


def test_a_scan_that_counted_nothing_hands_on_what_it_was_given():
    first = seen(0, SymbolErrorCounter=10)
    blind = replace(
        seen(4, first), channels={"ports": {"errors": failed("timed out")}, "earlier": make_earlier_channel(first)}
    )
    third = read_scan(seen(8, blind, SymbolErrorCounter=90))
    assert (third.seconds, third.find_port_growth(PortId(LEAF, 3)).find_growth(SYMBOL).count) == (8 * 3600, 80)


ODD = [
    None,
    7,
    "",
    "2026-11-21T08:00:00",
    [],
    {},
    {"x": 1},
    {"0x1": {"y": {}}},
    {"0x1": {"1": {"SymbolErrorCounter": "many"}}},
]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("where", ["at", "counters", "earlier", "ports"])
def test_a_spoilt_account_of_the_scan_before_is_told_and_no_growth(where, odd):
    channels = dict(seen(4, seen(0, SymbolErrorCounter=10), SymbolErrorCounter=410).channels)
    if where in channels:
        channels[where] = odd
    else:
        channels["earlier"] = {**channels["earlier"], where: value(odd)}
    read = read_scan(EvidenceDocument("fabric-small", NOON + timedelta(hours=4), channels))
    assert read.failed_commands or read.problems or read.growth_unknown_reason or read.since is not None
    make_earlier_channel(EvidenceDocument("fabric-small", NOON, channels))


@pytest.mark.parametrize("text", ["", "ibqueryerrors: command not found", errors(SymbolErrorCounter=3)[:80]])
def test_what_cannot_be_read_is_a_problem_and_no_clean_port(text):
    ports = {"errors": {"text": value(text), "stderr": value("")}}
    assert read_scan(EvidenceDocument("fabric-small", NOON, {"ports": ports})).problems


def test_a_scan_of_before_ports_were_asked_for_says_so():
    old = read_scan(EvidenceDocument("fabric-small", NOON, {"discovery": {"text": value("")}}))
    assert (old.has_counters, dict(old.failed_commands)) == (False, {"errors": "the scan has no channel `ports`"})


@given(st.text(max_size=200), st.text(max_size=50))
def test_nothing_that_a_tool_prints_is_an_error_of_the_program(text, stderr):
    for said in (text, f"sminfo: {text}", '{"schema": "assay.fabric-facts/1", ' + text):
        read_scan(EvidenceDocument("f", NOON, {"ports": {"any": {"text": value(said), "stderr": value(stderr)}}}))


def test_a_document_with_a_flaw_says_nothing_and_where_it_is():
    one = {
        "schema": stored_scan.SCHEMA,
        "ports": [{"guid": LEAF, "port": 3, "module": {"temperature_c": True}, "odd": 1}],
    }
    assert stored_scan.parse_telemetry(json.dumps(one))[:2] == ([], [])
    assert stored_scan.parse_telemetry(json.dumps(one))[2][0].startswith("ports.0")


def test_switches_and_modules_are_read_from_a_site_s_own_document():
    switch = {"guid": LEAF, "firmware": "31", "temperature_c": 60.0, "psus": {"1": "no input"}, "fans": {"1": 0.0}}
    port = {"guid": LEAF, "port": 3, "ber": {"symbol": 1e-16}, "module": {"rx_power_dbm": [1.0, -40.0], "vendor": "N"}}
    said = json.dumps({"schema": stored_scan.SCHEMA, "ports": [port], "switches": [switch]})
    one = read_scan(EvidenceDocument("f", NOON, {"ports": {"site": {"text": value(said), "stderr": value("")}}}))
    assert one.find_port_facts(PortId(LEAF, 3)).module["rx_power_dbm"] == (1.0, -40.0)
    assert (one.switches[LEAF].failed_psus, one.switches[LEAF].stopped_fans) == (("1: no input",), ("1",))
    assert not one.has_counters, "nobody counted errors"


def test_the_subnet_manager_is_read_as_sminfo_prints_it():
    said = "sminfo: sm lid 1 sm guid 0xb83fd20300100000, activity count 12 priority 14 state 3 SMINFO_MASTER\n"
    assert switch_facts.parse_sminfo(said) == switch_facts.SubnetManager(
        "0xb83fd20300100000", 1, 12, 14, "SMINFO_MASTER"
    )
    assert switch_facts.parse_sminfo(said).master
    assert switch_facts.parse_sminfo("sminfo: iberror: failed: query") is None


def test_the_firmware_that_most_have_is_the_usual_one():
    switches = [SwitchFacts("a", "31"), SwitchFacts("b", "31"), SwitchFacts("c", "30"), SwitchFacts("d")]
    assert find_odd_firmware(switches) == {"c": "30"}
    assert find_odd_firmware([SwitchFacts("d")]) == {}


def say(text: str, code: int = 0) -> list[str]:
    return [sys.executable, "-c", f"import sys; sys.stdout.write({text!r}); sys.exit({code})"]


@pytest.fixture
def scan_with(fabric_design, fleet_of):
    def run(before: EvidenceDocument | None = None, deadline_s: float = 10, **variables: object) -> EvidenceDocument:
        return run_fabric_scan(fleet_of(**variables), fabric_design, deadline_s, before=before)

    return run


def test_a_scan_keeps_what_each_command_said_and_names_the_scan_before(scan_with):
    facts = {"errors": say(errors(SymbolErrorCounter=10)), "subnet": say("", 255)}
    first = scan_with(fabric_discover=say("no"), fabric_facts=facts)
    second = scan_with(first, fabric_discover=say("no"), fabric_facts=facts)
    assert "exit code 255: it printed nothing" in first.read("ports", "subnet").reason
    assert second.read("previous").value == first.digest()
    assert read_scan(second).find_port_growth(PortId(LEAF, 3)).find_growth(SYMBOL).count == 0


def test_a_command_that_is_asked_only_where_cables_are_missing_is_no_silence(scan_with):
    evidence = scan_with(fabric_discover=say("no"), fabric_facts={"links": ["no-such-tool"]})
    again = read_scan(EvidenceDocument.from_json(json.loads(json.dumps(evidence.as_json()))))
    assert (dict(again.failed_commands), again.has_counters) == ({}, False)
    assert make_earlier_channel(evidence)["absent"].endswith("has no counters: no command reads them")


def test_an_exit_code_that_only_judges_what_was_printed_is_no_failure(scan_with):
    """The real ibqueryerrors exits with 1 where a port has errors."""
    evidence = scan_with(fabric_discover=say("no"), fabric_facts={"errors": say(errors(SymbolErrorCounter=10), 1)})
    assert read_scan(evidence).find_port_facts(PortId(LEAF, 3)).counters == {"SymbolErrorCounter": 10}


def test_one_deadline_holds_for_all_commands(scan_with):
    slow = ["sleep", "60"]
    evidence = scan_with(deadline_s=0.3, fabric_discover=slow, fabric_facts={"errors": slow, "subnet": slow})
    assert all("no answer within" in evidence.read("ports", name).reason for name in ("errors", "subnet"))


def test_a_fabric_that_is_discovered_elsewhere_is_not_asked_about_ports_here(scan_with, fabric_design, fleet_of):
    assert scan_with(fabric_discover=say("no")).channels["ports"] == unsupported(
        "no command describes the ports: the inventory has `fabric_discover` but no `fabric_facts`"
    )
    assert find_facts_commands(fleet_of(), fabric_design) == {
        "errors": ["ibqueryerrors"],
        "links": ["iblinkinfo", "-l"],
    }


@pytest.fixture
def fleet_of(fabric_fleet):
    def make(**variables: object) -> Fleet:
        settings = make_node_settings(variables)
        nodes = {name: replace(node, settings=settings) for name, node in fabric_fleet.nodes.items()}
        return replace(fabric_fleet, nodes=nodes)

    return make


RECORDED = ROOT / "tests/fabric/readers/recordings/db_csv.txt"


def test_a_switch_s_temperature_is_read_from_ibdiagnet_beside_what_its_management_says():
    leaf, adapter = "0xb83f000000001000", "0xa088000000000000"
    management = {"schema": stored_scan.SCHEMA, "switches": [{"guid": leaf, "psus": {"1": "ok"}}]}
    said = {"ibdiagnet": RECORDED.read_text(), "telemetry": json.dumps(management)}
    ports = {name: {"text": value(text), "stderr": value("")} for name, text in said.items()}
    read = read_scan(EvidenceDocument("fabric-small", NOON, {"ports": ports}))
    assert read.problems == ()
    assert read.switches[leaf] == SwitchFacts(leaf, temperature_c=59.0, psus={"1": "ok"})
    assert adapter not in read.switches
    assert read.find_port_facts(PortId(adapter, 1)).pkeys == {0x7FFF, 0x8012}
