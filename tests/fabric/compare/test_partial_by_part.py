"""What was not read, or not reached, is unknown; everything else is judged as ever."""

from random import Random

import pytest

from assay.cli.verbs.fabric import format_comparison
from assay.fabric.compare.compare import compare_cabling
from assay.fabric.compare.tickets import make_cabling_tickets
from assay.fabric.design.compiled_topology import CableTable, CompiledTopology
from assay.fabric.discovery import DiscoveredCable
from assay.fabric.readers.format_detection import read_topology
from assay.lab.fabric.ibnetdiscover import format_net_file
from tests.fabric.random_mixes import RandomMix
from tests.support.fabrics.fat_trees import as_built, fat_tree, in_reach

PROMPT = "admin@ufm-1:~$ ls\n"


@pytest.fixture(scope="module")
def tree():
    return fat_tree()


def printed(plan, cables):
    seen = in_reach(plan, cables)
    return format_net_file(seen.devices, seen.cables)


def without_and_swapped(plan):
    """The first cable lost, and the plugs of two cables at the last leaf exchanged."""
    cables = as_built(plan)
    of_nodes = [index for index, cable in enumerate(cables) if plan.devices[cable.a.guid].node]
    a, b = of_nodes[-1], of_nodes[-4]
    cables[a], cables[b] = cables[a]._replace(b=cables[b].b), cables[b]._replace(b=cables[a].b)
    return cables[1:]


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda text: text.replace("\nCa\t", f"\n{PROMPT}Ca\t", 1), id="a prompt between records"),
        pytest.param(lambda text: text.replace("4xNDR\n", f"4xNDR\n{PROMPT}", 1), id="a prompt within a record"),
        pytest.param(lambda text: text.replace("4xNDR\n", '4xNDR\n[5]\t"S-00\n', 1), id="a broken line"),
        pytest.param(lambda text: text[:-200], id="a cut end"),
    ],
)
def test_what_was_read_is_judged_for_what_it_covers(tree, spoil):
    comparison = compare_cabling(tree, read_topology(spoil(printed(tree, without_and_swapped(tree)))))
    assert sorted(one.kind for one in comparison.discrepancies) == ["missing", "swap"]
    assert len(make_cabling_tickets(comparison)) == 2


def test_a_prompt_is_told_and_changes_no_verdict(tree):
    text = printed(tree, as_built(tree))
    comparison = compare_cabling(tree, read_topology(text + PROMPT * 6))
    number = text.count("\n") + 1
    note = f"line {number} is none of ibnetdiscover's and was skipped: 'admin@ufm-1:~$ ls'"
    assert (comparison.verdict, len(comparison.notes)) == ("match", 6)
    assert comparison.notes[0] == note
    lines = format_comparison(comparison).splitlines()[1:]
    assert (lines[0], len(lines)) == (f"  note: {note}", 5)
    assert "2 more notes" in lines[-1]


def test_a_cut_among_the_switches_leaves_what_neither_end_shows_unknown(tree):
    text = printed(tree, without_and_swapped(tree))
    half = text[: text.index("\nSwitch", text.index("\nSwitch") + 1)]
    comparison = compare_cabling(tree, read_topology(half))
    assert comparison.verdict == "partial"
    assert 0 < len(comparison.unknown) < comparison.expected
    assert f"{len(comparison.unknown)} unknown" in comparison.summary
    assert all(pair.observed for one in comparison.discrepancies for pair in one.cables)


def beside_each_other(one, other):
    """One design of two fabrics that no cable joins."""
    links = CableTable()
    devices = [*one, *(device._replace(guid=f"0x9{device.guid[3:]}") for device in other)]
    for tree, first in ((one, 0), (other, len(list(one)))):
        for a, a_port, b, b_port in tree.links:
            links.add([first + a], [a_port], [first + b], [b_port])
    links.set_rate_and_length("4xNDR", 5)
    return CompiledTopology("both", devices, links)


def test_an_island_hides_nothing_elsewhere(tree):
    island = fat_tree(units=1, nodes=3, rails=3, spines=1, pair=1)
    seen = in_reach(tree, without_and_swapped(tree))
    comparison = compare_cabling(beside_each_other(tree, island), seen)
    assert comparison.verdict == "partial"
    assert "have no designed path to anything discovered" in comparison.problems[0]
    assert sorted(one.kind for one in comparison.discrepancies) == ["missing", "swap"]
    assert len(comparison.unknown) == len(island.cables)
    assert len(make_cabling_tickets(comparison)) == 2


def damaged(text, rng):
    """The text with a prompt or a broken line somewhere, or without its end."""
    lines = text.splitlines(keepends=True)
    at = rng.randrange(len(lines))
    if rng.random() < 0.4:
        return text[: rng.randrange(len(text) // 3, len(text))]
    lines[at : at + rng.randint(0, 1)] = [rng.choice([PROMPT, '[7]\t"S-0', "--More--\n", "Switch\n"])]
    return "".join(lines)


def prove_damaged(seeds):
    for seed in seeds:
        mix = RandomMix(seed)
        if not mix.cables or {"exchange", "move_in"} & set(mix.done):  # a cable may then lead right by chance
            continue
        seen = in_reach(mix.plan, mix.cables, mix.extra)
        there = {frozenset(cable[:2]) for cable in seen.cables}
        text = damaged(format_net_file(seen.devices, seen.cables), Random(seed))
        comparison = compare_cabling(mix.plan, read_topology(text))
        for one in comparison.discrepancies:
            if one.kind in ("missing", "device-missing", "moved"):
                claimed = [pair.expected for pair in one.cables if pair.expected]
                wrong = [cable for cable in claimed if frozenset((cable.a.port_id, cable.b.port_id)) in there]
                assert not wrong, f"seed {seed}: {one.summary}: but it is there"


def test_no_damage_makes_a_cable_missing_that_is_there():
    prove_damaged(range(200))


@pytest.mark.slow
def test_no_damage_of_thousands_makes_a_cable_missing_that_is_there():
    prove_damaged(range(200, 2500))


def test_a_link_without_a_rate_is_in_its_place_at_an_unknown_rate(tree):
    cables = [DiscoveredCable(a, b, "") for a, b, _ in as_built(tree)]
    comparison = compare_cabling(tree, in_reach(tree, cables))
    assert (comparison.verdict, comparison.matching, list(comparison.unknown)) == ("partial", len(cables), [])
    assert len(comparison.unrated) == 2 * len(cables)
    (problem,) = comparison.problems
    assert f"no rate is known of {len(cables)} cables" in problem
