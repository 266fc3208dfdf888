"""How long passes took is on disk, for every process; a pass that cannot be recorded goes on all the same."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from assay.act.actions.action import ActionContext
from assay.act.loop.pass_log import FILE_NAME, PASS_EDGES, read_passes, records_pass
from tests.act import standin_world as world


@dataclass(frozen=True)
class Warm:
    """What holds a context, as the caches of the controller do."""

    context: ActionContext


@records_pass("decide")
def decide(source: ActionContext | Warm, answer: int) -> int:
    return 10 // answer


@pytest.fixture
def context(tmp_path: Path) -> ActionContext:
    return world.context(tmp_path / "home")


def test_each_call_counts_in_one_bucket_whoever_holds_the_context(context: ActionContext) -> None:
    assert (decide(context, 2), decide(Warm(context), 5)) == (5, 2)
    (totals,) = read_passes(context.home).values()
    assert (sum(totals.buckets), len(totals.buckets), totals.failures) == (2, len(PASS_EDGES) + 1, 0)
    assert totals.seconds >= totals.cpu_seconds >= 0


def test_a_pass_that_fails_counts_as_failed_and_stays_an_error(context: ActionContext) -> None:
    with pytest.raises(ZeroDivisionError):
        decide(context, 0)
    assert read_passes(context.home)["decide"].failures == 1


def test_a_file_that_is_damaged_stops_no_pass(context: ActionContext) -> None:
    context.home.mkdir(parents=True, exist_ok=True)
    (context.home / FILE_NAME).write_text("no database, and longer than nothing " * 100)
    assert decide(context, 2) == 5
    assert read_passes(context.home) == {}


def test_without_a_file_there_was_no_pass(context: ActionContext) -> None:
    assert read_passes(context.home) == {}
