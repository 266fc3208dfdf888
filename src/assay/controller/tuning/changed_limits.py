"""What changed limits would have foreseen and cost in the last days, and which open warnings they make obsolete."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from assay.controller.tuning.declared_limits import DeclaredLimits
from assay.lifecycle.node_state import NodeState
from assay.model.backtest_report import LimitTrial, ObsoleteWarning
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.ledger_entry import LedgerEntry
from assay.model.specs.node.node_spec import MetricLimit
from assay.plan.fleet_revision import FleetRevision
from assay.results.history.damaged_files import read_without_damaged
from assay.trends.limits.known_limits import KnownLimit, list_known_limits
from assay.trends.limits.limit_alarms import JudgedBound, LimitKey, Records, count_alarms, declare_bounds
from assay.trends.limits.limit_tables import HORIZON_DAYS, LimitQuestion, list_measurement_files, open_limit_tables
from assay.trends.missed.service_failures import list_service_losses
from assay.trends.warnings.warning_history import TrendWarning, read_warning_history

TRIED_DAYS = 90
OLD, NEW = 0, 1
Change = tuple[MetricLimit, MetricLimit | None]
"""A limit, and what becomes of it; None: it is removed."""


@dataclass(frozen=True, slots=True)
class _TriedLimit:
    """A changed limit of a measurement, with the specs that change it alike."""

    id: int
    name: str
    known: KnownLimit
    change: Change
    specs: tuple[str, ...]

    @property
    def bounds(self) -> list[JudgedBound]:
        """The values to judge. One in another unit cannot be compared with what was measured."""
        values = [one.value if one and one.unit == self.known.unit else None for one in self.change]
        return [
            JudgedBound(self.id, self.known.side, revision, value)
            for revision, value in enumerate(values)
            if value is not None
        ]

    @property
    def keys(self) -> list[LimitKey]:
        """The measurements that it bounds."""
        return [LimitKey(self.id, self.known.check, self.known.name, self.known.unit, spec) for spec in self.specs]


def try_changed_limits(
    before: FleetRevision,
    after: FleetRevision,
    home: Path,
    entries: Sequence[LedgerEntry],
    node_states: Mapping[str, NodeState],
    now: datetime,
    skipped: Callable[[AssayError], None],
) -> tuple[LimitTrial, ...]:
    """Return the trials of all limits that the merge changes; none without a history in `home`.

    `skipped` receives the error of each damaged file, which is left out.
    """
    changes = _list_changes(before.fleet, after.fleet)
    names = {name for _, name in changes}
    checks = frozenset(check for check, inputs in before.reads.items() if inputs.limits & names)
    if not checks:
        return ()
    in_service = before.policy.states_in_service
    losses = list_service_losses(node_states.values(), in_service, now - timedelta(days=TRIED_DAYS), now)
    specs = {node.name: node.spec for node in before.fleet.nodes.values()}
    question = LimitQuestion(home, now, TRIED_DAYS, specs, losses, checks)
    declared = DeclaredLimits(before.fleet, before.reads)
    tried, records = read_without_damaged(lambda left_out: _try(question, changes, declared, left_out), skipped)
    warnings = read_warning_history(entries).open
    return tuple(_make_trial(one, records, warnings, specs) for one in tried)


def _try(
    question: LimitQuestion,
    changes: Mapping[tuple[str, str], Change],
    declared: DeclaredLimits,
    left_out: Collection[str],
) -> tuple[list[_TriedLimit], Records]:
    """Return the changed limits that were measured, and what their values show."""
    if not list_measurement_files(question, left_out):
        return [], {}
    with open_limit_tables(question, left_out) as database:
        tried = list(_list_tried(list_known_limits(database), changes, declared))
        keys, bounds = [key for one in tried for key in one.keys], [bound for one in tried for bound in one.bounds]
        declare_bounds(database, keys, bounds)
        return tried, count_alarms(database, question.today)


def _list_changes(before: Fleet, after: Fleet) -> dict[tuple[str, str], Change]:
    """Return the limits that change or go, by spec and name. A new limit was never measured against."""
    return {
        (spec, name): (limit, new)
        for spec, old in before.node_specs.items()
        if spec in after.node_specs
        for name, limit in old.limits.items()
        if (new := after.node_specs[spec].limits.get(name)) is None
        or (new.value, new.unit) != (limit.value, limit.unit)
    }


def _list_tried(
    known: Iterable[KnownLimit], changes: Mapping[tuple[str, str], Change], declared: DeclaredLimits
) -> Iterator[_TriedLimit]:
    groups: dict[tuple[KnownLimit, str, float, float | None], list[tuple[str, Change]]] = defaultdict(list)
    for limit in known:
        for spec, name in declared.list_names(limit):
            if change := changes.get((spec, name)):
                groups[limit, name, change[0].value, change[1].value if change[1] else None].append((spec, change))
    for number, ((limit, name, *_), some) in enumerate(groups.items()):
        yield _TriedLimit(number, name, limit, some[0][1], tuple(spec for spec, _ in some))


def _make_trial(
    one: _TriedLimit, records: Records, warnings: Iterable[TrendWarning], specs: Mapping[str, str]
) -> LimitTrial:
    old, new = one.change
    return LimitTrial(
        one.name,
        one.specs,
        one.known.check,
        one.known.name,
        one.known.unit,
        one.known.side,
        old.value,
        new.value if new else None,
        records.get((one.id, one.known.side, OLD)),
        records.get((one.id, one.known.side, NEW)),
        tuple(_find_obsolete(one, warnings, specs)),
    )


def _find_obsolete(
    one: _TriedLimit, warnings: Iterable[TrendWarning], specs: Mapping[str, str]
) -> Iterator[ObsoleteWarning]:
    """Yield the warnings of this limit that say nothing more once it has changed."""
    for warning in warnings:
        content = warning.content
        is_named = content.name.partition(" of ")[0] == one.known.name and content.unit == one.known.unit
        if is_named and content.limit == one.change[0].value and specs.get(warning.node) in one.specs:
            reason = _explain(one, warning)
            if reason:
                yield ObsoleteWarning(content.warning, warning.node, content.place, content.name, reason)


def _explain(one: _TriedLimit, warning: TrendWarning) -> str:
    """Return why a warning is obsolete, "" if it is not."""
    content, new = warning.content, one.change[1]
    if new is None:
        return "nothing limits it any more"
    room = new.value - content.now
    if (room < 0) if one.known.side == "at_most" else (room > 0):
        return f"at {content.now:.4g} it is beyond {new.value:g}: the check fails"
    if content.limit is None or not content.rate_days:
        return ""
    days = room / ((content.limit - content.now) / content.rate_days)
    far = f"at its rate it reaches {new.value:g} in {days:.0f} d, not {content.limit:g} in {content.rate_days:.0f} d"
    return far if days > HORIZON_DAYS >= content.rate_days else ""
