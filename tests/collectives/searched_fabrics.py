"""Fabrics of any shape, and what a search finds on them without processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assay.collectives.fabric_map import FabricMap, FabricNode
from assay.collectives.pair_results import PairResult
from assay.collectives.search import CollectiveSearch


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
    """Return the results of a search in which the named parts are `slow`, `hung`, `dead` or `wrong` in every run."""
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
    if "hung" in faults:
        return PairResult(name, pair, "deadline", rail)
    if "dead" in faults:
        return PairResult(name, pair, "died", rail)
    return PairResult(name, pair, "ok", rail, gb_s=28.0 if "slow" in faults else 40.0, wrong=3 * ("wrong" in faults))
