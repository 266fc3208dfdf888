"""Output of several hosts in blocks, each below the names of its hosts.

`clush -b` and `dshbak` draw rules, `ansible`, `salt`, `pssh` and `tail` have headings of their own, and people write
`### n1`, or the name alone:

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
from assay.observe.logs.source_names import is_generic, name_source

_END = rb"[ \t]*\r?\n"
_RULE = rb"-{3,}" + _END
_NAME = rb"[A-Za-z0-9][\w.-]{0,254}"
_LETTERS_AND_NUMBER = rb"(?=[A-Za-z])(?=[\w.-]*\d)" + _NAME
_WITH_DOTS = rb"[A-Za-z][\w-]*(?:\.[A-Za-z][\w-]*){2,}|\d{1,3}(?:\.\d{1,3}){3}"
_BETWEEN = rb"(?:[ \t]*(?:```\w*|~~~\w*)?[ \t]*\r?\n|[$#>%] [^\n]{1,200}\n)*"
"""What may stand between a heading and the log: blank lines, the fence of a code block, a command."""
_LINE = (
    rb"(?:\d+[:-])?(?:<\d+>|\[ *\d+\.\d|\[?[A-Z][a-z]{2}[ ,][ \dA-Z]|\[?\d{4}-\d\d-\d\d|\d+,\d+,\d+,|\w+ *: *\w+ *: *\["
    rb"|NVRM: |nvidia-nvswitch\d|\{ *\"| *[0-9a-f]{1,4} \| )"
)
"""How a log begins."""
_LOG_FOLLOWS = rb"(?=" + _BETWEEN + rb"[ \t]*" + _LINE + rb")"
_TAGS = rb"h[1-6]|summary|dt|caption|legend"
_HTML_HEADING = re.compile(rb"(?i)\n?(<(" + _TAGS + rb")\b[^<>\n]{0,200}>[^<>\n]{1,300}</\2>)[ \t]*\n?")
_NAMED = rb"(?:(?i:host|node|server|machine|(?:dmesg|logs?) (?:of|on|from))\b:? *)?"
_HEADINGS = (
    (_RULE + rb"(?P<hosts>" + NODE_SET.encode() + rb")(?: \(\d+\))?" + _END + _RULE, rb""),
    (rb"(?P<ansible>" + _NAME + rb") \| (?:CHANGED|SUCCESS|FAILED)!? (?:\| rc=\d+ >>" + _END + rb"|=> (?=\{))", rb""),
    (rb"\[\d+\] \d\d:\d\d:\d\d \[(?:SUCCESS|FAILURE)\] (?P<pssh>" + _NAME + rb")[^\n]{0,200}\n", rb""),
    (rb"==> (?P<file>[^\n]{1,1000}?) <==" + _END, rb""),
    (rb"(?:#{1,6}|[-=*~+]{2,}>?|>{2,}) *" + _NAMED + rb"(?P<marked>" + _NAME + rb"):?(?: \([^)\n]{0,100}\))?"
     rb" *(?:#+|[-=*~+]{2,}|<{1,}=*)?" + _END, _LOG_FOLLOWS),
    (rb"(?i:host(?:name)?|node|server|machine)(?:: ?| )(?P<called>" + _NAME + rb"):?" + _END, _LOG_FOLLOWS),
    (rb"(?P<alone>" + _LETTERS_AND_NUMBER + rb"|" + _WITH_DOTS + rb"):?" + _END, _LOG_FOLLOWS),
    (rb"\[(?P<section>" + _LETTERS_AND_NUMBER + rb"|" + _WITH_DOTS + rb")\]" + _END, _LOG_FOLLOWS),
    (rb"\[?[\w.-]{1,64}@(?P<prompt>" + _NAME + rb")[: ][^\n#$]{0,200}[#$] [^\n]{1,1000}\n", _LOG_FOLLOWS),
    (rb"[$#>%] (?:sudo )?ssh (?:-\w+ )*(?:[\w.-]{1,64}@)?(?P<ssh>" + _NAME + rb") [^\n]{1,1000}\n", _LOG_FOLLOWS),
    (rb"(?:ok|changed|failed|fatal): \[(?P<play>" + _NAME + rb")\](?:: FAILED!)? => (?=\{)", rb""),
    (rb"<(?i:" + _TAGS + rb")\b[^<>\n]{0,200}>[ \t]*" + _NAMED + rb"(?P<html>" + _NAME + rb"):?[ \t]*</\w+>" + _END,
     rb"(?=(?:\s|```\w*|~~~\w*|<[^<>\n]{1,200}>)*" + _LINE + rb")"),
    (rb"(?P<path>[^\s:]{1,1000}/[^\s:/]{1,255}|[^\s:]{1,255}\.(?:log|txt)):?" + _END, _LOG_FOLLOWS),
    (rb"(?P<salt>[a-z0-9][\w.-]{0,254}):(?: \|[-+]?)?" + _END, rb"(?=[ \t]+" + _LINE + rb")"),
)  # fmt: skip
_HEADING = re.compile(rb"^(?:" + rb"|".join(head + follows for head, follows in _HEADINGS) + rb")", re.MULTILINE)
_BEGUN = re.sub(rb"\?P<\w+>", b"?:", rb"|".join(head for head, follows in _HEADINGS if follows))
_UNFINISHED = re.compile(
    rb"^(?:" + _RULE + rb"(?:[^\n]{1,65536}\n)?|(?:" + _BEGUN + rb")" + _BETWEEN + rb")\Z", re.MULTILINE
)
"""The end of a piece in which a heading may have begun."""
_LONGEST_HEADING = 128 * 1024


def has_host_blocks(sample: Sequence[bytes]) -> bool:
    """Return whether a heading stands in a log's first lines."""
    return any(_find_headings(_write_html_headings(b"\n".join(sample) + b"\n")))


