"""One run, as far as it is wanted: counted, put into groups of what failed alike, and read one outcome at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from assay.harness.results.alike import Group, alike
from assay.harness.results.wanted import EVERYTHING, Wanted, chosen
from assay.harness.store.read import Stored
from assay.harness.store.tables import VERDICTS
from assay.model.outcome import Outcome, Run
from assay.model.spans import counted

WORDS = {"pass": "passed", "fail": "failed", "error": "could not be judged", "skip": "skipped"}
_UNFINISHED = "it has not ended; if it was killed, `assay validate --resume {}` goes on with it"
BAD = tuple(VERDICTS.index(verdict) for verdict in ("fail", "error"))
_FREE = "o.known IS NULL AND o.observed IS NULL"
_JOINED = "FROM outcome o JOIN subject s ON s.id = o.subject"


@dataclass(frozen=True)
class Place:
    """How the outcomes of one pool, fabric or node came out: how many of each verdict, and how many of them count."""

    scope: str
    name: str
    counts: Counter[str]
    deciding: Counter[str]


class Result:
    """What is `wanted` of a stored run; `root` is the fleet repository, where the suites are.

    `remark` is why the run is not to be relied on, whatever it says; "" for no reason. Of one that has not ended that
    is the reason.
    """

    def __init__(self, stored: Stored, wanted: Wanted = EVERYTHING, root: Path = Path(), remark: str = "") -> None:
        self.stored, self.wanted, self.root = stored, wanted, root
        self.remark = remark if "ended" in stored.about else _UNFINISHED.format(stored.run.id)
        self._chosen = chosen(stored.connection, wanted)

    @property
    def run(self) -> Run:
        """What was asked, of which specs, by whom."""
        return self.stored.run

    @property
    def ended(self) -> bool:
        """Whether the run came to its end; else these are the outcomes so far."""
        return "ended" in self.stored.about

    @property
    def well(self) -> bool:
        """Whether the run can be relied on, judged anything, and nothing that is wanted counts against the fleet."""
        judged = self.counts.total() > 0 or self.wanted != EVERYTHING
        return judged and not self.remark and not self.deciding.total()

    @cached_property
    def counts(self) -> Counter[str]:
        """How many outcomes of each verdict there are."""
        return self._counted()

    @cached_property
    def deciding(self) -> Counter[str]:
        """How many failures and errors count, as nothing excuses them."""
        return self._counted(_FREE, f"o.verdict IN {BAD}")

    @cached_property
    def nodes(self) -> int:
        """How many nodes were judged."""
        return self._number("count(DISTINCT nullif(s.node, ''))")

    @cached_property
    def nodes_failing(self) -> tuple[str, ...]:
        """The nodes (of racks and fabrics their own names) on which something counts."""
        where, values = self._chosen.where("o", _FREE, f"o.verdict IN {BAD}")
        query = f"SELECT DISTINCT coalesce(nullif(s.node, ''), s.name) {_JOINED}{where} ORDER BY 1"
        return tuple(row[0] for row in self.stored.connection.execute(query, values))

    def groups(self, most: int = -1) -> list[Group]:
        """Return what did not pass, grouped by what it says; what counts and is widest spread first."""
        return alike(self.stored.connection, self._chosen, most)

    def outcomes(self) -> Iterator[Outcome]:
        """Yield every wanted outcome, by subject and check."""
        return self.stored.outcomes(verdicts=self.wanted.verdicts, **self._names)

    def wrong(self) -> Iterator[Outcome]:
        """Yield every wanted outcome that is no pass, by subject and check."""
        verdicts = [one for one in self.wanted.verdicts or VERDICTS if one != "pass"]
        return self.stored.outcomes(verdicts=verdicts, **self._names) if verdicts else iter(())

    def places(self) -> Iterator[Place]:
        """Yield how each node (or rack, or fabric) came out, those of one pool together."""
        where, values = self._chosen.where()
        scope, name = "substr(s.name, 1, instr(s.name, '/') - 1)", "coalesce(nullif(s.node, ''), s.name)"
        query = f"""SELECT {scope}, {name}, o.verdict, count(*), sum(o.verdict IN {BAD} AND {_FREE})
            {_JOINED}{where} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"""
        place: Place | None = None
        for scope, name, verdict, count, deciding in self.stored.connection.execute(query, values):
            if place is None or (place.scope, place.name) != (scope, name):
                if place is not None:
                    yield place
                place = Place(scope, name, Counter(), Counter())
            place.counts[VERDICTS[verdict]] += count
            place.deciding[VERDICTS[verdict]] += deciding
        if place is not None:
            yield place

    def headline(self) -> str:
        """Return the counts as a sentence."""
        total = sum(self.counts.values())
        parts = [f"{self.counts[verdict]} {word}" for verdict, word in WORDS.items() if self.counts[verdict]]
        excused = self.counts["fail"] + self.counts["error"] - sum(self.deciding.values())
        known = f" ({excused} of them known or on trial)" if excused else ""
        return f"{counted(total, 'outcome')} on {counted(self.nodes, 'node')}: {', '.join(parts) or 'none'}{known}"

    @cached_property
    def _names(self) -> dict[str, list[str]]:
        """The names of wanted checks and subjects, as the store asks for them."""
        connection, found = self.stored.connection, {}
        if not self.wanted.all_subjects:
            rows = connection.execute("SELECT name, node FROM subject")
            found["subjects"] = [name for name, node in rows if self.wanted.subject(name, node)] or [""]
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
