"""The cabling that is, against the cabling that was designed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal

from assay.fabric.comparison.discrepancy import CablingDiscrepancy
from assay.fabric.comparison.port_diff import diff_ports
from assay.fabric.discovery import FabricDiscovery
from assay.fabric.topology.compiled_topology import CompiledTopology
from assay.model.fabric.ports_and_cables import PortId

FabricVerdict = Literal["match", "mismatch", "partial"]


@dataclass(frozen=True)
class FabricComparison:
    """What a discovery says about a design. `matching` counts cables in their place at the designed rate.

    Of a partial discovery only those discrepancies are kept that were seen whole; `problems` says what is lacking.
    """

    design: str
    verdict: FabricVerdict
    expected: int
    found: int
    matching: int
    discrepancies: tuple[CablingDiscrepancy, ...] = ()
    problems: tuple[str, ...] = ()

    def discrepancies_of_node(self, node: str) -> list[CablingDiscrepancy]:
        """Return the discrepancies that touch a node."""
        return [one for one in self.discrepancies if node in one.nodes]

    def discrepancies_of_port(self, port: PortId) -> list[CablingDiscrepancy]:
        """Return the discrepancies that name a port."""
        return [one for one in self.discrepancies if any(end.port_id == port for end in one.ends)]

    @property
    def summary(self) -> str:
        """The comparison in one line."""
        counts = f"{self.matching} of {self.expected} cables as designed, {self.found} found"
        kinds = Counter(one.kind for one in self.discrepancies)
        said = "".join(f", {many} {kind}" for kind, many in kinds.items())
        return f"fabric {self.design}: {self.verdict} ({counts}{said})"

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "design": self.design,
            "verdict": self.verdict,
            "summary": self.summary,
            "expected": self.expected,
            "found": self.found,
            "matching": self.matching,
            "discrepancies": [one.as_json() for one in self.discrepancies],
            "problems": list(self.problems),
        }


def compare_cabling(plan: CompiledTopology, discovery: FabricDiscovery) -> FabricComparison:
    """Compare a compiled design with a discovery. Of a fabric as designed nothing is built, and nothing imported."""
    diff = diff_ports(plan, discovery)
    problems: list[str] = list(diff.problems)
    discrepancies: tuple[CablingDiscrepancy, ...] = ()
    if diff.has_differences:
        from assay.fabric.comparison.diff_explanation import DiffExplanation

        explained = DiffExplanation(plan, discovery, diff)
        discrepancies = explained.discrepancies
        problems += explained.problems
    verdict: FabricVerdict = "partial" if problems else "mismatch" if discrepancies else "match"
    size = len(plan.cables)
    matching = size - len(diff.expected) // 2 - len(diff.slow)
    return FabricComparison(plan.name, verdict, size, diff.found, matching, discrepancies, tuple(problems))
