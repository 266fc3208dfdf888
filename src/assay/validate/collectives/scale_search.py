"""Finds the blocks of nodes without which a large collective does not fail, though all its pairs are good. Pure.

A prefix of the blocks grows, by bisection, until it fails: its last block is needed. With that block kept, the group
grows from there towards the first block until it fails: its first block is needed too. If both are the same block, it
fails alone. Each answer is that of two runs of at most three.

This is right if a larger group fails wherever a smaller one does. It names the first and the last of the needed blocks;
a last question says whether these two alone fail.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

VOTES = 2
"""So many equal answers decide a question."""
MAX_UNANSWERED = 3
"""After so many runs without an answer, the question stays open."""


class ScaleQuestion(NamedTuple):
    """The numbers of the blocks that run together next. The answer is whether they fail."""

    blocks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ScaleFinding:
    """The blocks that are needed: one that fails alone, or two. With `is_enough`, these two alone fail.

    `is_open` means that the runs gave no answer: then `blocks` is empty.
    """

    blocks: tuple[int, ...] = ()
    is_enough: bool = True
    is_open: bool = False


_Questions = Generator[ScaleQuestion, bool, ScaleFinding]


def find_next_question(count: int, answers: Sequence[bool | None], needed: int = VOTES) -> ScaleQuestion | ScaleFinding:
    """Return the next question about `count` blocks that fail together, or the finding.

    `answers` are those of the runs so far, in their order: failed, did not, or None for a run that says nothing. So
    many equal ones as `needed` decide a question.
    """
    questions = _ask(count)
    try:
        question = next(questions)
        votes: list[bool | None] = []
        for answer in answers:
            votes.append(answer)
            if votes.count(None) >= MAX_UNANSWERED:
                return ScaleFinding(is_open=True)
            if votes.count(answer) >= needed and answer is not None:
                question, votes = questions.send(answer), []
    except StopIteration as end:
        finding: ScaleFinding = end.value
        return finding
    return question


def _ask(count: int) -> _Questions:
    """Ask for the shortest prefix that fails, then for its shortest end that fails. Together, all blocks fail."""
    good, bad = 0, count
    while bad - good > 1:
        middle = (good + bad) // 2
        fails = yield ScaleQuestion(tuple(range(middle)))
        good, bad = (good, middle) if fails else (middle, bad)
    last = bad - 1
    first, after = 0, last + 1
    while after - first > 1:
        middle = (first + after) // 2
        fails = yield ScaleQuestion(tuple(range(middle, last + 1)))
        first, after = (middle, after) if fails else (first, middle)
    if first == last:
        return ScaleFinding((last,))
    is_enough = last - first == 1 or (yield ScaleQuestion((first, last)))
    return ScaleFinding((first, last), is_enough)
