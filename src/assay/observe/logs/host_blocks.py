"""Output of several hosts in blocks, each below the names of its hosts: of `clush -b`, `dshbak`, `ansible -a`.

---------------
n[01-04] (4)
---------------
[   12.500000] NVRM: …
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter

from assay.model.texts.node_sets import NODE_SET, expand_names

_RULE = rb"-{3,}[ \t]*\r?\n"
_HEADING = re.compile(
    rb"^" + _RULE + rb"(?P<hosts>" + NODE_SET.encode() + rb")(?: \(\d+\))?[ \t]*\r?\n" + _RULE
    + rb"|^(?P<host>[\w.-]{1,255}) \| (?:CHANGED|SUCCESS|FAILED) \| rc=\d+ >>[ \t]*\r?\n",
    re.MULTILINE,
)  # fmt: skip
_UNFINISHED = re.compile(rb"^" + _RULE + rb"(?:[^\n]{1,65536}\n)?\Z", re.MULTILINE)
"""The end of a piece in which a heading may have begun."""


def has_host_blocks(sample: Sequence[bytes]) -> bool:
    """Return whether a heading stands in a log's first lines."""
    return _HEADING.search(b"\n".join(sample) + b"\n") is not None


def split_host_blocks(pieces: Iterable[bytes]) -> Iterator[tuple[tuple[str, ...], Iterator[bytes]]]:
    """Yield the hosts of each block and its pieces, which must be read before the next block. No hosts: no heading."""
    for (_, hosts), parts in groupby(_mark_parts(pieces), key=itemgetter(0, 1)):
        yield expand_names(hosts) if hosts else (), (part for _, _, part in parts if part)


def _mark_parts(pieces: Iterable[bytes]) -> Iterator[tuple[int, str, bytes]]:
    """Yield the number of the block, its heading, and a part of its text."""
    number, hosts, rest = 0, "", b""
    for read in pieces:
        piece, start = rest + read, 0
        for heading in _HEADING.finditer(piece):
            yield number, hosts, piece[start : heading.start()]
            number, hosts, start = number + 1, (heading["hosts"] or heading["host"]).decode(), heading.end()
        begun = _UNFINISHED.search(piece, start)
        end = begun.start() if begun else len(piece)
        yield number, hosts, piece[start:end]
        rest = piece[end:]
    yield number, hosts, rest
