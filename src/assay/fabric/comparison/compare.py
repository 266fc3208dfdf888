"""Compares the discovered cabling with the designed cabling. `compare_cabling` is where a comparison starts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal

from assay.fabric.comparison.discrepancy import CablingDiscrepancy
from assay.fabric.comparison.port_diff import diff_ports
from assay.fabric.discovery import FabricDiscovery
from assay.fabric.topology.compiled_topology import CompiledTopology

FabricVerdict = Literal["match", "mismatch", "partial"]


@dataclass(frozen=True)
class FabricComparison:
    """How a discovery differs from a design. `expected`, `found` and `matching` count cables.

    A cable is matching if it is in its place at the designed rate. With `problems`, which name what the discovery
    lacks, the verdict is `partial`. Then `discrepancies` has only those that hold whatever else was not discovered.
    """

    design: str
    verdict: FabricVerdict
    expected: int
    found: int
    matching: int
    discrepancies: tuple[CablingDiscrepancy, ...] = ()
    problems: tuple[str, ...] = ()

    def discrepancies_of_node(self, node: str) -> list[CablingDiscrepancy]:
        """Return the discrepancies that affect a node."""
        return [discrepancy for discrepancy in self.discrepancies if node in discrepancy.nodes]

    @property
    def summary(self) -> str:
        """The comparison in one line."""
        counts = f"{self.matching} of {self.expected} cables as designed, {self.found} found"
        by_kind = Counter(discrepancy.kind for discrepancy in self.discrepancies)
        kinds = "".join(f", {count} {kind}" for kind, count in by_kind.items())
        return f"fabric {self.design}: {self.verdict} ({counts}{kinds})"

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "design": self.design,
            "verdict": self.verdict,
            "summary": self.summary,
            "expected": self.expected,
            "found": self.found,
            "matching": self.matching,
            "discrepancies": [discrepancy.as_json() for discrepancy in self.discrepancies],
            "problems": list(self.problems),
        }


def compare_cabling(topology: CompiledTopology, discovery: FabricDiscovery) -> FabricComparison:
    """Compare a compiled design with a discovery. If nothing differs, `DiffExplanation` is not even imported."""
    diff = diff_ports(topology, discovery)
    problems: list[str] = list(diff.problems)
    discrepancies: tuple[CablingDiscrepancy, ...] = ()
    if diff.has_differences:
        from assay.fabric.comparison.diff_explanation import DiffExplanation

        explanation = DiffExplanation(topology, discovery, diff)
        discrepancies = explanation.discrepancies
        problems += explanation.problems
    verdict: FabricVerdict = "partial" if problems else "mismatch" if discrepancies else "match"
    size = len(topology.cables)
    matching = size - len(diff.expected) // 2 - len(diff.slow)
    return FabricComparison(topology.name, verdict, size, diff.found, matching, discrepancies, tuple(problems))
