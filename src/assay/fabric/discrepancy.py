"""One thing that is physically wrong, in the smallest true words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from assay.model.cable import Cable, End

Kind = Literal[
    "swap", "moved", "missing", "unexpected", "degraded", "device-missing", "device-unknown", "device-replaced"
]


@dataclass(frozen=True, slots=True)
class Pair:
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
class Discrepancy:
    """`cables` are all that it is about; `summary` says it in plain words; `corrections` the likelier one first.

    `device` names the device of the device-* kinds.
    """

    kind: Kind
    cables: tuple[Pair, ...]
    summary: str
    corrections: tuple[str, ...] = ()
    device: str = ""

    @property
    def ends(self) -> list[End]:
        """Every end that it names, once, expected ones first."""
        return list({end.at: end for end in self._all_ends()}.values())

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that it touches, sorted."""
        return tuple(sorted({end.node for end in self._all_ends() if end.node}))

    def _all_ends(self) -> Iterator[End]:
        for cable in (*(pair.expected for pair in self.cables), *(pair.observed for pair in self.cables)):
            yield from cable.ends if cable else ()

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        plain: dict[str, Any] = {"kind": self.kind, "summary": self.summary}
        if self.device:
            plain["device"] = self.device
        if self.corrections:
            plain["corrections"] = list(self.corrections)
        return plain | {"nodes": list(self.nodes), "cables": [pair.as_json() for pair in self.cables]}
