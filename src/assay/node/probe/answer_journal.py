"""Answers the questions of one area and records the answers where they outlive the reader's process.

The child walks the tree: it records each question, then its answer. The parent reads the journal and builds the tree.
The journal is a memfd and a shared page, not a pipe: a write wakes nobody, and the parent can read it after a hang.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from assay.model.reading import ReadingTree, failed, is_reading
from assay.node.probe.node_access import DEFAULT_QUESTION_S, TimedQuestion

LeafPath = tuple[str, ...]
Record = tuple[Sequence[str], str, Any]
"""A path; `asked`, `names` or `leaf`; and the seconds, the names or the leaf."""
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class AnswerTree:
    """The answers so far: leaves by path, and the names below each branch, answered or not.

    A path may hold a leaf as well as a branch. The leaf then stands for everything below that has no answer.
    """

    def __init__(self) -> None:
        self.leaves: dict[LeafPath, ReadingTree] = {}
        self.names: dict[LeafPath, Sequence[str]] = {}

    def is_complete(self, path: LeafPath) -> bool:
        """Return whether everything at and below `path` is answered."""
        if path in self.leaves:
            return True
        return path in self.names and all(self.is_complete((*path, name)) for name in self.names[path])

    def tree(self, otherwise: ReadingTree, path: LeafPath = ()) -> ReadingTree:
        """Return the tree at `path`; `otherwise` is the leaf for unanswered questions."""
        leaf = self.leaves.get(path, otherwise)
        if path in self.names:
            return {name: self.tree(leaf, (*path, name)) for name in self.names[path]}
        return leaf

    def add(self, path: LeafPath, kind: str, content: Any) -> None:
        """Add a record of a journal: the `names` below a branch, or a `leaf`."""
        (self.names if kind == "names" else self.leaves)[path] = content


MAX_AREA_BYTES = 8 * 2**20
"""Limit on the answers of one area. A full kernel log is 1 MB."""


class AnswerJournal:
    """The journal of one reader. The parent opens it before the fork; the child writes and the parent reads."""

    def __init__(self, allowed_s: float) -> None:
        self.file = os.memfd_create("assay-probe")
        self._deadline = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("d")
        self._deadline[0] = time.monotonic() + allowed_s
        self._unwritten: list[Record] = []
        self._bytes = 0

    @property
    def question_deadline(self) -> float:
        """The time limit of the present question, by the monotonic clock."""
        return self._deadline[0]

    def record_question(self, path: Sequence[str], seconds: float) -> None:
        """Record that the question at `path` comes next and may take `seconds`."""
        self._unwritten.append((path, "asked", seconds))
        self.flush()
        self._deadline[0] = time.monotonic() + seconds

    def record_names(self, path: Sequence[str], names: Sequence[str]) -> None:
        """Record the names below a branch."""
        self._unwritten.append((path, "names", names))

    def record_leaf(self, path: Sequence[str], leaf: ReadingTree) -> None:
        """Record a leaf. A leaf that JSON cannot hold, or that is too large, becomes failed."""
        self._unwritten.append((path, "leaf", leaf))

    def flush(self) -> None:
        """Write all records to the memfd, which outlives this process."""
        text = memoryview(self._encode())
        self._unwritten.clear()
        while text:
            text = text[os.write(self.file, text) :]

    def _encode(self) -> bytes:
        """Return the records as one line, which is cheap, or each as a line where one of them cannot be kept."""
        try:
            line = _line(self._unwritten)
        except (TypeError, ValueError, RecursionError):
            return b"".join(map(self._encode_alone, self._unwritten))
        if self._bytes + len(line) > MAX_AREA_BYTES:
            return b"".join(map(self._encode_alone, self._unwritten))
        self._bytes += len(line)
        return line

    def _encode_alone(self, record: Record) -> bytes:
        try:
            line = _line([record])
        except (TypeError, ValueError, RecursionError) as error:
            line = _line([(record[0], "leaf", failed(f"no JSON: {type(error).__name__}"))])
        if self._bytes + len(line) > MAX_AREA_BYTES and record[1] == "leaf":
            reason = f"more than this area's {MAX_AREA_BYTES >> 20} MiB of answers"
            line = _line([(record[0], "leaf", failed(reason))])
        self._bytes += len(line)
        return line

    def records(self) -> Iterator[list[Any]]:
        """Yield `[path, kind, content]` of every whole record; `kind` is asked, names or leaf."""
        size = os.fstat(self.file).st_size
        for line in os.pread(self.file, size, 0).splitlines():
            with contextlib.suppress(ValueError):
                yield from json.loads(line)

    def close(self) -> None:
        """Close the journal in this process; a child that hangs keeps its own descriptor."""
        os.close(self.file)


def _line(records: Sequence[Record]) -> bytes:
    """Return one line of strict UTF-8. Raises TypeError, ValueError for what JSON or UTF-8 cannot hold."""
    return _ENCODER.encode(records).encode() + b"\n"


def walk_questions(what: Any, known: AnswerTree, journal: AnswerJournal, path: LeafPath = ()) -> None:
    """Answer what is not `known` at and below `path`. Questions that lead to a branch are asked again."""
    if known.is_complete(path):
        return
    while callable(what):
        journal.record_question(path, what.seconds if isinstance(what, TimedQuestion) else DEFAULT_QUESTION_S)
        what = _answer_question(what)
    if is_reading(what):
        journal.record_leaf(path, what)
    elif not isinstance(what, Mapping):
        journal.record_leaf(path, failed(f"the reader answered with {type(what).__name__}, which is no reading"))
    else:
        journal.record_names(path, list(what))
        for name, below in what.items():
            walk_questions(below, known, journal, (*path, name))


def _answer_question(question: Callable[[], Any]) -> Any:
    try:
        return question()
    except Exception as error:  # any error of a reader is an answer: a failed leaf
        return failed(f"{type(error).__name__}: {error}")
