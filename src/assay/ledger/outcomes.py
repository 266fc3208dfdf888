"""Writes many outcomes at once into the ledger, and reads them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, Table, case, func, select

from assay.ledger import tables
from assay.ledger.hash_chain import RunDigest
from assay.ledger.interned_texts import BATCH_SIZE, TextCache, TextNumbers, find_text_numbers, split_batches
from assay.ledger.outcome_dates import OutcomeDates
from assay.ledger.outcome_insertions import NEWEST_COLUMNS, OUTCOMES_PER_INSERT, InsertedOutcome, OutcomeInsertions
from assay.model.evidence import EvidenceBasis
from assay.model.outcome import VERDICTS, Measurement, Outcome, RecordedOutcome
from assay.model.timestamps import format_epoch_seconds, parse_epoch_seconds_cached

OutcomeRow = dict[str, Any]
TEXT_COLUMNS = ("check", "subject", "node", "reason", "fault", "evidence", "evidence_at", "judged_by")
"""Fields of an outcome that are kept as the number of their text. `basis` and `phases` are encoded first."""
_get_texts = attrgetter(*TEXT_COLUMNS)
_get_text_columns = itemgetter(*TEXT_COLUMNS)
_CODES = {verdict: code for code, verdict in enumerate(VERDICTS)}
NODES_AT_ONCE = 50
"""Nodes whose outcomes are read at once: the database's rows take more memory than the outcomes made of them."""


def write_outcomes(connection: Connection, outcomes: Iterable[Outcome], run: int, dates: OutcomeDates) -> OutcomeRow:
    """Write the outcomes of the run with number `run`, with these dates, inside the writing transaction.

    Returns the outcome columns of the run's row.
    """
    numbers, digest, insertions = TextNumbers(connection), RunDigest(), OutcomeInsertions(connection)
    number = _highest(connection, tables.outcomes)
    for some in split_batches(outcomes, OUTCOMES_PER_INSERT):
        numbers.load(_list_texts(some))
        dates.load({numbers[outcome.node] for outcome in some})
        rows = [_row(outcome, numbers, number + at, run, dates) for at, outcome in enumerate(some, 1)]
        measured = [
            (number + at, numbers[_encode_gauge(one)], float(one.value))
            for at, outcome in enumerate(some, 1)
            for one in outcome.measurements
        ]
        number += len(rows)
        insertions.insert(rows, measured)
        digest.outcomes(rows)
        digest.measured(measured)
    digest.texts(numbers.added)
    return {"texts": _highest(connection, tables.texts), "outcomes": number, "digest": digest.hexdigest()}


def _highest(connection: Connection, table: Table) -> int:
    number: int = connection.execute(select(func.coalesce(func.max(table.c.seq), 0))).scalar_one()
    return number


def read_outcomes(connection: Connection, query: Select[Any], texts: TextCache) -> list[RecordedOutcome]:
    """Return the outcomes of a query made with `select_outcomes`, in its order, each with its measurements."""
    rows = list(connection.execute(query).mappings())
    measured = _measurements(connection, [row["seq"] for row in rows])
    texts.load(connection, {row[name] for row in rows for name in (*TEXT_COLUMNS, "phases", "basis")})
    texts.load(connection, {one["gauge"] for some in measured.values() for one in some})
    lists = _ParsedLists(texts)
    return [_recorded(row, measured[row["seq"]], texts, lists) for row in rows]


def read_newest(connection: Connection, nodes: Collection[str] | None, texts: TextCache) -> list[RecordedOutcome]:
    """Return the newest outcome of each check × subject, of these nodes or of all (None)."""
    if nodes is None:
        return read_outcomes(connection, select_newest(), texts)
    batches = (find_text_numbers(connection, some) for some in split_batches(nodes, NODES_AT_ONCE))
    return [one for some in batches for one in read_outcomes(connection, select_newest(some), texts)]


def read_judged_nodes(connection: Connection, after: int, texts: TextCache) -> set[str]:
    """Return the nodes of the outcomes in runs whose number is above `after`."""
    table = tables.outcomes.c
    numbers = set(connection.execute(select(table.node).where(table.run > after).distinct()).scalars())
    texts.load(connection, numbers)
    return {texts[number] for number in numbers}


def select_outcomes() -> Select[Any]:
    """Return the first part of a query of outcomes with their runs."""
    runs = tables.runs
    query = select(tables.outcomes, runs.c.id.label("run_id"), runs.c.at.label("run_at"))
    return query.join(runs, runs.c.seq == tables.outcomes.c.run)


def select_newest(nodes: Collection[int] | None = None) -> Select[Any]:
    """Return the query of the newest outcome of each check × subject, by the time of its evidence."""
    table = tables.newest.c
    age = func.row_number().over(
        partition_by=(table.check, table.subject), order_by=(table.measured_s.desc(), table.outcome.desc())
    )
    ranked = select(table.outcome, age.label("age"))
    if nodes is not None:
        ranked = ranked.where(table.node.in_(nodes))
    first = ranked.subquery()
    return select_outcomes().join(first, first.c.outcome == tables.outcomes.c.seq).where(first.c.age == 1)


