"""Lets jobs come last to nodes with two warnings of trends, where TrendRules ask for it: a hint to their schedulers."""

from __future__ import annotations

from collections.abc import Mapping

from assay.act.loop.context import ControllerContext
from assay.act.loop.projections import read_node_states
from assay.adapters.scheduler import RanksNodes, group_by_scheduler
from assay.declare.starter.shipped_specs import find_trend_rules
from assay.ledger.ledger_reader import read_projection
from assay.model.entries.faults import NodeRankedEntry, RankStanding
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry, Projection, derive_id
from assay.model.specs.trend_rules import WORN, count_open_warnings


def _apply(last: set[str], entry: LedgerEntry) -> set[str]:
    ranked = NodeRankedEntry.read(entry)
    if ranked.is_last:
        last.add(entry.node)
    elif ranked.standing == "verified":
        last.discard(entry.node)
    return last


RANKED_LAST = Projection[set[str]]((NodeRankedEntry.kind,), set, _apply, set)
"""The nodes to which jobs may come last because assay said so. Nobody else's weight or taint is ever undone."""


def rank_worn_nodes(context: ControllerContext) -> None:
    """Tell the schedulers which nodes come last now. A scheduler that fails costs its own nodes only."""
    ours, states = read_projection(context.ledger, RANKED_LAST), read_node_states(context.ledger)
    worn = {name for name, state in states.items() if count_open_warnings(state.faults) >= WORN}
    worn = worn if find_trend_rules(context.fleet).acts.last_for_jobs else set()
    known = [name for name in sorted(worn | ours) if name in context.fleet.nodes and not context.fleet.is_watched(name)]
    groups = group_by_scheduler([context.fleet.nodes[name] for name in known], context.workloads)
    for scheduler, names in groups.nodes.items():
        if isinstance(scheduler, RanksNodes):
            is_last = {name: name in worn for name in names}
            changed = {name: last for name, last in is_last.items() if (name in ours) != last}
            _record(context, changed, "intent")
            try:
                failed = scheduler.rank_nodes(is_last)  # all: a scheduler forgets
            except AssayError as error:
                failed = dict.fromkeys(names, error.what)
            _record(context, {name: is_last[name] for name in failed}, "failed", failed)
            _record(context, {name: last for name, last in changed.items() if name not in failed}, "verified")


def _record(
    context: ControllerContext, is_last: Mapping[str, bool], standing: RankStanding, failed: Mapping[str, str] = {}
) -> None:
    for name, last in is_last.items():
        reason = failed.get(name) or f"{'two' if last else 'fewer than two'} warnings of trends are open"
        entry = NodeRankedEntry(last, standing, reason)
        context.ledger.append(entry.make_entry(derive_id(entry.kind, name, standing, context.now), context.now, name))
