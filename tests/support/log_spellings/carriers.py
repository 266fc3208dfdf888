"""How a text becomes the bytes of a file: line ends, encoding, compression."""

from __future__ import annotations

import bz2
import gzip
import lzma
import sys
from collections.abc import Callable

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Encode = Callable[[str], bytes]
Pack = Callable[[bytes], bytes]

ENCODINGS: dict[str, Encode] = {
    "utf-8": lambda text: text.encode(),
    "bom": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "crlf": lambda text: text.replace("\n", "\r\n").encode(),
    "utf-16": lambda text: b"\xff\xfe" + text.replace("\n", "\r\n").encode("utf-16-le"),
    "utf-16-be": lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
    "utf-16-without-mark": lambda text: text.encode("utf-16-le"),
}
COMPRESSIONS: dict[str, Pack] = {
    "plain": lambda content: content,
    "gzip": gzip.compress,
    "zstd": zstd.compress,
    "xz": lzma.compress,
    "bzip2": bz2.compress,
}
