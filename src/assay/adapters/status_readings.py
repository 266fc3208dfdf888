"""Reads how many nodes stand with their schedulers: one question to each scheduler, and why there is no answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from assay.adapters.scheduler_adapter import SchedulerAdapter, SchedulerNodeStatus
from assay.model.errors import describe_error
from assay.model.node import Node


@dataclass(frozen=True, slots=True)
class StatusReadings:
    """One reading of `nodes`: the status of each, and of those whose scheduler gave no answer the reason.

    A node that its scheduler does not know has neither.
    """

    nodes: frozenset[str]
    statuses: Mapping[str, SchedulerNodeStatus]
    errors: Mapping[str, str]

    def describe_errors(self) -> Iterator[str]:
        """Yield a line for each reason, with the nodes that it concerns."""
        names = defaultdict[str, list[str]](list)
        for node, reason in self.errors.items():
            names[reason].append(node)
        for reason, nodes in names.items():
            more = f" and {len(nodes) - 1} more" if nodes[1:] else ""
            yield f"{nodes[0]}{more}: cannot tell what is in use: {reason}"


@dataclass(frozen=True, slots=True)
class SchedulerGroups:
    """Node names by the adapter of their scheduler, and of nodes without a usable adapter the reason."""

    nodes: Mapping[SchedulerAdapter, Sequence[str]]
    errors: Mapping[str, str]

    def read_statuses(self) -> StatusReadings:
        """Ask each scheduler once. A scheduler that fails costs its own nodes only."""
        statuses: dict[str, SchedulerNodeStatus] = {}
        errors = dict(self.errors)
        for scheduler, names in self.nodes.items():
            try:
                statuses |= scheduler.read_statuses(names)
            except Exception as error:  # whatever it is, the other schedulers go on
                errors |= dict.fromkeys(names, describe_error(error))
        names_read = frozenset(name for names in self.nodes.values() for name in names)
        return StatusReadings(names_read | self.errors.keys(), statuses, errors)


def group_by_scheduler(nodes: Iterable[Node], workloads: Callable[[Node], SchedulerAdapter]) -> SchedulerGroups:
    """Group nodes by the adapter that `workloads` returns for each."""
    groups: dict[SchedulerAdapter, list[str]] = defaultdict(list)
    errors: dict[str, str] = {}
    for node in nodes:
        try:
            groups[workloads(node)].append(node.name)
        except Exception as error:  # whatever it is, the other nodes go on
            errors[node.name] = describe_error(error)
    return SchedulerGroups(groups, errors)
