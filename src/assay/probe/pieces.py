"""A large module in pieces that are compiled one after the other.

Compiling NVML's bindings at once takes 17 MB for a moment, in pieces 3 MB; the probe may take 60 on a node in all.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

PIECE = 30_000
"""Characters of source, at least, in all pieces but the last."""

WHOLE = """\
import os
for _piece in range({count}):
    _path = os.path.join(os.path.dirname(__file__), "{name}_pieces", "%02d" % _piece)
    exec(compile(__loader__.get_data(_path), _path, "exec"))
"""


def in_pieces(name: str, source: str) -> dict[str, bytes]:
    """Return the files of an archive that are the module `name`, which must not import from __future__."""
    pieces = list(_pieces(source))
    files = {f"{name}_pieces/{number:02}": piece.encode() for number, piece in enumerate(pieces)}
    return {f"{name}.py": WHOLE.format(count=len(pieces), name=name).encode(), **files}


def _pieces(source: str) -> Iterator[str]:
    """Yield the source cut between statements of the module."""
    lines, begun = source.splitlines(keepends=True), 0
    for statement in ast.parse(source).body:
        decorators = [one.lineno for one in getattr(statement, "decorator_list", ())]
        first = min([statement.lineno, *decorators]) - 1
        if sum(map(len, lines[begun:first])) >= PIECE:
            yield "".join(lines[begun:first])
            begun = first
    yield "".join(lines[begun:])
