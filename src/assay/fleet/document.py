"""Reads one YAML file into plain data, remembering the line and column of every entry."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from assay.fleet.builder import Builder
from assay.fleet.marks import COLUMNS, Marks, Unreadable, place_of
from assay.fleet.tree import MOST, Tree

if TYPE_CHECKING:
    from assay.fleet.reads import Reads

MEND = "correct the YAML at or just before this place"


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

    @property
    def start(self) -> tuple[str, int, int]:
        """File, line and column of the document itself."""
        return (self.file, *self.place())

    def at(self, at: int) -> tuple[str, int, int]:
        """Return file, line and column (from 1) of a place in the marks."""
        return self.file, at // COLUMNS + 1, at % COLUMNS + 1

    def line_at(self, at: int) -> str:
        """Return `file:line` of a place in the marks."""
        return f"{self.file}:{at // COLUMNS + 1}"


@dataclass(frozen=True)
class Shelf:
    """What was read already, by content, so that two revisions share what they have in common."""

    documents: dict[bytes, Document] = field(default_factory=dict)
    modules: dict[tuple[str, bytes], Mapping[str, Reads]] = field(default_factory=dict)
    hosts: dict[tuple[Any, ...], list[Any]] = field(default_factory=dict)


def read_file(tree: Tree, path: str, file: str, most: int = MOST, shelf: Shelf | None = None) -> Document:
    """Read the file at `path` of a tree, which is called `file` in messages. Raises Unreadable."""
    try:
        content = tree.read(path, most + 1)
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}", file, fix="make it a readable file") from error
    if shelf is None:
        return read(content, file, most)
    digest = hashlib.sha256(content).digest()
    known = shelf.documents.get(digest)
    if known is None:
        known = shelf.documents[digest] = read(content, file, most)
    return Document(file, known.data, known.marks)


def read(content: bytes, file: str, most: int = MOST) -> Document:
    """Read YAML. Raises Unreadable, and nothing else, whatever the bytes are."""
    if len(content) > most:
        raise Unreadable(f"larger than {most // 1024 // 1024} MiB", file, fix="split it into several files")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        at = content.count(b"\n", 0, error.start) * COLUMNS
        raise Unreadable(f"not UTF-8: {error.reason}", file, at, fix="save the file as UTF-8") from None
    builder = Builder(file)
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise Unreadable(
            f"not YAML: {error.problem or error.context}", file, place_of(mark) if mark else 0, MEND
        ) from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise Unreadable(f"not YAML: {' '.join(str(error).split())}", file, fix=MEND) from None
    return Document(file, builder.data, builder.marks)
