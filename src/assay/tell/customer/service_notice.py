"""What customers are told of a node that left service or came back: four short texts, and one line of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import shorten

from assay.decide.state.node_state import NodeState
from assay.decide.state.service_absences import list_absences
from assay.model.ledger_entry import derive_id
from assay.model.timestamps import format_time
from assay.tell.customer.customer_explanation import CustomerExplanation, explain_to_customer
from assay.tell.customer.customer_situation import read_customer_situation
from assay.tell.customer.view import list_policy_states
from assay.tell.views.records import RecordSource

MAX_LINE = 360
"""Slurm's reasons and comments of ours have at most 400 characters."""


@dataclass(frozen=True, slots=True)
class ServiceStanding:
    """Whether a node that has left service before serves now, and since when (ISO 8601).

    `pool` is the one that the inventory has it in now.
    """

    state: NodeState
    pool: str
    in_service: bool
    since: str

    @property
    def move(self) -> str:
        """An id of the node's last way out of service, or back."""
        return derive_id("service", self.state.node, str(self.in_service), self.since)


@dataclass(frozen=True, slots=True)
class ServiceNotice:
    """What customers are told of a node."""

    standing: ServiceStanding
    texts: CustomerExplanation

    @property
    def node(self) -> str:
        """The name of the node."""
        return self.standing.state.node

    @property
    def line(self) -> str:
        """What happened, and when the node is expected back, in one line of at most MAX_LINE characters."""
        back = "" if self.standing.in_service else shorten(f" Back: {self.texts.back}", MAX_LINE // 2, placeholder=" …")
        room = MAX_LINE - len(back) - 1
        return f"{shorten(self.texts.happened, room, placeholder=' …')} {back}".rstrip()


def list_standings(source: RecordSource, states: Sequence[NodeState]) -> Iterator[ServiceStanding]:
    """Yield the standing of each node of the inventory that has left service at least once."""
    serving, _ = list_policy_states(source.fleet)
    for state in states:
        node = source.fleet.nodes.get(state.node)
        if node and (absences := list_absences(state, serving)):
            last = absences[-1]
            yield ServiceStanding(
                state, node.pool, last.ended_at is not None, format_time(last.ended_at or last.began_at)
            )


def make_notice(source: RecordSource, states: Sequence[NodeState], standing: ServiceStanding) -> ServiceNotice:
    """Return what customers are told of a node, in the words of `assay explain --for customer`. Reads the ledger."""
    return ServiceNotice(standing, explain_to_customer(read_customer_situation(source, states, standing.state)))