def split_host_blocks(pieces: Iterable[bytes]) -> Iterator[tuple[tuple[str, ...], Iterator[bytes]]]:
    """Yield the hosts of each block and its pieces, which must be read before the next block. No hosts: no heading."""
    for (_, hosts), parts in groupby(_mark_parts(pieces), key=itemgetter(0, 1)):
        yield expand_names(hosts) if hosts else (), (part for _, _, part in parts if part)


def _mark_parts(pieces: Iterable[bytes]) -> Iterator[tuple[int, str, bytes]]:
    """Yield the number of the block, its heading, and a part of its text."""
    number, hosts, rest = 0, "", b""
    for read in pieces:
        piece, start = rest + _write_html_headings(read), 0
        for heading in _find_headings(piece):
            yield number, hosts, piece[start : heading.start()]
            number, hosts, start = number + 1, _read_name(heading), heading.end()
        begun = _UNFINISHED.search(piece, max(start, len(piece) - _LONGEST_HEADING))
        end = begun.start() if begun else len(piece)
        yield number, hosts, piece[start:end]
        rest = piece[end:]
    yield number, hosts, rest


def _write_html_headings(piece: bytes) -> bytes:
    """Return a text in which each heading of HTML is a line of its own."""
    return _HTML_HEADING.sub(rb"\n\1\n", piece) if b"</" in piece else piece


def _find_headings(piece: bytes) -> Iterator[re.Match[bytes]]:
    """Yield the headings that name a host or a file. `### Logs` names none."""
    for found in _HEADING.finditer(piece):
        kind = found.lastgroup or ""
        if kind in ("file", "path", "hosts") or not is_generic(found[kind].decode()):
            yield found


def _read_name(heading: re.Match[bytes]) -> str:
    kind = heading.lastgroup or ""
    name = heading[kind].decode(errors="replace")
    return name_source(name) if kind in ("file", "path") else name
