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

from assay.actions.patience import wait_until
from assay.model.errors import Trouble
from assay.model.firmware import Component, Reset
from assay.model.fleet import Fleet

STRENGTH: tuple[Reset, ...] = ("none", "bmc", "host", "ac")


@dataclass(frozen=True, slots=True)
class Update:
    """One update as the BMC tells it: a task, running, completed or broken, and whether its reset has come since."""

    id: str
    running: bool
    completed: bool
    reset_since: bool = False
    message: str = ""


class Updater(Protocol):
    """One BMC, as far as updates need it. Every method raises Trouble when it cannot."""

    def firmware(self) -> Mapping[str, str]:
        """Return version by inventory id."""

    def latest_update(self, component: Component) -> Update | None:
        """Return the newest update of a component that the BMC remembers."""

    def update(self, ident: str) -> Update:
        """Return one update by its id."""

    def push(self, component: Component, image: Path) -> str:
        """Hand over an image; return the id of the update that it became."""

    def restart(self, what: Reset) -> None:
        """Restart the BMC or the host, or cut its power."""


Connect = Callable[[], AbstractContextManager[Updater]]


@dataclass
class Bringing:
    """One node's firmware work: how to reach its BMC, where the artifacts lie, how long to wait for each step.

    `read_back_s`: how long a BMC that answers may go on reading an old version after update and reset.
    """

    node: str
    connect: Connect
    root: Path
    deadline_s: float
    read_back_s: float = 120.0
    pushed: list[str] = field(default_factory=list)

    def bring(self, components: Sequence[Component]) -> bool:
        """Make the inventory equal to `components`; return whether anything had to be done. Raises Trouble."""
        if not self._stale(components):
            return False
        self._write(components, adopt=True)
        if self._stale(components):  # what was adopted was another version
            self._write(components, adopt=False)
        if stale := self._stale(components):
            raise Trouble(f"reads other versions after the update: {told(stale)}", where=self.node)
        return True

    def read(self, components: Sequence[Component]) -> dict[str, str]:
        """Return what the BMC reads for every inventory id of the components."""
        with self.connect() as bmc:
            seen = bmc.firmware()
        return {ident: seen.get(ident, "absent") for component in components for ident in component.inventory}

    def _stale(self, components: Sequence[Component]) -> dict[str, tuple[str, str]]:
        with self.connect() as bmc:
            return unequal(bmc.firmware(), components)

    def _write(self, components: Sequence[Component], *, adopt: bool) -> None:
        with self.connect() as bmc:
            stale = [part for part in components if unequal(bmc.firmware(), [part])]
            for part in stale:
                self._stage(bmc, part, adopt=adopt)
        self._reset(max((part.reset for part in stale), key=STRENGTH.index, default="none"))
        self._await_versions(stale)

    def _stage(self, bmc: Updater, component: Component, *, adopt: bool) -> None:
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
            raise Trouble(f"the update of {component.name} failed: {update.message}", where=self.node)

    def _push(self, bmc: Updater, component: Component) -> str:
        image = self.root / component.artifact
        check_artifact(image, component)
        ident = bmc.push(component, image)
        self.pushed.append(component.name)
        return ident

    def _reset(self, what: Reset) -> None:
        if what == "none":
            return
        with self.connect() as bmc:
            bmc.restart(what)

    def _await_versions(self, components: Sequence[Component]) -> None:
        """Wait for the new versions, or until a BMC that answers has read others for `read_back_s`."""
        others_since: list[float] = []

        def look() -> bool | None:
            try:
                stale = self._stale(components)
            except Trouble:
                others_since.clear()
                raise
            if not stale:
                return True
            others_since.append(time.monotonic())
            return False if others_since[-1] - others_since[0] > self.read_back_s else None

        wait_until(look, self.deadline_s, "the BMC reads the new versions", self.node)


def owed(fleet: Fleet, node: str) -> list[Component]:
    """Return the components that automation keeps on a node, in their order."""
    profile = fleet.profile_of(node)
    components = [part for part in fleet.bundle_of(node).components if not part.hca or profile.hca_firmware]
    return sorted(components, key=lambda part: part.order)


def unequal(seen: Mapping[str, str], components: Sequence[Component]) -> dict[str, tuple[str, str]]:
    """Return (expected, seen) of every inventory id that does not read its component's version.

    Blanks around a version are the BMC's habit, not a difference; an id that is missing reads "absent".
    """
    return {
        ident: (part.version, seen.get(ident, "absent"))
        for part in components
        for ident in part.inventory
        if seen.get(ident, "absent").strip() != part.version
    }


def told(stale: Mapping[str, tuple[str, str]]) -> str:
    """Return differences in one line for people."""
    return ", ".join(f"{ident} is {seen}, expected {expected}" for ident, (expected, seen) in stale.items())


def check_artifact(image: Path, component: Component) -> None:
    """Raise Trouble unless the file is the one that the bundle names by its sha256."""
    if not image.exists():
        raise Trouble(f"there is no {component.artifact}", where=component.name, fix="fetch the bundle's artifacts")
    with image.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != component.sha256:
        raise Trouble(
            f"{component.artifact} has sha256 {found}, the bundle says {component.sha256}",
            where=component.name,
            fix="replace the file or correct the bundle; nothing was pushed",
        )
