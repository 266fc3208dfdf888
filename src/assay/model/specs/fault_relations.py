"""FaultRelation, SharedCause, OwnAct: what follows from what, what many nodes share, and what assay causes itself."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from assay.model.decision import ActionName
from assay.model.specs.spec_document import StrictModel
from assay.model.specs.watched_lines import RegexText

ClassPatterns = Annotated[list[str], Field(min_length=1)]
"""Fault classes, or patterns of a shell for them: `gpu.xid.*`."""


class FaultRelation(StrictModel):
    """A symptom that follows from a cause. Both are then one incident.

    A symptom belongs to a cause that was open when it was first seen, or up to `minutes` after that, and at most
    `before_minutes` before: checks may see it first. Of several causes, one on the symptom's own part counts, then that
    of the first relation. Where a class is on both sides, the worse is the cause, and of two like ones the earlier.

    `cause`, `symptoms`: fault classes, or patterns of a shell for them. `where`: on the same part (with `part`, one
    that is not named may be any; with `same-part`, what is read of the node must name it), on the `node` (two that name
    different parts are two), on a part of the same `kind`, if at least `parts` of them show it, or `anywhere` on the
    node: the cause reaches all of it. `minutes`: how long after the cause's end a symptom may be seen.
    `before_minutes`: how long before the cause. `source`: where the relation is known from.
    """

    cause: ClassPatterns
    symptoms: ClassPatterns
    where: Literal["part", "same-part", "kind", "node", "anywhere"] = "part"
    parts: int = Field(default=2, ge=2)
    minutes: float = Field(default=10, ge=0)
    before_minutes: float = Field(default=10, ge=0)
    source: str = Field(min_length=1)


class SharedCause(StrictModel):
    """A cause outside of the nodes that share something: a rack's power, a leaf switch, the air of a room, a firmware.

    Their incidents are one where at least `nodes` of those that share it show one of `classes`, each within `minutes`
    of the one before; of a rack or a site also `percent` of its nodes. `NVLink domain` is a rack that is one machine.
    `commit` is that since which a check asks something else than when it last passed.

    `summary`: what happened, in a sentence that begins with the shared thing. `classes`: fault classes, or patterns of
    a shell for them. `shares`: what the nodes share. `nodes`: at least so many of them. `percent`: at least this share
    of the nodes that share it. `minutes`: the time in which the faults begin. `act`: what a technician does. `source`:
    where the relation is known from.
    """

    summary: str
    classes: ClassPatterns
    shares: Literal["commit", "rack", "NVLink domain", "leaf", "site", "spec"]
    nodes: int = Field(default=3, ge=2)
    percent: float = Field(default=50, gt=0, le=100)
    minutes: float = Field(default=10, gt=0)
    act: str = Field(min_length=1)
    source: str = Field(min_length=1)


class OwnAct(StrictModel):
    """What acts of assay cause on a node: a sighting then tells of the act, and does not count. A failed act ties none.

    `actions`: the acts; `take-over` is that of a BMC. `symptoms`: fault classes, or patterns of a shell for them.
    `parts`: patterns of the parts on which they show, "" is the whole node. `events`: a regular expression that the
    text must match. `minutes`: how long after the act's end. `source`: where it is known from.
    """

    actions: list[ActionName | Literal["take-over"]] = Field(min_length=1)
    symptoms: ClassPatterns
    parts: ClassPatterns = Field(default=["*"])
    events: RegexText | None = None
    minutes: float = Field(ge=0)
    source: str = Field(min_length=1)


class Cause(NamedTuple):
    """What a class may follow from: a relation, with its place among all."""

    rank: int
    relation: FaultRelation


class FaultRelations:
    """The relations of all catalogues, in their order, by the class of the symptom."""

    def __init__(self, relations: Iterable[FaultRelation] = (), shared: Iterable[SharedCause] = ()) -> None:
        self.relations = tuple(relations)
        self.shared = tuple(shared)
        self._of_symptom: dict[str, tuple[Cause, ...]] = {}

    def find_causes(self, symptom: str) -> tuple[Cause, ...]:
        """Return the relations in which faults of this class are symptoms, the first of the list first."""
        if symptom not in self._of_symptom:
            self._of_symptom[symptom] = tuple(
                Cause(rank, relation)
                for rank, relation in enumerate(self.relations)
                if matches(relation.symptoms, symptom)
            )
        return self._of_symptom[symptom]


UNRELATED = FaultRelations()
"""Nothing follows from anything: each fault is an incident of its own."""


def matches(patterns: Iterable[str], name: str) -> bool:
    """Whether a fault class is among the patterns."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)
