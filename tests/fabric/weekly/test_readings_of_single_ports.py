"""What the tools read of one port is not read of the others: it makes no week whole."""

import json

import pytest

from assay.fabric.weekly.aggregation import aggregate_week
from assay.fabric.weekly.evaluation import WeeklyEvaluation, evaluate_fabric_week
from assay.lab.fabric import port_telemetry
from tests.fabric.weekly.test_unjudged import MODULES

SCANS = 9


@pytest.fixture
def telemetry_of(week, monkeypatch):
    """Evaluate a week in whose scans the telemetry has only the ports for which `keeps(scan, port)` holds."""
    say, seen = port_telemetry.TOOL_OUTPUTS["telemetry"], []

    def evaluate(keeps) -> WeeklyEvaluation:
        def say_less(world) -> str:
            whole = json.loads(say(world))
            kept = [port for number, port in enumerate(whole["ports"]) if keeps(len(seen), number, port)]
            seen.append(len(kept))
            return json.dumps({**whole, "ports": kept})

        monkeypatch.setitem(port_telemetry.TOOL_OUTPUTS, "telemetry", say_less)
        last, cables = week.pass_by(lambda world, number: None, SCANS), list(week.plan.cables)
        kept = aggregate_week("compute", cables, last, week.store.get, last.at)
        return evaluate_fabric_week(kept, cables, week.rails, week.design.limits)

    return evaluate


def test_a_scan_that_read_one_port_of_many_did_not_read_the_fabric(telemetry_of):
    one = telemetry_of(lambda scan, number, port: scan < 7 or number == 0)
    assert [part.part for part in one.unjudged] == [f"{MODULES}, highest FEC bin"]
    assert one.unjudged[0].reason.startswith("7 of 9 scans read it, 8 are needed")
    assert not one.is_whole


def test_a_port_that_alone_is_read_leaves_its_peers_unjudged(telemetry_of):
    one = telemetry_of(lambda scan, number, port: number == 0)
    alone = [port for port in one.ports if port.summary.trends]
    peers = sum(port.side == alone[0].side for port in one.ports) - 1
    assert [part.part for part in one.unjudged] == [f"{MODULES}, highest FEC bin"]
    assert one.unjudged[0].reason == f"too few scans read it of {peers} ports, while peers gave it"
    assert not one.is_whole


def test_ports_that_are_read_rarely_are_told(telemetry_of):
    one = telemetry_of(lambda scan, number, port: scan < 3 or number >= 5)
    assert [part.reason for part in one.unjudged] == ["too few scans read it of 5 ports, while peers gave it"]


def test_a_tool_that_reads_one_side_only_leaves_the_week_whole(telemetry_of, week):
    adapters = {end.guid for cable in week.plan.cables for end in cable.ends if end.node}
    assert telemetry_of(lambda scan, number, port: port["guid"] in adapters).is_whole
