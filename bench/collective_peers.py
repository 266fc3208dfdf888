"""How others look for a faulty node, written for this benchmark from what they publish. Each returns whom it names.

All know the usual speed of a pair and of a group, which assay has to learn from the median.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from assay.validate.collectives.results import PairResult
from bench.collective_faults import SLOW, SPEED_GB_S, SimulatedFabric


def is_good(result: PairResult) -> bool:
    """Whether a pair ended in time, with right results, at the usual speed."""
    return result.ended == "ok" and not result.wrong and (result.gb_s or 0) >= SLOW * SPEED_GB_S


def search_all_pairs(fabric: SimulatedFabric) -> set[str]:
    """Every node with every other, as a round robin; faulty is who is bad in more than half of its pairs."""
    bad: Counter[str] = Counter()
    for number, pairs in enumerate(_round_robin(fabric.nodes)):
        for result in fabric.run_round(f"R{number}", pairs):
            bad.update(() if is_good(result) else result.pair)
    return {name for name, count in bad.items() if count > (fabric.size - 1) / 2}


def search_second_pass(fabric: SimulatedFabric) -> set[str]:
    """Random pairs; both nodes of a bad pair run again, each with a node that passed (CHS)."""
    shuffled = fabric.chance.sample(fabric.nodes, fabric.size)
    first = fabric.run_round("P1", zip(shuffled[::2], shuffled[1::2], strict=True))
    passed = [name for result in first if is_good(result) for name in result.pair]
    suspects = [name for result in first if not is_good(result) for name in result.pair]
    if not suspects:
        return set()
    second = fabric.run_round("P2", zip(suspects, passed, strict=False))
    return {result.pair[0] for result in second if not is_good(result)}


def search_groups(fabric: SimulatedFabric) -> set[str]:
    """Groups of √N nodes; a bad one is halved until one node is left, which must fail with a good one (NVCRE)."""
    size = max(2, math.isqrt(fabric.size))
    groups = [fabric.nodes[at : at + size] for at in range(0, fabric.size, size)]
    outcomes = fabric.run_groups(groups)
    good = [name for group, is_fine in zip(groups, outcomes, strict=True) if is_fine for name in group]
    suspect = [group for group, is_fine in zip(groups, outcomes, strict=True) if not is_fine]
    while any(len(group) > 1 for group in suspect):
        halves = [half for group in suspect for half in _halve(group)]
        tested = [half if len(half) > 1 else [*half, good[at % len(good)]] for at, half in enumerate(halves)]
        outcomes = fabric.run_groups(tested)
        suspect = [half for half, is_fine in zip(halves, outcomes, strict=True) if not is_fine]
    if not suspect:
        return set()
    outcomes = fabric.run_groups([[*group, good[-1 - at % len(good)]] for at, group in enumerate(suspect)])
    return {name for group, is_fine in zip(suspect, outcomes, strict=True) if not is_fine for name in group}


def search_by_halving(fabric: SimulatedFabric) -> set[str]:
    """The whole, its halves, their halves …, down to pairs, of which both nodes are named (Azure)."""
    suspect, named = [list(fabric.nodes)], set()
    while suspect:
        outcomes = fabric.run_groups(suspect)
        bad = [group for group, is_fine in zip(suspect, outcomes, strict=True) if not is_fine]
        named |= {name for group in bad if len(group) <= 2 for name in group}
        suspect = [half for group in bad if len(group) > 2 for half in _halve(group)]
    return named


def _halve(group: Sequence[str]) -> list[Sequence[str]]:
    middle = len(group) // 2
    return [half for half in (group[:middle], group[middle:]) if half]


def _round_robin(names: Sequence[str]) -> Iterator[list[tuple[str, str]]]:
    """Yield N − 1 rounds in which everybody meets everybody once: the first stays, the others turn."""
    fixed, turning = names[0], list(names[1:])
    for _ in range(len(turning)):
        row = [fixed, *turning]
        yield [(row[at], row[-1 - at]) for at in range(len(row) // 2)]
        turning = turning[1:] + turning[:1]


PEERS = {"second pass": search_second_pass, "groups halved": search_groups, "halving": search_by_halving}
