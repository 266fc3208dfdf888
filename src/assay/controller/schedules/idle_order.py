"""Which idle node is tested first.

One with an open warning of trends; then one on probation after a repair; then one where parts fail more often. The
others keep their order. This is the first thing that a warning, a repair or a position decides, and the only one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from assay.controller.cache.node_state_and_outcome_cache import read_node_states
from assay.controller.context import ControllerContext
from assay.controller.ingest.trend_answer_file import read_position_times
from assay.model.node import Node
from assay.starter.shipped_specs import find_trend_rules
from assay.trends.parts.part_risks import make_state_history
from assay.trends.warnings.warning_history import TREND_ENTRY_KINDS, TrendWarning, read_warning_history


def order_idle_nodes(context: ControllerContext, nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes in the order in which they are tested."""
    urgency: dict[str, float] = {}
    for one in read_warning_history(context.ledger.entries(kinds=TREND_ENTRY_KINDS)).open:
        if one.content.stage == "record":
            urgency[one.node] = max(urgency.get(one.node, 0.0), _weigh(one))
    probation, positions = _rank_probation(context), read_position_times(context.reports)

    def find_turn(node: Node) -> tuple[float, float, float]:
        name = node.name
        return -urgency.get(name, 0.0), probation.get(name, math.inf), -positions.get(name, 0.0)

    return sorted(nodes, key=find_turn)


def _rank_probation(context: ControllerContext) -> dict[str, int]:
    """Return the place of each node on probation in the order of their tests."""
    states = read_node_states(context.ledger).values()
    in_service = context.policy.states_in_service
    history = make_state_history(list(states), in_service, context.clock.now())
    found = history.list_probation(find_trend_rules(context.fleet).returns)
    return {one.returned.node: place for place, one in enumerate(found)}


def _weigh(warning: TrendWarning) -> float:
    """Return how urgent a test is: the chance that the warning is right, one half where nobody knows it."""
    return 0.5 if warning.content.p is None else warning.content.p
