"""What was kept of failures, as files that go along with a report: as far as they are still there, and fit."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from assay.model.outcome import Artefact

MOST_BYTES = 64 << 20
"""A report takes so much along; what is beyond that is named by its hash only."""
ENDINGS = {".txt": "text/plain", ".json": "application/json"}


class Attachments:
    """Finds what is kept in `folders` as `ab/<sha256>.txt` or `.json`, and lays it beside the results."""

    def __init__(self, folders: Sequence[Path] = (), most: int = MOST_BYTES) -> None:
        self._folders, self._left = folders, most
        self._files: dict[str, Path | None] = {}
        self._waiting: list[Path] = []

    def of(self, kept: Artefact) -> tuple[str, str] | None:
        """Return the name of the file beside the results, and its media type; None where it does not come along."""
        if kept.digest not in self._files:
            self._files[kept.digest] = file = self._file(kept.digest)
            self._waiting += [file] if file else []
        found = self._files[kept.digest]
        return (_named(found), ENDINGS[found.suffix]) if found else None

    def lay_into(self, folder: Path) -> None:
        """Copy what was asked for since the last time."""
        for file in self._waiting:
            shutil.copyfile(file, folder / _named(file))
        self._waiting.clear()

    def _file(self, digest: str) -> Path | None:
        places = (folder / digest[:2] / f"{digest}{ending}" for folder in self._folders for ending in ENDINGS)
        found = next((place for place in places if digest and place.is_file()), None)
        if found is None or found.stat().st_size > self._left:
            return None
        self._left -= found.stat().st_size
        return found


def _named(file: Path) -> str:
    return f"{file.stem}-attachment{file.suffix}"
