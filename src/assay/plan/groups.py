"""Nodes that a change touches alike: everything is thought through once for each group, not for each node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from assay.model.fleet import Node
from assay.plan.nodes import FIELDS, PLACE, NodeChanges
from assay.plan.pairs import Pair, PairKey, key_of

FIELD_OF = {what: field for field, what in FIELDS.items()}


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes of one pair of specs and profiles. `said`: what else is said otherwise of them, by its field of Node."""

    key: PairKey
    pair: Pair
    said: frozenset[str]
    nodes: tuple[tuple[Node, Node], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The nodes' names."""
        return tuple(new.name for _, new in self.nodes)


def groups(changes: NodeChanges, pairs: Mapping[PairKey, Pair], recabled: set[str]) -> tuple[Group, ...]:
    """Return every node of both revisions in its group; `recabled` nodes get other cables."""
    said = _said(changes, recabled)
    nothing: frozenset[str] = frozenset()
    found: dict[tuple[PairKey, frozenset[str]], list[tuple[Node, Node]]] = defaultdict(list)
    for old, new in changes.kept:
        found[key_of(old, new), said.get(new.name, nothing)].append((old, new))
    return tuple(Group(key, pairs[key], fields, tuple(nodes)) for (key, fields), nodes in found.items())


def _said(changes: NodeChanges, recabled: set[str]) -> dict[str, frozenset[str]]:
    fields: dict[str, set[str]] = defaultdict(set)
    for change in changes.changed:
        for name in change.nodes:
            fields[name].update(PLACE if change.what == "place" else (FIELD_OF.get(change.what, change.what),))
    for name in recabled:
        fields[name].add("cables")
    return {name: frozenset(some) for name, some in fields.items()}
