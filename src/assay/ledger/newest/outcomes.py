"""Writes many outcomes at once into the ledger, and reads them.

An outcome has the date of its evidence, corrected for wrong clocks of nodes and controllers: no date is after its
recording. If a clock was set back, an outcome recorded now counts as no older than those recorded before it. Otherwise
a pass with a date in the future would hide each later failure until that date.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, Table, func, select

from assay.ledger import tables
from assay.ledger.hash_chain import RunDigest
from assay.ledger.newest.grouped_rows import (
    OutcomeGroup,
    SubjectLists,
    SubjectNumbers,
    decode_numbers,
    group_outcomes,
    split_at_nodes,
)
from assay.ledger.newest.interned_texts import BATCH_SIZE, TextCache, TextNumbers, find_text_numbers, split_batches
from assay.ledger.newest.outcome_queries import (
    EACH_NEWEST,
    OUTCOMES_PER_INSERT,
    InsertedOutcome,
    OutcomeInsertions,
    is_recorded_after,
    select_newest,
)
from assay.ledger.schema_upgrade import select_hashed_columns
from assay.model.clock import MAX_CLOCK_SKEW
from assay.model.evidence import EvidenceBasis
from assay.model.outcome import VERDICTS, Measurement, Outcome, RecordedOutcome
from assay.model.timestamps import format_epoch_seconds, parse_epoch_seconds_cached

OutcomeRow = dict[str, Any]
TEXT_COLUMNS = ("check", "subject", "node", "reason", "fault", "evidence", "evidence_at", "judged_by")
"""Fields of an outcome that are kept as the number of their text. `basis` and `phases` are encoded first."""
_get_texts = attrgetter(*(name for name in TEXT_COLUMNS if name != "subject"))
_get_text_columns = itemgetter(*TEXT_COLUMNS)
GaugeValue = tuple[int, float]
_CODES = {verdict: code for code, verdict in enumerate(VERDICTS)}
NODES_AT_ONCE = 50
"""Nodes whose outcomes are read at once: the database's rows take more memory than the outcomes made of them."""


class OutcomeDates:
    """The dates of a run's outcomes. The run is of the time `at` and is recorded `now` (None if long ago)."""

    def __init__(self, connection: Connection, at: str, now: datetime | None) -> None:
        self._connection = connection
        self._at = parse_epoch_seconds_cached(at)
        self._now = now
        self._latest = now.timestamp() if now else self._at
        self._floors: dict[tuple[int, int], float] = {}

    def load(self, nodes: Collection[int]) -> None:
        """Load the outcomes of these nodes that have a date in the future."""
        if self._now is None:
            return
        table, ahead = tables.newest.c, self._latest + MAX_CLOCK_SKEW.total_seconds()
        subject = tables.members.c.subject
        highest = select(table.check, subject, func.max(table.measured_s)).select_from(EACH_NEWEST)
        query = highest.where(table.node.in_(nodes), table.measured_s > ahead).group_by(table.check, subject)
        self._floors = {(check, subject): date for check, subject, date in self._connection.execute(query)}

    def split(self, group: OutcomeGroup, numbers: TextNumbers) -> Iterator[tuple[float, OutcomeGroup]]:
        """Yield the dates of a group's outcomes in seconds since 1970, each with those that have it: mostly, one."""
        at = group.first.evidence_at
        seen = min(parse_epoch_seconds_cached(at) if at else self._at, self._latest)
        if not self._floors:
            yield seen, group
            return
        check, by_date = numbers[group.first.check], dict[float, dict[str, SubjectNumbers]]()
        for subject, own in group.numbers.items():
            date = max(seen, self._floors.get((check, numbers[subject]), seen))
            by_date.setdefault(date, {})[subject] = own
        for date, some in by_date.items():
            yield date, OutcomeGroup(group.first, some)


