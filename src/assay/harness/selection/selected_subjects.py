"""The selected subjects of each kind, made once for all checks, and only those that an id or `-k` leaves."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from assay.harness.fixtures.spec_views import list_slots
from assay.harness.selection.command_line_selection import ANY_SUBJECT, KeywordPattern
from assay.harness.selection.declared_checks import PART_KINDS, NodeSelection, list_node_subjects
from assay.model.node import Node
from assay.model.outcome import CheckSubject
from assay.model.specs.node_spec import NodeSpec


class NamedSubject(NamedTuple):
    """A subject, its id, and the node that it is or belongs to ("" for racks and fabrics)."""

    subject: CheckSubject
    id: str
    node: str


class SelectedSubjects:
    """The subjects of a selection."""

    def __init__(self, selection: NodeSelection) -> None:
        self._selection, self._fleet = selection, selection.fleet
        self._of: dict[str, list[NamedSubject]] = {}
        self._fitting: dict[tuple[str, KeywordPattern], list[NamedSubject]] = {}
        self._found: dict[str, dict[str, Node]] = {}

    def of_kind(self, kind: str) -> list[NamedSubject]:
        """Return all of a kind."""
        if kind not in self._of:
            found = self._selection.subjects(kind)
            self._of[kind] = [NamedSubject(subject, str(subject), node) for subject, node in found]
        return self._of[kind]

    def matching(self, kind: str, words: KeywordPattern) -> list[NamedSubject]:
        """Return those of a kind whose ids fit."""
        if words == ANY_SUBJECT:
            return self.of_kind(kind)
        if not words.holds:
            return []
        if (kind, words) not in self._fitting:
            among = self._candidates(kind, words) if kind in ("node", *PART_KINDS) else self.of_kind(kind)
            self._fitting[kind, words] = [one for one in among if words.matches(one.id.lower())]
        return self._fitting[kind, words]

    def with_ids(self, kind: str, ids: Iterable[str]) -> list[NamedSubject]:
        """Return those of a kind with these ids, in the order of the fleet."""
        wanted = set(ids)
        if kind not in ("node", *PART_KINDS):
            return [one for one in self.of_kind(kind) if one.id in wanted]
        names = {parts[1] for parts in (one.split("/") for one in wanted) if len(parts) > 1}
        nodes = [self._fleet.nodes[name] for name in self._share_names if name in names]
        return [one for one in self._on_nodes(nodes, kind) if one.id in wanted]

    @cached_property
    def _share_names(self) -> Sequence[str]:
        """The nodes of this share."""
        return self._selection.own_nodes()

    def _candidates(self, kind: str, words: KeywordPattern) -> list[NamedSubject]:
        """Return the subjects of the nodes that have, or whose parts may have, every word that is needed."""
        if kind in self._of:
            return self._of[kind]
        nodes: Collection[Node] = self._share_nodes
        for word in words.needed:
            if "/" in word[1:]:
                continue  # may reach from the node's id into the part's
            having = self._nodes_with_word(word)
            if in_parts := {name for name, spec in self._fleet.node_specs.items() if _in_parts(spec, kind, word)}:
                nodes = [node for node in nodes if node.name in having or node.spec in in_parts]
            else:
                nodes = (
                    having.values() if nodes is self._share_nodes else [node for node in nodes if node.name in having]
                )
        return self._on_nodes(nodes, kind)

    @cached_property
    def _share_nodes(self) -> list[Node]:
        return [self._fleet.nodes[name] for name in self._share_names]

    @cached_property
    def _ids(self) -> list[tuple[str, Node]]:
        """The nodes of this share, each with its id in lower case."""
        return [(f"{node.pool}/{node.name}".lower(), node) for node in self._share_nodes]

    def _nodes_with_word(self, word: str) -> dict[str, Node]:
        """Return the nodes whose ids have a word, by name."""
        if word not in self._found:
            self._found[word] = {node.name: node for name, node in self._ids if word in name}
        return self._found[word]

    def _on_nodes(self, nodes: Iterable[Node], kind: str) -> list[NamedSubject]:
        found = ((subject, node.name) for node in nodes for subject in list_node_subjects(self._fleet, node.name, kind))
        return [NamedSubject(subject, str(subject), node) for subject, node in found]


def _in_parts(spec: NodeSpec, kind: str, word: str) -> bool:
    """Return whether the part of an id that names a slot may hold a word."""
    return kind != "node" and any(word in f"/{slot}".lower() for slot in list_slots(spec, kind))
