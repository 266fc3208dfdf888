"""One measurement: a figure against its bound, with the figures that it was made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Measurement:
    """What was measured, in which unit, and on which side of `bound` it must stay. `made_of` are the parts."""

    what: str
    figure: float
    unit: str
    side: Literal["at most", "at least"]
    bound: float
    made_of: dict[str, float] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether the figure is on the good side of its bound."""
        return self.figure <= self.bound if self.side == "at most" else self.figure >= self.bound

    def as_json(self) -> dict[str, Any]:
        """Return the measurement as plain JSON data."""
        figures = {name: round(figure, 4) for name, figure in {"figure": self.figure, **self.made_of}.items()}
        figure = figures.pop("figure")
        said = {"what": self.what, "figure": figure, "unit": self.unit, "side": self.side, "bound": self.bound}
        return {**said, "holds": self.holds, **figures}
