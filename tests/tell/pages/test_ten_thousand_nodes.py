"""The page of a fleet of 10,000 nodes: cheap to render, and drawn by rack so that people can read it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from assay.decide.rollouts.rollout_history import RolloutHistory
from assay.decide.state.node_projection import project_node_states
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.model.entries.node_entries import NodeEnrolledEntry
from assay.model.timestamps import parse_time
from assay.tell.pages.fleet_pages import render_fleet_page
from assay.tell.pages.page_frame import PageRequest
from tests.support.places import ROOT

NODES, PER_RACK = 10_000, 8
AT = "2026-11-22T12:00:00+00:00"


class BigFleet:
    """Records of 10,000 nodes, of which each hundredth waits for people, and none was ever read."""

    def __init__(self, ledger: Ledger, count: int = NODES) -> None:
        self.ledger_for_reading = ledger
        small = load_fleet(ROOT)
        one = next(iter(small.nodes.values()))
        names = [f"n{number:05}" for number in range(count)]
        nodes = {
            name: replace(one, name=name, rack=f"r{number // PER_RACK:04}", u=number % PER_RACK * 5 + 1, serial=name)
            for number, name in enumerate(names)
        }
        self.fleet = replace(small, nodes=nodes)
        entries = (
            NodeEnrolledEntry(one.pool, "triage" if number % 100 == 0 else "production", name).make_entry(
                f"e{number}", AT, name
            )
            for number, name in enumerate(names)
        )
        self._states = list(project_node_states(entries).values())

    data_dir = Path("no folder of a fleet")
    clock = SimpleNamespace(now=lambda: parse_time(AT))

    def read_node_states(self) -> Any:
        return self._states

    def read_tickets(self) -> Any:
        return []

    def read_rollouts(self) -> RolloutHistory:
        return RolloutHistory()


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    ledger = Ledger.open(tmp_path_factory.mktemp("home") / "ledger.sqlite")
    yield BigFleet(ledger)
    ledger.close()


def ask(**query: str) -> PageRequest:
    return PageRequest("/", {}, query, NODES, SystemClock().now())


def test_the_fleet_is_drawn_by_rack_and_its_parts_by_node(records: Any) -> None:
    whole = render_fleet_page(records, ask())
    assert whole.count('class="tile-rack') == NODES // PER_RACK
    assert "cell people" not in whole
    assert render_fleet_page(records, ask(standing="people")).count("cell people") == NODES // 100


def test_the_page_costs_as_much_a_node_as_that_of_a_smaller_fleet(records: Any) -> None:
    render_fleet_page(records, ask())  # compiles the templates
    small = cpu_s(BigFleet(records.ledger_for_reading, NODES // 10))
    assert cpu_s(records) < 25 * small, "10 times as many nodes"


def cpu_s(records: Any) -> float:
    """Return the CPU time of the page, at the least of three."""
    spent = []
    for _ in range(3):
        began = time.process_time()
        render_fleet_page(records, ask())
        spent.append(time.process_time() - began)
    return min(spent)
