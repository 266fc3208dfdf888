"""What became of a run's outcomes in a later run: which fail anew, which are fixed, what is not known any more.

The rule is `classify_change`; it is laid over two runs of any size in SQL, and only what differs is kept, on disk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args

from assay.model.outcome import CheckVerdict
from assay.results.comparison.paired_runs import PAIRED_FROM_NEW, PAIRED_FROM_OLD, PairedRuns
from assay.results.outcome_filter import NO_FILTER, OutcomeFilter
from assay.results.store.schema import VERDICTS, deciding_condition

ChangeKind = Literal[
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
CHANGE_KINDS: tuple[ChangeKind, ...] = get_args(ChangeKind)
WORSE_KINDS: tuple[ChangeKind, ...] = ("new_failure", "newly_unknown", "unexcused", "unseen", "vanished")
"""What nobody had to know of before the later run."""
BAD_VERDICTS = ("fail", "error")


def classify_change(
    was: CheckVerdict | None, now: CheckVerdict | None, *, asked: bool = True, unexcused: bool = False
) -> ChangeKind | None:
    """Return what became of one check on one subject, None for nothing worth a word.

    `was` and `now` are its verdicts, None where a run has none; `asked` says whether that run should have one.
    `unexcused`: the earlier verdict decided nothing (a known issue, a check on trial), the later one does.
    """
    if now is None:
        return "vanished" if asked else None
    if was is None:
        return _first_seen(now, asked=asked)
    if unexcused and was in BAD_VERDICTS and now in BAD_VERDICTS:
        return "unexcused"
    if now == "fail":
        return "still_failing" if was == "fail" else "new_failure"
    if now == "pass":
        return None if was == "pass" else "fixed" if was == "fail" else "judged_again"
    if was == "error":
        return "still_unknown"
    return None if was == now else "newly_unknown"


def _first_seen(now: CheckVerdict, *, asked: bool) -> ChangeKind | None:
    if not asked:
        return "unseen" if now in BAD_VERDICTS else None
    return {"fail": "new_failure", "error": "newly_unknown"}.get(now, "appeared")  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class OutcomeChange:
    """What became of one check on one subject; `was` and `now` are "" where that run has no outcome of it.

    `decides`: it is wrong now, or was when it vanished, and no known issue and no check on trial excuses that.
    """

    kind: ChangeKind
    check: str
    subject: str
    node: str
    was: CheckVerdict | Literal[""]
    now: CheckVerdict | Literal[""]
    reason: str
    was_reason: str
    known: str = ""
    observed: bool = False
    decides: bool = False


class RunComparison:
    """Two runs, compared. `counts` and `deciding` (those of them that count) are by kind; `changes` gives each one.

    `appeared` and `vanished` are checks, `nodes_appeared` and `nodes_vanished` nodes that only one run has.
    `both` is how many outcomes both have, `apart` (old, new) how many only one has, as the other was not asked.
    """

    def __init__(self, old: Path, new: Path, wanted: OutcomeFilter = NO_FILTER) -> None:
        self.paths = (old, new)
        self.pair = PairedRuns(old, new, wanted)
        self.old, self.new = self.pair.runs["old"], self.pair.runs["new"]
        self.both, self.apart = _fill_changes(self.pair)
        self.counts, self.deciding = Counter[ChangeKind](), Counter[ChangeKind]()
        for code, decides, count in self.pair.connection.execute(_COUNTED):
            self.counts[CHANGE_KINDS[code]] += count
            self.deciding[CHANGE_KINDS[code]] += count if decides else 0
        only = "SELECT DISTINCT name FROM check_{} WHERE asked AND name NOT IN (SELECT name FROM check_{}) ORDER BY 1"
        self.appeared = self.pair.query_column(only.format("new", "old"))
        self.vanished = self.pair.query_column(only.format("old", "new"))
        nodes = "SELECT node FROM subject_{0} WHERE node != '' EXCEPT SELECT node FROM subject_{1} ORDER BY 1"
        self.nodes_appeared = self.pair.query_column(nodes.format("new", "old"))
        self.nodes_vanished = self.pair.query_column(nodes.format("old", "new"))

    def __enter__(self) -> RunComparison:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of both runs."""
        self.pair.close()

    @property
    def worse(self) -> int:
        """How many outcomes count against the fleet now and did not before, or are not there any more."""
        return sum(self.deciding[one] for one in WORSE_KINDS)

    def changes(self, *kinds: ChangeKind) -> Iterator[OutcomeChange]:
        """Yield what changed, of these kinds (none: of all), kind by kind."""
        for one in kinds or CHANGE_KINDS:
            for row in self.pair.connection.execute(_CHANGES, (CHANGE_KINDS.index(one),)):
                yield _read_change(one, row)


