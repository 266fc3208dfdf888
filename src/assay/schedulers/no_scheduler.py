"""Nodes without a scheduler: nobody's job is on them, and a cordon has nothing to hold back."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from assay.model.errors import AssayError
from assay.model.specs.node_settings import NodeSettings
from assay.schedulers.scheduler_adapter import CustomerJob, SchedulerNodeStatus, SpareRunResult


class NoScheduler:
    """The adapter `none`. Nothing can be cordoned, so nothing ever reads as cordoned."""

    places_jobs = False

    def __init__(self, settings: NodeSettings) -> None:
        del settings

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NoScheduler)

    def __hash__(self) -> int:
        return hash(NoScheduler)

    def list_jobs(self, node: str) -> tuple[CustomerJob, ...]:  # noqa: ARG002 — the signature is Workloads'
        """Return no jobs."""
        return ()

    def read_cordon_reason(self, node: str) -> str:  # noqa: ARG002
        """Return "": there is no scheduler that could place anything."""
        return ""

    def cordon(self, node: str, reason: str) -> None:
        """Do nothing: no scheduler places jobs here."""

    def uncordon(self, node: str) -> None:
        """Do nothing: there is no cordon."""

    def drain(self, node: str, reason: str, now: bool = False) -> None:
        """Do nothing: no job runs here."""

    def read_statuses(self, nodes: Collection[str]) -> dict[str, SchedulerNodeStatus]:
        """Return that every node is free, and that nothing places jobs there."""
        return dict.fromkeys(nodes, SchedulerNodeStatus(places_jobs=False))

    def cordon_many(self, reasons: Mapping[str, str]) -> None:
        """Do nothing: no scheduler places jobs here."""

    def run_spare(self, node: str, command: Sequence[str], given: bytes, deadline_s: float) -> SpareRunResult:  # noqa: ARG002
        """Raise Trouble: without a scheduler nobody could say when customers want the node back."""
        raise AssayError("no scheduler places jobs on this node, so it has no spare time", where=node)