def write_outcomes(connection: Connection, outcomes: Iterable[Outcome], run: int, dates: OutcomeDates) -> OutcomeRow:
    """Write the outcomes of the run with number `run`, with these dates, inside the writing transaction.

    Returns the outcome columns of the run's row.
    """
    numbers = TextNumbers(connection)
    digest = RunDigest()
    insertions = OutcomeInsertions(connection)
    lists_of = SubjectLists(connection, numbers)
    number = _highest(connection, tables.outcomes)
    for some in split_at_nodes(outcomes, OUTCOMES_PER_INSERT):
        groups = group_outcomes(some)
        numbers.load(_list_texts(groups))
        dates.load({numbers[group.first.node] for group in groups})
        dated = [each for group in groups for each in dates.split(group, numbers)]
        lists = lists_of.load([group for _, group in dated])
        rows = [
            _make_row(number + at, run, measured_s, subjects, group, numbers)
            for at, ((measured_s, group), subjects) in enumerate(zip(dated, lists, strict=True), 1)
        ]
        measured = [
            (number + at, gauge, value)
            for at, (_, group) in enumerate(dated, 1)
            if len(group.numbers) == 1 and group.first.measurements
            for gauge, value in zip(
                _number_gauges(group, numbers), *(each.values for each in group.numbers.values()), strict=True
            )
        ]
        number += len(rows)
        insertions.insert(rows, measured)
        digest.outcomes(select_hashed_columns(rows))
        digest.measured(measured)
    digest.texts(numbers.added)
    return {"texts": _highest(connection, tables.texts), "outcomes": number, "digest": digest.hexdigest()}


def _highest(connection: Connection, table: Table) -> int:
    number: int = connection.execute(select(func.coalesce(func.max(table.c.seq), 0))).scalar_one()
    return number


def read_outcomes(connection: Connection, query: Select[Any], texts: TextCache) -> list[RecordedOutcome]:
    """Return the outcomes of a query made with `select_outcomes`, in its order, each with its measurements."""
    rows = list(connection.execute(query).mappings())
    decoded = {row["seq"]: decode_numbers(row["numbers"]) for row in rows if row["numbers"]}
    measured = _measurements(connection, [row["seq"] for row in rows if not row["numbers"]])
    numbers = [_find_numbers(row, decoded, measured) for row in rows]
    texts.load(connection, {row[name] for row in rows for name in (*TEXT_COLUMNS, "phases", "basis")})
    texts.load(connection, {gauge for _, values in numbers for gauge, _ in values})
    lists = _ParsedLists(texts)
    return [_recorded(row, *own, texts, lists) for row, own in zip(rows, numbers, strict=True)]


def _find_numbers(
    row: RowMapping,
    decoded: Mapping[int, tuple[list[int], list[int], list[list[float]]]],
    measured: Mapping[int, Sequence[GaugeValue]],
) -> tuple[int, Sequence[GaugeValue]]:
    """Return the duration of one subject's outcome, and its gauges with their values."""
    if row["seq"] not in decoded:
        return row["micros"], measured[row["seq"]]
    durations, gauges, values = decoded[row["seq"]]
    at = row["place"]
    return durations[at], [(gauge, float(each[at])) for gauge, each in zip(gauges, values, strict=True)]


def read_newest(connection: Connection, nodes: Collection[str] | None, texts: TextCache) -> list[RecordedOutcome]:
    """Return the newest outcome of each check × subject, of these nodes or of all (None)."""
    if nodes is None:
        return read_outcomes(connection, select_newest(), texts)
    batches = (find_text_numbers(connection, some) for some in split_batches(nodes, NODES_AT_ONCE))
    return [outcome for some in batches for outcome in read_outcomes(connection, select_newest(some), texts)]


def read_judged_nodes(connection: Connection, after: int, texts: TextCache) -> set[str]:
    """Return the nodes of the outcomes in runs whose number is above `after`."""
    numbers = set(
        connection.execute(select(tables.outcomes.c.node).where(is_recorded_after(after)).distinct()).scalars()
    )
    texts.load(connection, numbers)
    return {texts[number] for number in numbers}


