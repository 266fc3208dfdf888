"""What the stages beside the pairs found: nodes alone, all nodes together, and blocks that fail only together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assay.model.text.text_lists import format_list, format_nodes
from assay.validate.collectives.gate import GateFindings
from assay.validate.collectives.group_judging import GroupObservation
from assay.validate.collectives.scale_search import ScaleFinding
from assay.validate.collectives.staged_search import Block, WholeFinding

if TYPE_CHECKING:
    from assay.validate.collectives.search_answers import NeededBlock, StagesAnswer, WholeRun

RING_NOTE = "a ring of many nodes crosses few uplinks: this says nothing about the others"
WHOLE_WORDS: Mapping[str, str] = {
    "good": "as expected",
    "bad": "bad in two runs",
    "once": "bad once, and then good twice",
    "unjudged": "ended in time, without a wrong result; the speed that it should have is not known (no `expected`)",
    "open": "could not tell: too few runs gave an answer",
}


@dataclass(frozen=True, slots=True)
class StageFindings:
    """What the stages found; None for a stage that did not run. `is_early`: no pair ran, since all was as expected."""

    gate: GateFindings | None = None
    whole: WholeFinding | None = None
    is_early: bool = False
    scale: ScaleFinding | None = None
    blocks: Sequence[Block] = field(default=())
    runs: int = 0

    def as_json(self) -> StagesAnswer:
        """Return plain JSON data, without the stages that did not run."""
        found: StagesAnswer = {}
        if self.gate:
            once = {node: [one.as_json() for one in runs] for node, runs in self.gate.once.items()}
            found["alone"] = {"good": self.gate.good, "faulty": list(self.gate.faulty), "once": once}
        if self.whole:
            evidence: list[WholeRun] = [
                {"round": one.round, "nodes": list(one.nodes), "why": one.why, "verdict": one.verdict}
                for one in self.whole.runs
            ]
            found["together"] = {"verdict": self.whole.verdict, "ended_early": self.is_early, "runs": evidence}
        if self.scale:
            needed: list[NeededBlock] = [
                {"block": block.name, "nodes": list(block.nodes)} for block in self.needed_blocks
            ]
            found["scale"] = {
                "blocks": needed,
                "enough": self.scale.is_enough,
                "open": self.scale.is_open,
                "runs": self.runs,
            }
        return found

    @property
    def needed_blocks(self) -> list[Block]:
        """The blocks without which all nodes together do not fail."""
        return [self.blocks[number] for number in self.scale.blocks] if self.scale else []

    def list_lines(self) -> Iterator[str]:
        """Yield the findings for people."""
        if self.gate:
            bad = f", {len(self.gate.faulty)} named" if self.gate.faulty else ""
            yield f"each node alone: {self.gate.good:,} good{bad}"
            yield from _list_once(self.gate)
        if self.whole:
            yield f"{self.whole.runs[0].label}: {WHOLE_WORDS[self.whole.verdict]}"
            yield from (f"  {one.round}  {one.why}" for one in self.whole.runs if one.is_bad)
            if self.is_early:
                yield f"  so no pair was run; {RING_NOTE}"
        if self.scale:
            yield from self._describe_scale(self.scale)

    def _describe_scale(self, scale: ScaleFinding) -> Iterator[str]:
        if scale.is_open:
            yield f"could not tell which nodes fail only together: {self.runs} runs gave no answer"
            return
        yield f"pairs are good, and many nodes together fail; in {self.runs} runs, these were needed:"
        for block in self.needed_blocks:
            yield f"  {block.name}: {format_nodes(block.nodes)}" if len(block.nodes) > 1 else f"  {block.name}"
        if len(scale.blocks) == 1:
            yield "  it fails alone"
        elif scale.is_enough:
            yield "  the two fail together, without any other"
        else:
            yield "  the two alone do not fail: more nodes, or some of those between them, are needed too"


def _list_once(gate: GateFindings) -> Iterator[str]:
    if gate.note:
        yield f"  {gate.note}"
    elif gate.once:
        yield f"  bad once alone, and not named: {format_list(gate.once)}"
        runs: list[GroupObservation] = [one for own in gate.once.values() for one in own if one.is_bad]
        yield from (f"  {one.round}  {one.label}: {one.why}" for one in runs[:8])
