"""One measurement: a figure and its bound, with the figures that it was computed from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Measurement:
    """What was measured, the figure with its unit, and its bound. `made_of` are the figures behind it."""

    what: str
    figure: float
    unit: str
    side: Literal["at most", "at least"]
    bound: float
    made_of: dict[str, float] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether the bound holds."""
        return self.figure <= self.bound if self.side == "at most" else self.figure >= self.bound

    def as_json(self) -> dict[str, Any]:
        """Return the measurement as plain JSON data."""
        figures = {name: round(figure, 4) for name, figure in {"figure": self.figure, **self.made_of}.items()}
        figure = figures.pop("figure")
        bound = {"what": self.what, "figure": figure, "unit": self.unit, "side": self.side, "bound": self.bound}
        return {**bound, "holds": self.holds, **figures}
