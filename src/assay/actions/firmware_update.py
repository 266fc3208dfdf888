"""Bringing components of a bundle onto a node, each image once, whatever was killed on the way.

The inventory that the BMC reads is the only judge: an equal component is left alone, a running update is adopted,
one that was written and waits for its reset is reset, and only what is left is pushed.
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
    """One update as the BMC tells it: a task, running, completed or broken, and whether its reset has come since."""

    id: str
    running: bool
    completed: bool
    reset_since: bool = False
    message: str = ""


class FirmwareUpdater(Protocol):
    """One BMC, as far as updates need it. Every method raises Trouble when it cannot."""

    def firmware(self) -> Mapping[str, str]:
        """Return version by inventory id."""

    def latest_update(self, component: FirmwareComponent) -> FirmwareUpdateStatus | None:
        """Return the newest update of a component that the BMC remembers."""

    def update(self, ident: str) -> FirmwareUpdateStatus:
        """Return one update by its id."""

    def push(self, component: FirmwareComponent, image: Path) -> str:
        """Hand over an image; return the id of the update that it became."""

    def restart(self, what: FirmwareReset) -> None:
        """Restart the BMC or the host, or cut its power."""


BmcConnector = Callable[[], AbstractContextManager[FirmwareUpdater]]


@dataclass
class FirmwareUpdateRun:
    """One node's firmware work: how to reach its BMC, where the artifacts lie, how long to wait for each step.

    `read_back_s`: how long a BMC that answers may go on reading an old version after update and reset.
    """

    node: str
    connect: BmcConnector
    root: Path
    deadline_s: float
    read_back_s: float = 120.0
    pushed: list[str] = field(default_factory=list)

    def update_components(self, components: Sequence[FirmwareComponent]) -> bool:
        """Make the inventory equal to `components`; return whether anything had to be done. Raises Trouble."""
        if not self._find_mismatches(components):
            return False
        self._update_stale(components, adopt=True)
        if self._find_mismatches(components):  # what was adopted was another version
            self._update_stale(components, adopt=False)
        if stale := self._find_mismatches(components):
            raise AssayError(f"reads other versions after the update: {format_mismatches(stale)}", where=self.node)
        return True

    def read_versions(self, components: Sequence[FirmwareComponent]) -> dict[str, str]:
        """Return what the BMC reads for every inventory id of the components."""
        with self.connect() as bmc:
            seen = bmc.firmware()
        return {ident: seen.get(ident, "absent") for component in components for ident in component.inventory}

    def _find_mismatches(self, components: Sequence[FirmwareComponent]) -> dict[str, tuple[str, str]]:
        with self.connect() as bmc:
            return find_version_mismatches(bmc.firmware(), components)

    def _update_stale(self, components: Sequence[FirmwareComponent], *, adopt: bool) -> None:
        with self.connect() as bmc:
            stale = [part for part in components if find_version_mismatches(bmc.firmware(), [part])]
            for part in stale:
                self._update_component(bmc, part, adopt=adopt)
        self._reset(max((part.reset for part in stale), key=RESET_STRENGTH.index, default="none"))
        self._await_versions(stale)

    def _update_component(self, bmc: FirmwareUpdater, component: FirmwareComponent, *, adopt: bool) -> None:
        known = bmc.latest_update(component) if adopt else None
        if known and known.completed and not known.reset_since and component.reset != "none":
            return
        ident = known.id if known and known.running else self._push(bmc, component)
        update = wait_until(
            lambda: None if (seen := bmc.update(ident)).running else seen,
            self.deadline_s,
            f"the update of {component.name} ends",
            self.node,
        )
        if not update.completed:
            raise AssayError(f"the update of {component.name} failed: {update.message}", where=self.node)

    def _push(self, bmc: FirmwareUpdater, component: FirmwareComponent) -> str:
        image = self.root / component.artifact
        check_artifact(image, component)
        ident = bmc.push(component, image)
        self.pushed.append(component.name)
        return ident

    def _reset(self, what: FirmwareReset) -> None:
        if what == "none":
            return
        with self.connect() as bmc:
            bmc.restart(what)

    def _await_versions(self, components: Sequence[FirmwareComponent]) -> None:
        """Wait for the new versions, or until a BMC that answers has read others for `read_back_s`."""
        others_since: list[float] = []

        def look() -> bool | None:
            try:
                stale = self._find_mismatches(components)
            except AssayError:
                others_since.clear()
                raise
            if not stale:
                return True
            others_since.append(time.monotonic())
            return False if others_since[-1] - others_since[0] > self.read_back_s else None

        wait_until(look, self.deadline_s, "the BMC reads the new versions", self.node)


def list_managed_components(fleet: Fleet, node: str) -> list[FirmwareComponent]:
    """Return the components that automation keeps on a node, in their order."""
    profile = fleet.profile_of(node)
    components = [part for part in fleet.bundle_of(node).components if not part.hca or profile.hca_firmware]
    return sorted(components, key=lambda part: part.order)


def find_version_mismatches(
    seen: Mapping[str, str], components: Sequence[FirmwareComponent]
) -> dict[str, tuple[str, str]]:
    """Return (expected, seen) of every inventory id that does not read its component's version.

    Blanks around a version are the BMC's habit, not a difference; an id that is missing reads "absent".
    """
    return {
        ident: (part.version, seen.get(ident, "absent"))
        for part in components
        for ident in part.inventory
        if seen.get(ident, "absent").strip() != part.version
    }


def format_mismatches(stale: Mapping[str, tuple[str, str]]) -> str:
    """Return differences in one line for people."""
    return ", ".join(f"{ident} is {seen}, expected {expected}" for ident, (expected, seen) in stale.items())


def check_artifact(image: Path, component: FirmwareComponent) -> None:
    """Raise Trouble unless the file is the one that the bundle names by its sha256."""
    if not image.exists():
        raise AssayError(f"there is no {component.artifact}", where=component.name, fix="fetch the bundle's artifacts")
    with image.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != component.sha256:
        raise AssayError(
            f"{component.artifact} has sha256 {found}, the bundle says {component.sha256}",
            where=component.name,
            fix="replace the file or correct the bundle; nothing was pushed",
        )
