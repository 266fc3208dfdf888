"""Summarises the filtered outcomes of one run: counts by verdict and place, and groups of similar failures.

A group has one cause and is reported once: outcomes of one check with one reason, whatever node, part or number the
reason names. The lines of `assay results`, those of `--compare`, and the cards of the report share this rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

from assay.ledger.runs.reader import StoredRun
from assay.ledger.runs.schema import deciding_condition
from assay.model.facts import frozen
from assay.model.log_message import find_message_form
from assay.model.outcome import VERDICTS, CheckVerdict, Outcome, SuiteRun
from assay.model.text.lists import format_count
from assay.validate.results.outcome_filter import NO_FILTER, OutcomeFilter, compile_filter
from assay.validate.results.stale import find_stale_evidence

UNKNOWN_VERDICTS = ("error", "skip")
"""Verdicts for which one cause, such as a dead collector, often affects many checks of a node."""
VERDICT_PHRASES: dict[CheckVerdict, str] = {
    "pass": "passed",
    "fail": "failed",
    "error": "could not be judged",
    "skip": "skipped",
}
BAD_CODES = tuple(VERDICTS.index(verdict) for verdict in ("fail", "error"))


class FailureCause(NamedTuple):
    """The check, "" where the cause may affect any check, the verdict, and the reason without names and numbers."""

    check: str
    verdict: CheckVerdict | str
    reason: str


def find_cause(check: str, verdict: CheckVerdict | str, reason: str, node: str, was: str = "") -> FailureCause:
    """Return the cause of an outcome on a node, which was judged `was` before ("" for not)."""
    of_any_check = verdict in UNKNOWN_VERDICTS or (verdict == "pass" and was in UNKNOWN_VERDICTS)
    return FailureCause("" if of_any_check else check, verdict, normalise_reason(reason, node))


def normalise_reason(reason: str | None, node: str) -> str:
    """Return the form of a reason, without the node's name: what differs between nodes, addresses and numbers, is #."""
    return find_message_form((reason or "").replace(node, "0") if node else reason or "")


@frozen
class FailureGroup:
    """Outcomes that did not pass, with similar reasons. `check` is "" where several checks have the same reason.

    `places` are the nodes, racks or fabrics; `example` is (check, subject, reason) of one outcome.
    """

    verdict: CheckVerdict
    check: str
    known: str
    observed: bool
    decides: bool
    outcomes: int
    checks: int
    places: tuple[str, ...]
    example: tuple[str, str, str]


_FAIL = VERDICTS.index("fail")
_FAILURE_GROUPS = f"""
SELECT o.verdict, CASE o.verdict WHEN {_FAIL} THEN c.name ELSE '' END AS what, coalesce(k.text, '') AS known,
  o.observed IS NOT NULL AS observed, count(*) AS outcomes, count(DISTINCT c.name) AS checks,
  group_concat(DISTINCT coalesce(nullif(s.node, ''), s.name)) AS places, count(DISTINCT o.subject) AS subjects,
  c.name, min(s.name), coalesce(r.text, ''), o.verdict != {VERDICTS.index("skip")} AS bad
FROM outcome o JOIN subject s ON s.id = o.subject JOIN check_ c ON c.id = o.check_
LEFT JOIN text r ON r.id = o.reason LEFT JOIN text k ON k.id = o.known{{where}}
GROUP BY o.verdict, what, known, observed, normalised(r.text, s.node)
ORDER BY bad DESC, known != '' OR observed, o.verdict, subjects DESC, outcomes DESC, min(s.name), c.name LIMIT ?
"""


def _make_group(row: tuple[Any, ...]) -> FailureGroup:
    verdict, check, known, observed, outcomes, checks, places, _, name, subject, reason, bad = row
    return FailureGroup(
        verdict=VERDICTS[verdict],
        check=check or (name if checks == 1 else ""),
        known=known,
        observed=bool(observed),
        decides=bool(bad) and not known and not observed,
        outcomes=outcomes,
        checks=checks,
        places=tuple(places.split(",")),
        example=(name, subject, reason),
    )


_UNFINISHED = "it has not ended; if it was killed, resume it: assay validate --resume {}"
_NOT_EXCUSED = deciding_condition("o")
_JOINED = "FROM outcome o JOIN subject s ON s.id = o.subject"


@dataclass(frozen=True)
class PlaceCounts:
    """The outcomes of one node, rack or fabric: their number by verdict, and the number of those that count."""

    scope: str
    name: str
    counts: Counter[str]
    deciding: Counter[str]


