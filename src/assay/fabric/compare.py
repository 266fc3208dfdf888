"""The cabling that is, against the cabling that was designed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal

from assay.fabric.differing import differing
from assay.fabric.discovery import Discovery
from assay.fabric.discrepancy import Discrepancy
from assay.fabric.planned import Plan
from assay.model.cable import Port

FabricVerdict = Literal["match", "mismatch", "partial"]


@dataclass(frozen=True)
class Comparison:
    """What a discovery says about a design. `matching` counts cables in their place at the designed rate.

    Of a partial discovery only those discrepancies are kept that were seen whole; `problems` says what is lacking.
    """

    design: str
    verdict: FabricVerdict
    expected: int
    found: int
    matching: int
    discrepancies: tuple[Discrepancy, ...] = ()
    problems: tuple[str, ...] = ()

    def of_node(self, node: str) -> list[Discrepancy]:
        """Return the discrepancies that touch a node."""
        return [one for one in self.discrepancies if node in one.nodes]

    def of_port(self, port: Port) -> list[Discrepancy]:
        """Return the discrepancies that name a port."""
        return [one for one in self.discrepancies if any(end.at == port for end in one.ends)]

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


def compare(plan: Plan, discovery: Discovery) -> Comparison:
    """Compare a compiled design with a discovery. Of a fabric as designed nothing is built, and nothing imported."""
    diff = differing(plan, discovery)
    problems: list[str] = list(diff.problems)
    discrepancies: tuple[Discrepancy, ...] = ()
    if diff.anything:
        from assay.fabric.explain import Explained

        explained = Explained(plan, discovery, diff)
        discrepancies = explained.discrepancies
        problems += explained.problems
    verdict: FabricVerdict = "partial" if problems else "mismatch" if discrepancies else "match"
    size = len(plan.cables)
    matching = size - len(diff.expected) // 2 - len(diff.slow)
    return Comparison(plan.name, verdict, size, diff.found, matching, discrepancies, tuple(problems))
