"""Reads one YAML file into plain data, remembering the line and column of every entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from assay.fleet.builder import Builder
from assay.fleet.marks import COLUMNS, Marks, Unreadable, place_of

MAX_BYTES = 64 * 1024 * 1024
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

    def line_at(self, at: int) -> str:
        """Return `file:line` of a place in the marks."""
        return f"{self.file}:{at // COLUMNS + 1}"


def read_file(path: Path, file: str) -> Document:
    """Read the file at `path`, which is called `file` in messages. Raises Unreadable."""
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}", file, fix="make it a readable file") from error
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
