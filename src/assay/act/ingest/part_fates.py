"""What became of the parts that warnings are about: failures, holders and absences from the ledger, measured days."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from assay.act.loop.context import ControllerContext
from assay.act.loop.node_state_and_outcome_cache import read_node_states
from assay.decide.state.part_holders import HOLDER_ENTRY_KINDS, PartHolder, list_part_holders
from assay.decide.state.service_absences import list_absences
from assay.decide.trends.fleet_tables import list_failures
from assay.decide.trends.warning_closing import PartFates, ServiceAbsenceSpan
from assay.decide.trends.warning_history import TrendWarning
from assay.ledger.store import Ledger
from assay.model.specs.trend_rules import TrendRules

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_MEASURED = """
SELECT w.id, count(DISTINCT time_s // 86400)
FROM measurements m JOIN (SELECT unnest($warnings) AS w) ON m.node = w.node AND m.subject = w.place AND m.name = w.name
  AND time_s >= w.from_s AND time_s < w.until_s
WHERE isfinite(value) GROUP BY ALL
"""


def read_part_fates(
    context: ControllerContext,
    database: DuckDBPyConnection,
    rules: TrendRules,
    warnings: Sequence[TrendWarning],
    now: datetime,
) -> PartFates:
    """Return what became of the parts of open warnings, and all failures. `database` has the fleet's measurements."""
    failures = list_failures(context.ledger, now)
    nodes = {one.node for one in warnings} | {one.node for one in failures if warnings}
    in_service = context.policy.states_in_service
    absences = {
        name: [ServiceAbsenceSpan(one.began_at, one.ended_at) for one in list_absences(state, in_service)]
        for name, state in read_node_states(context.ledger).items()
        if name in nodes
    }
    measured = _count_measured_days(database, rules, warnings, now)
    return PartFates(failures, _read_holders(context.ledger, nodes), absences, measured)


def _read_holders(ledger: Ledger, nodes: Collection[str]) -> dict[str, list[PartHolder]]:
    known = ledger.entries_by_node(sorted(nodes), HOLDER_ENTRY_KINDS) if nodes else {}
    return {node: list_part_holders(node, entries) for node, entries in known.items()}


def _count_measured_days(
    database: DuckDBPyConnection, rules: TrendRules, warnings: Sequence[TrendWarning], now: datetime
) -> dict[str, int]:
    """Return on how many days of its horizon each warning's part was measured, for those whose horizon is over."""
    asked = []
    for one in warnings:
        rule = rules.rules.get(one.content.rule)
        end = one.at + timedelta(days=rule.horizon_days) if rule else now
        if end <= now:
            times = {"from_s": one.at.timestamp(), "until_s": end.timestamp()}
            part = {"node": one.node, "place": one.content.place, "name": one.content.name}
            asked.append({"id": one.content.warning, **part, **times})
    return dict(database.execute(_MEASURED, {"warnings": asked}).fetchall()) if asked else {}
