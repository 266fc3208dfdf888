"""One thing that is physically wrong, in the smallest true words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from assay.model.fabric.ports_and_cables import Cable, CableEnd

DiscrepancyKind = Literal[
    "swap", "moved", "missing", "disabled", "unexpected", "degraded",
    "device-missing", "device-unknown", "device-replaced", "device-exchanged",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class CablePair:
    """A cable as designed and as seen. None: not designed, or not seen."""

    expected: Cable | None
    observed: Cable | None

    def as_json(self) -> dict[str, Any]:
        """Return both as a pair of ends or null."""
        return {
            "expected": self.expected and self.expected.as_json(),
            "observed": self.observed and self.observed.as_json(),
        }


@dataclass(frozen=True, slots=True)
class CablingDiscrepancy:
    """`cables` are all that it is about; `summary` says it in plain words; `corrections` the likelier one first.

    `because` says why the first correction is the likelier, where there are two. `device` names the device of the
    device-* kinds. `cut_off` are designed cables that nothing can be told of, because this keeps the discovery from
    reaching them; `costs` says what the fabric lacks meanwhile. `beside` says which other links go down when the plugs
    are pulled.
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

    @property
    def ends(self) -> list[CableEnd]:
        """Every end that it names, once, expected ones first."""
        return list({end.port_id: end for end in self._all_ends()}.values())

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that it touches, sorted."""
        behind = (end for cable in self.cut_off for end in cable.ends)
        return tuple(sorted({end.node for end in (*self._all_ends(), *behind) if end.node}))

    @property
    def steps(self) -> list[str]:
        """The corrections in words, the likelier one with its reason where there are two."""
        first, *others = self.corrections or ("",)
        why = [f"{first} (likelier: {self.likelier_reason})"] if self.likelier_reason else [first] if first else []
        return why + [f"or: {other}" for other in others]

    def _all_ends(self) -> Iterator[CableEnd]:
        for cable in (*(pair.expected for pair in self.cables), *(pair.observed for pair in self.cables)):
            yield from cable.ends if cable else ()

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON data. What there is nothing to say of is left out; `kind` and `cables` always stand."""
        plain: dict[str, Any] = {"kind": self.kind, "summary": self.summary}
        if self.device:
            plain["device"] = self.device
        if self.corrections:
            plain["corrections"] = list(self.corrections)
        if self.likelier_reason:
            plain |= {"likelier": self.corrections[0], "because": self.likelier_reason}
        if self.capacity_loss:
            plain["costs"] = self.capacity_loss
        if self.links_sharing_transceiver:
            plain["beside"] = list(self.links_sharing_transceiver)
        plain |= {"nodes": list(self.nodes), "cables": [pair.as_json() for pair in self.cables]}
        return plain | ({"cut_off": [cable.as_json() for cable in self.cut_off]} if self.cut_off else {})