class RunSummary:
    """The outcomes of a stored run that a filter selects.

    `remark` says why the run cannot be relied on, "" where it can: a run that has not ended cannot, nor one whose
    evidence is too old at `now` (None: its age does not matter), nor one in which everything was skipped.
    """

    def __init__(
        self,
        stored: StoredRun,
        outcome_filter: OutcomeFilter = NO_FILTER,
        now: datetime | None = None,
    ) -> None:
        self.stored = stored
        self.outcome_filter = outcome_filter
        self._filter_sql = compile_filter(stored.connection, outcome_filter)
        self.remark = self._find_objection(now) if stored.has_ended else _UNFINISHED.format(stored.run.id)

    @property
    def run(self) -> SuiteRun:
        """The run's identity."""
        return self.stored.run

    @property
    def ended(self) -> bool:
        """Whether the run has ended; if not, these are the outcomes so far."""
        return self.stored.has_ended

    @property
    def passed(self) -> bool:
        """Whether the run can be relied on, has outcomes, and none that is selected counts against the fleet."""
        is_judged = self.counts.total() > 0 or self.outcome_filter != NO_FILTER
        return is_judged and not self.remark and not self.deciding.total()

    @cached_property
    def counts(self) -> Counter[str]:
        """The number of outcomes of each verdict."""
        return self._count_by_verdict()

    @cached_property
    def deciding(self) -> Counter[str]:
        """The number of failures and of errors that nothing excuses."""
        return self._count_by_verdict(_NOT_EXCUSED, f"o.verdict IN {BAD_CODES}")

    @cached_property
    def nodes(self) -> int:
        """The number of judged nodes."""
        where, values = self._filter_sql.where()
        query = f"SELECT count(DISTINCT nullif(s.node, '')) {_JOINED}{where}"
        count: int = self.stored.connection.execute(query, values).fetchone()[0]
        return count

    def groups(self, limit: int = -1) -> list[FailureGroup]:
        """Return the groups of similar failures, at most `limit`: those that count first, the widest first."""
        self.stored.connection.create_function("normalised", 2, normalise_reason, deterministic=True)
        where, values = self._filter_sql.where("o", "o.verdict != 0")
        return [
            _make_group(row)
            for row in self.stored.connection.execute(_FAILURE_GROUPS.format(where=where), [*values, limit])
        ]

    def outcomes(self) -> Iterator[Outcome]:
        """Yield every selected outcome, by subject and check."""
        return self.stored.outcomes(verdicts=self.outcome_filter.verdicts, **self._names)

    def problems(self) -> Iterator[Outcome]:
        """Yield every selected outcome that is no pass, by subject and check."""
        verdicts = [verdict for verdict in self.outcome_filter.verdicts or VERDICTS if verdict != "pass"]
        return self.stored.outcomes(verdicts=verdicts, **self._names) if verdicts else iter(())

    def places(self) -> Iterator[PlaceCounts]:
        """Yield the counts of each node, rack and fabric, by pool."""
        where, values = self._filter_sql.where()
        scope, name = "substr(s.name, 1, instr(s.name, '/') - 1)", "coalesce(nullif(s.node, ''), s.name)"
        query = f"""SELECT {scope}, {name}, o.verdict, count(*), sum(o.verdict IN {BAD_CODES} AND {_NOT_EXCUSED})
            {_JOINED}{where} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"""
        place: PlaceCounts | None = None
        for scope, name, verdict, count, deciding in self.stored.connection.execute(query, values):
            if place is None or (place.scope, place.name) != (scope, name):
                if place is not None:
                    yield place
                place = PlaceCounts(scope, name, Counter(), Counter())
            place.counts[VERDICTS[verdict]] += count
            place.deciding[VERDICTS[verdict]] += deciding
        if place is not None:
            yield place

    def headline(self) -> str:
        """Return the counts as a sentence."""
        total, nodes = format_count(self.counts.total(), "outcome"), format_count(self.nodes, "node")
        parts = [f"{self.counts[verdict]} {word}" for verdict, word in VERDICT_PHRASES.items() if self.counts[verdict]]
        excused = self.counts["fail"] + self.counts["error"] - self.deciding.total()
        note = f" ({excused} of them known or on trial)" if excused else ""
        if self.outcome_filter == NO_FILTER and (left_out := self.stored.count_left_out()):
            note += f"; {left_out} not due, or left out by the command line"
        return f"{total} on {nodes}: {', '.join(parts) or 'none'}{note}"

    def _find_objection(self, now: datetime | None) -> str:
        """Return why ended outcomes cannot be relied on, "" for no reason."""
        if self.counts["skip"] and self.counts.total() == self.counts["skip"] and not self.outcome_filter.verdicts:
            return "every outcome was skipped, so nothing was judged"
        stale = find_stale_evidence(self.stored, now, *self._filter_sql.where()) if now else None
        return stale.description if stale else ""

    @cached_property
    def _names(self) -> dict[str, Any]:
        """The names of the selected checks and subjects, as arguments of `StoredRun.outcomes`."""
        connection, names = self.stored.connection, dict[str, Any]()
        if not self.outcome_filter.all_subjects:
            rows = connection.execute("SELECT name, node FROM subject")
            names["subjects"] = [name for name, node in rows if self.outcome_filter.matches_subject(name, node)] or [""]
        if self._filter_sql.checks is not None:
            query = "SELECT name FROM check_ WHERE id IN (SELECT value FROM json_each(?))"
            names["checks"] = [name for (name,) in connection.execute(query, [self._filter_sql.checks])] or [""]
        return names

    def _count_by_verdict(self, *conditions: str) -> Counter[str]:
        where, values = self._filter_sql.where("o", *conditions)
        rows = self.stored.connection.execute(f"SELECT verdict, count(*) FROM outcome o{where} GROUP BY 1", values)
        return Counter({VERDICTS[code]: count for code, count in rows})
