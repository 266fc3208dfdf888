"""What a search exercised, of all that the fabric has: a part that no pair used is not known to be good."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.validate.collectives.fabric_map import FabricMap, FabricPart, PartKind
from assay.validate.collectives.judging import PairObservation

if TYPE_CHECKING:
    from assay.validate.collectives.search_answers import KindCoverage

COVERED_KINDS: tuple[PartKind, ...] = ("node", "adapter", "uplink")


@dataclass(frozen=True, slots=True)
class CoverageShare:
    """How many parts of one kind were exercised, of `total`; free nodes alone can exercise `reachable` of them."""

    kind: PartKind
    exercised: int
    reachable: int
    total: int

    def as_json(self) -> KindCoverage:
        """Return plain JSON data."""
        return {"exercised": self.exercised, "reachable": self.reachable, "total": self.total}

    def __str__(self) -> str:
        share = f"{self.exercised:,} of {self.total:,} {self.kind}s ({_format_percent(self.exercised, self.total)})"
        out_of_reach = self.total - self.reachable
        return f"{share}; the free nodes cannot exercise {out_of_reach:,} of them" if out_of_reach else share


def measure_coverage(
    fabric: FabricMap, nodes: Collection[str], observations: Iterable[PairObservation], beside: Collection[str] = ()
) -> list[CoverageShare]:
    """Return the coverage of nodes, of adapters if pairs were measured by rail, and of uplinks if they are known.

    `beside` are nodes that were measured otherwise: alone, or all together.
    """
    exercised = {part for one in observations if one.verdict != "unknown" for part in one.parts}
    exercised |= {FabricPart("node", name) for name in beside}
    uplinks = {name for names in fabric.uplinks.values() for name in names}
    adapters = sum(len(node.leaves) for node in fabric.nodes.values())
    free_adapters = sum(len(fabric.nodes[name].leaves) for name in nodes)
    has_rails = any(part.kind == "adapter" for part in exercised)
    counts = {
        "node": (len(nodes), len(fabric.nodes)),
        "adapter": (free_adapters, adapters) if has_rails else (0, 0),
        "uplink": (len(find_reachable_uplinks(fabric, nodes)), len(uplinks)),
    }
    return [CoverageShare(kind, _count(exercised, kind), *counts[kind]) for kind in COVERED_KINDS if counts[kind][1]]


def find_reachable_uplinks(fabric: FabricMap, nodes: Collection[str]) -> set[str]:
    """Return the uplinks that some pair of these nodes would use."""
    leaves = {(leaf, rail) for name in nodes for rail, leaf in enumerate(fabric.nodes[name].leaves)}
    found = {
        fabric.find_uplink(leaf, name, rail)
        for leaf, rail in leaves
        for name in nodes
        if rail < len(fabric.nodes[name].leaves) and fabric.nodes[name].leaves[rail] != leaf
    }
    return found - {""}


def _count(parts: Iterable[FabricPart], kind: PartKind) -> int:
    return sum(part.kind == kind for part in parts)


def _format_percent(part: int, whole: int) -> str:
    """Return a share. It is 100 % only if nothing is missing, and 0 % only if everything is."""
    share = 100 * part / max(whole, 1)
    return f"{min(max(round(share), 1), 99) if 0 < part < whole else round(share)} %"
