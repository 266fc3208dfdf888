"""What a reader has said so far, and until when its present question may take, in memory that outlives it.

A memfd and a shared page, not a pipe: a write wakes nobody, and what was written before a hang can be read after it.

What is known of an area so far: leaves and branches by path, put together to one tree at the end.

Ask the questions of a lazy tree one after the other, saying each before and its answer after.
"""

from __future__ import annotations

import json
import mmap
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from assay.model.reading import failed, parse_reading
from assay.probe.node_access import DEFAULT_QUESTION_S, TimedQuestion, Tree

LeafPath = tuple[str, ...]


class AnswerTree:
    """Leaves by path, and the names below each branch, also of those names that nobody could be asked about yet.

    A leaf may stand where a branch is known as well: it is then the answer of all below that has none of its own.
    """

    def __init__(self) -> None:
        self.leaves: dict[LeafPath, Tree] = {}
        self.names: dict[LeafPath, Sequence[str]] = {}

    def is_complete(self, path: LeafPath) -> bool:
        """Say whether nothing is left to be asked at or below `path`."""
        if path in self.leaves:
            return True
        return path in self.names and all(self.is_complete((*path, name)) for name in self.names[path])

    def tree(self, otherwise: Tree, path: LeafPath = ()) -> Tree:
        """Return the tree at `path`; `otherwise` is the leaf of what was not asked."""
        leaf = self.leaves.get(path, otherwise)
        if path in self.names:
            return {name: self.tree(leaf, (*path, name)) for name in self.names[path]}
        return leaf

    def add(self, path: LeafPath, kind: str, content: Any) -> None:
        """Take a record of a journal: the `names` below a branch, or a `leaf`."""
        (self.names if kind == "names" else self.leaves)[path] = content


MAX_AREA_BYTES = 8 * 2**20
"""Of one area: a full kernel log is 1 MB."""


class AnswerJournal:
    """One reader's: made before the fork; the child writes, the parent looks."""

    def __init__(self, allowed_s: float) -> None:
        self.file = os.memfd_create("assay-probe")
        self._due = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("d")
        self._due[0] = time.monotonic() + allowed_s
        self._said: list[bytes] = []
        self._bytes = 0

    @property
    def question_deadline(self) -> float:
        """The moment, by the monotonic clock, when the present question has taken too long."""
        return self._due[0]

    def record_question(self, path: Sequence[str], seconds: float) -> None:
        """Say that the question at `path` comes next and may take so long."""
        self._said.append(_line([path, "asked", seconds]))
        self.flush()
        self._due[0] = time.monotonic() + seconds

    def record_names(self, path: Sequence[str], names: Sequence[str]) -> None:
        """Say which names there are below a branch."""
        self._keep(_line([path, "names", names]))

    def record_leaf(self, path: Sequence[str], leaf: Tree) -> None:
        """Say a leaf. One that JSON cannot hold, or that is too much, is a failed one."""
        try:
            line = _line([path, "leaf", leaf])
        except (TypeError, ValueError, RecursionError) as error:
            line = _line([path, "leaf", failed(f"no JSON: {type(error).__name__}")])
        if self._bytes + len(line) > MAX_AREA_BYTES:
            line = _line([path, "leaf", failed(f"more than this area's {MAX_AREA_BYTES >> 20} MiB of answers")])
        self._keep(line)

    def flush(self) -> None:
        """Bring what was said to where it outlives this process."""
        text = memoryview(b"".join(self._said))
        self._said.clear()
        while text:
            text = text[os.write(self.file, text) :]

    def records(self) -> Iterator[list[Any]]:
        """Yield `[path, kind, content]`; a line that the writer died in is left out."""
        size = os.fstat(self.file).st_size
        for line in os.pread(self.file, size, 0).splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                continue

    def close(self) -> None:
        """Forget it here; a process that is stuck keeps its own."""
        os.close(self.file)

    def _keep(self, line: bytes) -> None:
        self._said.append(line)
        self._bytes += len(line)


def _line(record: Any) -> bytes:
    """Return one line of strict UTF-8. Raises TypeError, ValueError for what JSON or UTF-8 cannot hold."""
    return json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def walk_questions(what: Any, known: AnswerTree, journal: AnswerJournal, path: LeafPath = ()) -> None:
    """Ask what is not `known` at and below `path`. Questions that led to a branch are asked again, to get there."""
    if known.is_complete(path):
        return
    while callable(what):
        journal.record_question(path, what.seconds if isinstance(what, TimedQuestion) else DEFAULT_QUESTION_S)
        what = _answer(what)
    if not isinstance(what, Mapping):
        journal.record_leaf(path, failed(f"the reader answered with {type(what).__name__}, which is no reading"))
    elif parse_reading(what) is not None:
        journal.record_leaf(path, dict(what))
    else:
        journal.record_names(path, list(what))
        for name, below in what.items():
            walk_questions(below, known, journal, (*path, name))


def _answer(question: Callable[[], Any]) -> Any:
    try:
        return question()
    except Exception as error:  # whatever went wrong is the answer
        return failed(f"{type(error).__name__}: {error}")
