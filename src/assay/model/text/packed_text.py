"""Reads the text of a file that may be packed by gzip.

It is here, since the rooms that read such files import no other room.
"""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from typing import BinaryIO, Protocol, cast

GZIP_MAGIC = b"\x1f\x8b"
MAX_TEXT_BYTES = 512 * 2**20
"""The largest text that is read at once. The discovery of 10,000 nodes has about 200 MB."""
PEEKED_BYTES = 512
READ_BYTES = 256 * 1024


class ByteSource(Protocol):
    """What bytes are read from."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes, none at the end."""


class UnpackingError(OSError):
    """A packed file is cut or damaged, or holds too much."""


def read_text(file: ByteSource) -> str:
    """Return the whole text of a file.

    Raises UnpackingError where a packed file is cut or damaged, and for more than `MAX_TEXT_BYTES`.
    """
    content = read_up_to(open_text(file), MAX_TEXT_BYTES + 1)
    if len(content) > MAX_TEXT_BYTES:
        raise UnpackingError(f"it holds more than {MAX_TEXT_BYTES >> 20} MiB")
    return content.decode(errors="replace")


def open_text(file: ByteSource) -> PeekedStream:
    """Return the text of a file: unpacked, and without a byte order mark.

    To read it raises UnpackingError where a packed file is cut or damaged, after all that could be unpacked.
    """
    source = PeekedStream(file)
    if source.first.startswith(GZIP_MAGIC):
        source = PeekedStream(UnpackedStream(source))
    if source.first.startswith(codecs.BOM_UTF8):
        source.read(len(codecs.BOM_UTF8))
    return source


def read_up_to(source: ByteSource, size: int) -> bytes:
    """Return what a source has, at most `size` bytes."""
    content = bytearray()
    while len(content) < size and (piece := source.read(min(READ_BYTES, size - len(content)))):
        content += piece
    return bytes(content)


class PeekedStream(io.RawIOBase):
    """A stream whose first bytes were read already; `first` are those that nobody has taken yet."""

    def __init__(self, rest: ByteSource) -> None:
        self.first, self._rest = b"", rest
        try:
            while len(self.first) < PEEKED_BYTES and (piece := rest.read(PEEKED_BYTES - len(self.first))):
                self.first += piece
        except UnpackingError:  # the next read says it again
            return

    def readable(self) -> bool:
        """Return True: the decompressor asks."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Return up to `size` bytes, none at the end."""
        if not self.first:
            return self._rest.read(size)
        piece = self.first if size < 0 else self.first[:size]
        self.first = self.first[len(piece) :]
        return piece


class UnpackedStream:
    """What a packed file holds. It gives all that can be unpacked, and only then raises UnpackingError."""

    def __init__(self, file: PeekedStream) -> None:
        self._broken = ""
        self._file = gzip.GzipFile(fileobj=cast("BinaryIO", file))

    def read(self, size: int, /) -> bytes:
        """Return `size` bytes, fewer before the end or the damage, and none at the end."""
        content = bytearray()
        try:
            while not self._broken and len(content) < size and (piece := self._file.read1(size - len(content))):
                content += piece
        except EOFError:
            self._broken = "its gzip data break off"
        except (OSError, zlib.error) as error:
            self._broken = f"its gzip data are damaged: {error}"
        if self._broken and not content:
            raise UnpackingError(self._broken)
        return bytes(content)
