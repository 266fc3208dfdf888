"""The scheduler `none`: nodes on which nothing places jobs. There are no customers, and nothing to cordon."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from assay.adapters.scheduler_adapter import CustomerJob, SchedulerNodeStatus, SpareRunResult
from assay.model.errors import AssayError
from assay.model.specs.node_settings import NodeSettings


class NoScheduler:
    """The adapter for nodes without a scheduler. All its instances are equal."""

    places_jobs = False

    def __init__(self, settings: NodeSettings) -> None:
        del settings

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NoScheduler)

    def __hash__(self) -> int:
        return hash(NoScheduler)

    def list_jobs(self, node: str) -> tuple[CustomerJob, ...]:  # noqa: ARG002 — the protocol's
        """Return no jobs."""
        return ()

    def read_cordon_reason(self, node: str) -> str:  # noqa: ARG002
        """Return ""."""
        return ""

    def cordon(self, node: str, reason: str) -> None:
        """Do nothing."""

    def uncordon(self, node: str) -> None:
        """Do nothing."""

    def drain(self, node: str, reason: str, now: bool = False) -> None:
        """Do nothing."""

    def read_statuses(self, nodes: Collection[str]) -> dict[str, SchedulerNodeStatus]:
        """Return that every node is free and that nothing places jobs on it."""
        return dict.fromkeys(nodes, SchedulerNodeStatus(places_jobs=False))

    def cordon_many(self, reasons: Mapping[str, str]) -> None:
        """Do nothing."""

    def run_spare(self, node: str, command: Sequence[str], given: bytes, deadline_s: float) -> SpareRunResult:  # noqa: ARG002
        """Raise AssayError: without a scheduler nobody knows when customers want the node back."""
        raise AssayError("no scheduler places jobs on this node, so it has no spare time", where=node)
