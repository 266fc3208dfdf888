"""Builds plain data from a YAML parser's events, one by one.

Taking events instead of trees is what lets hostile input (deep nesting, aliases that explode, duplicate keys,
strange tags) end at its own line, in time and memory bounded by the size of the file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import yaml

from assay.fleet.marks import COLUMNS, Marks, Unreadable, moved, place_of, size_of
from assay.fleet.scalars import MERGE, UnknownTag, scalar, unquoted

MAX_DEPTH = 48
MAX_ALIASED = 20_000
MAX_VALUES = 2_000_000


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


class Builder:
    """Builds plain data from parser events."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.data: Any = None
        self.marks: Marks | int = 0
        self.stack: list[_Open] = []
        self.anchors: dict[str, tuple[Any, Marks | int] | None] = {}
        self.aliased = self.values = 0
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
            self.at = place_of(event.start_mark)
            step(event)

    def _wrong(self, what: str, fix: str = "") -> Unreadable:
        return Unreadable(what, self.file, self.at, fix)

    def _document(self, event: Any) -> None:  # noqa: ARG002 — every step is handed its event
        self.documents += 1
        if self.documents > 1:
            raise self._wrong("a second document in one file", "give every document a file of its own")

    def _scalar(self, event: Any) -> None:
        try:
            value = event.value
            if event.tag is not None:
                value = scalar(value, plain=event.implicit[0], tag=event.tag)
            elif event.implicit[0]:
                value = unquoted(value)
        except UnknownTag as tag:
            raise self._wrong(f"the tag {tag} is not allowed here", "write plain data, without tags") from None
        except ValueError as wrong:
            raise self._wrong(str(wrong), "quote it if it is meant as text") from None
        if value is MERGE and not self._awaits_key():
            value = event.value
        if event.anchor is not None:
            self._name(event.anchor, (value, self.at))
        self._put(value, self.at)

    def _name(self, anchor: str | None, meant: tuple[Any, Marks | int] | None) -> None:
        if anchor in self.anchors:
            raise self._wrong(f"the anchor &{anchor} stands twice", "rename one of the two")
        if anchor is not None:
            self.anchors[anchor] = meant

    def _awaits_key(self) -> bool:
        return bool(self.stack) and isinstance(self.stack[-1].data, dict) and not self.stack[-1].has_key

    def _open(self, event: Any, empty: Any) -> None:
        kind = "tag:yaml.org,2002:map" if isinstance(empty, dict) else "tag:yaml.org,2002:seq"
        if event.tag not in (None, "!", kind):
            raise self._wrong(f"the tag {event.tag} is not allowed here", "write plain data, without tags")
        if len(self.stack) >= MAX_DEPTH:
            raise self._wrong(f"nested deeper than {MAX_DEPTH} levels", "flatten it")
        self._name(event.anchor, None)
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
            raise self._wrong(f"*{event.anchor} stands before any &{event.anchor}", "write the value out")
        meant = self.anchors[event.anchor]
        if meant is None:
            raise self._wrong(f"*{event.anchor} contains itself", "write the values out")
        self.aliased += size_of(meant[1])
        if self.aliased > MAX_ALIASED:
            raise self._wrong(f"aliases stand for more than {MAX_ALIASED} values", "write the values out")
        self._put(*meant)

    def _put(self, value: Any, marks: Marks | int) -> None:
        self.values += 1
        if self.values > MAX_VALUES:
            raise self._wrong(f"more than {MAX_VALUES} values", "split it into several files")
        if not self.stack:
            self.data, self.marks = value, marks
            return
        top = self.stack[-1]
        if top.has_key:
            self._put_entry(top, value, marks)
        elif type(top.data) is list:
            self._put_item(top, value, marks)
        else:
            self._put_key(top, value)

    def _put_item(self, top: _Open, value: Any, marks: Marks | int) -> None:
        top.marks.of[len(top.data)] = marks
        top.marks.size += size_of(marks)
        top.data.append(value)

    def _put_key(self, top: _Open, key: Any) -> None:
        if isinstance(key, dict | list):
            raise self._wrong("a mapping or list cannot be a key", "use text as the key")
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
        top.marks.size += size_of(marks)
        top.marks.of[top.key] = moved(marks, top.key_at)

    def _merge(self, into: _Open, value: Any, marks: Marks | int) -> None:
        if isinstance(value, list) and isinstance(marks, Marks):
            for index, item in enumerate(value):
                self._merge(into, item, marks.of[index])
            return
        if not isinstance(value, dict) or not isinstance(marks, Marks):
            raise Unreadable(
                "<< takes a mapping or a list of mappings", self.file, into.marks.at, "write the entries out"
            )
        for key, entry in value.items():
            if key not in into.data:
                into.data[key] = entry
                into.marks.of[key] = marks.of[key]
                into.marks.size += size_of(marks.of[key])
