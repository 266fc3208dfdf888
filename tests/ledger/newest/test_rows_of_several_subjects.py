"""One row stands for several subjects; every reader gives the same answers as if each outcome had a row of its own."""

from __future__ import annotations

import itertools
import random
from collections import Counter, defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import event, func, select, text

from assay.ledger import tables
from assay.ledger.newest.counts import CheckAge
from assay.ledger.newest.grouped_rows import decode_numbers, encode_members, list_members
from assay.ledger.store import Ledger
from assay.model.outcome import VERDICTS, Measurement, Outcome, RecordedOutcome, SuiteRun
from assay.model.timestamps import format_epoch_seconds

START = datetime(2026, 11, 20, 12, tzinfo=UTC)
CHECKS, NODES, GPUS, RUNS = ("test_heat", "test_power"), ("n1", "n2"), 4, 10
Kind = tuple[str, str]


def told(number: int, choice: random.Random) -> list[Outcome]:
    """Return the outcomes of a run, mostly passes; evidence may be older than that of the run before."""
    found = []
    for node, check in itertools.product(NODES, CHECKS):
        at = (START + timedelta(hours=number - choice.choice((0, 0, 0, 3)))).isoformat()
        for gpu in range(GPUS):
            verdict = choice.choices(VERDICTS, (12, 2, 1, 1))[0]
            heat = Measurement("heat", choice.choice((61.0, 62.5, 1e300)), "°C", at_most=85.0)
            found.append(
                Outcome(
                    check, f"a/{node}/gpu{gpu}", node, verdict, "" if verdict == "pass" else choice.choice("ab"),
                    evidence_at=at, duration_s=choice.randrange(9) / 1000, measurements=(heat,) * (check == CHECKS[0]),
                )
            )  # fmt: skip
    return choice.sample(found, choice.randrange(1, len(found) + 1)) if number % 3 == 2 else found


class PlainHistory:
    """What a ledger must answer, from a list of all outcomes."""

    def __init__(self) -> None:
        self.all: list[tuple[float, int, int, Outcome]] = []

    def add(self, run: int, outcomes: list[Outcome]) -> None:
        for one in outcomes:
            self.all.append((datetime.fromisoformat(one.evidence_at).timestamp(), run, len(self.all), one))

    def newest(self, *verdicts: str) -> dict[Kind, tuple[float, Outcome]]:
        """Return date and outcome of the newest with one of these verdicts, by check and subject."""
        wanted = sorted((one for one in self.all if one[-1].verdict in verdicts), key=lambda one: one[:3])
        return {(one.check, one.subject): (at, one) for at, _, _, one in wanted}


@pytest.fixture(params=range(2))
def histories(ledger: Ledger, request: pytest.FixtureRequest) -> tuple[Ledger, PlainHistory]:
    """A ledger and a plain history of the same runs."""
    choice, plain = random.Random(request.param), PlainHistory()
    for number in range(RUNS):
        outcomes = told(number, choice)
        ledger.record(SuiteRun(f"r{number}", (START + timedelta(hours=number)).isoformat()), outcomes)
        plain.add(number, outcomes)
    return ledger, plain


def by_kind(found: list[RecordedOutcome]) -> dict[Kind, Outcome]:
    kinds = {(one.outcome.check, one.outcome.subject): one.outcome for one in found}
    assert len(kinds) == len(found), "one for each check and subject"
    return kinds


def test_every_reader_answers_as_if_each_outcome_had_its_own_row(histories):
    ledger, plain = histories
    newest, passes = plain.newest(*VERDICTS), plain.newest("pass")
    assert by_kind(ledger.latest()) == {kind: one for kind, (_, one) in newest.items()}
    for run in range(RUNS):
        expected = [one for _, number, _, one in plain.all if number == run]
        assert sorted(map(repr, (one.outcome for one in ledger.outcomes(f"r{run}")))) == sorted(map(repr, expected))
    assert by_kind(ledger.newest_passes(CHECKS[0])) == {
        kind: one for kind, (_, one) in passes.items() if kind[0] == CHECKS[0]
    }
    for kind in newest:
        found = ledger.last_outcome(*kind)
        assert (found and found.outcome) == (passes[kind][1] if kind in passes else None)
    assert ledger.count_outcomes(3).outcomes == Counter(
        (one.check, one.verdict) for _, run, _, one in plain.all if run >= 3
    )
    assert ledger.find_judged_nodes(RUNS - 1) == {one.node for _, run, _, one in plain.all if run == RUNS - 1}
    oldest = {node: min(at for at, one in passes.values() if one.node == node) for node in NODES}
    assert ledger.oldest_passes(CHECKS) == oldest
    assert ledger.verify() == []


