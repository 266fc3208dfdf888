"""Compares two runs: which outcomes newly fail, which are fixed, which are no longer known.

`classify_change` is the rule. It is applied in SQL to runs of any size, and only changes are stored, on disk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args

from assay.ledger.runs.schema import deciding_condition
from assay.model.facts import frozen
from assay.model.outcome import VERDICTS, CheckVerdict
from assay.validate.results.outcome_filter import NO_FILTER, OutcomeFilter
from assay.validate.results.paired_runs import PAIRED_FROM_NEW, PAIRED_FROM_OLD, PairedRuns

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
"""Changes for the worse."""
BAD_VERDICTS = ("fail", "error")


def classify_change(
    was: CheckVerdict | None, now: CheckVerdict | None, *, asked: bool = True, unexcused: bool = False
) -> ChangeKind | None:
    """Return the kind of change of one check on one subject, None for no change worth reporting.

    `was` and `now` are its verdicts, None where a run has none; `asked` says whether that run should have one.
    `unexcused`: a known issue or stage `observe` excused the earlier verdict, and nothing excuses the later one.
    """
    if now is None:
        return "vanished" if asked else None
    if was is None and not asked:
        return "unseen" if now in BAD_VERDICTS else None
    if was is None:
        return {"fail": "new_failure", "error": "newly_unknown"}.get(now, "appeared")  # type: ignore[return-value]
    if unexcused and was in BAD_VERDICTS and now in BAD_VERDICTS:
        return "unexcused"
    if now == "fail":
        return "still_failing" if was == "fail" else "new_failure"
    if now == "pass":
        return None if was == "pass" else "fixed" if was == "fail" else "judged_again"
    if was == "error":
        return "still_unknown"
    return None if was == now else "newly_unknown"


@frozen
class OutcomeChange:
    """A change of one check on one subject. `was` and `now` are "" where that run has no such outcome.

    `decides`: its verdict now, or the last one if it vanished, is a failure or an error that nothing excuses; or it
    was judged before, and is skipped now.
    """

    kind: ChangeKind
    """What kind of change it is."""
    check: str
    """The id of the check."""
    subject: str
    """What was judged: a node, a part of it, a rack or a fabric."""
    node: str
    """The node of the subject; "" for a rack or a fabric."""
    was: CheckVerdict | Literal[""]
    now: CheckVerdict | Literal[""]
    reason: str
    """Why the verdict is what it is now; "" for a pass."""
    was_reason: str
    """Why the verdict was what it was; "" for a pass."""
    known: str = ""
    """The known issue that excuses it; "" for none."""
    observed: bool = False
    """Whether the check is at stage observe, so that it decides nothing."""
    decides: bool = False


class RunComparison:
    """Two runs, by their files, and their changes. Raises AssayError for a file that is no run.

    `counts` and `deciding` (changes that count) are by kind. `appeared` and `vanished` are checks, `nodes_appeared` and
    `nodes_vanished` nodes that only one run has. `both` is the number of outcomes that both runs have, `apart` (old,
    new) that only one has because the other was not asked.
    """

    def __init__(self, old: Path, new: Path, outcome_filter: OutcomeFilter = NO_FILTER) -> None:
        self.paths = (old, new)
        self.pair = PairedRuns(old, new, outcome_filter)
        self.old, self.new = self.pair.runs["old"], self.pair.runs["new"]
        self.both, self.apart = _fill_changes(self.pair)
        self.counts, self.deciding = Counter[ChangeKind](), Counter[ChangeKind]()
        for code, decides, count in self.pair.connection.execute(_COUNTS_BY_KIND):
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
        """Close both runs."""
        self.pair.close()

    @property
    def worse(self) -> int:
        """The number of changes for the worse that count against the fleet."""
        return sum(self.deciding[kind] for kind in WORSE_KINDS)

    def changes(self, *kinds: ChangeKind) -> Iterator[OutcomeChange]:
        """Yield the changes of these kinds (none: of all), kind by kind."""
        for kind in kinds or CHANGE_KINDS:
            for row in self.pair.connection.execute(_CHANGES, (CHANGE_KINDS.index(kind),)):
                yield _read_change(kind, row)


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


_CHANGE_TABLES = """
CREATE TABLE kind_of (was INTEGER, now INTEGER, unexcused INTEGER, kind INTEGER, PRIMARY KEY (was, now, unexcused));
CREATE TABLE change (kind INTEGER, n_subject INTEGER, n_check INTEGER, o_subject INTEGER, o_check INTEGER,
  decides INTEGER);
