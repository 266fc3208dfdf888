"""What the metrics of one scrape are made of: the fleet and its node states, and what is counted of the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from assay.act.loop.context import ControllerContext
from assay.decide.rollouts.rollout_history import Rollout
from assay.decide.state.node_state import NodeState
from assay.tell.metrics.ledger_counts import CheckCounts, LedgerCounts


@dataclass(frozen=True, slots=True)
class MetricSource:
    """The fleet at one moment. `states` holds the enrolled nodes of the inventory, by name.

    `pool_names` are the pools of the inventory's nodes, by node. `service_states` are those that customers use.
    `rollout` is the active one.
    """

    context: ControllerContext
    now: datetime
    states: Mapping[str, NodeState]
    pool_names: Mapping[str, str]
    service_states: frozenset[str]
    counts: LedgerCounts
    checks: CheckCounts
    rollout: Rollout | None = None

    @property
    def pools(self) -> list[str]:
        """The pools of the inventory."""
        return list(dict.fromkeys(self.pool_names.values()))

    @property
    def now_s(self) -> float:
        """The fleet's time in seconds since 1970."""
        return self.now.timestamp()
