"""One run, as far as it is wanted: counted, put into groups of what failed alike, and read one outcome at a time.

What failed alike: outcomes whose reasons are the same but for names and numbers are told once.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from assay.model.outcome import CheckVerdict, Outcome, SuiteRun
from assay.model.text_lists import format_count
from assay.results.outcome_filter import NO_FILTER, FilterSql, OutcomeFilter, compile_filter
from assay.results.store.reader import StoredRun
from assay.results.store.schema import VERDICTS, deciding_condition

_NUMBERS = re.compile(r"\b\w*(?:\d\w*|(?<=\d)[.,](?=\d))+")
"""Numbers, and all that has a digit in it: GUIDs, serial numbers, digests, `gpu3`."""


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Outcomes that did not pass, for one reason. `check` is "" where several checks say the same.

    `places` are the nodes, or the racks and fabrics; `example` is the (check, subject, reason) of the first of them.
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


def group_failures(connection: sqlite3.Connection, chosen: FilterSql, most: int = -1) -> list[FailureGroup]:
    """Return the groups of all that did not pass, at most so many; what counts and is widest spread first."""
    connection.create_function("shape", 2, normalise_reason, deterministic=True)
    where, values = chosen.where("o", "o.verdict != 0")
    return [_group(row) for row in connection.execute(_ALIKE.format(where=where), [*values, most])]


def normalise_reason(reason: str | None, node: str) -> str:
    """Return a reason without what differs from node to node: the node's name, and words with digits."""
    return _normalise_numbers((reason or "").replace(node, "0") if node else reason or "")


@lru_cache(4096)
def _normalise_numbers(reason: str) -> str:
    return _NUMBERS.sub("0", reason)


_FAIL = VERDICTS.index("fail")
_ALIKE = f"""
SELECT o.verdict, CASE o.verdict WHEN {_FAIL} THEN c.name ELSE '' END AS what, coalesce(k.text, '') AS known,
  o.observed IS NOT NULL AS observed, count(*) AS outcomes, count(DISTINCT c.name) AS checks,
  group_concat(DISTINCT coalesce(nullif(s.node, ''), s.name)) AS places, count(DISTINCT o.subject) AS subjects,
  c.name, min(s.name), coalesce(r.text, ''), o.verdict != {VERDICTS.index("skip")} AS bad
FROM outcome o JOIN subject s ON s.id = o.subject JOIN check_ c ON c.id = o.check_
LEFT JOIN text r ON r.id = o.reason LEFT JOIN text k ON k.id = o.known{{where}}
GROUP BY o.verdict, what, known, observed, shape(r.text, s.node)
ORDER BY bad DESC, known != '' OR observed, o.verdict, subjects DESC, outcomes DESC, min(s.name), c.name LIMIT ?
"""


def _group(row: tuple[Any, ...]) -> FailureGroup:
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


VERDICT_PHRASES = {"pass": "passed", "fail": "failed", "error": "could not be judged", "skip": "skipped"}
_UNFINISHED = "it has not ended; if it was killed, `assay validate --resume {}` goes on with it"
BAD_CODES = tuple(VERDICTS.index(verdict) for verdict in ("fail", "error"))
_NOT_EXCUSED = deciding_condition("o")
_JOINED = "FROM outcome o JOIN subject s ON s.id = o.subject"


@dataclass(frozen=True)
class PlaceCounts:
    """How the outcomes of one pool, fabric or node came out: how many of each verdict, and how many of them count."""

    scope: str
    name: str
    counts: Counter[str]
    deciding: Counter[str]


