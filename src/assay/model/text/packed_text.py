"""Reads the text of a file that may be packed, and in another encoding: it comes out as UTF-8.

It is here, since the rooms that read such files import no other room.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Callable, Mapping
from typing import BinaryIO, NamedTuple, Protocol, cast

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


class Packing(NamedTuple):
    """A way to pack files."""

    name: str
    opened: Callable[[BinaryIO], object]


GZIP = Packing("gzip", lambda file: gzip.GzipFile(fileobj=file))
ZSTD = Packing("zstd", zstd.ZstdFile)
PACKINGS: Mapping[bytes, Packing] = {
    b"\x1f\x8b": GZIP,
    b"BZh": Packing("bzip2", bz2.BZ2File),
    b"\xfd7zXZ\x00": Packing("xz", lzma.LZMAFile),
    b"\x28\xb5\x2f\xfd": ZSTD,
    **{bytes([first]) + b"\x2a\x4d\x18": ZSTD for first in range(0x50, 0x60)},  # a frame that zstd skips
}
"""The packings, by the bytes that a packed file begins with."""


def read_text(file: ByteSource) -> str:
    """Return the whole text of a file.

    Raises UnpackingError where a packed file is cut or damaged, and for more than `MAX_TEXT_BYTES`.
    """
    content = read_up_to(open_text(file), MAX_TEXT_BYTES + 1)
    if len(content) > MAX_TEXT_BYTES:
        raise UnpackingError(f"it holds more than {MAX_TEXT_BYTES >> 20} MiB")
    return content.decode(errors="replace")


def open_text(file: ByteSource) -> PeekedStream:
    """Return the text of a file as UTF-8: unpacked, and without a byte order mark.

    To read it raises UnpackingError where a packed file is cut or damaged, after all that could be unpacked.
    """
    source = unpack(file)
    mark = next((mark for mark in MARKS if source.first.startswith(mark)), b"")
    encoding = MARKS.get(mark) or _guess_encoding(source.first)
    source.read(len(mark))
    return source if encoding == "utf-8" else PeekedStream(TranscodedStream(source, encoding))


def unpack(file: ByteSource) -> PeekedStream:
    """Return the bytes of a file, unpacked as often as they were packed."""
    source = PeekedStream(file)
    while packing := next((packing for magic, packing in PACKINGS.items() if source.first.startswith(magic)), None):
        source = PeekedStream(UnpackedStream(source, packing))
    return source


def read_up_to(source: ByteSource, size: int) -> bytes:
    """Return what a source has, at most `size` bytes."""
    content = bytearray()
    while len(content) < size and (piece := source.read(min(READ_BYTES, size - len(content)))):
        content += piece
    return bytes(content)


def _guess_encoding(first: bytes) -> str:
    """Return UTF-16 where every second byte is NUL, as in ASCII text without a mark; else UTF-8."""
    for encoding, zeros, letters in (("utf-16-le", first[1::2], first[::2]), ("utf-16-be", first[::2], first[1::2])):
        if zeros and zeros.count(0) > 0.8 * len(zeros) and letters.count(0) < 0.2 * len(letters):
            return encoding
    return "utf-8"


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
        """Return True: the decompressors ask."""
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

    def __init__(self, file: PeekedStream, packing: Packing) -> None:
        self._packing, self._broken = packing.name, ""
        self._file = cast("io.BufferedReader", packing.opened(cast("BinaryIO", file)))

    def read(self, size: int, /) -> bytes:
        """Return `size` bytes, fewer before the end or the damage, and none at the end."""
        content = bytearray()
        try:
            while not self._broken and len(content) < size and (piece := self._file.read1(size - len(content))):
                content += piece
        except UnpackingError as error:  # of the packing around this one
            self._broken = str(error)
        except EOFError:
            self._broken = f"its {self._packing} data break off"
        except (OSError, lzma.LZMAError, zlib.error, zstd.ZstdError) as error:
            self._broken = f"its {self._packing} data are damaged: {error}"
        if self._broken and not content:
            raise UnpackingError(self._broken)
        return bytes(content)


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
