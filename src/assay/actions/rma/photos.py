"""The photos that a technician has put into the dossier's folder. What is no photo stays out, and is told."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

BEGINS = {"jpg": b"\xff\xd8\xff", "jpeg": b"\xff\xd8\xff", "png": b"\x89PNG\r\n\x1a\n"}
"""How files of a kind begin (ISO/IEC 10918-1; ISO/IEC 15948)."""
BOXED = {"heic": b"ftyp", "webp": b"WEBP"}
"""What stands within the first twelve bytes of the others (ISO/IEC 14496-12; RFC 9649)."""
LARGEST = 25 * 1024 * 1024
MOST = 60
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_. -]{0,80}\.(jpe?g|png|heic|webp)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Photos:
    """The photos by file name, and why other files are not among them."""

    taken: dict[str, bytes]
    refused: dict[str, str]

    def answer(self, name: str) -> list[str]:
        """Return the files that answer a wanted photo: `fault.jpg`, `fault-2.jpg`."""
        return [file for file in self.taken if _first_word(file) == name]

    def others(self, wanted: Iterable[str]) -> list[str]:
        """Return the files that answer none of the wanted photos."""
        names = set(wanted)
        return [file for file in self.taken if _first_word(file) not in names]


def _first_word(file: str) -> str:
    return re.split(r"[-_. ]", file.lower())[0]


def photos_in(folder: Path) -> Photos:
    """Read a folder, in the order of names; there need be none."""
    taken, refused = dict[str, bytes](), dict[str, str]()
    for path in _files(folder):
        why, content = _read(path) if len(taken) < MOST else (f"there are {MOST} already", b"")
        if why:
            refused[path.name] = why
        else:
            taken[path.name] = content
    return Photos(taken, refused)


def _files(folder: Path) -> Iterator[Path]:
    try:
        yield from sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError:
        return


def _read(path: Path) -> tuple[str, bytes]:
    """Return why a file is not taken, "" where it is, and its bytes. A link is not followed: it could lead anywhere."""
    found = _NAME.fullmatch(path.name)
    if not found:
        return "its name is no photo's: letters, digits and a dash, and .jpg, .png, .heic or .webp", b""
    try:
        about = path.lstat()
        if not stat.S_ISREG(about.st_mode):
            return "it is no plain file", b""
        if about.st_size > LARGEST:
            return f"it is larger than {LARGEST // 1024 // 1024} MiB", b""
        content = path.read_bytes()
    except OSError as error:
        return f"it cannot be read: {error.strerror}", b""
    return ("", content) if _is_photo(found[1].lower(), content) else ("it does not begin as such a photo does", b"")


def _is_photo(ending: str, content: bytes) -> bool:
    if ending in BEGINS:
        return content.startswith(BEGINS[ending])
    return BOXED[ending] in content[:12]
