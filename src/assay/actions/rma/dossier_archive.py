"""One archive that is the same, byte for byte, whenever it is made of the same things, and proves itself whole.

Where dossiers lie: it follows from the node and from the effect that asked for one.
"""

from __future__ import annotations

import hashlib
import io
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

MANIFEST_NAME = "MANIFEST.sha256"
_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first moment that a zip can hold
_REGULAR_FILE_MODE = 0o100644 << 16
_UNIX = 3
UNREADABLE_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    OSError,
    EOFError,
    NotImplementedError,
    RuntimeError,
)
"""What reading an archive raises that is not whole."""
COMPRESSED_SUFFIXES = (".jpg", ".jpeg", ".png", ".heic", ".webp")


def build_zip(members: Mapping[str, bytes]) -> bytes:
    """Return a zip of the members in their order, with a last one that has the sha256 of each (`sha256sum -c`)."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        for name, content in {**members, MANIFEST_NAME: format_manifest(members)}.items():
            about = zipfile.ZipInfo(name, _ZIP_EPOCH)
            about.create_system, about.external_attr = _UNIX, _REGULAR_FILE_MODE
            about.compress_type = (
                zipfile.ZIP_STORED if name.lower().endswith(COMPRESSED_SUFFIXES) else zipfile.ZIP_DEFLATED
            )
            packed.writestr(about, content, compresslevel=9)
    return out.getvalue()


def format_manifest(members: Mapping[str, bytes]) -> bytes:
    """Return the sha256 of every member, a line each."""
    return "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in members.items()).encode()


def read_zip(content: bytes) -> dict[str, bytes]:
    """Return the members of an archive. Raises ValueError for one that is not whole, or not what its manifest says."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            members = {name: packed.read(name) for name in packed.namelist()}
    except UNREADABLE_ZIP_ERRORS as error:
        raise ValueError(f"not a whole archive: {error}") from None
    told = members.pop(MANIFEST_NAME, b"")
    if told != format_manifest(members):
        raise ValueError("the members are not those of the manifest")
    return members


def locate_dossier(reports: Path, node: str, effect: str) -> Path:
    """Return where the dossier of an effect lies."""
    return reports / "rma" / f"{node}-{effect}.zip"


def locate_photo_folder(reports: Path, node: str, effect: str) -> Path:
    """Return the folder into which a technician puts the photos."""
    return reports / "rma" / f"{node}-{effect}.photos"
