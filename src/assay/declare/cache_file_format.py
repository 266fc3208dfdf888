"""Cache files in `.assay/cache`: named sections of JSON or raw numbers, under one digest.

Layout: MAGIC, the sha256 of everything after it, the length of the header (4 bytes), the header (JSON: the length of
each section by name), the sections. A reader decodes only the sections that it needs. Nothing in a file can execute
code. A file counts only where it is whole and nobody but its reader may write it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import sys
import tempfile
from array import array
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import assay

MAGIC = b"assay cache 1\n"
DIGEST_SIZE, LENGTH_SIZE = 32, 4


class CacheSections:
    """The sections of one file, by name."""

    def __init__(self, body: memoryview, lengths: Mapping[str, int]) -> None:
        self._body = body
        self._places = dict[str, tuple[int, int]]()
        start = 0
        for name, length in lengths.items():
            self._places[name] = start, start + length
            start += length

    def bytes(self, name: str) -> bytes:
        """Return a section as it was written. Raises KeyError where there is none of that name."""
        start, end = self._places[name]
        return self._body[start:end].tobytes()

    def numbers(self, name: str) -> array[int]:
        """Return a section of unsigned integers, in this machine's byte order. Raises KeyError."""
        values = array("I")
        values.frombytes(self.bytes(name))
        return values

    def json(self, name: str) -> Any:
        """Return a section of JSON, decoded. Raises KeyError where there is none of that name."""
        return json.loads(self.bytes(name))


def encode_sections(sections: Mapping[str, bytes]) -> bytes:
    """Return the content of a file with these sections."""
    header = json.dumps({name: len(content) for name, content in sections.items()}).encode()
    payload = b"".join((len(header).to_bytes(LENGTH_SIZE, "big"), header, *sections.values()))
    return MAGIC + hashlib.sha256(payload).digest() + payload


def decode_sections(content: bytes) -> CacheSections | None:
    """Return the sections of a file's content, None where it is not whole."""
    payload = memoryview(content)[len(MAGIC) + DIGEST_SIZE :]
    if not content.startswith(MAGIC) or content[len(MAGIC) : -len(payload)] != hashlib.sha256(payload).digest():
        return None
    end = LENGTH_SIZE + int.from_bytes(payload[:LENGTH_SIZE], "big")
    return CacheSections(payload[end:], json.loads(payload[LENGTH_SIZE:end].tobytes()))


def read_cache_file(path: Path) -> CacheSections | None:
    """Return the sections of a file; None where there is none, it is not whole, or others may write it."""
    try:
        with path.open("rb") as stream:
            status = os.fstat(stream.fileno())
            content = stream.read()
    except OSError:
        return None
    is_private = status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return decode_sections(content) if is_private else None


def write_cache_file(path: Path, content: bytes, max_files: int) -> None:
    """Write a file atomically, and delete all but the `max_files` newest of its folder.

    Where it cannot be written, nothing happens: the next reader finds no file. Another writer's file is equal.
    """
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as stream:  # which only its owner may read
            stream.write(content)
        Path(stream.name).replace(path)
        by_age = sorted(path.parent.iterdir(), key=lambda file: file.stat().st_mtime, reverse=True)
        for old in by_age[max_files:]:
            old.unlink(missing_ok=True)


@cache
def fingerprint_program(rooms: tuple[str, ...]) -> str:
    """Return what identifies this Python and assay's code in `rooms`: path, time and size of every module."""
    here = Path(assay.__file__).parent
    files = sorted(path for room in rooms for path in (here / room).rglob("*.py"))
    status = [(path.as_posix(), *(path.stat().st_mtime_ns, path.stat().st_size)) for path in files]
    return repr((sys.version, sys.byteorder, status))
