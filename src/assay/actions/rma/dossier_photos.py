"""The photos that a technician has put into the dossier's folder. What is no photo stays out, and is told.

Who put which photo into a dossier, and when: lines of the ledger, which hold each photo by its sha256.
"""

from __future__ import annotations

import hashlib
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from assay.actions.rma.dossier_content import DossierJson
from assay.model.ledger_entry import LedgerEntry, derive_id

PHOTOS_KIND = "photos.taken"


def list_photos(files: Mapping[str, bytes], entries: Iterable[LedgerEntry], effect: str) -> list[DossierJson]:
    """Return the photos of a dossier in the order of names: `file`, `sha256`, `bytes`, and `who` added it, `at` when.

    `files` are those in its folder. Of one that nobody has spoken for yet, `who` and `at` are "".
    """
    spoken = {
        (photo["file"], photo["sha256"]): {"who": entry.body["who"], "at": entry.at}
        for entry in reversed(list(entries))
        if entry.kind == PHOTOS_KIND and entry.body["effect"] == effect
        for photo in entry.body["photos"]
    }
    return [
        {**one, **spoken.get((one["file"], one["sha256"]), {"who": "", "at": ""})} for one in _describe_files(files)
    ]


def make_photo_entries(
    node: str, effect: str, photos: Iterable[DossierJson], who: str, at: str
) -> Iterator[LedgerEntry]:
    """Yield the line by which somebody adds the photos that nobody has spoken for yet; none where there are none."""
    names = ("file", "sha256", "bytes")
    new = [{name: one[name] for name in names} for one in photos if not one["who"]]
    if new:
        ident = derive_id(PHOTOS_KIND, effect, *(f"{one['file']}/{one['sha256']}" for one in new))
        yield LedgerEntry(ident, at, PHOTOS_KIND, node, {"effect": effect, "who": who, "photos": new})


def _describe_files(files: Mapping[str, bytes]) -> Iterator[DossierJson]:
    for name, content in files.items():
        yield {"file": name, "sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}


FILE_SIGNATURES = {"jpg": b"\xff\xd8\xff", "jpeg": b"\xff\xd8\xff", "png": b"\x89PNG\r\n\x1a\n"}
"""How files of a kind begin (ISO/IEC 10918-1; ISO/IEC 15948)."""
CONTAINER_SIGNATURES = {"heic": b"ftyp", "webp": b"WEBP"}
"""What stands within the first twelve bytes of the others (ISO/IEC 14496-12; RFC 9649)."""
MAX_PHOTO_BYTES = 25 * 1024 * 1024
MAX_PHOTOS = 60
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_. -]{0,80}\.(jpe?g|png|heic|webp)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DossierPhotos:
    """The photos by file name, and why other files are not among them."""

    accepted: dict[str, bytes]
    rejected: dict[str, str]

    def find_files(self, name: str) -> list[str]:
        """Return the files that answer a wanted photo: `fault.jpg`, `fault-2.jpg`."""
        return [file for file in self.accepted if _first_word(file) == name]

    def find_unrequested(self, wanted: Iterable[str]) -> list[str]:
        """Return the files that answer none of the wanted photos."""
        names = set(wanted)
        return [file for file in self.accepted if _first_word(file) not in names]


def _first_word(file: str) -> str:
    return re.split(r"[-_. ]", file.lower())[0]


def read_photos(folder: Path) -> DossierPhotos:
    """Read a folder, in the order of names; there need be none."""
    taken, refused = dict[str, bytes](), dict[str, str]()
    for path in _list_files(folder):
        why, content = _read_photo(path) if len(taken) < MAX_PHOTOS else (f"there are {MAX_PHOTOS} already", b"")
        if why:
            refused[path.name] = why
        else:
            taken[path.name] = content
    return DossierPhotos(taken, refused)


def _list_files(folder: Path) -> Iterator[Path]:
    try:
        yield from sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError:
        return


def _read_photo(path: Path) -> tuple[str, bytes]:
    """Return why a file is not taken, "" where it is, and its bytes. A link is not followed: it could lead anywhere."""
    found = _NAME.fullmatch(path.name)
    if not found:
        return "its name is no photo's: letters, digits and a dash, and .jpg, .png, .heic or .webp", b""
    try:
        about = path.lstat()
        if not stat.S_ISREG(about.st_mode):
            return "it is no plain file", b""
        if about.st_size > MAX_PHOTO_BYTES:
            return f"it is larger than {MAX_PHOTO_BYTES // 1024 // 1024} MiB", b""
        content = path.read_bytes()
    except OSError as error:
        return f"it cannot be read: {error.strerror}", b""
    return ("", content) if _is_photo(found[1].lower(), content) else ("it does not begin as such a photo does", b"")


def _is_photo(ending: str, content: bytes) -> bool:
    if ending in FILE_SIGNATURES:
        return content.startswith(FILE_SIGNATURES[ending])
    return CONTAINER_SIGNATURES[ending] in content[:12]