def test_ages_and_standings_are_those_of_single_subjects(histories):
    ledger, plain = histories
    dates: dict[tuple[str, str], list[float]] = defaultdict(list)
    for (check, _), (at, one) in plain.newest("pass", "fail", "skip").items():
        dates[one.node, check].append(at)
    assert ledger.ages(NODES) == {
        node: {check: CheckAge(len(some), min(some)) for (of, check), some in dates.items() if of == node}
        for node in NODES
    }
    standings, newest = ledger.standings(CHECKS), plain.newest(*VERDICTS)
    assert sum(one.subjects for one in standings.passes) == sum(one.verdict == "pass" for _, one in newest.values())
    failures = [one.recorded for one in standings.failures]
    assert by_kind(failures) == {kind: one for kind, (_, one) in newest.items() if one.verdict != "pass"}
    for failure in standings.failures:
        kind = (failure.recorded.outcome.check, failure.recorded.outcome.subject)
        passed_s = plain.newest("pass")[kind][0] if kind in plain.newest("pass") else 0
        since = [
            (at, one.reason)
            for at, _, _, one in sorted(plain.all, key=lambda one: one[0])
            if (one.check, one.subject) == kind and one.verdict != "pass" and at > passed_s
        ]
        first = {reason: format_epoch_seconds(at) for at, reason in reversed(since)}
        assert failure.row == tuple(sorted((at, reason) for reason, at in first.items()))
        assert failure.passed_s == passed_s


def test_outcomes_of_one_node_with_the_same_reason_share_a_row(ledger: Ledger):
    gpus = [
        Outcome("c", f"a/n1/gpu{at}", "n1", "pass", duration_s=at, evidence_at=START.isoformat()) for at in range(8)
    ]
    others = [replace(gpus[7], verdict="fail", reason="hot"), replace(gpus[0], subject="a/n2/gpu0", node="n2")]
    ledger.record(SuiteRun("r1", START.isoformat()), gpus[:7] + others)
    assert count(ledger, tables.outcomes) == 3
    assert [one.outcome for one in ledger.outcomes("r1")] == gpus[:7] + others
    assert [one.outcome for one in ledger.outcomes(node="n1")] == gpus[:7] + others[:1]


@pytest.mark.parametrize(
    ("watts", "numbers"),
    [
        ((), "[[1,2,3]]"),
        ((350.0, 350.0, 350.0), "[[1,2,3],[{0}],[350]]"),
        ((350.0, 351.5, 350.0), "[[1,2,3],[{0}],[[350,351.5,350]]]"),
    ],
)
def test_what_all_subjects_of_a_row_measured_is_written_once(ledger: Ledger, watts, numbers):
    measured = [(Measurement("watts", value, "W"),) for value in watts] or [()] * 3
    gpus = [
        Outcome("c", f"a/n1/gpu{at}", "n1", "pass", duration_s=(at + 1) / 1e6, measurements=measured[at])
        for at in range(3)
    ]
    ledger.record(SuiteRun("r1", START.isoformat()), gpus)
    assert [one.outcome for one in ledger.outcomes("r1")] == gpus
    with ledger._engine.connect() as connection:
        gauges = select(tables.texts.c.seq).where(tables.texts.c.key.like('["watts"%'))
        found = connection.execute(gauges).scalars().all()
        assert connection.execute(select(tables.outcomes.c.numbers)).scalars().all() == [numbers.format(*found)]
    assert ledger.verify() == []


def test_what_is_newest_is_found_by_its_whole_key_and_not_among_all_nodes(tmp_path):
    """Otherwise the time of a run, and of `assay sync`, grows with the square of the nodes."""
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    said: list[tuple[str, Any]] = []
    event.listen(ledger._engine, "before_cursor_execute", lambda *about: said.append((about[2], about[3])))
    for number, verdict in enumerate(("pass", "fail")):
        at = (START + timedelta(hours=number)).isoformat()
        gpus = [Outcome("c", f"a/n1/gpu{gpu}", "n1", verdict, "hot" * number, evidence_at=at) for gpu in range(4)]
        ledger.record(SuiteRun(f"r{number}", at), gpus)
    assert len(ledger.standings(["c"]).failures) == 4
    plans: dict[str, set[str]] = {}
    with ledger._engine.connect() as connection:
        for query, values in list(said):
            if "newest" in query and not query.startswith(("INSERT", "CREATE")) and isinstance(values, tuple):
                steps = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}", values).all()
                plans[query] = {step.detail for step in steps if " newest" in step.detail or " newer " in step.detail}
    whole = "PRIMARY KEY (check=? AND subject=? AND verdict=?)"
    superseding = next(steps for query, steps in plans.items() if query.startswith("DELETE FROM newest"))
    assert f"SEARCH newer USING {whole}" in superseding
    last_passes = next(steps for query, steps in plans.items() if "run.spec_commit" in query)
    assert last_passes == {f"SEARCH newest USING {whole}"}
    rows = next(steps for query, steps in plans.items() if "max(newest_1.measured_s)" in query)
    assert f"SEARCH newest_1 USING {whole}" in rows
    ledger.close()


