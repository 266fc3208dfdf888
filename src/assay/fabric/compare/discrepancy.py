"""One thing that is physically wrong with the cabling. Plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Literal

from assay.model.facts import frozen
from assay.model.specs.fabric.cable import Cable, CableEnd

DiscrepancyKind = Literal[
    "swap",
    "moved",
    "missing",
    "disabled",
    "unexpected",
    "degraded",
    "device-missing",
    "device-unknown",
    "device-replaced",
    "device-exchanged",
]


IN_PLACE_KINDS: tuple[DiscrepancyKind, ...] = ("device-replaced", "device-exchanged")
"""Devices in the places of others: these have the cables of the places."""


@frozen
class CablePair:
    """A cable as designed and as seen. None means not designed, or not seen."""

    expected: Cable | None
    observed: Cable | None


@frozen
class BoxPart:
    """What a chip is a part of: a `box`, a `card` of it or a `plane`, with its chips and its designed cables."""

    kind: str
    name: str
    chips: int
    cables: int


@frozen
class SwitchLinks:
    """A switch: its designed cables, those to other switches (`trunks`, of `gbps`), and the nodes below it."""

    guid: str
    name: str
    gbps: int
    nodes: tuple[str, ...]
    trunks: int
    cables: int
    parts: tuple[BoxPart, ...] = ()


@frozen
class CablingDiscrepancy:
    """One discrepancy: its `cables`, a `summary` for people, and `corrections`, the likelier one first.

    - `device`: the name of the device, for the device-* kinds.
    - `likelier_reason`: why the first correction is likelier than the second, if there are two.
    - `cut_off`: designed cables whose state is unknown, because the discovery cannot reach them past this discrepancy.
    - `capacity_loss`: what the fabric lacks until the repair.
    - `box`, `module`, `plane`: the chassis that a dead chip, or a link without a plug, is in; its card and plane there.
    - `gone`: the designed cables of a node that is nowhere, while another one stands in its place.
    - `switches`: the switches at its designed cables.
    - `bundle`, `node_cables`: how many cables the design has beside a lost or exchanged one, between its switches or at
      its node.
    - `places`: of the devices at its cables that stand in another's place, by GUID, the GUID of the place.
    - `links_sharing_transceiver`: the other links that go down when the plugs are pulled.
    """

    kind: DiscrepancyKind
    cables: tuple[CablePair, ...]
    summary: str
    corrections: tuple[str, ...] = ()
    device: str = ""
    likelier_reason: str = ""
    cut_off: tuple[Cable, ...] = ()
    capacity_loss: str = ""
    links_sharing_transceiver: tuple[str, ...] = ()
    box: str = ""
    module: str = ""
    plane: int = 0
    gone: tuple[Cable, ...] = ()
    switches: tuple[SwitchLinks, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)
    bundle: int = 0
    node_cables: int = 0

    @property
    def ends(self) -> list[CableEnd]:
        """Every end of the cables, once, expected ones first."""
        return list({end.port_id: end for end in self._all_ends()}.values())

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of the nodes that it affects, sorted."""
        behind = (end for cable in self.cut_off for end in cable.ends)
        return tuple(sorted({end.node for end in (*self._all_ends(), *behind) if end.node}))

    @property
    def steps(self) -> list[str]:
        """The corrections, the likelier one with its reason, then the others."""
        if not self.corrections:
            return []
        first, *others = self.corrections
        reason = f" (likelier: {self.likelier_reason})" if self.likelier_reason else ""
        return [f"{first}{reason}", *(f"or: {other}" for other in others)]

    def _all_ends(self) -> Iterator[CableEnd]:
        for cable in (*(pair.expected for pair in self.cables), *(pair.observed for pair in self.cables)):
            yield from cable.ends if cable else ()
