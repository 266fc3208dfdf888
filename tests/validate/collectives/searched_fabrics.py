"""Fabrics of any shape, and what a search finds on them without processes."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence

from assay.validate.collectives.fabric_map import FabricMap, FabricNode
from assay.validate.collectives.results import GroupResult, GroupRound, PairResult
from assay.validate.collectives.rounds import PairRound
from assay.validate.collectives.search import CollectiveSearch, SearchResults, StagedSearch

NOW_AND_THEN = 0.7


def fabric_of(units: Sequence[int], rails: int = 1, domain: int = 0) -> FabricMap:
    """Return units of these sizes; each leaf has as many uplinks as its unit has nodes. `domain` nodes share NVLink."""
    nodes = {}
    for unit, size in enumerate(units):
        for place in range(size):
            name = f"n{unit}{place:02}"
            leaves = tuple(f"leaf{unit}-r{rail}" for rail in range(rails))
            shared = f"rack {unit}-{place // domain}" if domain else ""
            nodes[name] = FabricNode(name, leaves, (place,) * rails, shared)
    uplinks = {
        f"leaf{unit}-r{rail}": [f"leaf{unit}-r{rail}[{port}]" for port in range(size)]
        for unit, size in enumerate(units)
        for rail in range(rails)
    }
    return FabricMap(nodes, uplinks)


def play(search: CollectiveSearch, faulty: Mapping[str, str], rails: Sequence[int] = ()) -> list[PairResult]:
    """Return the results of a search in which the named parts are `slow`, `hung`, `dead` or `wrong`.

    A fault is there in every run; with `~` at its end, in 70 % of the runs.
    """
    results: list[PairResult] = []
    ended: set[str] = set()
    while planned := search.find_next_round(results, ended):
        for pair in planned.pairs:
            for rail in rails or (None,):
                results.append(run(search.fabric, planned.name, pair, rail, faulty))
        ended.add(planned.name)
    return results


def run(fabric: FabricMap, name: str, pair: tuple[str, str], rail: int | None, faulty: Mapping[str, str]) -> PairResult:
    parts = [*fabric.list_node_parts(*pair), *fabric.list_rail_parts(*pair, rail or 0)]
    if rail is None:
        parts = [*fabric.list_pair_parts(*pair), *parts]
    faults = {faulty[part.name] for part in parts if part.name in faulty}
    is_met = zlib.crc32(f"{name} {pair} {rail}".encode()) / 2**32 < NOW_AND_THEN
    faults = {fault.rstrip("~") for fault in faults if is_met or not fault.endswith("~")}
    if "hung" in faults:
        return PairResult(name, pair, "deadline", rail)
    if "dead" in faults:
        return PairResult(name, pair, "died", rail)
    return PairResult(name, pair, "ok", rail, gb_s=28.0 if "slow" in faults else 40.0, wrong=3 * ("wrong" in faults))


def play_stages(
    search: StagedSearch,
    faulty: Mapping[str, str],
    together: Callable[[tuple[str, ...]], str] | None = None,
    only_in: str = "",
    figures: Mapping[str, object] | None = None,
) -> SearchResults:
    """Return the results of all stages.

    `faulty` has parts as in `play`, and nodes that are faulty alone as `NAME alone`, in the round `only_in` or always.
    `together` gives the fault of many nodes, "" for none. `figures` replace those of good groups.
    """
    pairs: list[PairResult] = []
    groups: list[GroupResult] = []
    ended: set[str] = set()
    while planned := search.find_next_round(SearchResults(pairs, groups), ended):
        if isinstance(planned, PairRound):
            pairs += [run(search.fabric, planned.name, pair, None, faulty) for pair in planned.pairs]
        for group in planned.groups if isinstance(planned, GroupRound) else ():
            is_alone = planned.name.startswith("G")
            fault = faulty.get(f"{group[0]} alone", "") if is_alone and only_in in ("", planned.name) else ""
            fault = together(group) if together and not is_alone else fault
            groups.append(run_group(planned.name, group, fault, figures or {}))
        ended.add(planned.name)
        assert len(ended) < 200, "a search ends"
    return SearchResults(pairs, groups)


def run_group(name: str, group: tuple[str, ...], fault: str, figures: Mapping[str, object]) -> GroupResult:
    if fault not in ("", "slow", "wrong"):
        return GroupResult(name, group, {"hung": "deadline", "dead": "died"}.get(fault, fault))
    told = {"gb_s": 28.0 if fault == "slow" else 40.0, "wrong": 3 * (fault == "wrong"), **figures}
    return GroupResult(name, group, "ok", **told)
