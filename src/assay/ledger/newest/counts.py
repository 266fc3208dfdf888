"""How checks stand on all nodes, as the database counts it, for readers of the whole fleet who need no single outcome.

Outcomes and passes are counted; failures come with the row that they end. Two ways lead to a row's begin. If a check
fails on many nodes that passed it before, its outcomes since the oldest of these passes are read at once. Else the
outcomes of the failing nodes are read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, Subquery, func, select

from assay.ledger import tables
from assay.ledger.newest.interned_texts import BATCH_SIZE, TextCache, find_text_numbers, split_batches
from assay.ledger.newest.outcome_queries import EACH_NEWEST, PASS, is_recorded_after, rank_newest, select_failing
from assay.ledger.newest.outcomes import read_outcomes
from assay.model.facts import frozen
from assay.model.outcome import VERDICTS, CheckStandings, CheckVerdict, PassCount, StandingFailure
from assay.model.timestamps import format_epoch_seconds

MANY_SUBJECTS = 100
"""With more failing subjects of one check, reading what the check said since is cheaper than reading their nodes."""


@frozen
class OutcomeCounts:
    """What some runs say: how many they are, when the last one was (ISO 8601 UTC), and outcomes by check and verdict.

    `last` is the number of the last of them, as in `Ledger.outcomes_head`.
    """

    last: int
    runs: int
    last_at: str
    outcomes: Mapping[tuple[str, CheckVerdict], int]


def count_outcomes(connection: Connection, texts: TextCache, after: int) -> OutcomeCounts:
    """Return the counts of the runs with numbers above `after`. Runs that are recorded meanwhile are left out."""
    runs, outcomes = tables.runs.c, tables.outcomes.c
    count, last = connection.execute(select(func.count(), func.max(runs.seq)).where(runs.seq > after)).one()
    if not count:
        return OutcomeCounts(after, 0, "", {})
    last_at: str = connection.execute(select(runs.at).where(runs.seq == last)).scalar_one()
    new = (is_recorded_after(after), outcomes.run <= last)
    each = tables.outcomes.join(tables.members, tables.members.c.list == outcomes.subject)
    query = select(outcomes.check, outcomes.verdict, func.count()).select_from(each).where(*new)
    query = query.group_by(outcomes.check, outcomes.verdict)
    rows = connection.execute(query).all()
    texts.load(connection, {check for check, *_ in rows})
    counts = {(texts[check], VERDICTS[verdict]): number for check, verdict, number in rows}
    return OutcomeCounts(last, count, last_at, counts)


def read_oldest_passes(
    connection: Connection, texts: TextCache, checks: Collection[str], nodes: Collection[str] | None
) -> dict[str, float]:
    """Return the oldest of the newest passes of these checks, by node, in seconds since 1970.

    Of these nodes, or of all (None); nodes without a pass are left out, and others may be among them.
    """
    table, members = tables.newest.c, tables.members.c
    wanted = [table.verdict == VERDICTS.index("pass"), table.check.in_(find_text_numbers(connection, checks))]
    if nodes is not None and len(nodes) <= BATCH_SIZE:
        wanted.append(table.node.in_(find_text_numbers(connection, nodes)))
    each = tables.newest.join(tables.members, members.list == table.subject)
    newest = select(table.node, func.max(table.measured_s).label("at_s")).select_from(each).where(*wanted)
    latest = newest.group_by(table.node, table.check, members.subject).subquery().c
    rows = connection.execute(select(latest.node, func.min(latest.at_s)).group_by(latest.node)).all()
    texts.load(connection, [node for node, _ in rows])
    return {texts[node]: at_s for node, at_s in rows}


class CheckAge(NamedTuple):
    """For how many subjects a check has a verdict, and the time of the oldest of the newest ones (Unix seconds)."""

    subjects: int
    oldest_s: float


def read_check_ages(connection: Connection, texts: TextCache, nodes: Collection[str]) -> dict[str, dict[str, CheckAge]]:
    """Return the age of each check on each node. An error is no verdict, so it does not count."""
    table = tables.newest.c
    judged = (table.node.in_(find_text_numbers(connection, nodes)), table.verdict != VERDICTS.index("error"))
    each = select(table.node, table.check, func.max(table.measured_s).label("seen")).select_from(EACH_NEWEST)
    latest = each.where(*judged).group_by(table.node, table.check, tables.members.c.subject).subquery().c
    query = select(latest.node, latest.check, func.count(), func.min(latest.seen)).group_by(latest.node, latest.check)
    rows = connection.execute(query).all()
    texts.load(connection, {number for row in rows for number in row[:2]})
    ages: dict[str, dict[str, CheckAge]] = {name: {} for name in nodes}
    for node, check, subjects, oldest_s in rows:
        ages[texts[node]][texts[check]] = CheckAge(subjects, oldest_s)
    return ages


RowKey = tuple[str, str]
"""Check and subject."""


def read_check_standings(
    connection: Connection, texts: TextCache, checks: Collection[str], nodes: Collection[str] | None = None
) -> CheckStandings:
    """Return the newest outcomes of these checks; on many nodes, reading those of all (None) is as cheap."""
    numbers = find_text_numbers(connection, checks)
    few = nodes is not None and len(nodes) <= BATCH_SIZE
    node_numbers = find_text_numbers(connection, nodes) if nodes is not None and few else None
    if not numbers or node_numbers == []:
        return CheckStandings()
    table = tables.newest.c
    newest = rank_newest(
        table.check.in_(numbers), *([table.node.in_(node_numbers)] if node_numbers is not None else [])
    )
    passes = tuple(_read_passes(connection, texts, newest))
    return CheckStandings(passes, tuple(_read_failures(connection, texts, newest)))


def _read_passes(connection: Connection, texts: TextCache, newest: Subquery) -> Iterable[PassCount]:
    outcomes = tables.outcomes.c
    key = (outcomes.node, outcomes.check, outcomes.judged_by, outcomes.evidence_at, outcomes.run)
    query = select(*key, func.count(), func.min(outcomes.measured_s)).join(newest, newest.c.outcome == outcomes.seq)
    rows = connection.execute(query.where(newest.c.verdict == PASS).group_by(*key)).all()
    texts.load(connection, {number for row in rows for number in row[:4]})
    runs = _read_revisions(connection, {row[4] for row in rows})
    return [
        PassCount(texts[node], texts[check], texts[judged_by], texts[at], runs[run], subjects, measured_s)
        for node, check, judged_by, at, run, subjects, measured_s in rows
    ]


def _read_revisions(connection: Connection, numbers: Collection[int]) -> dict[int, str]:
    runs, commits = tables.runs.c, dict[int, str]()
    for some in split_batches(numbers, BATCH_SIZE):
        query = select(runs.seq, runs.spec_commit).where(runs.seq.in_(some))
        commits |= {seq: commit for seq, commit in connection.execute(query)}  # noqa: C416 — rows are no pairs for mypy
    return commits


def _read_failures(connection: Connection, texts: TextCache, newest: Subquery) -> Iterable[StandingFailure]:
    failing = read_outcomes(connection, select_failing(newest), texts)
    if not failing:
        return []
    keys = {(failure.outcome.check, failure.outcome.subject): failure.outcome.node for failure in failing}
    passed = _read_last_passes(connection, texts, keys)
    rows = _read_rows(connection, texts, keys, {key: at_s for key, (at_s, _) in passed.items()})
    return [
        StandingFailure(failure, tuple(sorted(rows.get(key, ()))), *passed.get(key, (0.0, "")))
        for failure in failing
        for key in [(failure.outcome.check, failure.outcome.subject)]
    ]


def _read_last_passes(
    connection: Connection, texts: TextCache, keys: Collection[RowKey]
) -> dict[RowKey, tuple[float, str]]:
    """Return the date of the last pass, and the commit of its specs, of each of these that has ever passed."""
    table, checks = tables.newest.c, find_text_numbers(connection, {check for check, _ in keys})
    each = tables.newest.join(tables.members, tables.members.c.list == table.subject)
    each = each.join(tables.outcomes, tables.outcomes.c.seq == table.outcome)
    each = each.join(tables.runs, tables.runs.c.seq == tables.outcomes.c.run)
    member, others = tables.members.c.subject, tables.members.alias().c
    query = select(table.check, member, table.measured_s, tables.runs.c.spec_commit).select_from(each)
    query = query.order_by(table.measured_s, table.outcome)
    passes: dict[RowKey, tuple[float, str]] = {}
    for some in split_batches({subject for _, subject in keys}, BATCH_SIZE):
        subjects = find_text_numbers(connection, some)
        lists = select(others.list).where(others.subject.in_(subjects))  # as in `_select_row`
        wanted = (table.verdict == PASS, table.check.in_(checks), table.subject.in_(lists), member.in_(subjects))
        rows = connection.execute(query.where(*wanted)).all()
        texts.load(connection, {number for row in rows for number in row[:2]})
        passes |= {(texts[check], texts[subject]): (at_s, commit) for check, subject, at_s, commit in rows}
    return {key: passes[key] for key in keys if key in passes}


def _read_rows(
    connection: Connection, texts: TextCache, keys: Mapping[RowKey, str], passed: Mapping[RowKey, float]
) -> dict[RowKey, list[tuple[str, str]]]:
    """Return the reasons since the last pass, each with its first time."""
    by_check: dict[str, list[RowKey]] = defaultdict(list)
    for key in passed:
        by_check[key[0]].append(key)
    many = {check: some for check, some in by_check.items() if len(some) > MANY_SUBJECTS}
    at_once = {key for some in many.values() for key in some}
    left = {key: node for key, node in keys.items() if key not in at_once}
    outcomes = tables.outcomes.c
    queries: list[Select[Any]] = []
    for check, some in many.items():
        (number,) = find_text_numbers(connection, [check])
        queries.append(
            _select_row().where(outcomes.check == number, outcomes.measured_s >= min(map(passed.__getitem__, some)))
        )
    checks = find_text_numbers(connection, {check for check, _ in left})
    for nodes in split_batches(set(left.values()), BATCH_SIZE):
        numbers = find_text_numbers(connection, nodes)
        queries.append(_select_row().where(outcomes.node.in_(numbers), outcomes.check.in_(checks)))
    rows: dict[RowKey, dict[str, float]] = defaultdict(dict)
    for query in queries:
        batch = connection.execute(query).all()
        texts.load(connection, {number for row in batch for number in row[:3]})
        for check_number, subject, reason, first_s in batch:
            times = rows[texts[check_number], texts[subject]]
            times[texts[reason]] = min(first_s, times.get(texts[reason], first_s))
    return {key: [(format_epoch_seconds(at), reason) for reason, at in times.items()] for key, times in rows.items()}


def _select_row() -> Select[Any]:
    """Return the query of the outcomes that are no pass and came after the last one, each reason once."""
    outcomes = tables.outcomes.c
    last = tables.newest.alias().c
    own = tables.members.c
    theirs = tables.members.alias().c
    # IN lets SQLite search by the whole key: of a join, it makes a scan of the check on all nodes
    lists = select(theirs.list).where(theirs.subject == own.subject).correlate(tables.members)
    same = (last.check == outcomes.check, last.subject.in_(lists), last.verdict == PASS)
    passes = select(func.max(last.measured_s)).where(*same)
    passed_s = passes.correlate(tables.outcomes, tables.members).scalar_subquery()
    query = select(outcomes.check, own.subject, outcomes.reason, func.min(outcomes.measured_s))
    query = query.select_from(tables.outcomes.join(tables.members, own.list == outcomes.subject))
    later = outcomes.measured_s > func.coalesce(passed_s, 0)
    return query.where(outcomes.verdict != PASS, later).group_by(outcomes.check, own.subject, outcomes.reason)
