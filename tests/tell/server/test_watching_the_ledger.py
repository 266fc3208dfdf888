"""Whoever watches the ledger hears of a new entry, whatever happened to an earlier look at it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Event

import pytest

from assay.ledger.errors import LedgerError
from assay.tell.server import ledger_changes
from assay.tell.server.ledger_changes import LedgerChanges

PATIENCE_S = 60


@pytest.fixture(autouse=True)
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look again at once."""
    monkeypatch.setattr(ledger_changes, "REST_S", 0.01)


async def admit() -> bool:
    return True


async def hear(changes: LedgerChanges, after: int = 0) -> int:
    """Return the next new head."""
    async with asyncio.timeout(PATIENCE_S):
        async for head in changes.watch(after, admit):
            if head:
                return head
    raise AssertionError("the stream ended")


def answers(*answers: int | Exception) -> Callable[[int, float], int]:
    """Return looks at the ledger that answer this, and the last of it from then on."""
    left = list(answers)

    def look(_after: int, _timeout_s: float) -> int:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return look


@pytest.mark.parametrize("error", [LedgerError("the ledger is locked"), OSError("gone"), ValueError("strange")])
def test_a_look_that_fails_is_told_once_and_ends_no_stream(error: Exception) -> None:
    said: list[str] = []
    changes = LedgerChanges(answers(error, error, error, 7), Event(), said.append)
    assert asyncio.run(hear(changes)) == 7
    assert len(said) == 1
    assert str(error) in said[0]


def test_each_outage_is_told() -> None:
    said: list[str] = []
    changes = LedgerChanges(answers(OSError("gone"), 1, OSError("gone"), 2), Event(), said.append)

    async def hear_both() -> list[int]:
        return [await hear(changes), await hear(changes, 1)]

    assert asyncio.run(hear_both()) == [1, 2]
    assert len(said) == 2


def test_a_follower_that_was_cancelled_is_followed_by_another() -> None:
    async def cancel_and_hear() -> int:
        is_new = Event()
        changes = LedgerChanges(lambda _after, _s: 9 if is_new.wait(0.05) else 0, Event(), print)
        hearing = asyncio.create_task(hear(changes))
        await asyncio.sleep(0.02)
        task = changes._task
        assert task is not None
        task.cancel()
        await asyncio.wait([task])
        is_new.set()
        return await hearing

    assert asyncio.run(cancel_and_hear()) == 9


def test_who_is_not_admitted_any_more_hears_nothing_more() -> None:
    rights = [True, False]

    async def ask() -> bool:
        return rights.pop(0)

    async def hear_all() -> list[int]:
        changes = LedgerChanges(answers(1, 2), Event(), print)
        async with asyncio.timeout(PATIENCE_S):
            return [head async for head in changes.watch(0, ask)]

    assert len(asyncio.run(hear_all())) == 1
