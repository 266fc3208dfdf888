"""Whatever befalls a fabric at once, the answer is a description that, applied to the design, gives the discovery."""

import pytest

from assay.fabric.compare import diff_explanation
from assay.fabric.compare.compare import compare_cabling
from tests.fabric.random_mixes import RandomMix
from tests.support.fabrics.fat_trees import as_built, fat_tree, in_reach


def edges(cables):
    return {frozenset((cable.a.port_id, cable.b.port_id)): cable.rate for cable in cables}


def applied(plan, comparison):
    """The design with every discrepancy applied to it: the cables, by their ports, with their rates."""
    pairs = [pair for one in comparison.discrepancies for pair in one.cables]
    gone = edges(pair.expected for pair in pairs if pair.expected)
    gone |= edges(cable for one in comparison.discrepancies for cable in one.cut_off)
    gone |= edges(comparison.unknown)
    kept = {edge: rate for edge, rate in edges(plan.cables).items() if edge not in gone}
    return kept | edges(pair.observed for pair in pairs if pair.observed)


def prove(seeds):
    for seed in seeds:
        mix = RandomMix(seed)
        if mix.cables:
            seen = mix.seen()
            comparison = compare_cabling(mix.plan, seen)
            found = {frozenset(cable[:2]): cable.rate for cable in seen.cables}
            assert all("no designed path" in problem for problem in comparison.problems), f"seed {seed}: {mix.done}"
            assert applied(mix.plan, comparison) == found, f"seed {seed}: {mix.done}"


def test_any_mix_is_described_exactly():
    prove(range(250))


@pytest.mark.slow
def test_thousands_of_mixes_are_described_exactly():
    prove(range(250, 5000))


def test_a_defect_of_ours_is_told_once_and_hides_no_figure(monkeypatch):
    class Broken:
        def __init__(self, *_):
            raise KeyError("n100")

    monkeypatch.setattr(diff_explanation, "DiffExplanation", Broken)
    plan = fat_tree()
    found = compare_cabling(plan, in_reach(plan, as_built(plan)[1:]))
    assert (found.verdict, found.expected, found.found) == ("partial", len(plan.cables), len(plan.cables) - 1)
    (problem,) = found.problems
    assert "KeyError: 'n100'" in problem
