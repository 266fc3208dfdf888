"""Entries about the wipe of drives: a drive is marked and about to be erased, it is proven erased, it is not erased."""

from __future__ import annotations

from dataclasses import dataclass

from assay.model.entries.entry_content import EntryContent


@dataclass(frozen=True, slots=True)
class WipeOrderedEntry(EntryContent):
    """A drive's blocks hold `marker`, as they were read back, and it is told to erase itself by `method`.

    `effect`: the id of the effect that asked for it. `drive`: the kernel's name, such as `nvme0`, at that time.
    `samples`: how many blocks hold the marker.
    """

    kind = "wipe.ordered"
    effect: str
    serial: str
    model: str
    drive: str
    method: str
    marker: str
    samples: int


@dataclass(frozen=True, slots=True)
class WipeProvedEntry(EntryContent):
    """A drive was erased by `method`. `proof`: what was read of it afterwards, in words."""

    kind = "wipe.proved"
    effect: str
    serial: str
    model: str
    drive: str
    method: str
    proof: str


@dataclass(frozen=True, slots=True)
class WipeMissedEntry(EntryContent):
    """A drive was not erased by `method`, for `reason`. Another method may follow."""

    kind = "wipe.missed"
    effect: str
    serial: str
    model: str
    drive: str
    method: str
    reason: str
