"""Reads the fleet again when its files or its commit change, and keeps the last good one while they are in error.

`assay reconcile` and `assay serve` both use it, so that they work with the same fleet without a restart.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

from assay.act.loop.background_worker import IntervalThrottle
from assay.act.loop.context import ControllerContext
from assay.act.loop.enrollment import enroll_nodes
from assay.act.loop.signed_commit_gate import accept_commit
from assay.declare.repository import commit_facts
from assay.declare.repository_check import check_repository
from assay.model.clock import Clock
from assay.model.errors import AssayError
from assay.model.fleet import Fleet

RELOAD_INTERVAL_S = 2.0
"""Real seconds between two looks at the fleet's files. One look costs a stat for each file."""
WATCHED_FOLDERS = ("inventory", "specs", "suites")
UNWATCHED_FOLDERS = ("__pycache__", "recordings")
RECONCILE_ADOPTS = "`assay reconcile` adopts the commit and starts its rollout"
"""What a server says of a new commit: it records, and one process decides and acts."""
FleetStamp = tuple[str, frozenset[tuple[str, int, int]]]


@dataclass
class FleetReloader:
    """Watches the fleet at `root` and its `overlays`; `read_fleet` reads it, and `report` gets errors as text.

    `is_usable` says whether the files, as they are now, make the fleet that was returned last.
    """

    root: Path
    read_fleet: Callable[[], Fleet]
    clock: Clock
    report: Callable[[str], None]
    overlays: Sequence[Path] = ()

    def __post_init__(self) -> None:
        self._last_stamp: FleetStamp | None = self._read_stamp()
        self.is_usable = True

    def read_again(self) -> None:
        """Let the next look read the fleet, even if no file changed: what a program of the inventory says may have."""
        self._last_stamp = None

    def reload_if_changed(self) -> Fleet | None:
        """Return the fleet if it changed since the last call, None if it did not or is in error.

        An error is reported once, and the fleet that was read before it stays in force.
        """
        stamp = self._read_stamp()
        if stamp == self._last_stamp:
            return None
        self._last_stamp = stamp
        try:
            fleet = self._read_checked()
            self.is_usable = True
            return fleet
        except AssayError as error:
            self.is_usable = False
            self.report(f"the fleet's files changed, and cannot be used; goes on with what was read before: {error}")
            return None

    def _read_checked(self) -> Fleet:
        fleet = self.read_fleet()
        problems = check_repository(self.root, self.clock.now()).problems
        if errors := [problem for problem in problems if problem.severity == "error"]:
            more = f" (and {len(errors) - 1} more)" if errors[1:] else ""
            fix = "`assay check` lists every problem"
            raise AssayError(f"{errors[0].message}{more}", where=errors[0].where, fix=fix)
        return fleet

    def _read_stamp(self) -> FleetStamp:
        return commit_facts.read_head_commit(self.root), frozenset(self._stat_files())

    def _stat_files(self) -> Iterator[tuple[str, int, int]]:
        paths = [path for name in WATCHED_FOLDERS for path in _list_files(self.root / name)]
        for path in [*paths, *self.overlays]:
            try:
                about = path.stat()
            except OSError:  # it was just deleted
                continue
            yield str(path), about.st_mtime_ns, about.st_size


def _list_files(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in UNWATCHED_FOLDERS]
        yield from (Path(parent, name) for name in names if not name.startswith("."))


class CurrentContext:
    """The context of a server, with the newest good fleet. Safe for threads.

    Without a `reloader` the fleet stays as it is.
    """

    def __init__(self, context: ControllerContext, reloader: FleetReloader | None = None) -> None:
        self._context, self._reloader = context, reloader
        self._throttle, self._lock = IntervalThrottle(), Lock()

    @property
    def context(self) -> ControllerContext:
        """The context as of the last refresh."""
        return self._context

    @property
    def is_usable(self) -> bool:
        """Whether the fleet's files, as they are now, make the fleet of the context."""
        return self._reloader is None or self._reloader.is_usable

    def look_again(self) -> None:
        """Let the next refresh read the fleet, even if the last look was a moment ago and no file changed."""
        with self._lock:
            self._throttle = IntervalThrottle()
            if self._reloader:
                self._reloader.read_again()

    def refresh(self) -> ControllerContext:
        """Read the fleet again if it changed, at most every RELOAD_INTERVAL_S; return the context.

        A fleet that is in error, or a commit that may not be acted on, is reported, and the last good fleet stays.
        """
        with self._lock:
            if self._reloader is None or not self._throttle.is_due("reload", RELOAD_INTERVAL_S):
                return self._context
            if fleet := self._reloader.reload_if_changed():
                try:
                    self._adopt(replace(self._context, fleet=fleet), self._reloader.report)
                except AssayError as error:
                    self._reloader.report(f"goes on with the fleet that was read before: {error}")
            return self._context

    def _adopt(self, context: ControllerContext, report: Callable[[str], None]) -> None:
        accept_commit(context)
        enroll_nodes(context)
        before, self._context = self._context.fleet, context
        rest = f"; {RECONCILE_ADOPTS}" if before.commit != context.fleet.commit else ""
        report(f"read the fleet again ({describe_change(before, context.fleet)}){rest}")


def describe_change(before: Fleet, after: Fleet) -> str:
    """Return what changed between two versions of a fleet, for people."""
    return "no new commit" if before.commit == after.commit else f"{before.commit[:12]} → {after.commit[:12]}"
