"""What a reader has said so far, and until when its present question may take, in memory that outlives it.

A memfd and a shared page, not a pipe: a write wakes nobody, and what was written before a hang can be read after it.
"""

from __future__ import annotations

import json
import mmap
import os
import time
from collections.abc import Iterator, Sequence
from typing import Any

from assay.model.reading import failed
from assay.probe.files import Tree

MOST_BYTES = 8 * 2**20
"""Of one area: a full kernel log is 1 MB."""


class Journal:
    """One reader's: made before the fork; the child writes, the parent looks."""

    def __init__(self, allowed_s: float) -> None:
        self.file = os.memfd_create("assay-probe")
        self._due = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("d")
        self._due[0] = time.monotonic() + allowed_s
        self._said: list[bytes] = []
        self._bytes = 0

    @property
    def due(self) -> float:
        """The moment, by the monotonic clock, when the present question has taken too long."""
        return self._due[0]

    def asks(self, path: Sequence[str], seconds: float) -> None:
        """Say that the question at `path` comes next and may take so long."""
        self._said.append(_line([path, "asked", seconds]))
        self.flush()
        self._due[0] = time.monotonic() + seconds

    def names(self, path: Sequence[str], names: Sequence[str]) -> None:
        """Say which names there are below a branch."""
        self._keep(_line([path, "names", names]))

    def leaf(self, path: Sequence[str], leaf: Tree) -> None:
        """Say a leaf. One that JSON cannot hold, or that is too much, is a failed one."""
        try:
            line = _line([path, "leaf", leaf])
        except (TypeError, ValueError, RecursionError) as error:
            line = _line([path, "leaf", failed(f"no JSON: {type(error).__name__}")])
        if self._bytes + len(line) > MOST_BYTES:
            line = _line([path, "leaf", failed(f"more than this area's {MOST_BYTES >> 20} MiB of answers")])
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
