"""One measurement: a figure and its bound, with the figures that it was computed from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

LEAST_LOSS = 0.1


@dataclass(frozen=True)
class Measurement:
    """What was measured, the figure with its unit, and its bound. `made_of` are the figures behind it.

    A bound in CPU time is for a machine of pace 1 (`bench.pace`): a figure is divided by `pace` before it is judged.
    Ratios, wall-clock times, bytes and counts are judged as they are. `spread`: by how much of the cheapest run of a
    command the dearest cost more. `load`: how many processes wanted a core. `former`: the figure that was kept.
    """

    what: str
    figure: float
    unit: str
    side: Literal["at most", "at least"]
    bound: float
    made_of: dict[str, float] = field(default_factory=dict)
    pace: float = 1.0
    spread: float = 0.0
    load: float = 0.0
    former: float | None = None

    @property
    def judged(self) -> float:
        """The figure as it is compared with the bound."""
        return self.figure / self.pace if self.unit.startswith("CPU ") else self.figure

    @property
    def holds(self) -> bool:
        """Whether the bound holds."""
        return self.judged <= self.bound if self.side == "at most" else self.judged >= self.bound

    @property
    def is_lost(self) -> bool:
        """Whether the figure is worse than the former one, by more than its spread and a tenth."""
        if self.former is None:
            return False
        worse, better = (self.judged, self.former) if self.side == "at most" else (self.former, self.judged)
        return worse > better * (1 + max(self.spread, LEAST_LOSS))

    def as_json(self) -> dict[str, Any]:
        """Return the measurement as plain JSON data."""
        known = {"figure": self.figure, **self.made_of}
        if self.judged != self.figure:
            known |= {"pace": self.pace, "judged": self.judged}
        figures = {name: round(figure, 4) for name, figure in known.items()}
        figure = figures.pop("figure")
        bound = {"what": self.what, "figure": figure, "unit": self.unit, "side": self.side, "bound": self.bound}
        around = {"spread": round(self.spread, 2), "load": round(self.load, 1)}
        return {**bound, "holds": self.holds, **around, **figures}
