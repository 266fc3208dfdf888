"""The fleet as it is declared now: read again when its files or its commit change, and only when it can be used."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.fleet import commit_signatures
from assay.fleet.check import check_repository
from assay.model.clock import Clock
from assay.model.errors import AssayError
from assay.model.fleet import Fleet

WATCHED_FOLDERS = ("inventory", "specs")
FleetStamp = tuple[str, frozenset[tuple[str, int, int]]]


@dataclass
class FleetReloader:
    """`read` reads the fleet at `root` with its `overlays`; `say` is told what became of it.

    `usable` says whether the files, as they lie there, are what `changed` returned last.
    """

    root: Path
    read_fleet: Callable[[], Fleet]
    clock: Clock
    report: Callable[[str], None]
    overlays: Sequence[Path] = ()

    def __post_init__(self) -> None:
        self._last_stamp = self._stamp()
        self.is_usable = True

    def reload_if_changed(self) -> Fleet | None:
        """Return the fleet where it is another than at the last time, None where it is not or cannot be used.

        A change that cannot be used is told once, and what was read before it goes on to count.
        """
        stamp = self._stamp()
        if stamp == self._last_stamp:
            return None
        self._last_stamp = stamp
        try:
            fleet = self._read_checked()
            self.is_usable = True
            return fleet
        except AssayError as trouble:
            self.is_usable = False
            self.report(f"the fleet's files changed, and cannot be used; goes on with what was read before: {trouble}")
            return None

    def _read_checked(self) -> Fleet:
        fleet = self.read_fleet()
        wrong = [one for one in check_repository(self.root, self.clock.now()).problems if one.severity == "error"]
        if wrong:
            more = f" (and {len(wrong) - 1} more)" if wrong[1:] else ""
            raise AssayError(f"{wrong[0].message}{more}", where=wrong[0].where, fix="`assay check` lists every problem")
        return fleet

    def _stamp(self) -> FleetStamp:
        return commit_signatures.read_head_commit(self.root), frozenset(self._files())

    def _files(self) -> Iterator[tuple[str, int, int]]:
        folders = [self.root / name for name in WATCHED_FOLDERS]
        paths = [path for folder in folders for path in _list_files(folder)]
        for path in [*paths, *self.overlays]:
            try:
                about = path.stat()
            except OSError:  # it has just gone
                continue
            yield str(path), about.st_mtime_ns, about.st_size


def _list_files(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        yield from (Path(parent, name) for name in names if not name.startswith("."))
