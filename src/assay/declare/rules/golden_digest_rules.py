"""Golden digests that hold for no GPU of the fleet, or that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator

from assay.declare.repository.repository_draft import RepositoryDraft
from assay.declare.repository_check import RuleFinding, rule
from assay.declare.rules.dangling_names import suggest_name
from assay.model.specs.golden_digests import GoldenDigests, GoldenKey
from assay.model.specs.node.node_spec import NodeSpec


@rule(
    "ASY0330",
    "golden digests for a GPU that no node spec has",
    why="No result is ever compared with these digests, and nobody notices.",
    needs=(NodeSpec,),
)
def unused_golden(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find golden digests whose GPU is the model of no node spec."""
    models = {spec.gpus.model for spec in draft.specs_of_model(NodeSpec).values()}
    for golden in draft.specs_of_model(GoldenDigests).values():
        if golden.computed_by.gpu not in models:
            place = draft.find_position(f"GoldenDigests/{golden.name}", "computed_by", "gpu")
            message = f"no node spec has the GPU {golden.computed_by.gpu}"
            yield RuleFinding(place, message, suggest_name(golden.computed_by.gpu, models))


@rule(
    "ASY0331",
    "two golden digests for the same result",
    why="One of them is wrong. Where it is compared, all healthy GPUs of a node differ from it.",
)
def contradicting_golden(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find tests and seeds for which two documents of the same key give different digests."""
    known: dict[tuple[GoldenKey, tuple[str, str]], tuple[str, str]] = {}
    for golden in draft.specs_of_model(GoldenDigests).values():
        for unit, digest in golden.list_digests():
            name, earlier = known.setdefault((golden.computed_by, unit), (golden.name, digest))
            if earlier != digest:
                place = draft.find_position(f"GoldenDigests/{golden.name}", "digests", unit[0])
                message = f"{unit[0]}, seed {unit[1]}: {digest} here and {earlier} in {name}"
                yield RuleFinding(place, message, "learn both anew from nodes that agree: assay specs learn --golden")
                break
