"""One archive that is the same, byte for byte, whenever it is made of the same things, and proves itself whole."""

from __future__ import annotations

import hashlib
import io
import struct
import zipfile
import zlib
from collections.abc import Mapping

MANIFEST = "MANIFEST.sha256"
_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the first moment that a zip can hold
_PLAIN_FILE = 0o100644 << 16
_UNIX = 3
BROKEN = (zipfile.BadZipFile, zlib.error, struct.error, OSError, EOFError, NotImplementedError, RuntimeError)
"""What reading an archive raises that is not whole."""
PACKED = (".jpg", ".jpeg", ".png", ".heic", ".webp")


def archive(members: Mapping[str, bytes]) -> bytes:
    """Return a zip of the members in their order, with a last one that has the sha256 of each (`sha256sum -c`)."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        for name, content in {**members, MANIFEST: manifest(members)}.items():
            about = zipfile.ZipInfo(name, _LONG_AGO)
            about.create_system, about.external_attr = _UNIX, _PLAIN_FILE
            about.compress_type = zipfile.ZIP_STORED if name.lower().endswith(PACKED) else zipfile.ZIP_DEFLATED
            packed.writestr(about, content, compresslevel=9)
    return out.getvalue()


def manifest(members: Mapping[str, bytes]) -> bytes:
    """Return the sha256 of every member, a line each."""
    return "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in members.items()).encode()


def opened(content: bytes) -> dict[str, bytes]:
    """Return the members of an archive. Raises ValueError for one that is not whole, or not what its manifest says."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            members = {name: packed.read(name) for name in packed.namelist()}
    except BROKEN as error:
        raise ValueError(f"not a whole archive: {error}") from None
    told = members.pop(MANIFEST, b"")
    if told != manifest(members):
        raise ValueError("the members are not those of the manifest")
    return members
