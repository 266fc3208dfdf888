"""All that is told of two runs: how outcomes changed, which checks flap, which measurements moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.harness.results.compare import Comparison
from assay.harness.results.flapping import Flapping, flapping
from assay.harness.results.gathered import Gathered, gathered
from assay.harness.results.noise import Moved, moved
from assay.model.outcome import Run


@dataclass(frozen=True)
class Differences:
    """A comparison, its changes gathered, and what only more runs than two can tell; `root` is the repository."""

    comparison: Comparison
    gathered: tuple[Gathered, ...] = ()
    flapping: tuple[Flapping, ...] = ()
    moved: tuple[Moved, ...] = ()
    root: Path = Path()

    @property
    def old(self) -> Run:
        """The earlier run."""
        return self.comparison.old

    @property
    def new(self) -> Run:
        """The later run."""
        return self.comparison.new


def differences(comparison: Comparison, earlier: Sequence[Path], root: Path = Path()) -> Differences:
    """Return what there is to tell of a comparison; `earlier` are the files of the runs before the new one."""
    flaps, movements = flapping(comparison, earlier), moved(comparison, earlier)
    return Differences(comparison, tuple(gathered(comparison)), tuple(flaps), tuple(movements), root)
