"""A window of a burn-in: what ran in it, on which parts of the node, and the medians of what was read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

GpuMedians = Mapping[str, float]
"""Of one GPU in one window: temperature and memory_temperature (°C), power (W), clock (MHz), gflops (Gflop/s)."""


HARD_COUNTERS: Mapping[str, str] = {
    "uncorrected": "uncorrected memory errors",
    "remapped": "remapped rows of memory",
    "links": "links that are up",
}
"""What ends a burn-in if it changes for the worse: the first two may not rise, the last may not fall."""


@dataclass(frozen=True, slots=True)
class PartWork:
    """What one load part did: `units` were run for `seconds` in all, and `results` of them gave a result.

    `subjects`: the seconds with a result of each subject, such as `gpu3` or `nvme0`; `node` for one of the whole node.
    `reason`: why the last unit without a result had none.
    """

    units: int = 0
    results: int = 0
    seconds: float = 0.0
    subjects: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""

    def plus(self, other: PartWork) -> PartWork:
        """Return both together."""
        names = {**self.subjects, **other.subjects}
        return PartWork(
            self.units + other.units,
            self.results + other.results,
            round(self.seconds + other.seconds, 1),
            {name: round(self.subjects.get(name, 0.0) + other.subjects.get(name, 0.0), 1) for name in names},
            other.reason or self.reason,
        )


@dataclass(frozen=True, slots=True)
class BurnInWindow:
    """A window that ends at `hours` of the burn-in, in `phase`.

    `parts`: what each load part did. `gpus`: medians by subject. `corrected`: the counters of corrected memory errors
    at the end of the window; they may begin again at 0 after a reboot. `hard`: what must not change (HARD_COUNTERS).
    """

    hours: float
    phase: str
    parts: Mapping[str, PartWork] = field(default_factory=dict)
    gpus: Mapping[str, GpuMedians] = field(default_factory=dict)
    corrected: Mapping[str, int] = field(default_factory=dict)
    hard: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON data, for the ledger."""
        return asdict(self)

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> BurnInWindow:
        """Return the window of what `as_json` gave."""
        parts = {name: PartWork(**work) for name, work in plain["parts"].items()}
        return cls(plain["hours"], plain["phase"], parts, plain["gpus"], plain["corrected"], plain["hard"])
