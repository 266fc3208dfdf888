"""Reads one YAML file into plain data, with the line and column of every entry; scalars as in YAML 1.1, like Ansible.

It is built from the parser's events: trees would not bound time and memory by the file's size. Hostile input (deep
nesting, exploding aliases, duplicate keys, unknown tags) fails at its own line.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import yaml

from assay.declare.problems import FleetProblem
from assay.declare.repository.tree import MAX_FILE_BYTES, RepositoryTree
from assay.model.errors import AssayError

MARK_COLUMNS = 1 << 12
"""A mark is a position as one integer: `line * MARK_COLUMNS + column`, both from 0."""
YAML12_NUMBER = re.compile(r"[-+]?(\.\d+|\d+(\.\d*)?)[eE][-+]?\d+")
"""A number in YAML 1.2 and text in YAML 1.1: editors and assay would read different values."""
YAML_TAG_PREFIX = "tag:yaml.org,2002:"
_RESOLVERS: dict[str, list[tuple[str, Any]]] = yaml.SafeLoader.yaml_implicit_resolvers
_CONSTRUCTOR = yaml.constructor.SafeConstructor()
_KNOWN = frozenset(YAML_TAG_PREFIX + name for name in ("bool", "float", "int", "null", "str", "timestamp"))
MAX_DEPTH = 48
MAX_ALIASED = 20_000
MAX_VALUES = 2_000_000
YAML_FIX = "correct the YAML at or just before this place"


class YamlMarks:
    """The positions of one container and its entries, by key or index. `size` counts the values in it.

    An entry that is a container has YamlMarks, any other entry a mark.
    """

    __slots__ = ("entries", "position", "size")

    def __init__(self, position: int, entries: dict[Any, YamlMarks | int]) -> None:
        self.position = position
        self.entries = entries
        self.size = 1


class UnreadableYaml(AssayError):
    """A file that is not accepted as YAML; `line` and `column` count from 1."""

    def __init__(self, message: str, file: str, mark: int = 0, fix: str = "") -> None:
        self.file = file
        self.line = mark // MARK_COLUMNS + 1
        self.column = mark % MARK_COLUMNS + 1
        super().__init__(message, where=f"{file}:{self.line}:{self.column}", fix=fix)

    def as_problem(self) -> FleetProblem:
        """Return it as a problem for `assay check`."""
        return FleetProblem(self.file, self.line, self.column, "ASY0001", "error", self.what, self.fix)


def encode_mark(place: Any) -> int:
    """Return a place of PyYAML's parser as a mark."""
    mark: int = place.line * MARK_COLUMNS + (place.column if place.column < MARK_COLUMNS else MARK_COLUMNS - 1)
    return mark


def count_values(marks: YamlMarks | int) -> int:
    """Return the number of values in an entry."""
    return marks.size if isinstance(marks, YamlMarks) else 1


def move_marks(marks: YamlMarks | int, position: int) -> YamlMarks | int:
    """Return the marks of a mapping's entry at the position of its key: that is where a reader looks."""
    if not isinstance(marks, YamlMarks):
        return position
    moved = YamlMarks(position, marks.entries)
    moved.size = marks.size
    return moved


class UnknownYamlTag(ValueError):
    """A tag that is not supported."""


def parse_scalar(text: str, *, plain: bool, tag: str | None) -> Any:
    """Return the value of a scalar. Raises UnknownYamlTag, and ValueError for text that its tag does not allow."""
    if tag is None or tag == "!":
        return parse_plain_scalar(text) if plain and tag is None else text
    if tag == "!vault":
        return {"__ansible_vault": text}
    if tag == "!unsafe":
        return text
    if tag not in _KNOWN:
        raise UnknownYamlTag(tag.removeprefix(YAML_TAG_PREFIX))
    return _construct_scalar(text, tag)


@lru_cache(maxsize=4096)
def parse_plain_scalar(text: str) -> Any:
    """Return the value of a scalar without quotes and tag. Raises ValueError for text that YAML readers disagree on."""
    for tag, pattern in _RESOLVERS.get(text[:1], ()):
        if pattern.match(text):
            return _SPECIAL[tag] or text if tag in _SPECIAL else _construct_scalar(text, tag)
    if YAML12_NUMBER.fullmatch(text):
        raise ValueError(f"{text} is text to some readers of YAML and a number to others")
    return text


def _construct_scalar(text: str, tag: str) -> Any:
    node = yaml.ScalarNode(tag, text)
    try:
        return _CONSTRUCTOR.construct_object(node)
    except (KeyError, IndexError, AttributeError, yaml.YAMLError, OverflowError) as error:
        raise ValueError(f"{text!r} is no {tag.removeprefix(YAML_TAG_PREFIX)}") from error
    finally:
        _CONSTRUCTOR.constructed_objects.clear()


class _MergeKey:
    """The key `<<`, which merges another mapping."""

    def __repr__(self) -> str:
        return "<<"


MERGE_KEY = _MergeKey()
_SPECIAL = {f"{YAML_TAG_PREFIX}merge": MERGE_KEY, f"{YAML_TAG_PREFIX}value": None}


