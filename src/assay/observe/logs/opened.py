"""Opens a log: a file, one packed with gzip, or what stands on standard input."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, cast

from assay.model.errors import Trouble

PACKED = b"\x1f\x8b"


class Peeked:
    """A stream of which the first bytes have been looked at already."""

    def __init__(self, first: bytes, rest: BinaryIO) -> None:
        self._first, self._rest = first, rest

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes, none at the end."""
        if self._first:
            given, self._first = self._first[:size], self._first[size:]
            return given
        return self._rest.read(size)


@contextmanager
def opened(name: str) -> Iterator[tuple[Peeked, datetime]]:
    """Open a log by its path, `-` for standard input; say when it was written at last. Raises Trouble."""
    where = "standard input" if name == "-" else name
    try:
        with sys.stdin.buffer if name == "-" else Path(name).open("rb") as file:
            written = datetime.now(UTC) if name == "-" else datetime.fromtimestamp(Path(name).stat().st_mtime, UTC)
            first = file.read(2)
            if first == PACKED:
                packed = gzip.GzipFile(fileobj=cast("BinaryIO", Peeked(first, cast("BinaryIO", file))))
                yield Peeked(b"", cast("BinaryIO", packed)), written
            else:
                yield Peeked(first, cast("BinaryIO", file)), written
    except (OSError, EOFError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise Trouble(f"cannot be read: {said}", where=where) from None
