"""Which failures something foresaw, which were seen only then, which no check saw; and the checks worth writing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from assay.ledger.store import Ledger
from assay.model.entries.trend_entries import TrendWarnedEntry
from assay.model.timestamps import format_time, parse_time
from assay.results.history.outcome_and_pool_queries import OutcomeHistory
from assay.trends.missed.early_signs import (
    CheckSigns,
    EarlySign,
    Foresight,
    SignSearch,
    add_warnings,
    list_meaning_checks,
    search_signs,
)
from assay.trends.missed.service_failures import ServiceFailure, ServiceLosses, read_service_losses
from assay.trends.warnings.warning_history import read_warning_history

if TYPE_CHECKING:
    from assay.trends.shapes.review_answers import (
        EarlySignAnswer,
        MissedFailureAnswer,
        MissingCheckAnswer,
        TrendsMissedAnswer,
    )

FORESIGHTS: Mapping[Foresight, str] = {
    "before": "seen before",
    "then": "seen only then",
    "never": "never seen by a check",
    "cannot tell": "cannot tell",
}
"""`cannot tell`: no check judged the node in the month before."""


@dataclass(frozen=True, slots=True)
class JudgedFailure:
    """A failure, what foresaw it, and the first sign: before it, else since; None for none."""

    failure: ServiceFailure
    foresight: Foresight
    sign: EarlySign | None

    @property
    def lead(self) -> timedelta | None:
        """How long before the failure the first sign was; None where nothing foresaw it."""
        return self.failure.seen_at - self.sign.at if self.sign and self.foresight == "before" else None

    def as_json(self) -> MissedFailureAnswer:
        """Return plain JSON data."""
        one, sign = self.failure, self.sign
        return {
            "node": one.node,
            "subject": one.place,
            "fault": one.fault,
            "seen_at": format_time(one.seen_at),
            "left_at": format_time(one.left_at),
            "node_hours": round(one.node_hours, 1),
            "foresight": self.foresight,
            "lead_days": round(self.lead / timedelta(days=1), 2) if self.lead else None,
            "sign": _sign_as_json(sign) if sign else None,
        }


def _sign_as_json(sign: EarlySign) -> EarlySignAnswer:
    at = format_time(sign.at)
    return {"kind": sign.kind, "name": sign.name, "at": at, "what": sign.what, "excused": sign.excused}


class MissingCheck(NamedTuple):
    """A kind of part that failed unseen: how often, what that cost, and the checks that mean the fault, if any."""

    fault: str
    part: str
    failures: int
    node_hours: float
    checks: tuple[str, ...]

    def as_json(self) -> MissingCheckAnswer:
        """Return plain JSON data."""
        return {
            "fault": self.fault,
            "part": self.part,
            "failures": self.failures,
            "node_hours": self.node_hours,
            "checks": list(self.checks),
        }


@dataclass(frozen=True, slots=True)
class MissedReport:
    """The failures of some days, those that cost most first.

    `others`: absences that no fault of hardware began. `common`: checks that fail too often to be a sign.
    """

    days: int
    judged: tuple[JudgedFailure, ...]
    others: int
    missing_checks: tuple[MissingCheck, ...]
    common: Mapping[str, float]

    def select(self, foresight: Foresight) -> list[JudgedFailure]:
        """Return the failures that were foreseen so."""
        return [one for one in self.judged if one.foresight == foresight]

    @property
    def median_lead(self) -> timedelta | None:
        """The median of the leads; None where nothing was foreseen."""
        leads = [one.lead.total_seconds() for one in self.judged if one.lead is not None]
        return timedelta(seconds=median(leads)) if leads else None

    def as_json(self) -> TrendsMissedAnswer:
        """Return plain JSON data."""
        counts = {name: len(self.select(name)) for name in FORESIGHTS}
        return {
            "days": self.days,
            "counts": counts,
            "node_hours": {name: round(sum_hours(self.select(name)), 1) for name in FORESIGHTS},
            "other_absences": self.others,
            "failures": [one.as_json() for one in self.judged],
            "checks_worth_writing": [one.as_json() for one in self.missing_checks],
            "too_common_to_be_a_sign": dict(self.common),
        }


def sum_hours(some: Iterable[JudgedFailure]) -> float:
    """Return the node-hours that some failures cost."""
    return sum(one.failure.node_hours for one in some)


def find_missed_failures(
    ledger: Ledger, history: OutcomeHistory, in_service: Collection[str], days: int
) -> MissedReport:
    """Return the failures of the last days before the history's moment; nothing later is read."""
    as_of, since = history.now, history.now - timedelta(days=days)
    losses = read_service_losses(ledger, in_service, since, as_of)
    warned = [one for one in ledger.entries(kinds=[TrendWarnedEntry.kind]) if parse_time(one.at) <= as_of]
    warnings = read_warning_history(warned).warnings
    signs = add_warnings(search_signs(history, losses.failures, days), losses.failures, warnings)
    unseen = [one.fault for one in losses.failures]
    return judge_failures(days, losses, signs, list_meaning_checks(history, unseen, days))


def judge_failures(
    days: int, losses: ServiceLosses, signs: CheckSigns, checks: Mapping[str, Sequence[str]]
) -> MissedReport:
    """Return the report. `checks`: those that mean each fault."""
    judged = [_judge(*one) for one in zip(losses.failures, signs.found, strict=True)]
    judged.sort(key=lambda one: (-one.failure.node_hours, one.failure))
    return MissedReport(days, tuple(judged), losses.others, _list_missing(judged, checks), signs.common)


def _judge(failure: ServiceFailure, search: SignSearch) -> JudgedFailure:
    if search.early:
        return JudgedFailure(failure, "before", search.early[0])
    if search.late:
        return JudgedFailure(failure, "then", search.late[0])
    return JudgedFailure(failure, "never" if search.was_read else "cannot tell", None)


def _list_missing(judged: Iterable[JudgedFailure], checks: Mapping[str, Sequence[str]]) -> tuple[MissingCheck, ...]:
    """Return the kinds of parts that failed unseen, those that cost most first."""
    groups: dict[tuple[str, str], list[JudgedFailure]] = defaultdict(list)
    for one in judged:
        if one.foresight == "never":
            groups[one.failure.fault, _name_kind(one.failure.place)].append(one)
    found = [
        MissingCheck(*key, len(some), round(sum_hours(some), 1), tuple(checks.get(key[0], ())))
        for key, some in groups.items()
    ]
    return tuple(sorted(found, key=lambda one: (-one.node_hours, one)))


def _name_kind(place: str) -> str:
    """Return the kind of part at a place: `gpu` for `gpu3`."""
    return place.rstrip("0123456789").rstrip("_-") or "node"
