"""Brings components of a firmware bundle onto a node: each image is pushed once, even if processes are killed.

Only the BMC's inventory decides. A component with the right version is skipped, a running update is taken over, an
update that waits for its reset is reset. Only then is an image pushed.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from assay.actions.polling import wait_until
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.specs.firmware_bundle import FirmwareComponent, FirmwareReset

RESET_STRENGTH: tuple[FirmwareReset, ...] = ("none", "bmc", "host", "ac")


@dataclass(frozen=True, slots=True)
class FirmwareUpdateStatus:
    """One update of a BMC: running, completed or failed, and whether the reset that it needs has come since."""

    id: str
    running: bool
    completed: bool
    reset_since: bool = False
    message: str = ""


class FirmwareUpdater(Protocol):
    """One BMC, as far as updates need it. Every method may raise AssayError."""

    def read_versions(self) -> Mapping[str, str]:
        """Return version by inventory id."""

    def find_update(self, component: FirmwareComponent) -> FirmwareUpdateStatus | None:
        """Return the newest update of a component that the BMC remembers."""

    def read_update(self, ident: str) -> FirmwareUpdateStatus:
        """Return one update by its id."""

    def push(self, component: FirmwareComponent, image: Path) -> str:
        """Upload an image. Return the id of its update."""

    def restart(self, what: FirmwareReset) -> None:
        """Restart the BMC or the host, or cut its power."""


BmcConnector = Callable[[], AbstractContextManager[FirmwareUpdater]]


@dataclass
class FirmwareUpdateRun:
    """The firmware work on one node: how to reach its BMC, the folder of the artifacts, the limit of each wait.

    `read_back_s` is how long a BMC may answer with an old version after update and reset. `pushed` names the
    components for which an image was pushed.
    """

    node: str
    connect: BmcConnector
    root: Path
    deadline_s: float
    read_back_s: float = 120.0
    pushed: list[str] = field(default_factory=list)

    def update_components(self, components: Sequence[FirmwareComponent]) -> bool:
        """Bring the components to their versions. Return whether anything had to be done. Raises AssayError."""
        if not self._find_mismatches(components):
            return False
        self._update_stale(components, adopt=True)
        if self._find_mismatches(components):  # an update that was taken over had another version
            self._update_stale(components, adopt=False)
        if mismatches := self._find_mismatches(components):
            what = f"the BMC reads other versions after the update: {format_mismatches(mismatches)}"
            raise AssayError(what, where=self.node)
        return True

    def read_versions(self, components: Sequence[FirmwareComponent]) -> dict[str, str]:
        """Return the version of every inventory id of the components, "absent" for a missing one."""
        with self.connect() as bmc:
            seen = bmc.read_versions()
        return {ident: seen.get(ident, "absent") for component in components for ident in component.inventory}

    def _find_mismatches(self, components: Sequence[FirmwareComponent]) -> dict[str, tuple[str, str]]:
        with self.connect() as bmc:
            return find_version_mismatches(bmc.read_versions(), components)

    def _update_stale(self, components: Sequence[FirmwareComponent], *, adopt: bool) -> None:
        """Update those with another version, then do the strongest of their resets. `adopt` takes over updates."""
        with self.connect() as bmc:
            stale = [part for part in components if find_version_mismatches(bmc.read_versions(), [part])]
            for part in stale:
                self._update_component(bmc, part, adopt=adopt)
        reset: FirmwareReset = max((part.reset for part in stale), key=RESET_STRENGTH.index, default="none")
        if reset != "none":
            with self.connect() as bmc:
                bmc.restart(reset)
        self._await_versions(stale)

    def _update_component(self, bmc: FirmwareUpdater, component: FirmwareComponent, *, adopt: bool) -> None:
        known = bmc.find_update(component) if adopt else None
        if known and known.completed and not known.reset_since and component.reset != "none":
            return
        if known and known.running:
            ident = known.id
        else:
            image = self.root / component.artifact
            check_artifact(image, component)
            ident = bmc.push(component, image)
            self.pushed.append(component.name)
        update = wait_until(
            lambda: None if (seen := bmc.read_update(ident)).running else seen,
            self.deadline_s,
            f"the update of {component.name} ends",
            self.node,
        )
        if not update.completed:
            raise AssayError(f"the update of {component.name} failed: {update.message}", where=self.node)

    def _await_versions(self, components: Sequence[FirmwareComponent]) -> None:
        """Wait for the new versions, or until the BMC has answered with others for `read_back_s`."""
        stale_since: list[float] = []

        def look() -> bool | None:
            try:
                mismatches = self._find_mismatches(components)
            except AssayError:
                stale_since.clear()
                raise
            if not mismatches:
                return True
            stale_since.append(time.monotonic())
            return False if stale_since[-1] - stale_since[0] > self.read_back_s else None

        wait_until(look, self.deadline_s, "the BMC reads the new versions", self.node)


def list_managed_components(fleet: Fleet, node: str) -> list[FirmwareComponent]:
    """Return the components of a node's bundle that its management profile lets assay update, in their order."""
    profile = fleet.profile_of(node)
    components = [part for part in fleet.bundle_of(node).components if not part.hca or profile.hca_firmware]
    return sorted(components, key=lambda part: part.order)


def find_version_mismatches(
    seen: Mapping[str, str], components: Sequence[FirmwareComponent]
) -> dict[str, tuple[str, str]]:
    """Return (expected, seen) for every inventory id that does not have its component's version.

    A missing id reads "absent". BMCs pad versions with blanks: those do not count.
    """
    return {
        ident: (part.version, seen.get(ident, "absent"))
        for part in components
        for ident in part.inventory
        if seen.get(ident, "absent").strip() != part.version
    }


def format_mismatches(mismatches: Mapping[str, tuple[str, str]]) -> str:
    """Return mismatches as one line of text."""
    return ", ".join(f"{ident} is {seen}, expected {expected}" for ident, (expected, seen) in mismatches.items())


def check_artifact(image: Path, component: FirmwareComponent) -> None:
    """Raise AssayError unless the file has the sha256 that the bundle declares."""
    if not image.exists():
        raise AssayError(f"there is no {component.artifact}", where=component.name, fix="fetch the bundle's artifacts")
    with image.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != component.sha256:
        raise AssayError(
            f"{component.artifact} has sha256 {found}, but the bundle declares {component.sha256}",
            where=component.name,
            fix="replace the file or correct the bundle; nothing was pushed",
        )
