"""The photos in a dossier's folder: which files count as photos, and who added each photo when.

The ledger records each photo by its sha256.
"""

from __future__ import annotations

import hashlib
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from assay.act.remedies.dossier_content import DossierJson
from assay.model.entries.asset_entries import PhotoFile, PhotosTakenEntry
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.ticket import find_photo_type

PHOTOS_KIND = PhotosTakenEntry.kind
MAX_PHOTO_BYTES = 25 * 1024 * 1024
MAX_PHOTOS = 60
_PHOTO_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_. -]{0,80}\.(jpe?g|png|heic|webp)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DossierPhotos:
    """The photos by file name, and why each other file is not accepted."""

    accepted: dict[str, bytes]
    rejected: dict[str, str]

    def find_files(self, name: str) -> list[str]:
        """Return the files of the required photo `fault`: `fault.jpg`, `fault-2.jpg`."""
        return [file for file in self.accepted if _first_word(file) == name]

    def find_unrequested(self, required: Iterable[str]) -> list[str]:
        """Return the files of no required photo."""
        names = set(required)
        return [file for file in self.accepted if _first_word(file) not in names]


def read_photos(folder: Path) -> DossierPhotos:
    """Return the photos in a folder, in the order of their names. The folder need not exist."""
    accepted, rejected = dict[str, bytes](), dict[str, str]()
    try:
        paths = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError:
        paths = []
    for path in paths:
        reason, content = _read_photo(path) if len(accepted) < MAX_PHOTOS else (f"there are {MAX_PHOTOS} already", b"")
        if reason:
            rejected[path.name] = reason
        else:
            accepted[path.name] = content
    return DossierPhotos(accepted, rejected)


def list_photos(files: Mapping[str, bytes], entries: Iterable[LedgerEntry], effect: str) -> list[DossierJson]:
    """Return a record of each photo of a dossier: `file`, `sha256`, `bytes`, `who` added it, and `at` (ISO 8601).

    `files` are those in its folder. `who` and `at` are "" for a photo that nobody has added to the ledger.
    """
    added = {
        (photo.file, photo.sha256): {"who": taken.who, "at": entry.at}
        for entry in reversed(list(entries))
        if entry.kind == PHOTOS_KIND and (taken := PhotosTakenEntry.read(entry)).effect == effect
        for photo in taken.photos
    }
    records = []
    for name, content in files.items():
        digest = hashlib.sha256(content).hexdigest()
        record = {"file": name, "sha256": digest, "bytes": len(content)}
        records.append(record | added.get((name, digest), {"who": "", "at": ""}))
    return records


def make_photo_entries(
    node: str, effect: str, photos: Iterable[DossierJson], who: str, at: str
) -> Iterator[LedgerEntry]:
    """Yield the ledger entry by which `who` adds the photos that nobody has added yet, if there are any."""
    new = tuple(PhotoFile(photo["file"], photo["sha256"], photo["bytes"]) for photo in photos if not photo["who"])
    if new:
        ident = derive_id(PHOTOS_KIND, effect, *(f"{photo.file}/{photo.sha256}" for photo in new))
        yield PhotosTakenEntry(effect, who, new).make_entry(ident, at, node)


def _first_word(file: str) -> str:
    return re.split(r"[-_. ]", file.lower())[0]


def _read_photo(path: Path) -> tuple[str, bytes]:
    """Return why a file is not accepted, "" if it is, and its bytes. Links are not followed: they may lead anywhere."""
    found = _PHOTO_NAME.fullmatch(path.name)
    if not found:
        return "a photo's name has letters, digits and dashes, and ends with .jpg, .png, .heic or .webp", b""
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            return "it is no regular file", b""
        if status.st_size > MAX_PHOTO_BYTES:
            return f"it is larger than {MAX_PHOTO_BYTES // 1024 // 1024} MiB", b""
        content = path.read_bytes()
    except OSError as error:
        return f"it cannot be read: {error.strerror}", b""
    is_photo = find_photo_type(content) == found[1].lower().replace("jpeg", "jpg")
    return ("", content) if is_photo else ("its first bytes are not those of such a photo", b"")
