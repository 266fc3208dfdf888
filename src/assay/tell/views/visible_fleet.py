"""The nodes that somebody may see: as a list, one by one, and why each is in its state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from assay.decide.state.node_state import NodeState
from assay.tell.customer.customer_answer import CustomerExplanationAnswer
from assay.tell.customer.customer_explanation import customer_explanation_as_json
from assay.tell.customer.customer_situation import read_customer_situation
from assay.tell.views.explanation import describe_node_status, explain_node
from assay.tell.views.explanation_answer import ExplainAnswer
from assay.tell.views.node_status import NodeStatus
from assay.tell.views.nodes import NodeSummary, summarize_node
from assay.tell.views.record_source import RecordSource


@dataclass(frozen=True, slots=True)
class VisibleFleet:
    """What of the records somebody may see. `sees`: which nodes. `for_customer`: in plain words, without serials.

    A node that may not be seen is as one that does not exist: None.
    """

    source: RecordSource
    sees: Callable[[NodeState], bool]
    for_customer: bool

    def list_nodes(self) -> list[NodeSummary]:
        """Return the nodes, by name."""
        fleet = self.source.fleet
        shown = (summarize_node(fleet, state, for_customer=self.for_customer) for state in self._list_states())
        return sorted(shown, key=lambda node: node.node)

    def find_node(self, name: str) -> NodeSummary | None:
        """Return one node in short."""
        state = self._find_state(name)
        return summarize_node(self.source.fleet, state, for_customer=self.for_customer) if state else None

    def describe(self, name: str) -> NodeStatus | CustomerExplanationAnswer | None:
        """Return a node's status; for a customer, what happened to it."""
        state = self._find_state(name)
        if state is None:
            return None
        return self._explain_to_customer(state) if self.for_customer else describe_node_status(self.source, state)

    def explain(self, name: str, last: int) -> ExplainAnswer | CustomerExplanationAnswer | None:
        """Return why a node is in its state, with its last decisions (0: all)."""
        state = self._find_state(name)
        if state is None:
            return None
        return self._explain_to_customer(state) if self.for_customer else explain_node(self.source, state, last)

    def _explain_to_customer(self, state: NodeState) -> CustomerExplanationAnswer:
        states = self.source.read_node_states()
        return customer_explanation_as_json(read_customer_situation(self.source, states, state))

    def _list_states(self) -> list[NodeState]:
        return [state for state in self.source.read_node_states() if self.sees(state)]

    def _find_state(self, name: str) -> NodeState | None:
        return next((state for state in self._list_states() if state.node == name), None)
