"""Adds to the evidence of a loaded node what other nodes of its kind reached: the channel `fleet`.

It is stored with the evidence, so a check that compares with the fleet can be judged again on the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from statistics import median, quantiles

from assay.act.loop.context import ControllerContext
from assay.model.node import Node
from assay.model.outcome import RecordedOutcome
from assay.model.reading import ReadingTree, unsupported, value
from assay.model.specs.check_catalog_and_gates import CheckDeclaration
from assay.model.timestamps import parse_time

RECENT = timedelta(days=30)
LEAST_GPUS = 40
"""Fewer say little of a distribution; five nodes of eight GPUs, as for the drift of a burn-in."""
TWENTIETHS = 20
LEAST_NODES = TWENTIETHS
"""For what is measured of a whole node: with fewer, none of twenty is below `low`."""
LEAST = {"gpu": LEAST_GPUS, "node": LEAST_NODES}


def read_fleet_speeds(context: ControllerContext, node: Node) -> ReadingTree:
    """Return, by measurement of the active checks, what other nodes with the same spec, or their GPUs, reached.

    A measurement has `median`, `low` (which one in twenty is below), and how many `gpus` or `nodes` it was measured on.
    With too few of them, it is unsupported.
    """
    speeds: dict[tuple[str, str], list[float]] = {}
    for check in _list_speed_checks(context):
        for recorded in context.ledger.newest_passes(check.id):
            if _is_peer(context, node, recorded):
                for one in recorded.outcome.measurements:
                    speeds.setdefault((one.name, check.subject), []).append(one.value)
    return {name: _describe(name, subject, seen) for (name, subject), seen in sorted(speeds.items())}


def _list_speed_checks(context: ControllerContext) -> Iterator[CheckDeclaration]:
    for catalog in context.fleet.check_catalogs.values():
        yield from (check for check in catalog.checks if check.parts and check.subject in LEAST)


def _is_peer(context: ControllerContext, node: Node, recorded: RecordedOutcome) -> bool:
    other = context.fleet.nodes.get(recorded.outcome.node)
    if other is None or other.name == node.name or other.spec != node.spec or not recorded.seen_at:
        return False
    return parse_time(context.now) - parse_time(recorded.seen_at) <= RECENT


def _describe(name: str, subject: str, seen: list[float]) -> ReadingTree:
    if len(seen) < LEAST[subject]:
        noun = "GPUs" if subject == "gpu" else "nodes"
        return unsupported(f"{len(seen)} {noun} of this kind have passed with {name}; {LEAST[subject]} are needed")
    low = quantiles(seen, n=TWENTIETHS)[0]
    return {"median": value(round(median(seen), 3)), "low": value(round(low, 3)), f"{subject}s": value(len(seen))}
