"""Which idle node is tested first: one with an open warning of trends. The others keep their order.

This is the first thing that a warning decides, and the only one.
"""

from __future__ import annotations

from collections.abc import Sequence

from assay.act.loop.context import ControllerContext
from assay.decide.trends.warning_history import TREND_ENTRY_KINDS, TrendWarning, read_warning_history
from assay.model.node import Node


def order_idle_nodes(context: ControllerContext, nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes in the order in which they are tested."""
    urgency: dict[str, float] = {}
    for one in read_warning_history(context.ledger.entries(kinds=TREND_ENTRY_KINDS)).open:
        if one.content.stage == "record":
            urgency[one.node] = max(urgency.get(one.node, 0.0), _weigh(one))
    return sorted(nodes, key=lambda node: -urgency.get(node.name, 0.0))


def _weigh(warning: TrendWarning) -> float:
    """Return how urgent a test is: the chance that the warning is right, one half where nobody knows it."""
    return 0.5 if warning.content.p is None else warning.content.p
