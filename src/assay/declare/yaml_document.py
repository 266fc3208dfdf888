"""Reads one YAML file into plain data, with the line and column of every entry."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from assay.declare.repository.repository_tree import MAX_FILE_BYTES, RepositoryTree
from assay.declare.yaml_builder import MARK_COLUMNS, UnreadableYaml, YamlBuilder, YamlMarks, encode_mark

YAML_FIX = "correct the YAML at or just before this place"


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

    `documents`: YAML by SHA-256. `hosts`: hosts of an inventory (repository_draft). `specs`: valid specs by the
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
