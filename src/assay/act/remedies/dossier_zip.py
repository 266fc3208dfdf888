"""The archive of a dossier: where it is, and how it is written and read.

It is the same byte for byte whenever it is built from the same things. Its manifest shows whether it is complete.
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
"""What zipfile raises for a damaged archive."""
COMPRESSED_SUFFIXES = (".jpg", ".jpeg", ".png", ".heic", ".webp")


def build_zip(members: Mapping[str, bytes]) -> bytes:
    """Return a zip of the members in their order, and a manifest with the sha256 of each (for `sha256sum -c`)."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        for name, content in {**members, MANIFEST_NAME: format_manifest(members)}.items():
            info = zipfile.ZipInfo(name, _ZIP_EPOCH)
            info.create_system, info.external_attr = _UNIX, _REGULAR_FILE_MODE
            is_compressed = name.lower().endswith(COMPRESSED_SUFFIXES)
            info.compress_type = zipfile.ZIP_STORED if is_compressed else zipfile.ZIP_DEFLATED
            packed.writestr(info, content, compresslevel=9)
    return out.getvalue()


def format_manifest(members: Mapping[str, bytes]) -> bytes:
    """Return a line with the sha256 of each member."""
    return "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in members.items()).encode()


def read_zip(content: bytes) -> dict[str, bytes]:
    """Return the members of an archive. Raises ValueError if it is damaged, or differs from its manifest."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            members = {name: packed.read(name) for name in packed.namelist()}
    except UNREADABLE_ZIP_ERRORS as error:
        raise ValueError(f"the archive is damaged: {error}") from None
    if members.pop(MANIFEST_NAME, b"") != format_manifest(members):
        raise ValueError("the members differ from the manifest")
    return members


def locate_dossier(reports: Path, node: str, effect: str) -> Path:
    """Return the path of an effect's dossier."""
    return reports / "rma" / f"{node}-{effect}.zip"


def locate_photo_folder(reports: Path, node: str, effect: str) -> Path:
    """Return the folder into which technicians put the photos of that dossier."""
    return reports / "rma" / f"{node}-{effect}.photos"
