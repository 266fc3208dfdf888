"""The order of idle tests: nodes on probation come before others, then those at positions that fail more often."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from quiet_site import FLEET, NODES, Site

from assay.controller.schedules.idle_order import order_idle_nodes
from assay.model.ledger_entry import LedgerEntry
from assay.model.timestamps import format_time


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path / "ledger.sqlite", tmp_path)
    yield site
    site.ledger.close()


def repair(site: Site, name: str) -> None:
    """A node leaves service because of a fault, and is back a day later."""
    begun = site.clock.at
    site.fault(name)
    fault = site.ledger.entries(kinds=["fault"])[-1].body["fault"]
    decided = {
        "decision": f"d-{name}-{begun}", "from": "production", "to": "triage", "timing": "immediate",
        "rule": "x.yaml:1 r", "because": [{"kind": "fault", "id": fault, "text": "as planted"}],
    }  # fmt: skip
    site.later(hours=1)
    move(site, "decision", name, **decided)
    move(site, "transition", name, **{"from": "production", "to": "triage", "decision": decided["decision"]})
    site.later(days=1)
    move(site, "transition", name, **{"from": "triage", "to": "production", "decision": ""})
    assert site.clock.at - begun == timedelta(days=1, hours=1)


def move(site: Site, kind: str, name: str, **body: object) -> None:
    at = format_time(site.clock.at)
    site.ledger.append(LedgerEntry(f"{kind} {name} {at} {body.get('to')}", at, kind, name, dict(body)))


def list_order(site: Site) -> list[str]:
    return [node.name for node in order_idle_nodes(site.desk, [FLEET.nodes[name] for name in NODES])]


def test_without_a_history_the_nodes_keep_their_order(site: Site) -> None:
    assert list_order(site) == list(NODES)


def test_a_node_that_is_back_from_a_repair_is_tested_first_for_two_weeks(site: Site) -> None:
    repair(site, NODES[5])
    assert list_order(site) == [NODES[5], *(name for name in NODES if name != NODES[5])]
    site.later(days=13)
    assert list_order(site)[0] == NODES[5]
    site.later(days=2)
    assert list_order(site) == list(NODES)


def test_of_two_that_are_back_the_one_that_returns_again_and_again_is_first(site: Site) -> None:
    repair(site, NODES[6])
    site.later(days=3)
    repair(site, NODES[6])
    repair(site, NODES[5])
    site.later(days=4)
    assert list_order(site)[:2] == [NODES[6], NODES[5]]


def test_a_position_that_fails_more_often_comes_after_a_repair(site: Site) -> None:
    answer = site.desk.reports / "trends" / "answer.json"
    answer.parent.mkdir(parents=True)
    answer.write_text(json.dumps({"at": "2026-11-21T04:11:00+00:00", "position_times": {NODES[3]: 2.5, NODES[4]: 7.0}}))
    repair(site, NODES[5])
    assert list_order(site)[:4] == [NODES[5], NODES[4], NODES[3], NODES[0]]
    for spoilt in ("{", "[]", '{"position_times": [1]}', '{"position_times": {"a": "x"}}'):
        answer.write_text(spoilt)
        assert list_order(site)[:2] == [NODES[5], NODES[0]]
