"""The stages of a firmware bundle (what shares one order shares one reset), and what a BMC reads that differs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.fleet import Fleet
from assay.model.specs.firmware_bundle import FirmwareComponent, FirmwareReset

RESET_STRENGTH: tuple[FirmwareReset, ...] = ("none", "bmc", "host", "ac")


@frozen
class FirmwareStage:
    """Components that are installed together and then share one reset."""

    components: tuple[FirmwareComponent, ...]

    @property
    def name(self) -> str:
        """The names of the components, in the bundle's order."""
        return ", ".join(part.name for part in self.components)

    @property
    def reset(self) -> FirmwareReset:
        """The strongest reset that a component needs."""
        return find_strongest_reset(self.components)


def list_managed_components(fleet: Fleet, node: str) -> list[FirmwareComponent]:
    """Return the components of a node's bundle that its management profile lets assay update, in their order."""
    profile = fleet.profile_of(node)
    components = [part for part in fleet.bundle_of(node).components if not part.hca or profile.hca_firmware]
    return sorted(components, key=lambda part: part.order)


def list_stages(components: Iterable[FirmwareComponent]) -> list[FirmwareStage]:
    """Return the stages of components, the lowest order first."""
    ordered = sorted(components, key=lambda part: part.order)
    return [FirmwareStage(tuple(parts)) for _, parts in groupby(ordered, key=lambda part: part.order)]


def select_stages(fleet: Fleet, node: str, names: Sequence[str] | None) -> list[FirmwareStage]:
    """Return the stages of a node's bundle, or one stage of the components in `names`. Raises AssayError.

    Components that the management profile leaves to others are left out.
    """
    managed = list_managed_components(fleet, node)
    if names is None:
        return list_stages(managed)
    bundle = fleet.bundle_of(node)
    if unknown := set(names) - {component.name for component in bundle.components}:
        raise AssayError(
            f"the bundle {bundle.name} has no {', '.join(sorted(unknown))}",
            where=node,
            fix="remove the name, or leave `components` out: the task then brings what the bundle has",
        )
    chosen = tuple(component for component in managed if component.name in names)
    return [FirmwareStage(chosen)] if chosen else []


def find_strongest_reset(components: Iterable[FirmwareComponent]) -> FirmwareReset:
    """Return the reset that includes the resets of all components."""
    return max((part.reset for part in components), key=RESET_STRENGTH.index, default="none")


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