class RunSummary:
    """What is `wanted` of a stored run; `root` is the fleet repository, where the suites are.

    `remark` is why the run is not to be relied on, whatever it says; "" for no reason. Of one that has not ended that
    is the reason.
    """

    def __init__(
        self, stored: StoredRun, wanted: OutcomeFilter = NO_FILTER, root: Path = Path(), remark: str = ""
    ) -> None:
        self.stored, self.wanted, self.root = stored, wanted, root
        self.remark = remark if "ended" in stored.about else _UNFINISHED.format(stored.run.id)
        self._chosen = compile_filter(stored.connection, wanted)

    @property
    def run(self) -> SuiteRun:
        """What was asked, of which specs, by whom."""
        return self.stored.run

    @property
    def ended(self) -> bool:
        """Whether the run came to its end; else these are the outcomes so far."""
        return "ended" in self.stored.about

    @property
    def well(self) -> bool:
        """Whether the run can be relied on, judged anything, and nothing that is wanted counts against the fleet."""
        judged = self.counts.total() > 0 or self.wanted != NO_FILTER
        return judged and not self.remark and not self.deciding.total()

    @cached_property
    def counts(self) -> Counter[str]:
        """How many outcomes of each verdict there are."""
        return self._counted()

    @cached_property
    def deciding(self) -> Counter[str]:
        """How many failures and errors count, as nothing excuses them."""
        return self._counted(_NOT_EXCUSED, f"o.verdict IN {BAD_CODES}")

    @cached_property
    def nodes(self) -> int:
        """How many nodes were judged."""
        return self._number("count(DISTINCT nullif(s.node, ''))")

    @cached_property
    def nodes_failing(self) -> tuple[str, ...]:
        """The nodes (of racks and fabrics their own names) on which something counts."""
        where, values = self._chosen.where("o", _NOT_EXCUSED, f"o.verdict IN {BAD_CODES}")
        query = f"SELECT DISTINCT coalesce(nullif(s.node, ''), s.name) {_JOINED}{where} ORDER BY 1"
        return tuple(row[0] for row in self.stored.connection.execute(query, values))

    def groups(self, most: int = -1) -> list[FailureGroup]:
        """Return what did not pass, grouped by what it says; what counts and is widest spread first."""
        return group_failures(self.stored.connection, self._chosen, most)

    def outcomes(self) -> Iterator[Outcome]:
        """Yield every wanted outcome, by subject and check."""
        return self.stored.outcomes(verdicts=self.wanted.verdicts, **self._names)

    def problems(self) -> Iterator[Outcome]:
        """Yield every wanted outcome that is no pass, by subject and check."""
        verdicts = [one for one in self.wanted.verdicts or VERDICTS if one != "pass"]
        return self.stored.outcomes(verdicts=verdicts, **self._names) if verdicts else iter(())

    def places(self) -> Iterator[PlaceCounts]:
        """Yield how each node (or rack, or fabric) came out, those of one pool together."""
        where, values = self._chosen.where()
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
        total = sum(self.counts.values())
        parts = [f"{self.counts[verdict]} {word}" for verdict, word in VERDICT_PHRASES.items() if self.counts[verdict]]
        excused = self.counts["fail"] + self.counts["error"] - sum(self.deciding.values())
        known = f" ({excused} of them known or on trial)" if excused else ""
        return f"{format_count(total, 'outcome')} on {format_count(self.nodes, 'node')}: {', '.join(parts) or 'none'}{known}"

    @cached_property
    def _names(self) -> dict[str, list[str]]:
        """The names of wanted checks and subjects, as the store asks for them."""
        connection, found = self.stored.connection, {}
        if not self.wanted.all_subjects:
            rows = connection.execute("SELECT name, node FROM subject")
            found["subjects"] = [name for name, node in rows if self.wanted.matches_subject(name, node)] or [""]
        if self._chosen.checks is not None:
            query = "SELECT name FROM check_ WHERE id IN (SELECT value FROM json_each(?))"
            found["checks"] = [name for (name,) in connection.execute(query, [self._chosen.checks])] or [""]
        return found

    def _counted(self, *more: str) -> Counter[str]:
        where, values = self._chosen.where("o", *more)
        rows = self.stored.connection.execute(f"SELECT verdict, count(*) FROM outcome o{where} GROUP BY 1", values)
        return Counter({VERDICTS[code]: count for code, count in rows})

    def _number(self, what: str) -> int:
        where, values = self._chosen.where()
        number: int = self.stored.connection.execute(f"SELECT {what} {_JOINED}{where}", values).fetchone()[0]
        return number
