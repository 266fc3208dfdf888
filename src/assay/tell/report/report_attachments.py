"""Finds what was kept of failures, and copies it beside the results of a report, decompressed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from assay.model.evidence_objects import PACKED_SUFFIX, PLAIN_SUFFIX, read_digest, unpack_object
from assay.model.outcome import FailureArtefact

MAX_ATTACHED_BYTES = 64 << 20
"""Size of all attachments of a report; further artefacts are only named, with their digests."""
MEDIA_TYPES = {".txt": "text/plain", PLAIN_SUFFIX: "application/json", PACKED_SUFFIX: "application/json"}


class ReportAttachments:
    """Finds artefacts in `folders`, as `ab/<sha256>.txt`, `.json` or `.json.gz`, and copies them beside the results."""

    def __init__(self, folders: Sequence[Path] = (), max_bytes: int = MAX_ATTACHED_BYTES) -> None:
        self._folders, self._bytes_left = folders, max_bytes
        self._files: dict[str, Path | None] = {}
        self._to_copy: list[Path] = []

    def find_file(self, artefact: FailureArtefact) -> tuple[str, str] | None:
        """Return the name of the attached file and its media type; None where it is gone or does not fit."""
        if artefact.digest not in self._files:
            self._files[artefact.digest] = file = self._find_path(artefact.digest)
            self._to_copy += [file] if file else []
        found = self._files[artefact.digest]
        return (_attachment_name(found), MEDIA_TYPES["".join(found.suffixes)]) if found else None

    def copy_into(self, folder: Path) -> None:
        """Copy the files that were found since the last call."""
        for file in self._to_copy:
            (folder / _attachment_name(file)).write_bytes(unpack_object(file.read_bytes()))
        self._to_copy.clear()

    def _find_path(self, digest: str) -> Path | None:
        paths = (folder / digest[:2] / f"{digest}{suffix}" for folder in self._folders for suffix in MEDIA_TYPES)
        found = next((path for path in paths if digest and path.is_file()), None)
        size = _read_size(found) if found else None
        if size is None or size > self._bytes_left:
            return None
        self._bytes_left -= size
        return found


def _read_size(file: Path) -> int | None:
    """Return the size of an artefact, decompressed; None where it is damaged."""
    if "".join(file.suffixes) != PACKED_SUFFIX:
        return file.stat().st_size
    try:
        return len(unpack_object(file.read_bytes()))
    except ValueError:
        return None


def _attachment_name(file: Path) -> str:
    return f"{read_digest(file)}-attachment{'.txt' if file.suffix == '.txt' else PLAIN_SUFFIX}"
