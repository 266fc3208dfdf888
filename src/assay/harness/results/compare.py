"""What became of a run's outcomes in a later run: which fail anew, which are fixed, what is not known any more.

The rule is `kind`; it is laid over two runs of any size in SQL, and only what differs is kept, on disk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args

from assay.harness.results.lined_up import FROM_NEW, FROM_OLD, LinedUp
from assay.harness.results.wanted import EVERYTHING, Wanted
from assay.harness.store.tables import VERDICTS
from assay.model.outcome import Verdict

Kind = Literal[
    "new_failure",
    "newly_unknown",
    "unexcused",
    "unseen",
    "still_failing",
    "still_unknown",
    "vanished",
    "fixed",
    "judged_again",
    "appeared",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
WORSE: tuple[Kind, ...] = ("new_failure", "newly_unknown", "unexcused", "unseen", "vanished")
"""What nobody had to know of before the later run."""
BAD = ("fail", "error")


def kind(was: Verdict | None, now: Verdict | None, *, asked: bool = True, unexcused: bool = False) -> Kind | None:
    """Return what became of one check on one subject, None for nothing worth a word.

    `was` and `now` are its verdicts, None where a run has none; `asked` says whether that run should have one.
    `unexcused`: the earlier verdict decided nothing (a known issue, a check on trial), the later one does.
    """
    if now is None:
        return "vanished" if asked else None
    if was is None:
        return _first_seen(now, asked=asked)
    if unexcused and was in BAD and now in BAD:
        return "unexcused"
    if now == "fail":
        return "still_failing" if was == "fail" else "new_failure"
    if now == "pass":
        return None if was == "pass" else "fixed" if was == "fail" else "judged_again"
    if was == "error":
        return "still_unknown"
    return None if was == now else "newly_unknown"


def _first_seen(now: Verdict, *, asked: bool) -> Kind | None:
    if not asked:
        return "unseen" if now in BAD else None
    return {"fail": "new_failure", "error": "newly_unknown"}.get(now, "appeared")  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one check on one subject; `was` and `now` are "" where that run has no outcome of it.

    `decides`: it is wrong now, or was when it vanished, and no known issue and no check on trial excuses that.
    """

    kind: Kind
    check: str
    subject: str
    node: str
    was: Verdict | Literal[""]
    now: Verdict | Literal[""]
    reason: str
    was_reason: str
    known: str = ""
    observed: bool = False
    decides: bool = False


class Comparison:
    """Two runs, compared. `counts` and `deciding` (those of them that count) are by kind; `changes` gives each one.

    `appeared` and `vanished` are checks, `nodes_appeared` and `nodes_vanished` nodes that only one run has.
    `both` is how many outcomes both have, `apart` (old, new) how many only one has, as the other was not asked.
    """

    def __init__(self, old: Path, new: Path, wanted: Wanted = EVERYTHING) -> None:
        self.paths = (old, new)
        self.sides = LinedUp(old, new, wanted)
        self.old, self.new = self.sides.runs["old"], self.sides.runs["new"]
        self.both, self.apart = _sort_out(self.sides)
        self.counts, self.deciding = Counter[Kind](), Counter[Kind]()
        for code, decides, count in self.sides.connection.execute(_COUNTED):
            self.counts[KINDS[code]] += count
            self.deciding[KINDS[code]] += count if decides else 0
        only = "SELECT DISTINCT name FROM check_{} WHERE asked AND name NOT IN (SELECT name FROM check_{}) ORDER BY 1"
        self.appeared = self.sides.names(only.format("new", "old"))
        self.vanished = self.sides.names(only.format("old", "new"))
        nodes = "SELECT node FROM subject_{0} WHERE node != '' EXCEPT SELECT node FROM subject_{1} ORDER BY 1"
        self.nodes_appeared = self.sides.names(nodes.format("new", "old"))
        self.nodes_vanished = self.sides.names(nodes.format("old", "new"))

    def __enter__(self) -> Comparison:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of both runs."""
        self.sides.close()

    @property
    def worse(self) -> int:
        """How many outcomes count against the fleet now and did not before, or are not there any more."""
        return sum(self.deciding[one] for one in WORSE)

    def changes(self, *kinds: Kind) -> Iterator[Change]:
        """Yield what changed, of these kinds (none: of all), kind by kind."""
        for one in kinds or KINDS:
            for row in self.sides.connection.execute(_CHANGES, (KINDS.index(one),)):
                yield _change(one, row)


def _change(kind: Kind, row: tuple[Any, ...]) -> Change:
    check, subject, node, was, now, reason, was_reason, known, observed, decides = row
    return Change(
        kind,
        check,
        subject,
        node,
        "" if was is None else VERDICTS[was],
        "" if now is None else VERDICTS[now],
        reason,
        was_reason,
        known,
        bool(observed),
        bool(decides),
    )


def compare(old: Path, new: Path, wanted: Wanted = EVERYTHING) -> Comparison:
    """Compare two runs by their files. Raises Trouble for a file that is no run."""
    return Comparison(old, new, wanted)


_SHAPES = """
CREATE TABLE kind_of (was INTEGER, now INTEGER, unexcused INTEGER, kind INTEGER, PRIMARY KEY (was, now, unexcused));
CREATE TABLE change (kind INTEGER, n_subject INTEGER, n_check INTEGER, o_subject INTEGER, o_check INTEGER,
  decides INTEGER);
