"""The selected subjects of each kind, made once for all checks, and only those that an id or `-k` leaves."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from assay.harness.declared import PARTS, Selection, of_node
from assay.harness.narrow import ANY, Words
from assay.harness.specs import slots
from assay.model.fleet import Node
from assay.model.nodespec import NodeSpec
from assay.model.subject import Subject


class Named(NamedTuple):
    """A subject, its id, and the node that it is or belongs to ("" for racks and fabrics)."""

    subject: Subject
    id: str
    node: str


class Subjects:
    """The subjects of a selection."""

    def __init__(self, selection: Selection) -> None:
        self._selection, self._fleet = selection, selection.fleet
        self._of: dict[str, list[Named]] = {}
        self._fitting: dict[tuple[str, Words], list[Named]] = {}
        self._found: dict[str, dict[str, Node]] = {}

    def of(self, kind: str) -> list[Named]:
        """Return all of a kind."""
        if kind not in self._of:
            found = self._selection.subjects(kind)
            self._of[kind] = [Named(subject, str(subject), node) for subject, node in found]
        return self._of[kind]

    def fitting(self, kind: str, words: Words) -> list[Named]:
        """Return those of a kind whose ids fit."""
        if words == ANY:
            return self.of(kind)
        if not words.holds:
            return []
        if (kind, words) not in self._fitting:
            among = self._near(kind, words) if kind in ("node", *PARTS) else self.of(kind)
            self._fitting[kind, words] = [one for one in among if words.fit(one.id.lower())]
        return self._fitting[kind, words]

    def called(self, kind: str, ids: Iterable[str]) -> list[Named]:
        """Return those of a kind with these ids, in the order of the fleet."""
        wanted = set(ids)
        if kind not in ("node", *PARTS):
            return [one for one in self.of(kind) if one.id in wanted]
        names = {parts[1] for parts in (one.split("/") for one in wanted) if len(parts) > 1}
        nodes = [self._fleet.nodes[name] for name in self._own if name in names]
        return [one for one in self._on(nodes, kind) if one.id in wanted]

    @cached_property
    def _own(self) -> Sequence[str]:
        """The nodes of this share."""
        return self._selection.own()

    def _near(self, kind: str, words: Words) -> list[Named]:
        """Return the subjects of the nodes that have, or whose parts may have, every word that is needed."""
        if kind in self._of:
            return self._of[kind]
        nodes: Collection[Node] = self._mine
        for word in words.needed:
            if "/" in word[1:]:
                continue  # may reach from the node's id into the part's
            having = self._having(word)
            if in_parts := {name for name, spec in self._fleet.node_specs.items() if _in_parts(spec, kind, word)}:
                nodes = [node for node in nodes if node.name in having or node.spec in in_parts]
            else:
                nodes = having.values() if nodes is self._mine else [node for node in nodes if node.name in having]
        return self._on(nodes, kind)

    @cached_property
    def _mine(self) -> list[Node]:
        return [self._fleet.nodes[name] for name in self._own]

    @cached_property
    def _ids(self) -> list[tuple[str, Node]]:
        """The nodes of this share, each with its id in lower case."""
        return [(f"{node.pool}/{node.name}".lower(), node) for node in self._mine]

    def _having(self, word: str) -> dict[str, Node]:
        """Return the nodes whose ids have a word, by name."""
        if word not in self._found:
            self._found[word] = {node.name: node for name, node in self._ids if word in name}
        return self._found[word]

    def _on(self, nodes: Iterable[Node], kind: str) -> list[Named]:
        found = ((subject, node.name) for node in nodes for subject in of_node(self._fleet, node.name, kind))
        return [Named(subject, str(subject), node) for subject, node in found]


def _in_parts(spec: NodeSpec, kind: str, word: str) -> bool:
    """Return whether the part of an id that names a slot may hold a word."""
    return kind != "node" and any(word in f"/{slot}".lower() for slot in slots(spec, kind))
