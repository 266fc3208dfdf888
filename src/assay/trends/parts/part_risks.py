"""Which nodes are on probation, and which positions fail more often: for `assay trends` and the order of idle tests."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from assay.ledger.store import Ledger
from assay.lifecycle.node_state import NodeState
from assay.model.load.burn_in_spec import BurnIn
from assay.model.specs.trend_rules import ReturnDetector, TrendRules
from assay.model.timestamps import parse_time
from assay.trends.parts.acceptance_ranks import EARLY_DAYS, judge_acceptances
from assay.trends.parts.ledger_stays import (
    list_outages,
    list_returns,
    read_acceptances,
    read_return_states,
)
from assay.trends.parts.part_stays import FailureTimes, days_of
from assay.trends.parts.position_hazard import PositionHazard, PositionHazards, rank_positions
from assay.trends.parts.probation import Probation, list_probation
from assay.trends.parts.service_returns import (
    FollowedReturn,
    ReturnHazard,
    follow_returns,
    measure_return_hazard,
    merge_outages,
)
from assay.trends.parts.table_stays import read_node_spans, read_table_failures, read_table_returns, read_table_stays

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from assay.trends.shapes.warning_answers import PartRisksAnswer


class ReturnHistory(NamedTuple):
    """All returns to service, how long each held, and the hazard that follows. `today`: days since 1970."""

    followed: list[FollowedReturn]
    hazard: ReturnHazard
    today: float

    def list_probation(self, rules: ReturnDetector) -> list[Probation]:
        """Return the nodes on probation, in the order in which to test them."""
        return list_probation(self.followed, self.today, rules, self.hazard)


@dataclass(frozen=True, slots=True)
class PartRisks:
    """Nodes on probation, in the order of their tests, and the positions that fail more often."""

    probation: list[Probation]
    positions: list[PositionHazard]

    def as_json(self) -> PartRisksAnswer:
        """Return plain JSON data, as the edge has it."""
        return {
            "probation": [one.as_json() for one in self.probation],
            "positions": [one.as_json() for one in self.positions],
        }


def find_table_risks(database: DuckDBPyConnection, as_of: datetime, rules: TrendRules) -> PartRisks:
    """Return the risks by the tables `holders` and `failures`."""
    return join_risks(read_table_history(database, as_of), rank_table_positions(database, as_of, rules), rules)


def join_risks(history: ReturnHistory, positions: PositionHazards, rules: TrendRules) -> PartRisks:
    """Return the risks. `history`: of its own fleet, assay knows it from the ledger, else from the tables."""
    return PartRisks(history.list_probation(rules.returns), positions.list_high())


def rank_table_positions(database: DuckDBPyConnection, as_of: datetime, rules: TrendRules) -> PositionHazards:
    """Return the hazards of positions by the tables `holders` and `failures`."""
    failures = FailureTimes.collect(read_table_failures(database))
    return rank_positions(read_table_stays(database), failures, days_of(as_of), rules.positions)


def list_odd_nodes(
    database: DuckDBPyConnection, ledger: Ledger, specs: Mapping[str, BurnIn], as_of: datetime
) -> list[str]:
    """Return the nodes with parts whose burn-in within 90 days was odd in their delivery, the oddest first."""
    accepted = list(read_acceptances(ledger, specs, as_of, as_of - timedelta(days=EARLY_DAYS)))
    if not accepted:
        return []
    failures = FailureTimes.collect(read_table_failures(database))
    report = judge_acceptances(accepted, read_table_stays(database), failures, days_of(as_of))
    return list(dict.fromkeys(part.acceptance.node for part in report.tested_first))


def rank_risky_nodes(database: DuckDBPyConnection, hazards: PositionHazards, as_of: datetime) -> dict[str, float]:
    """Return for each node with a high position how many times as often as usual parts fail there, by the tables."""
    today = days_of(as_of)
    return hazards.rank_nodes(stay for stay in read_table_stays(database) if stay.until > today)


def read_table_history(database: DuckDBPyConnection, as_of: datetime) -> ReturnHistory:
    """Return the returns by the tables `holders` and `failures`."""
    failures, today = read_table_failures(database), days_of(as_of)
    returns = read_table_returns(database, failures)
    outages = merge_outages(failures, returns)
    spans = read_node_spans(database, today)
    gone = {node: until for node, (_, until) in spans.items()}
    return _make_history(follow_returns(returns, outages, today, gone), outages, list(spans.values()), today)


def read_ledger_history(ledger: Ledger, in_service: Collection[str], as_of: datetime) -> ReturnHistory:
    """Return the returns by the ledger: into states of `in_service`."""
    return make_state_history(read_return_states(ledger, as_of), in_service, as_of)


def make_state_history(states: Collection[NodeState], in_service: Collection[str], as_of: datetime) -> ReturnHistory:
    """Return the returns by the states of nodes at a moment; it reads nothing else, so that each slot can ask."""
    today = days_of(as_of)
    returns = list_returns(states, in_service)
    outages = merge_outages(list_outages(states, in_service), returns)
    followed = follow_returns(returns, outages, today)
    return _make_history(followed, outages, [(days_of(parse_time(one.enrolled_at)), today) for one in states], today)


def _make_history(
    followed: list[FollowedReturn], outages: dict[str, list[float]], spans: list[tuple[float, float]], today: float
) -> ReturnHistory:
    """Return the history. What is usual counts from the first failure on, as earlier ones may not be recorded."""
    first = min((times[0] for times in outages.values()), default=today)
    node_days = sum(max(0.0, until - max(since, first)) for since, until in spans)
    hazard = measure_return_hazard(followed, sum(map(len, outages.values())), node_days)
    return ReturnHistory(followed, hazard, today)
