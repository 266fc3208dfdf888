"""How a text becomes the bytes of a file: line ends, encoding, compression."""

from __future__ import annotations

import gzip
from collections.abc import Callable

Encode = Callable[[str], bytes]
Pack = Callable[[bytes], bytes]

ENCODINGS: dict[str, Encode] = {
    "utf-8": lambda text: text.encode(),
    "bom": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "crlf": lambda text: text.replace("\n", "\r\n").encode(),
}
COMPRESSIONS: dict[str, Pack] = {
    "plain": lambda content: content,
    "gzip": gzip.compress,
}