"""
_NOT_EXCUSED = deciding_condition("{0}")
_DECIDES = (
    f"({{0}}.verdict IN ({', '.join(str(VERDICTS.index(verdict)) for verdict in BAD_VERDICTS)}) AND {_NOT_EXCUSED})"
)
_NOW_SKIPPED = (
    f"(n.verdict = {VERDICTS.index('skip')} AND o.verdict != n.verdict AND n.observed IS NULL"
    f" AND {_NOT_EXCUSED.format('o')})"
)
"""What was judged and is skipped now is not known any more."""
_INSERT_CHANGES = f"""
INSERT INTO change SELECT k.kind, n.subject, n.check_, o.subject, o.check_, {_DECIDES.format("n")} OR {_NOW_SKIPPED}
FROM {{}} JOIN kind_of k ON k.was = o.verdict AND k.now = n.verdict
  AND k.unexcused = ({_NOT_EXCUSED.format("n")} AND NOT ({_NOT_EXCUSED.format("o")})) WHERE {{}}
"""
_UNPAIRED = """
FROM {0}.outcome {1} JOIN subject_{0} s ON s.id = {1}.subject JOIN check_{0} c ON c.id = {1}.check_
WHERE NOT EXISTS (SELECT 1 FROM subject_of p CROSS JOIN check_of q CROSS JOIN {2}.outcome x
  WHERE p.{0} = {1}.subject AND q.{0} = {1}.check_ AND x.subject = p.{2} AND x.check_ = q.{2})
"""
_ASKED = "(s.asked AND c.asked AND (c.name, s.name) NOT IN (SELECT check_, subject FROM {}.left_out))"
_COUNTS_BY_KIND = "SELECT kind, decides, count(*) FROM change GROUP BY kind, decides"
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
    """Fill the table `change`. Return the outcomes that both runs have, and (old, new) that only one was asked for."""
    connection = sides.connection
    connection.executescript(_CHANGE_TABLES)
    pairs = product(VERDICTS, VERDICTS, (False, True))
    codes = [
        (VERDICTS.index(was), VERDICTS.index(now), unexcused, CHANGE_KINDS.index(kind))
        for was, now, unexcused in pairs
        if (kind := classify_change(was, now, unexcused=unexcused))
    ]
    connection.executemany("INSERT INTO kind_of VALUES (?, ?, ?, ?)", codes)
    connection.execute("BEGIN")
    connection.execute(_INSERT_CHANGES.format(PAIRED_FROM_NEW, "n.verdict != 0"))
    connection.execute(_INSERT_CHANGES.format(PAIRED_FROM_OLD, "o.verdict != 0 AND n.verdict = 0"))
    both = sides.query_number(f"SELECT count(*) FROM {PAIRED_FROM_NEW}")
    apart = _insert_only_in_old(sides, both), _insert_only_in_new(sides, both)
    connection.execute("COMMIT")
    return both, apart


def _insert_only_in_new(sides: PairedRuns, both: int) -> int:
    """Insert changes for outcomes that only the new run has. Return how many the old run was not asked for."""
    if _count_selected(sides, "new") == both:
        return 0
    asked, unpaired = _ASKED.format("old"), _UNPAIRED.format("new", "n", "old")
    cases = []
    for flag in (False, True):  # `classify_change` as SQL: a branch for each verdict that only the new run has
        kinds = [classify_change(None, verdict, asked=flag) for verdict in VERDICTS]
        codes = [CHANGE_KINDS.index(kind) if kind else "NULL" for kind in kinds]
        branches = " ".join(f"WHEN {verdict} THEN {code}" for verdict, code in enumerate(codes))
        cases.append(f"WHEN {int(flag)} THEN CASE n.verdict {branches} END")
    case = f"CASE {asked} {' '.join(cases)} END AS kind"
    rows = f"SELECT {case}, n.subject, n.check_, NULL, NULL, {_DECIDES.format('n')} {unpaired}"
    sides.connection.execute(f"INSERT INTO change SELECT * FROM ({rows}) WHERE kind IS NOT NULL")
    return sides.query_number(f"SELECT count(*) {unpaired} AND NOT {asked}")


def _insert_only_in_old(sides: PairedRuns, both: int) -> int:
    """Insert a change for each outcome that vanished. Return how many the new run was not asked for."""
    if _count_selected(sides, "old") == both:
        return 0
    asked, unpaired = _ASKED.format("new"), _UNPAIRED.format("old", "o", "new")
    columns = f"{CHANGE_KINDS.index('vanished')}, NULL, NULL, o.subject, o.check_, {_DECIDES.format('o')}"
    sides.connection.execute(f"INSERT INTO change SELECT {columns} {unpaired} AND {asked}")
    return sides.query_number(f"SELECT count(*) {unpaired} AND NOT {asked}")


def _count_selected(sides: PairedRuns, side: str) -> int:
    return sides.query_number(
        f"SELECT count(*) FROM {side}.outcome o JOIN subject_{side} s ON s.id = o.subject "
        f"JOIN check_{side} c ON c.id = o.check_"
    )
