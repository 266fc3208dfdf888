"""Outcomes of several subjects in one row: the same in all but their subjects, durations and measured values.

Such a row has a list of subjects in place of a subject, and in `numbers` a JSON list: the durations in microseconds by
subject, the gauges, and for each gauge the values by subject, or the one value that all of them have. Without gauges,
the durations stand alone. A check of the eight GPUs of a node needs one row where all of them pass. A row for one
subject has its measurements in `measurement`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import Connection, insert, select

from assay.ledger.newest.interned_texts import BATCH_SIZE, TextNumbers, split_batches
from assay.ledger.tables import members
from assay.model.outcome import Outcome

MAX_SUBJECTS = 64
"""A longer list would be another one whenever a single subject fails."""
MAX_SHORTENED = 1e15
LIST_MARK = "subjects\t"
"""Begins the text of a list, which continues with the numbers of its subjects as JSON. No subject has a tab.

Three or more consecutive numbers are a pair: the first, and how many. Older lists have each number.
"""
MIN_RUN = 3
_get_shared = attrgetter(
    "check", "node", "verdict", "reason", "fault", "phases", "active", "evidence", "evidence_at", "basis", "judged_by"
)
"""What the outcomes of a row have in common."""
_get_gauge = attrgetter("name", "unit", "at_least", "at_most", "source")
_encode = json.JSONEncoder(separators=(",", ":")).encode


class SubjectNumbers(NamedTuple):
    """The numbers of one subject: its duration, and the value of each gauge of its row."""

    micros: int
    values: tuple[float, ...]


class OutcomeGroup(NamedTuple):
    """One row: the first of its outcomes, which says what they have in common, and the numbers by subject."""

    first: Outcome
    numbers: dict[str, SubjectNumbers]

    def encode(self, gauges: Sequence[int]) -> str:
        """Return the column `numbers`, "" for one subject. `gauges` are the numbers of its gauges."""
        if len(self.numbers) == 1:
            return ""
        durations = [each.micros for each in self.numbers.values()]
        if not gauges:
            return _encode([durations])
        by_gauge = zip(*(map(_shorten, each.values) for each in self.numbers.values()), strict=True)
        return _encode([durations, gauges, list(map(_write_once, by_gauge))])


def split_at_nodes(outcomes: Iterable[Outcome], size: int) -> Iterator[list[Outcome]]:
    """Yield outcomes in lists of about `size`; what follows one another and is of one node stays together.

    Of a node with more than twice as many, it does not.
    """
    waiting: list[Outcome] = []
    node = ""
    for outcome in outcomes:
        if outcome.node != node:
            if len(waiting) >= size:
                yield waiting
                waiting = []
            node = outcome.node
        elif len(waiting) >= 2 * size:
            yield waiting
            waiting = []
        waiting.append(outcome)
    if waiting:
        yield waiting


def group_outcomes(outcomes: Iterable[Outcome]) -> list[OutcomeGroup]:
    """Return rows for outcomes, each in its order."""
    rows: list[OutcomeGroup] = []
    open_rows: dict[tuple[Any, ...], OutcomeGroup] = {}
    for outcome in outcomes:
        measured = outcome.measurements
        key = (*_get_shared(outcome), *map(_get_gauge, measured)) if measured else _get_shared(outcome)
        row = open_rows.get(key)
        if row is None or outcome.subject in row.numbers or len(row.numbers) == MAX_SUBJECTS:
            row = open_rows[key] = OutcomeGroup(outcome, {})
            rows.append(row)
        values = tuple([float(each.value) for each in measured]) if measured else ()
        row.numbers[outcome.subject] = SubjectNumbers(round(outcome.duration_s * 1e6), values)
    return rows


def decode_numbers(numbers: str) -> tuple[list[int], list[int], list[list[float]]]:
    """Return durations by subject, gauges, and for each gauge its values by subject."""
    durations, gauges, values = (*json.loads(numbers), [], [])[:3]
    count = len(durations)
    return durations, gauges, [each if isinstance(each, list) else [each] * count for each in values]


def list_members(number: int, text: str) -> list[int]:
    """Return the subjects of the list with this number and text: a subject that stands alone is a list of itself."""
    if not text.startswith(LIST_MARK):
        return [number]
    runs = json.loads(text.removeprefix(LIST_MARK))
    return [subject for each in runs for subject in (range(each[0], sum(each)) if isinstance(each, list) else (each,))]


def encode_members(subjects: Sequence[int]) -> str:
    """Return the text of a list with these subjects."""
    runs: list[int | tuple[int, int]] = []
    for _, run in groupby(enumerate(subjects), lambda placed: placed[1] - placed[0]):
        numbers = [number for _, number in run]
        runs += [(numbers[0], len(numbers))] if len(numbers) >= MIN_RUN else numbers
    return f"{LIST_MARK}{_encode(runs)}"


class SubjectLists:
    """The lists of subjects within the one writing transaction."""

    def __init__(self, connection: Connection, numbers: TextNumbers) -> None:
        self._connection, self._numbers = connection, numbers
        self._known = set[int]()

    def load(self, groups: Collection[OutcomeGroup]) -> list[int]:
        """Return the number of each row's list of subjects. Those that are new become part of the ledger."""
        get = self._numbers.get
        subjects = [tuple(map(get, group.numbers)) for group in groups]
        texts = {each: encode_members(each) for each in dict.fromkeys(subjects) if len(each) > 1}
        self._numbers.load(texts.values())
        lists = {each: get(texts[each]) if each in texts else each[0] for each in subjects}
        self._add_members({number: each for each, number in lists.items()})
        return [lists[each] for each in subjects]

    def _add_members(self, lists: Mapping[int, Sequence[int]]) -> None:
        fresh = [number for number in lists if number not in self._known]
        for some in split_batches(fresh, BATCH_SIZE):
            query = select(members.c.list).where(members.c.list.in_(some), members.c.place == 0)
            there = set(self._connection.execute(query).scalars())
            rows = [
                {"list": number, "place": place, "subject": subject}
                for number in some
                if number not in there
                for place, subject in enumerate(lists[number])
            ]
            if rows:
                self._connection.execute(insert(members), rows)
        self._known.update(fresh)


def _write_once(values: Sequence[float]) -> Sequence[float] | float:
    """Return the value that all have, or the values."""
    return values[0] if values.count(values[0]) == len(values) else values


def _shorten(value: float) -> float:
    """Return a value as JSON writes it shortest: without `.0`."""
    return int(value) if value.is_integer() and abs(value) < MAX_SHORTENED else value