"""
_FREE = "{0}.known IS NULL AND {0}.observed IS NULL"
_DECIDES = f"({{0}}.verdict IN ({', '.join(str(VERDICTS.index(one)) for one in BAD)}) AND {_FREE})"
_CHANGED = f"""
INSERT INTO change SELECT k.kind, n.subject, n.check_, o.subject, o.check_, {_DECIDES.format("n")}
FROM {{}} JOIN kind_of k ON k.was = o.verdict AND k.now = n.verdict
  AND k.unexcused = ({_FREE.format("n")} AND NOT ({_FREE.format("o")})) WHERE {{}}
"""
_ALONE = """
FROM {0}.outcome {1} JOIN subject_{0} s ON s.id = {1}.subject JOIN check_{0} c ON c.id = {1}.check_
WHERE NOT EXISTS (SELECT 1 FROM subject_of p CROSS JOIN check_of q CROSS JOIN {2}.outcome x
  WHERE p.{0} = {1}.subject AND q.{0} = {1}.check_ AND x.subject = p.{2} AND x.check_ = q.{2})
"""
_ASKED = "(s.asked AND c.asked AND (c.name, s.name) NOT IN (SELECT check_, subject FROM {}.left_out))"
_COUNTED = "SELECT kind, decides, count(*) FROM change GROUP BY kind, decides"
_CHANGES = """
SELECT coalesce(c.name, oc.name), coalesce(s.name, os.name), coalesce(s.node, os.node), o.verdict, n.verdict,
  coalesce(r.text, ''), coalesce(w.text, ''), coalesce(k.text, ''), n.observed,
  x.decides
FROM change x
LEFT JOIN new.outcome n ON n.subject = x.n_subject AND n.check_ = x.n_check
LEFT JOIN old.outcome o ON o.subject = x.o_subject AND o.check_ = x.o_check
LEFT JOIN subject_new s ON s.id = x.n_subject LEFT JOIN check_new c ON c.id = x.n_check
LEFT JOIN subject_old os ON os.id = x.o_subject LEFT JOIN check_old oc ON oc.id = x.o_check
LEFT JOIN new.text r ON r.id = n.reason LEFT JOIN old.text w ON w.id = o.reason LEFT JOIN new.text k ON k.id = n.known
WHERE x.kind = ? ORDER BY x.rowid
"""


def _sort_out(sides: LinedUp) -> tuple[int, tuple[int, int]]:
    """Fill `change`; return how many outcomes both runs have, and how many only one has that alone was asked."""
    connection = sides.connection
    connection.executescript(_SHAPES)
    pairs = product(VERDICTS, VERDICTS, (False, True))
    told = [(was, now, flag, found) for was, now, flag in pairs if (found := kind(was, now, unexcused=flag))]
    codes = [(VERDICTS.index(was), VERDICTS.index(now), flag, KINDS.index(found)) for was, now, flag, found in told]
    connection.executemany("INSERT INTO kind_of VALUES (?, ?, ?, ?)", codes)
    connection.execute("BEGIN")
    connection.execute(_CHANGED.format(FROM_NEW, "n.verdict != 0"))
    connection.execute(_CHANGED.format(FROM_OLD, "o.verdict != 0 AND n.verdict = 0"))
    both = sides.count(f"SELECT count(*) FROM {FROM_NEW}")
    apart = _alone_in_old(sides, both), _alone_in_new(sides, both)
    connection.execute("COMMIT")
    return both, apart


def _alone_in_new(sides: LinedUp, both: int) -> int:
    if _wanted(sides, "new") == both:
        return 0
    asked, alone = _ASKED.format("old"), _ALONE.format("new", "n", "old")
    cases = [f"WHEN {int(flag)} THEN CASE n.verdict {_by_verdict(asked=flag)} END" for flag in (False, True)]
    case = f"CASE {asked} {' '.join(cases)} END AS kind"
    found = f"SELECT {case}, n.subject, n.check_, NULL, NULL, {_DECIDES.format('n')} {alone}"
    sides.connection.execute(f"INSERT INTO change SELECT * FROM ({found}) WHERE kind IS NOT NULL")
    return sides.count(f"SELECT count(*) {alone} AND NOT {asked}")


def _alone_in_old(sides: LinedUp, both: int) -> int:
    if _wanted(sides, "old") == both:
        return 0
    asked, alone = _ASKED.format("new"), _ALONE.format("old", "o", "new")
    gone = KINDS.index("vanished")
    sides.connection.execute(
        f"INSERT INTO change SELECT {gone}, NULL, NULL, o.subject, o.check_, {_DECIDES.format('o')} {alone} AND {asked}"
    )
    return sides.count(f"SELECT count(*) {alone} AND NOT {asked}")


def _by_verdict(*, asked: bool) -> str:
    """Return the kinds of what only the new run has, as branches of a CASE."""
    found = {code: kind(None, verdict, asked=asked) for code, verdict in enumerate(VERDICTS)}
    return " ".join(f"WHEN {code} THEN {KINDS.index(one) if one else 'NULL'}" for code, one in found.items())


def _wanted(sides: LinedUp, side: str) -> int:
    return sides.count(
        f"SELECT count(*) FROM {side}.outcome o JOIN subject_{side} s ON s.id = o.subject "
        f"JOIN check_{side} c ON c.id = o.check_"
    )
