"""One cause is one card, wherever it is; the report's cards and the lines of `--compare` follow one rule."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.validate.results.comparison_summary import group_changes
from assay.validate.results.run_comparison import RunComparison
from assay.validate.results.run_summary import find_cause, normalise_reason

DRIVER = "suites/zap/test_driver.py::test_driver_is_the_declared_one"
FABRIC_MANAGER = "suites/zap/test_driver.py::test_fabric_manager_is_the_drivers"
NODES = [f"k{number:03}" for number in range(96)]
ROLLED = [name for number, name in enumerate(NODES) if (number // 4) % 2][:44]
"""Eleven whole racks of four."""


@pytest.fixture
def large(runs):
    """Runs of a fleet of 24 racks."""
    node = next(iter(runs.fleet.nodes.values()))
    nodes = {name: replace(node, name=name, rack=f"r{number // 4:02}") for number, name in enumerate(NODES)}
    runs.fleet = replace(runs.fleet, nodes=nodes)
    return runs


def roll(runs, ill, checks=(DRIVER,), tell=lambda node: f"{node}: driver 570.17, expected 580.95", fault=""):
    """Store a good run and one in which checks fail on some nodes; return both files."""
    first = runs.run(-24, *(runs.outcome(node, check, hours=-24) for node in NODES for check in checks))
    bad = [
        runs.outcome(
            node,
            check,
            verdict="fail" if node in ill else "pass",
            reason=tell(node) if node in ill else "",
            fault=fault,
        )
        for node in NODES
        for check in checks
    ]
    return first, runs.run(0, *bad)


def test_a_bad_driver_on_44_nodes_is_one_card(large):
    roll(large, ROLLED)
    (card,) = large.overview().cards
    assert set(card.holders) == set(ROLLED)
    assert card.reach == "44 of 96 nodes, in 11 racks"


def test_two_checks_of_one_class_on_six_nodes_are_one_card(large):
    roll(large, NODES[2:90:16], (DRIVER, FABRIC_MANAGER), fault="host.config.drift")
    (card,) = large.overview().cards
    assert len(card.holders) == 6
    assert card.title.endswith("(host.config.drift)")


def test_a_rack_whose_nodes_each_give_another_reason_is_still_the_rack(large):
    words = dict(zip(NODES[8:12], ("no answer", "timed out", "garbled", "refused"), strict=True))
    roll(large, NODES[8:12], tell=words.get)
    (card,) = large.overview().cards
    assert (card.reach, len(card.lines), card.more) == ("4 of 4 nodes of rack r02", 3, 1)


def test_what_cannot_be_judged_for_one_reason_is_one_card(large):
    first = (large.outcome(node, check, hours=-24) for node in NODES for check in (DRIVER, FABRIC_MANAGER))
    large.run(-24, *first)
    large.run(0, *(
        large.outcome(node, check, verdict="error", reason=f"{node}: no evidence")
        for node in NODES[:8] for check in (DRIVER, FABRIC_MANAGER)
    ))  # fmt: skip
    (card,) = large.overview().unknown_cards
    assert (len(card.holders), card.lines) == (8, ("2 checks cannot be judged",))


def test_the_cards_and_the_lines_of_a_comparison_have_the_same_places(large):
    files = roll(large, ROLLED, (DRIVER,))
    with RunComparison(*files) as comparison:
        lines = [frozenset(group.places) for group in group_changes(comparison)]
    assert [frozenset(card.holders) for card in large.overview().cards] == lines


@given(
    st.lists(st.integers(0, 255), min_size=3, max_size=3),
    st.lists(st.integers(0, 255), min_size=3, max_size=3),
)
def test_addresses_are_no_part_of_a_reason(one, other):
    def said(numbers):
        return f"{numbers[0]:04x}:{numbers[1]:02x}:{numbers[2] % 32:02x}.0 fell off"

    assert normalise_reason(said(one), "") == normalise_reason(said(other), "")


@pytest.mark.parametrize(("verdict", "check"), [("fail", DRIVER), ("error", ""), ("skip", "")])
def test_what_cannot_be_judged_has_one_cause_for_all_checks(verdict, check):
    assert find_cause(DRIVER, verdict, "k001: no evidence", "k001") == (check, verdict, "#: no evidence")