@pytest.mark.parametrize(
    ("subjects", "text"),
    [
        ((7, 8, 9, 10), "subjects\t[[7,4]]"),
        ((7, 8), "subjects\t[7,8]"),
        ((3, 7, 8, 9, 2, 1, 0), "subjects\t[3,[7,3],2,1,0]"),
    ],
)
def test_consecutive_subjects_of_a_list_are_a_pair(subjects, text):
    assert encode_members(subjects) == text
    assert list_members(99, text) == list(subjects)
    assert list_members(99, f"subjects\t{list(subjects)}") == list(subjects), "an older list"
    assert list_members(99, "a/n1/gpu0") == [99], "one that stands alone"


def test_the_subjects_of_a_node_have_consecutive_numbers(ledger: Ledger):
    gpus = [Outcome("c", f"a/n1/gpu{at}", "n1", "pass", evidence_at=START.isoformat()) for at in range(8)]
    ledger.record(SuiteRun("r1", START.isoformat()), gpus)
    with ledger._engine.connect() as connection:
        lists = connection.execute(select(tables.texts.c.key).where(tables.texts.c.key.like("subjects%")))
        assert [len(text) for text in lists.scalars()] == [len("subjects\t[[1,8]]")]
    assert [one.outcome for one in ledger.latest()] == gpus
    assert ledger.verify() == []


def test_numbers_as_they_were_written_first_are_read():
    assert decode_numbers("[[1,2],[],[]]") == ([1, 2], [], [])
    assert decode_numbers("[[1,2],[7],[[350,350]]]") == ([1, 2], [7], [[350, 350]])


def test_what_no_subject_needs_any_more_is_no_longer_among_the_newest(ledger: Ledger):
    """Otherwise a node whose GPUs fail in turn would add a row for each set of those that pass."""
    for number in range(6):
        at = (START + timedelta(hours=number)).isoformat()
        gpus = [Outcome("c", f"a/n1/gpu{gpu}", "n1", "pass", evidence_at=at) for gpu in range(4)]
        gpus[number % 4] = replace(gpus[number % 4], verdict="fail", reason="hot")
        ledger.record(SuiteRun(f"r{number}", at), gpus)
    assert count(ledger, tables.newest) == 4 + 2, "each has failed once, and two lists hold the last passes"
    assert ledger.verify() == []


@pytest.mark.parametrize(
    "deed",
    [
        "UPDATE outcome SET numbers = replace(numbers, '61', '62') WHERE seq = 1",
        "UPDATE outcome SET numbers = '' WHERE seq = 1",
        "UPDATE member SET subject = subject + 1 WHERE place = 1",
        "DELETE FROM member WHERE place = 1",
        "DELETE FROM member",
        "UPDATE member SET place = place + 5",
        "UPDATE outcome SET subject = (SELECT max(list) FROM member WHERE place = 0) WHERE seq = 1",
    ],
)
def test_whoever_changes_subjects_or_numbers_of_a_row_is_found(ledger: Ledger, deed: str):
    heat = (Measurement("heat", 61.0), Measurement("fans", 0.5))
    gpus = [
        Outcome(check, f"a/n1/gpu{at}", "n1", "pass", measurements=heat)
        for check, gpus in (("c", 3), ("d", 2))
        for at in range(gpus)
    ]
    ledger.record(SuiteRun("r1", START.isoformat()), gpus)
    assert ledger.verify() == []
    with ledger._engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("ALTER TABLE outcome DISABLE TRIGGER USER"))
        else:
            connection.execute(text("DROP TRIGGER outcome_no_update"))
        connection.execute(text(deed))
    assert ledger.verify()


def count(ledger: Ledger, table: object) -> int:
    with ledger._engine.connect() as connection:
        number: int = connection.execute(select(func.count()).select_from(table)).scalar_one()  # type: ignore[arg-type]
        return number
