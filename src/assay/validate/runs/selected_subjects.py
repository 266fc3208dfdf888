"""The selected subjects of each kind, made once for all checks, and only those that an id or `-k` selects."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from assay.model.node import Node
from assay.model.outcome import CheckSubject
from assay.model.specs.node.node_spec import NodeSpec
from assay.validate.runs.command_line_selection import ANY_SUBJECT, KeywordPattern
from assay.validate.runs.declared_outcomes import PART_KINDS
from assay.validate.runs.node_selection import NodeSelection, list_node_subjects


class NamedSubject(NamedTuple):
    """A subject, its id, and the node that it is or belongs to ("" for racks and fabrics)."""

    subject: CheckSubject
    id: str
    node: str


class SelectedSubjects:
    """The subjects of a selection."""

    def __init__(self, selection: NodeSelection) -> None:
        self._selection, self._fleet = selection, selection.fleet
        self._by_kind: dict[str, list[NamedSubject]] = {}
        self._by_pattern: dict[tuple[str, KeywordPattern], list[NamedSubject]] = {}
        self._nodes_by_word: dict[str, dict[str, Node]] = {}

    def of_kind(self, kind: str) -> list[NamedSubject]:
        """Return all subjects of a kind."""
        if kind not in self._by_kind:
            subjects = self._selection.subjects(kind)
            self._by_kind[kind] = [NamedSubject(subject, str(subject), node) for subject, node in subjects]
        return self._by_kind[kind]

    def matching(self, kind: str, pattern: KeywordPattern) -> list[NamedSubject]:
        """Return the subjects of a kind whose ids match a pattern."""
        if pattern == ANY_SUBJECT:
            return self.of_kind(kind)
        if not pattern.holds:
            return []
        if (kind, pattern) not in self._by_pattern:
            among = self._candidates(kind, pattern) if kind in ("node", *PART_KINDS) else self.of_kind(kind)
            matching = [subject for subject in among if pattern.matches(subject.id.lower())]
            self._by_pattern[kind, pattern] = matching
        return self._by_pattern[kind, pattern]

    def with_ids(self, kind: str, ids: Iterable[str]) -> list[NamedSubject]:
        """Return the subjects of a kind that have these ids, in fleet order."""
        wanted = set(ids)
        if kind not in ("node", *PART_KINDS):
            return [subject for subject in self.of_kind(kind) if subject.id in wanted]
        names = {parts[1] for parts in (subject_id.split("/") for subject_id in wanted) if len(parts) > 1}
        nodes = [self._fleet.nodes[name] for name in self._own_node_names if name in names]
        return [subject for subject in self._list_on_nodes(nodes, kind) if subject.id in wanted]

    @cached_property
    def _own_node_names(self) -> Sequence[str]:
        return self._selection.own_nodes()

    def _candidates(self, kind: str, pattern: KeywordPattern) -> list[NamedSubject]:
        """Return the subjects on nodes where each needed word is in the node's id, or may be in a part's."""
        if kind in self._by_kind:
            return self._by_kind[kind]
        nodes: Collection[Node] = self._own_nodes
        for word in pattern.needed:
            if "/" in word[1:]:
                continue  # may span the node's id and the part's
            having = self._nodes_with_word(word)
            if specs := {name for name, spec in self._fleet.node_specs.items() if _is_in_parts(spec, kind, word)}:
                nodes = [node for node in nodes if node.name in having or node.spec in specs]
            elif nodes is self._own_nodes:
                nodes = having.values()
            else:
                nodes = [node for node in nodes if node.name in having]
        return self._list_on_nodes(nodes, kind)

    @cached_property
    def _own_nodes(self) -> list[Node]:
        return [self._fleet.nodes[name] for name in self._own_node_names]

    @cached_property
    def _lower_case_ids(self) -> list[tuple[str, Node]]:
        return [(f"{node.pool}/{node.name}".lower(), node) for node in self._own_nodes]

    def _nodes_with_word(self, word: str) -> dict[str, Node]:
        """Return the nodes of this shard that have a word in their ids, by name."""
        if word not in self._nodes_by_word:
            self._nodes_by_word[word] = {node.name: node for name, node in self._lower_case_ids if word in name}
        return self._nodes_by_word[word]

    def _list_on_nodes(self, nodes: Iterable[Node], kind: str) -> list[NamedSubject]:
        subjects = (
            (subject, node.name) for node in nodes for subject in list_node_subjects(self._fleet, node.name, kind)
        )
        return [NamedSubject(subject, str(subject), node) for subject, node in subjects]


def _is_in_parts(spec: NodeSpec, kind: str, word: str) -> bool:
    """Return whether the slot's part of an id may hold a word."""
    return kind != "node" and any(word in f"/{slot}".lower() for slot in spec.slot_names(kind))