class _ParsedLists(dict[int, Any]):
    """The texts as parsed JSON, by number. Each text is parsed once."""

    def __init__(self, texts: TextCache) -> None:
        super().__init__()
        self._texts = texts

    def __missing__(self, number: int) -> Any:
        parsed = self[number] = tuple(json.loads(self._texts[number]))
        return parsed


def _list_texts(groups: Iterable[OutcomeGroup]) -> Iterable[str]:
    """Return all texts of some rows in order: subjects of a node get consecutive numbers."""
    texts = dict[str, None]()
    for first, subjects in groups:
        texts.update(dict.fromkeys(subjects))
        texts.update(dict.fromkeys(_get_texts(first)))
        texts[_encode_list(first.phases)] = texts[first.basis.encode()] = None
        texts.update(dict.fromkeys(map(_encode_gauge, first.measurements)))
    return texts


@lru_cache(4096)
def _decode_basis(text: str) -> EvidenceBasis:
    return EvidenceBasis.decode(text)


@lru_cache(4096)
def _encode_list(of: tuple[Any, ...]) -> str:
    return json.dumps(of, ensure_ascii=False)


def _encode_gauge(measurement: Measurement) -> str:
    return _encode_list(
        (measurement.name, measurement.unit, measurement.at_least, measurement.at_most, measurement.source)
    )


def _number_gauges(group: OutcomeGroup, numbers: TextNumbers) -> list[int]:
    return [numbers[_encode_gauge(measurement)] for measurement in group.first.measurements]


def _make_row(
    number: int, run: int, measured_s: float, subjects: int, group: OutcomeGroup, numbers: TextNumbers
) -> InsertedOutcome:
    """Return the values of a row, in the order of `OUTCOME_COLUMNS`."""
    first = group.first
    check, node, reason, fault, evidence, evidence_at, judged_by = map(numbers.get, _get_texts(first))
    return (
        *(number, run, measured_s, check, subjects, node, _CODES[first.verdict], reason, fault),
        *(numbers[_encode_list(first.phases)], first.active, evidence, evidence_at),
        *(numbers[first.basis.encode()], judged_by),
        sum(each.micros for each in group.numbers.values()),
        group.encode(_number_gauges(group, numbers)),
    )


def _measurements(connection: Connection, outcomes: Sequence[int]) -> dict[int, list[GaugeValue]]:
    measured: dict[int, list[GaugeValue]] = defaultdict(list)
    table = tables.measurements.c
    for some in split_batches(outcomes, BATCH_SIZE):
        query = select(table.outcome, table.gauge, table.value).where(table.outcome.in_(some)).order_by(table.seq)
        for number, gauge, value in connection.execute(query):
            measured[number].append((gauge, value))
    return measured


def _recorded(
    row: RowMapping, micros: int, measured: Sequence[GaugeValue], texts: TextCache, lists: _ParsedLists
) -> RecordedOutcome:
    words: Any = dict(zip(TEXT_COLUMNS, map(texts.__getitem__, _get_text_columns(row)), strict=True))
    outcome = Outcome(
        **words,
        verdict=VERDICTS[row["verdict"]],
        phases=lists[row["phases"]],
        basis=_decode_basis(texts[row["basis"]]),
        active=row["active"],
        duration_s=micros / 1e6,
        measurements=tuple(
            Measurement(name, value, unit, low, high, source)
            for gauge, value in measured
            for name, unit, low, high, source in [lists[gauge]]
        ),
    )
    # the evidence may claim a later time than that of its recording, which then counts
    is_ahead = outcome.evidence_at and row["measured_s"] < parse_epoch_seconds_cached(outcome.evidence_at)
    recorded_at = format_epoch_seconds(row["measured_s"]) if is_ahead else ""
    return RecordedOutcome(row["run_id"], row["run_at"], outcome, recorded_at)