@dataclass(slots=True)
class _OpenContainer:
    """A container that is being read. In a mapping, `key` waits for its value; `merges` are applied at the end."""

    data: Any
    marks: YamlMarks
    anchor: str | None
    key: Any = None
    has_key: bool = False
    key_mark: int = 0
    merges: list[tuple[Any, YamlMarks | int]] = field(default_factory=list)


class YamlBuilder:
    """Builds plain data from parser events."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.data: Any = None
        self.marks: YamlMarks | int = 0
        self.stack: list[_OpenContainer] = []
        self.anchors: dict[str, tuple[Any, YamlMarks | int] | None] = {}
        self.aliased = self.values = 0
        self.documents = 0
        self.mark = 0
        self.steps: dict[type, Callable[[Any], None]] = {
            yaml.ScalarEvent: self._scalar,
            yaml.MappingStartEvent: lambda event: self._open(event, {}),
            yaml.SequenceStartEvent: lambda event: self._open(event, []),
            yaml.MappingEndEvent: self._close,
            yaml.SequenceEndEvent: self._close,
            yaml.AliasEvent: self._alias,
            yaml.DocumentStartEvent: self._document,
        }

    def process_event(self, event: Any) -> None:
        """Take one more event. Raises UnreadableYaml."""
        step = self.steps.get(type(event))
        if step is not None:
            self.mark = encode_mark(event.start_mark)
            step(event)

    def _error(self, message: str, fix: str = "") -> UnreadableYaml:
        return UnreadableYaml(message, self.file, self.mark, fix)

    def _document(self, event: Any) -> None:  # noqa: ARG002 — every step takes its event
        self.documents += 1
        if self.documents > 1:
            raise self._error("a second document in one file", "give every document a file of its own")

    def _scalar(self, event: Any) -> None:
        try:
            value = event.value
            if event.tag is not None:
                value = parse_scalar(value, plain=event.implicit[0], tag=event.tag)
            elif event.implicit[0]:
                value = parse_plain_scalar(value)
        except UnknownYamlTag as tag:
            raise self._error(f"the tag {tag} is not allowed here", "write plain data, without tags") from None
        except ValueError as error:
            raise self._error(str(error), "quote it if it is meant as text") from None
        if value is MERGE_KEY:
            top = self.stack[-1] if self.stack else None
            is_key = top is not None and isinstance(top.data, dict) and not top.has_key
            value = value if is_key else event.value
        if event.anchor is not None:
            self._add_anchor(event.anchor, (value, self.mark))
        self._put(value, self.mark)

    def _add_anchor(self, anchor: str | None, target: tuple[Any, YamlMarks | int] | None) -> None:
        if anchor in self.anchors:
            raise self._error(f"the anchor &{anchor} stands twice", "rename one of the two")
        if anchor is not None:
            self.anchors[anchor] = target

    def _open(self, event: Any, empty: Any) -> None:
        kind = "tag:yaml.org,2002:map" if isinstance(empty, dict) else "tag:yaml.org,2002:seq"
        if event.tag not in (None, "!", kind):
            raise self._error(f"the tag {event.tag} is not allowed here", "write plain data, without tags")
        if len(self.stack) >= MAX_DEPTH:
            raise self._error(f"nested deeper than {MAX_DEPTH} levels", "flatten it")
        self._add_anchor(event.anchor, None)
        self.stack.append(_OpenContainer(empty, YamlMarks(self.mark, {}), event.anchor))

    def _close(self, event: Any) -> None:  # noqa: ARG002 — every step takes its event
        closed = self.stack.pop()
        for value, marks in closed.merges:
            self._merge(closed, value, marks)
        if closed.anchor is not None:
            self.anchors[closed.anchor] = (closed.data, closed.marks)
        self._put(closed.data, closed.marks)

    def _alias(self, event: Any) -> None:
        if event.anchor not in self.anchors:
            raise self._error(f"*{event.anchor} stands before any &{event.anchor}", "write the value out")
        target = self.anchors[event.anchor]
        if target is None:
            raise self._error(f"*{event.anchor} contains itself", "write the values out")
        self.aliased += count_values(target[1])
        if self.aliased > MAX_ALIASED:
            raise self._error(f"aliases stand for more than {MAX_ALIASED} values", "write the values out")
        self._put(*target)

    def _put(self, value: Any, marks: YamlMarks | int) -> None:
        self.values += 1
        if self.values > MAX_VALUES:
            raise self._error(f"more than {MAX_VALUES} values", "split it into several files")
        if not self.stack:
            self.data, self.marks = value, marks
            return
        top = self.stack[-1]
        if top.has_key:
            self._put_entry(top, value, marks)
        elif type(top.data) is list:
            top.marks.entries[len(top.data)] = marks
            top.marks.size += count_values(marks)
            top.data.append(value)
        else:
            self._put_key(top, value)

    def _put_key(self, top: _OpenContainer, key: Any) -> None:
        if isinstance(key, dict | list):
            raise self._error("a mapping or list cannot be a key", "use text as the key")
        if key in top.data and key is not MERGE_KEY:
            marks = top.marks.entries[key]
            first = (marks.position if isinstance(marks, YamlMarks) else marks) // MARK_COLUMNS + 1
            raise self._error(f"the key {key!r} stands twice; first on line {first}", "keep one of the two")
        top.key = key
        top.has_key = True
        top.key_mark = self.mark

    def _put_entry(self, top: _OpenContainer, value: Any, marks: YamlMarks | int) -> None:
        top.has_key = False
        if top.key is MERGE_KEY:
            top.merges.append((value, marks))
            return
        top.data[top.key] = value
        top.marks.size += count_values(marks)
        top.marks.entries[top.key] = move_marks(marks, top.key_mark)

    def _merge(self, into: _OpenContainer, value: Any, marks: YamlMarks | int) -> None:
        if isinstance(value, list) and isinstance(marks, YamlMarks):
            for index, item in enumerate(value):
                self._merge(into, item, marks.entries[index])
            return
        if not isinstance(value, dict) or not isinstance(marks, YamlMarks):
            raise UnreadableYaml(
                "<< takes a mapping or a list of mappings", self.file, into.marks.position, "write the entries out"
            )
        for key, entry in value.items():
            if key not in into.data:
                into.data[key] = entry
                into.marks.entries[key] = marks.entries[key]
                into.marks.size += count_values(marks.entries[key])


@dataclass(frozen=True)
class YamlDocument:
    """One file: `data` is plain JSON-like data, `marks` holds the position of each part."""

    file: str
    data: Any
    marks: YamlMarks | int = 0

    def place(self, path: Sequence[Any] = ()) -> tuple[int, int]:
        """Return line and column (from 1) of the entry at `path`. Steps that are not in the file are skipped."""
        marks: YamlMarks | int = self.marks
        for step in path:
            if isinstance(marks, YamlMarks) and step in marks.entries:
                marks = marks.entries[step]
        mark = marks.position if isinstance(marks, YamlMarks) else marks
        return mark // MARK_COLUMNS + 1, mark % MARK_COLUMNS + 1

    def where(self, path: Sequence[Any] = ()) -> str:
        """Return `file:line` of the entry at `path`."""
        return f"{self.file}:{self.place(path)[0]}"

    @property
    def start(self) -> tuple[str, int, int]:
        """File, line and column of the document itself."""
        return (self.file, *self.place())

    def locate_mark(self, mark: int) -> tuple[str, int, int]:
        """Return file, line and column (from 1) of a mark."""
        return self.file, mark // MARK_COLUMNS + 1, mark % MARK_COLUMNS + 1

    def line_at(self, mark: int) -> str:
        """Return `file:line` of a mark."""
        return f"{self.file}:{mark // MARK_COLUMNS + 1}"


@dataclass(frozen=True)
class ParseCache:
    """Files that were read already, by content, so that two revisions share what they have in common.

    `documents`: YAML by SHA-256. `hosts`: hosts of an inventory (repository.draft). `specs`: valid specs by the
    documents that they are made of (spec_reader).
    """

    documents: dict[bytes, YamlDocument] = field(default_factory=dict)
    hosts: dict[tuple[Any, ...], list[Any]] = field(default_factory=dict)
    specs: dict[tuple[Any, ...], Any] = field(default_factory=dict)


def read_yaml_file(
    tree: RepositoryTree, path: str, file: str, most: int = MAX_FILE_BYTES, cache: ParseCache | None = None
) -> YamlDocument:
    """Read the file at `path` of a tree; messages call it `file`. Raises UnreadableYaml."""
    try:
        content = tree.read(path, most + 1)
    except OSError as error:
        raise UnreadableYaml(f"cannot be read: {error.strerror}", file, fix="make it a readable file") from error
    if cache is None:
        return parse_yaml(content, file, most)
    digest = hashlib.sha256(content).digest()
    cached = cache.documents.get(digest)
    if cached is None:
        cached = cache.documents[digest] = parse_yaml(content, file, most)
    return YamlDocument(file, cached.data, cached.marks)


def parse_yaml(content: bytes, file: str, most: int = MAX_FILE_BYTES) -> YamlDocument:
    """Read YAML of at most `most` bytes. Raises UnreadableYaml, and nothing else, whatever the bytes are."""
    if len(content) > most:
        raise UnreadableYaml(f"larger than {most // 1024 // 1024} MiB", file, fix="split it into several files")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        mark = content.count(b"\n", 0, error.start) * MARK_COLUMNS
        raise UnreadableYaml(f"not UTF-8: {error.reason}", file, mark, fix="save the file as UTF-8") from None
    builder = YamlBuilder(file)
    try:
        for event in iter(yaml.CSafeLoader(text).get_event, None):  # `yaml.parse` costs twice as much for each event
            builder.process_event(event)
    except yaml.MarkedYAMLError as error:
        place = error.problem_mark or error.context_mark
        raise UnreadableYaml(
            f"not YAML: {error.problem or error.context}", file, encode_mark(place) if place else 0, YAML_FIX
        ) from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise UnreadableYaml(f"not YAML: {' '.join(str(error).split())}", file, fix=YAML_FIX) from None
    return YamlDocument(file, builder.data, builder.marks)
