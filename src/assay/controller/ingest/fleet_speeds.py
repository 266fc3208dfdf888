"""Adds to the evidence of a loaded node what other nodes of its kind reached: the channel `fleet`.

It is stored with the evidence, so a check that compares with the fleet can be judged again on the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from statistics import median, quantiles

from assay.controller.context import ControllerContext
from assay.model.node import Node
from assay.model.outcome import RecordedOutcome
from assay.model.reading import ReadingTree, unsupported, value
from assay.model.specs.check_catalog_and_gates import CheckDeclaration
from assay.model.timestamps import parse_time

RECENT = timedelta(days=30)
LEAST_GPUS = 40
"""Fewer say little of a distribution; five nodes of eight GPUs, as for the drift of a burn-in."""
TWENTIETHS = 20


def read_fleet_speeds(context: ControllerContext, node: Node) -> ReadingTree:
    """Return, by measurement of the active checks on GPUs, what GPUs of other nodes with the same spec reached.

    A measurement has `median`, `low` (which one in twenty is below) and `gpus`. With too few GPUs, it is unsupported.
    """
    speeds: dict[str, list[float]] = {}
    for check in _list_speed_checks(context):
        for recorded in context.ledger.newest_passes(check.id):
            if _is_peer(context, node, recorded):
                for one in recorded.outcome.measurements:
                    speeds.setdefault(one.name, []).append(one.value)
    return {name: _describe(name, seen) for name, seen in sorted(speeds.items())}


def _list_speed_checks(context: ControllerContext) -> Iterator[CheckDeclaration]:
    for catalog in context.fleet.check_catalogs.values():
        yield from (check for check in catalog.checks if check.parts and check.subject == "gpu")


def _is_peer(context: ControllerContext, node: Node, recorded: RecordedOutcome) -> bool:
    other = context.fleet.nodes.get(recorded.outcome.node)
    if other is None or other.name == node.name or other.spec != node.spec or not recorded.seen_at:
        return False
    return parse_time(context.now) - parse_time(recorded.seen_at) <= RECENT


def _describe(name: str, seen: list[float]) -> ReadingTree:
    if len(seen) < LEAST_GPUS:
        return unsupported(f"{len(seen)} GPUs of this kind have passed with {name}; {LEAST_GPUS} are needed")
    low = quantiles(seen, n=TWENTIETHS)[0]
    return {"median": value(round(median(seen), 3)), "low": value(round(low, 3)), "gpus": value(len(seen))}
