"""Reads one YAML file into plain data, remembering the line and column of every entry.

The reader takes the parser's events one by one, so that hostile input (deep nesting, aliases that explode,
duplicate keys, strange tags) ends at its own line, in time and memory bounded by the size of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from assay.fleet.problem import Problem
from assay.fleet.scalars import MERGE, UnknownTag, scalar
from assay.model.errors import Trouble

MAX_BYTES = 64 * 1024 * 1024
MAX_DEPTH = 48
MAX_ALIASED = 20_000
COLUMNS = 1 << 12


class Marks:
    """Where the parts of one container stand: `at` itself, `of` its entries, by key or index.

    A place is `line * COLUMNS + column`; an entry that is a container has Marks, any other its place alone.
    """

    __slots__ = ("at", "of", "size")

    def __init__(self, at: int, of: dict[Any, Marks | int]) -> None:
        self.at, self.of, self.size = at, of, 1


@dataclass(frozen=True)
class Document:
    """One file: `data` is plain JSON-like data, `marks` says where each part of it stands."""

    file: str
    data: Any
    marks: Marks | int = 0

    def place(self, path: Sequence[Any] = ()) -> tuple[int, int]:
        """Return line and column (from 1) of the entry at `path`. Steps that are not in the file are passed over."""
        here: Marks | int = self.marks
        for step in path:
            if isinstance(here, Marks) and step in here.of:
                here = here.of[step]
        at = here.at if isinstance(here, Marks) else here
        return at // COLUMNS + 1, at % COLUMNS + 1

    def where(self, path: Sequence[Any] = ()) -> str:
        """Return `file:line` of the entry at `path`."""
        return f"{self.file}:{self.place(path)[0]}"

    def line_at(self, at: int) -> str:
        """Return `file:line` of a place in the marks."""
        return f"{self.file}:{at // COLUMNS + 1}"


@dataclass(slots=True)
class _Open:
    """A container that is being read. In a mapping, `key` waits for its value; `merges` for the end."""

    data: Any
    marks: Marks
    anchor: str | None
    key: Any = None
    has_key: bool = False
    key_at: int = 0
    merges: list[tuple[Any, Marks | int]] = field(default_factory=list)


class Unreadable(Trouble):
    """A file that is no YAML we accept; `line` and `column` count from 1."""

    def __init__(self, what: str, file: str, at: int = 0, fix: str = "") -> None:
        self.file, self.line, self.column = file, at // COLUMNS + 1, at % COLUMNS + 1
        super().__init__(what, where=f"{file}:{self.line}:{self.column}", fix=fix)

    def as_problem(self) -> Problem:
        """Return it as a problem for `check` to list."""
        return Problem(self.file, self.line, self.column, "ASY0001", "error", self.what, self.fix)


def read_file(path: Path, file: str) -> Document:
    """Read the file at `path`, which is called `file` in messages. Raises Unreadable."""
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}", file) from error
    return read(content, file)


def read(content: bytes, file: str) -> Document:
    """Read YAML. Raises Unreadable, and nothing else, whatever the bytes are."""
    if len(content) > MAX_BYTES:
        raise Unreadable(f"larger than {MAX_BYTES // 1024 // 1024} MiB", file, fix="split it into several files")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        at = content.count(b"\n", 0, error.start) * COLUMNS
        raise Unreadable(f"not UTF-8: {error.reason}", file, at, fix="save the file as UTF-8") from None
    reader = _Reader(file)
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            reader.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise Unreadable(f"not YAML: {error.problem or error.context}", file, _at(mark) if mark else 0) from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise Unreadable(f"not YAML: {' '.join(str(error).split())}", file) from None
    return Document(file, reader.data, reader.marks)


def _at(mark: Any) -> int:
    return int(mark.line) * COLUMNS + min(int(mark.column), COLUMNS - 1)


class _Reader:
    """Builds plain data from parser events."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.data: Any = None
        self.marks: Marks | int = 0
        self.stack: list[_Open] = []
        self.anchors: dict[str, tuple[Any, Marks | int] | None] = {}
        self.aliased = 0
        self.documents = 0
        self.at = 0
        self.steps: dict[type, Callable[[Any], None]] = {
            yaml.ScalarEvent: self._scalar,
            yaml.MappingStartEvent: lambda event: self._open(event, {}),
            yaml.SequenceStartEvent: lambda event: self._open(event, []),
            yaml.MappingEndEvent: self._close,
            yaml.SequenceEndEvent: self._close,
            yaml.AliasEvent: self._alias,
            yaml.DocumentStartEvent: self._document,
        }

    def take(self, event: Any) -> None:
        """Go one event further."""
        step = self.steps.get(type(event))
        if step is not None:
            self.at = _at(event.start_mark)
            step(event)

    def _wrong(self, what: str, fix: str = "") -> Unreadable:
        return Unreadable(what, self.file, self.at, fix)

    def _document(self, event: Any) -> None:  # noqa: ARG002 — every step is handed its event
        self.documents += 1
        if self.documents > 1:
            raise self._wrong("a second document in one file", "give every document a file of its own")

    def _scalar(self, event: Any) -> None:
        try:
            value = scalar(event.value, plain=event.implicit[0], tag=event.tag)
        except UnknownTag as tag:
            raise self._wrong(f"the tag {tag} is not allowed here", "write plain data, without tags") from None
        except ValueError as wrong:
            raise self._wrong(str(wrong), "quote it if it is meant as text") from None
        if value is MERGE and not self._awaits_key():
            value = event.value
        if event.anchor is not None:
            self.anchors[event.anchor] = (value, self.at)
        self._put(value, self.at)

    def _awaits_key(self) -> bool:
        return bool(self.stack) and isinstance(self.stack[-1].data, dict) and not self.stack[-1].has_key

    def _open(self, event: Any, empty: Any) -> None:
        kind = "tag:yaml.org,2002:map" if isinstance(empty, dict) else "tag:yaml.org,2002:seq"
        if event.tag not in (None, "!", kind):
            raise self._wrong(f"the tag {event.tag} is not allowed here", "write plain data, without tags")
        if len(self.stack) >= MAX_DEPTH:
            raise self._wrong(f"nested deeper than {MAX_DEPTH} levels", "flatten it")
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        self.stack.append(_Open(empty, Marks(self.at, {}), event.anchor))

    def _close(self, event: Any) -> None:  # noqa: ARG002 — every step is handed its event
        done = self.stack.pop()
        for value, marks in done.merges:
            self._merge(done, value, marks)
        if done.anchor is not None:
            self.anchors[done.anchor] = (done.data, done.marks)
        self._put(done.data, done.marks)

    def _alias(self, event: Any) -> None:
        if event.anchor not in self.anchors:
            raise self._wrong(f"*{event.anchor} stands before any &{event.anchor}")
        meant = self.anchors[event.anchor]
        if meant is None:
            raise self._wrong(f"*{event.anchor} contains itself")
        self.aliased += _size(meant[1])
        if self.aliased > MAX_ALIASED:
            raise self._wrong(f"aliases stand for more than {MAX_ALIASED} values", "write the values out")
        self._put(*meant)

    def _put(self, value: Any, marks: Marks | int) -> None:
        if not self.stack:
            self.data, self.marks = value, marks
        elif isinstance(self.stack[-1].data, list):
            self._put_item(self.stack[-1], value, marks)
        elif self.stack[-1].has_key:
            self._put_entry(self.stack[-1], value, marks)
        else:
            self._put_key(self.stack[-1], value)

    def _put_item(self, top: _Open, value: Any, marks: Marks | int) -> None:
        top.marks.of[len(top.data)] = marks
        top.marks.size += _size(marks)
        top.data.append(value)

    def _put_key(self, top: _Open, key: Any) -> None:
        if isinstance(key, dict | list):
            raise self._wrong("a mapping or list cannot be a key")
        if key in top.data and key is not MERGE:
            line = top.marks.of[key]
            first = (line.at if isinstance(line, Marks) else line) // COLUMNS + 1
            raise self._wrong(f"the key {key!r} stands twice; first on line {first}", "keep one of the two")
        top.key, top.has_key, top.key_at = key, True, self.at

    def _put_entry(self, top: _Open, value: Any, marks: Marks | int) -> None:
        top.has_key = False
        if top.key is MERGE:
            top.merges.append((value, marks))
            return
        top.data[top.key] = value
        top.marks.size += _size(marks)
        top.marks.of[top.key] = _moved(marks, top.key_at)

    def _merge(self, into: _Open, value: Any, marks: Marks | int) -> None:
        if isinstance(value, list) and isinstance(marks, Marks):
            for index, item in enumerate(value):
                self._merge(into, item, marks.of[index])
            return
        if not isinstance(value, dict) or not isinstance(marks, Marks):
            raise Unreadable("<< takes a mapping or a list of mappings", self.file, into.marks.at)
        for key, entry in value.items():
            if key not in into.data:
                into.data[key] = entry
                into.marks.of[key] = marks.of[key]
                into.marks.size += _size(marks.of[key])


def _size(marks: Marks | int) -> int:
    return marks.size if isinstance(marks, Marks) else 1


def _moved(marks: Marks | int, at: int) -> Marks | int:
    """Return `marks` as they are for an entry whose key stands at `at`: that is where a reader looks."""
    if not isinstance(marks, Marks):
        return at
    moved = Marks(at, marks.of)
    moved.size = marks.size
    return moved