def _read_change(kind: ChangeKind, row: tuple[Any, ...]) -> OutcomeChange:
    check, subject, node, was, now, reason, was_reason, known, observed, decides = row
    return OutcomeChange(
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


def compare_runs(old: Path, new: Path, wanted: OutcomeFilter = NO_FILTER) -> RunComparison:
    """Compare two runs by their files. Raises AssayError for a file that is no run."""
    return RunComparison(old, new, wanted)


_SHAPES = """
CREATE TABLE kind_of (was INTEGER, now INTEGER, unexcused INTEGER, kind INTEGER, PRIMARY KEY (was, now, unexcused));
CREATE TABLE change (kind INTEGER, n_subject INTEGER, n_check INTEGER, o_subject INTEGER, o_check INTEGER,
  decides INTEGER);
"""
_FREE = deciding_condition("{0}")
_DECIDES = f"({{0}}.verdict IN ({', '.join(str(VERDICTS.index(one)) for one in BAD_VERDICTS)}) AND {_FREE})"
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


def _fill_changes(sides: PairedRuns) -> tuple[int, tuple[int, int]]:
    """Fill `change`; return how many outcomes both runs have, and how many only one has that alone was asked."""
    connection = sides.connection
    connection.executescript(_SHAPES)
    pairs = product(VERDICTS, VERDICTS, (False, True))
    told = [(was, now, flag, found) for was, now, flag in pairs if (found := classify_change(was, now, unexcused=flag))]
    codes = [
        (VERDICTS.index(was), VERDICTS.index(now), flag, CHANGE_KINDS.index(found)) for was, now, flag, found in told
    ]
    connection.executemany("INSERT INTO kind_of VALUES (?, ?, ?, ?)", codes)
    connection.execute("BEGIN")
    connection.execute(_CHANGED.format(PAIRED_FROM_NEW, "n.verdict != 0"))
    connection.execute(_CHANGED.format(PAIRED_FROM_OLD, "o.verdict != 0 AND n.verdict = 0"))
    both = sides.query_number(f"SELECT count(*) FROM {PAIRED_FROM_NEW}")
    apart = _alone_in_old(sides, both), _alone_in_new(sides, both)
    connection.execute("COMMIT")
    return both, apart


def _alone_in_new(sides: PairedRuns, both: int) -> int:
    if _wanted(sides, "new") == both:
        return 0
    asked, alone = _ASKED.format("old"), _ALONE.format("new", "n", "old")
    cases = [f"WHEN {int(flag)} THEN CASE n.verdict {_by_verdict(asked=flag)} END" for flag in (False, True)]
    case = f"CASE {asked} {' '.join(cases)} END AS kind"
    found = f"SELECT {case}, n.subject, n.check_, NULL, NULL, {_DECIDES.format('n')} {alone}"
    sides.connection.execute(f"INSERT INTO change SELECT * FROM ({found}) WHERE kind IS NOT NULL")
    return sides.query_number(f"SELECT count(*) {alone} AND NOT {asked}")


def _alone_in_old(sides: PairedRuns, both: int) -> int:
    if _wanted(sides, "old") == both:
        return 0
    asked, alone = _ASKED.format("new"), _ALONE.format("old", "o", "new")
    gone = CHANGE_KINDS.index("vanished")
    sides.connection.execute(
        f"INSERT INTO change SELECT {gone}, NULL, NULL, o.subject, o.check_, {_DECIDES.format('o')} {alone} AND {asked}"
    )
    return sides.query_number(f"SELECT count(*) {alone} AND NOT {asked}")


def _by_verdict(*, asked: bool) -> str:
    """Return the kinds of what only the new run has, as branches of a CASE."""
    found = {code: classify_change(None, verdict, asked=asked) for code, verdict in enumerate(VERDICTS)}
    return " ".join(f"WHEN {code} THEN {CHANGE_KINDS.index(one) if one else 'NULL'}" for code, one in found.items())


def _wanted(sides: PairedRuns, side: str) -> int:
    return sides.query_number(
        f"SELECT count(*) FROM {side}.outcome o JOIN subject_{side} s ON s.id = o.subject "
        f"JOIN check_{side} c ON c.id = o.check_"
    )
