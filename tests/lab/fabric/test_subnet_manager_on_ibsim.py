"""What OpenSM says and does on simulated fabrics: which manager answers, the partitions that it gave, its tables."""

from datetime import UTC, datetime, timedelta

import pytest

from assay.fabric.health.switch_facts import parse_sminfo
from assay.fabric.readers.format_detection import read_tool_output
from assay.fabric.readers.forwarding_tables import read_forwarding_tables
from assay.fabric.weekly.aggregation import aggregate_week
from assay.fabric.weekly.evaluation import evaluate_fabric_week
from assay.fabric.weekly.text_report import format_weekly_text
from assay.model.evidence import EvidenceDocument
from assay.model.reading import absent, value
from tests.support.fabrics.fat_trees import fat_tree
from tests.support.fabrics.ibsim import list_lids
from tests.support.fabrics.partners import AVAILABLE, WHY_NOT, Partners

pytestmark = [pytest.mark.skipif(not AVAILABLE, reason=WHY_NOT), pytest.mark.slow]


def test_a_manager_that_moved_is_told_by_the_week(tmp_path):
    plan = fat_tree(units=1, nodes=4, rails=2, spines=2, pair=1, rate="4xHDR")
    running = Partners(plan, tmp_path, patience=300)
    try:
        running.manage()
        said = [running.ask("sminfo")[0]]
        first = running.manage_beside("leaf-0-1", priority=0)
        running.lose_first_manager(first)
        said.append(running.ask("sminfo")[0])
    finally:
        running.end()
    week = _week_of(plan, said)
    assert len(week.manager_moves) == 1
    lines = format_weekly_text(evaluate_fabric_week(week, list(plan.cables), {}, {})).splitlines()
    assert any(line.endswith("to leaf-0-1, seen at 2026-11-20 18:00 UTC") for line in lines), lines


def _week_of(plan, said):
    """A week with one scan for each text of sminfo, six hours apart."""
    scans, start = {}, datetime(2026, 11, 20, 12, tzinfo=UTC)
    for number, text in enumerate(said):
        ports = {"subnet": {"text": value(text), "stderr": value("")}}
        previous = value(next(reversed(scans))) if scans else absent("first")
        channels = {"ports": ports, "earlier": absent("first"), "previous": previous}
        document = EvidenceDocument("fabric-tree", start + number * timedelta(hours=6), channels)
        scans[document.digest()] = document
    return aggregate_week("tree", list(plan.cables), document, scans.__getitem__, document.at)


def test_partitions_that_opensm_gave_are_read_port_by_port(tmp_path):
    plan = fat_tree(units=1, nodes=4, rails=2, spines=2, pair=1, rate="4xHDR")
    full, limited, outside = (cable.a.port_id for cable in list(plan.cables)[:3])
    members = ((full, "full"), (limited, "limited"))  # by their port GUIDs: in the simulator, the node's plus one
    blue = ", ".join(f"0x{int(port.guid, 16) + 1:016x}={kind}" for port, kind in members)
    (tmp_path / "partitions.conf").write_text(f"Default=0x7fff : ALL=limited, SELF=full ;\nblue=0x0001 : {blue} ;\n")
    running = Partners(plan, tmp_path, patience=300)
    try:
        running.manage("minhop", "-P", str(tmp_path / "partitions.conf"))
        lids = list_lids(running.ask("ibnetdiscover")[0])
        tables = {}
        for port in (full, limited, outside):
            words = (("nodeinfo",), ("portinfo", "1"), ("pkeys", "1"))
            texts = (running.ask("smpquery", name, lids[port.guid], *rest)[0] for name, *rest in words)
            facts = read_tool_output("".join(texts)).facts
            tables[port] = facts[port].pkeys
    finally:
        running.end()
    assert tables == {full: {0x7FFF, 0x8001}, limited: {0x7FFF, 0x0001}, outside: {0x7FFF}}


def test_the_tables_of_opensm_and_of_dump_fts_say_the_same(tmp_path):
    plan = fat_tree(units=1, nodes=4, rails=2, spines=2, pair=1, rate="4xHDR")
    running = Partners(plan, tmp_path, patience=300)
    try:
        running.manage("minhop", "-D", "0x43")  # the log level with which OpenSM writes its tables
        texts = running.ask("dump_fts")[0], (tmp_path / "opensm-lfts.dump").read_text()
        manager = parse_sminfo(running.ask("sminfo")[0])
    finally:
        running.end()
    asked, written = (read_forwarding_tables(text) for text in texts)
    ends = [
        {(table.switch, one.lid, one.port, one.guid) for table in found.tables for one in table.entries}
        for found in (asked, written)
    ]
    assert (asked.problems, written.problems) == ([], [])
    assert len(ends[0]) > 0
    assert ends[0] == ends[1]
    assert manager is not None
    assert manager.master
