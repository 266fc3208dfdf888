"""Opens a log file: unpacks it, and gives its text as UTF-8, whatever its encoding."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from assay.model.errors import AssayError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MARKS: Mapping[bytes, str] = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
"""The byte order marks that a text may begin with."""
PEEKED_BYTES = 512
READ_BYTES = 256 * 1024
MAX_MAIL_BYTES = 64 * 1024 * 1024
_MAIL_HEADER = (
    rb"(?:Return-Path|Delivered-To|Received|From|To|Cc|Subject|Date"
    rb"|Message-I[Dd]|MIME-Version|Content-[\w-]+|X-[\w-]+)"
)
MAIL_BEGINS = re.compile(rb"(?:From \S[^\n]*\n)?" + _MAIL_HEADER + rb": ?[^\n]*\r?\n(?:[ \t][^\n]*\n)*[A-Z][\w-]*: ?")
"""How a mail begins: with two headers."""
COMPRESSIONS: Mapping[bytes, Callable[[BinaryIO], object]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
    b"\x28\xb5\x2f\xfd": zstd.ZstdFile,
}
"""How a packed file is opened, by the bytes that it begins with."""
ZSTD_SKIPPABLE = tuple(bytes([first]) + b"\x2a\x4d\x18" for first in range(0x50, 0x60))
UNPACKING_ERRORS = (OSError, EOFError, lzma.LZMAError, zlib.error, zstd.ZstdError)


class ByteSource(Protocol):
    """What bytes are read from."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes, none at the end."""


@contextmanager
def open_log(name: str) -> Iterator[tuple[ByteSource, datetime]]:
    """Open a log by its path, `-` for standard input; yield its text as UTF-8, and when it was last written.

    gzip, bzip2, xz and zstd are unpacked. Raises AssayError where the log cannot be read.
    """
    where = "standard input" if name == "-" else name
    try:
        with sys.stdin.buffer if name == "-" else Path(name).open("rb", buffering=0) as file:
            written = datetime.now(UTC) if name == "-" else datetime.fromtimestamp(Path(name).stat().st_mtime, UTC)
            yield unpack_text(cast("BinaryIO", file)), written
    except UNPACKING_ERRORS as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise AssayError(f"cannot be read: {reason}", where=where) from None


def unpack_text(file: BinaryIO) -> ByteSource:
    """Return the text of a file as UTF-8: unpacked, without a byte order mark, what a mail holds.

    Raises `UNPACKING_ERRORS`.
    """
    source = _unpack(file)
    mark = next((mark for mark in MARKS if source.first.startswith(mark)), b"")
    encoding = MARKS.get(mark) or _guess_encoding(source.first)
    source.read(len(mark))
    text = source if encoding == "utf-8" else TranscodedStream(source, encoding)
    return _open_mail(text) if MAIL_BEGINS.match(source.first) else text


def _unpack(file: BinaryIO) -> PeekedStream:
    source = PeekedStream(file.read(PEEKED_BYTES), file)
    while opened := _find_compression(source.first):
        packed = cast("BinaryIO", opened(cast("BinaryIO", source)))
        source = PeekedStream(packed.read(PEEKED_BYTES), packed)
    return source


def _open_mail(source: ByteSource) -> ByteSource:
    """Return what a mail holds. One that is too long is read as it is."""
    from assay.observe.logs.mail_text import decode_mails

    content = _read_some(source)
    if len(content) > MAX_MAIL_BYTES:
        return PeekedStream(content, source)
    parts = [_read_some(_unpack(io.BytesIO(part))) for part in decode_mails(content)]
    return io.BytesIO(b"\n".join(parts) or content)


def _read_some(source: ByteSource) -> bytes:
    """Return what can be read, up to about the size of the largest mail."""
    content = bytearray()
    while len(content) <= MAX_MAIL_BYTES and (piece := source.read(READ_BYTES)):
        content += piece
    return bytes(content)


def _find_compression(first: bytes) -> Callable[[BinaryIO], object] | None:
    if first.startswith(ZSTD_SKIPPABLE):
        return zstd.ZstdFile
    return next((opened for magic, opened in COMPRESSIONS.items() if first.startswith(magic)), None)


def _guess_encoding(first: bytes) -> str:
    """Return UTF-16 where every second byte is NUL, as in ASCII text without a mark; else UTF-8."""
    for encoding, zeros, letters in (("utf-16-le", first[1::2], first[::2]), ("utf-16-be", first[::2], first[1::2])):
        if zeros and zeros.count(0) > 0.8 * len(zeros) and letters.count(0) < 0.2 * len(letters):
            return encoding
    return "utf-8"


class PeekedStream(io.RawIOBase):
    """A stream whose first bytes were read already; `first` are those that nobody has taken yet."""

    def __init__(self, first: bytes, rest: ByteSource) -> None:
        self.first, self._rest = first, rest

    def readable(self) -> bool:
        """Return True: the decompressors ask."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Return up to `size` bytes, none at the end."""
        if not self.first:
            return self._rest.read(size)
        piece = self.first if size < 0 else self.first[:size]
        self.first = self.first[len(piece) :]
        return piece


class TranscodedStream:
    """A text in another encoding, as UTF-8. What is no text of that encoding becomes a replacement character."""

    def __init__(self, source: ByteSource, encoding: str) -> None:
        self._source = source
        self._decoder = codecs.getincrementaldecoder(encoding)(errors="replace")

    def read(self, size: int, /) -> bytes:
        """Return about `size` bytes, none at the end."""
        while piece := self._source.read(size):
            if text := self._decoder.decode(piece):
                return text.encode(errors="replace")
        return self._decoder.decode(b"", final=True).encode(errors="replace")