def select_expected_newest() -> Select[Any]:
    """Return the query that recomputes what `select_newest` reads: the newest outcome per check, subject, verdict."""
    table = tables.outcomes.c
    kind = (table.check, table.subject, table.verdict)
    age = func.row_number().over(partition_by=kind, order_by=(table.measured_s.desc(), table.seq.desc())).label("age")
    ranked = select(*kind, table.node, table.measured_s, table.seq.label("outcome"), age).subquery()
    return select(*(ranked.c[name] for name in NEWEST_COLUMNS)).where(ranked.c.age == 1)


def select_last_pass(check: int | None, subject: int | None) -> Select[Any]:
    """Return the query of the newest pass of a check on a subject."""
    table = tables.newest.c
    passed = (table.check == check, table.subject == subject, table.verdict == VERDICTS.index("pass"))
    return select_outcomes().join(tables.newest, table.outcome == tables.outcomes.c.seq).where(*passed)


def select_newest_passes(check: int | None) -> Select[Any]:
    """Return the query of the newest pass of a check on each subject."""
    table = tables.newest.c
    passed = (table.check == check, table.verdict == VERDICTS.index("pass"))
    return select_outcomes().join(tables.newest, table.outcome == tables.outcomes.c.seq).where(*passed)


def select_last_pass_before(run: str, check: int | None, subject: int | None) -> Select[Any]:
    """Return the query of the newest pass recorded before a run; for an unrecorded run, before its begin."""
    table, runs = tables.outcomes.c, tables.runs.c
    itself = tables.runs.alias()
    number = select(itself.c.seq).where(itself.c.id == run).scalar_subquery()
    passed = (table.check == check, table.subject == subject, table.verdict == VERDICTS.index("pass"))
    older = case((number.is_(None), runs.id < run), else_=runs.seq < number)
    return select_outcomes().where(*passed, older).order_by(table.measured_s.desc(), table.seq.desc()).limit(1)


class _ParsedLists(dict[int, Any]):
    """The texts as parsed JSON, by number. Each text is parsed once."""

    def __init__(self, texts: TextCache) -> None:
        super().__init__()
        self._texts = texts

    def __missing__(self, number: int) -> Any:
        said = self[number] = tuple(json.loads(self._texts[number]))
        return said


def _list_texts(outcomes: Iterable[Outcome]) -> set[str]:
    """Return all texts of some outcomes."""
    found = set[str]()
    for outcome in outcomes:
        found.update(_get_texts(outcome))
        found.add(_encode_list(outcome.phases))
        found.add(outcome.basis.encode())
        for measurement in outcome.measurements:
            found.add(_encode_gauge(measurement))
    return found


@lru_cache(4096)
def _decode_basis(text: str) -> EvidenceBasis:
    return EvidenceBasis.decode(text)


@lru_cache(4096)
def _encode_list(of: tuple[Any, ...]) -> str:
    return json.dumps(of, ensure_ascii=False)


def _encode_gauge(one: Measurement) -> str:
    return _encode_list((one.name, one.unit, one.at_least, one.at_most, one.source))


def _row(outcome: Outcome, numbers: TextNumbers, number: int, run: int, dates: OutcomeDates) -> InsertedOutcome:
    """Return the values of an outcome's row, in the order of `HASHED_OUTCOME_FIELDS`."""
    check, subject, node, reason, fault, evidence, evidence_at, judged_by = map(numbers.get, _get_texts(outcome))
    return (
        *(number, run, dates.date_of(check, subject, outcome.evidence_at), check, subject, node),
        *(_CODES[outcome.verdict], reason, fault, numbers[_encode_list(outcome.phases)], outcome.active),
        *(evidence, evidence_at, numbers[outcome.basis.encode()], judged_by, round(outcome.duration_s * 1e6)),
    )


def _measurements(connection: Connection, outcomes: Sequence[int]) -> dict[int, list[RowMapping]]:
    measured: dict[int, list[RowMapping]] = defaultdict(list)
    table = tables.measurements
    for some in split_batches(outcomes, BATCH_SIZE):
        query = select(table).where(table.c.outcome.in_(some)).order_by(table.c.seq)
        for row in connection.execute(query).mappings():
            measured[row["outcome"]].append(row)
    return measured


def _recorded(
    row: RowMapping, measured: Collection[RowMapping], texts: TextCache, lists: _ParsedLists
) -> RecordedOutcome:
    words: Any = dict(zip(TEXT_COLUMNS, map(texts.__getitem__, _get_text_columns(row)), strict=True))
    outcome = Outcome(
        **words,
        verdict=VERDICTS[row["verdict"]],
        phases=lists[row["phases"]],
        basis=_decode_basis(texts[row["basis"]]),
        active=row["active"],
        duration_s=row["micros"] / 1e6,
        measurements=tuple(_measurement(lists[one["gauge"]], one["value"]) for one in measured),
    )
    return RecordedOutcome(row["run_id"], row["run_at"], outcome, _find_recorded_at(outcome, row["measured_s"]))


def _find_recorded_at(outcome: Outcome, measured_s: float) -> str:
    """Return when an outcome was recorded, if its evidence claims a later time; else ""."""
    ahead = outcome.evidence_at and measured_s < parse_epoch_seconds_cached(outcome.evidence_at)
    return format_epoch_seconds(measured_s) if ahead else ""


def _measurement(gauge: Sequence[Any], value: float) -> Measurement:
    name, unit, low, high, source = gauge
    return Measurement(name, value, unit, low, high, source)
