"""The plan of a search as text and as JSON: free nodes, rounds, minutes, and what the rounds would exercise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from assay.model.text.text_lists import fold_names, format_count, format_list
from assay.validate.collectives.confirmation import CONFIRMATION_ROUNDS
from assay.validate.collectives.coverage import CoverageShare, measure_coverage
from assay.validate.collectives.free_nodes import FreeNodes
from assay.validate.collectives.pair_results import PairResult
from assay.validate.collectives.search import CollectiveSearch
from assay.validate.collectives.time_estimate import TimeEstimate

if TYPE_CHECKING:
    from assay.validate.collectives.search_answers import CollectivesPlanAnswer

SHOWN_REASONS = 12


def format_plan(design: str, search: CollectiveSearch, free: FreeNodes, time: TimeEstimate) -> str:
    """Return the plan for people."""
    return "\n".join(_list_lines(design, search, free, time))


def plan_as_json(design: str, search: CollectiveSearch, free: FreeNodes, time: TimeEstimate) -> CollectivesPlanAnswer:
    """Return the plan as plain JSON data."""
    return {
        "design": design,
        "free": list(free.free),
        "excluded": dict(free.excluded),
        "rounds": [{"round": one.name, "pairs": [list(pair) for pair in one.pairs]} for one in search.screening],
        "minutes": {"healthy": round(time.healthy_minutes, 1), "longest": round(time.longest_minutes, 1)},
        "coverage": {f"{share.kind}s": share.as_json() for share in measure_planned_coverage(search)},
    }


def measure_planned_coverage(search: CollectiveSearch) -> list[CoverageShare]:
    """Return what the screening rounds exercise if every pair can be measured."""
    results = [PairResult(one.name, pair, "died") for one in search.screening for pair in one.pairs]
    return measure_coverage(search.fabric, search.nodes, search.observe(results))


def _list_lines(design: str, search: CollectiveSearch, free: FreeNodes, time: TimeEstimate) -> Iterator[str]:
    where = f"{design}: " if design else "no FabricDesign, so no link can be named: "
    yield f"{where}{len(free.free):,} of {format_count(len(search.fabric.nodes), 'node')} are free"
    reasons = list(free.names_by_reason.items())
    for reason, names in reasons[:SHOWN_REASONS]:
        yield f"  not free: {format_list(fold_names(names), 4)}: {reason}"
    if len(reasons) > SHOWN_REASONS:
        yield f"  and {len(reasons) - SHOWN_REASONS} more reasons; --format json has all"
    if not search.screening:
        yield "no pair can run: a pair needs two free nodes"
        return
    rounds = ", ".join(f"{one.name} {format_count(len(one.pairs), 'pair')}" for one in search.screening)
    yield f"rounds: {rounds}; up to {len(CONFIRMATION_ROUNDS)} more if a pair is bad"
    yield "beside: each node alone first, and all nodes together last, if the workload has commands for them"
    yield f"time: about {time.healthy_minutes:.1f} min if nothing is wrong, at most {time.longest_minutes:.0f} min"
    yield "would exercise:"
    yield from (f"  {share}" for share in measure_planned_coverage(search))
