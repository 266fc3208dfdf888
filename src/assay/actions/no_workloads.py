"""Nodes without a scheduler: nobody's job is on them, and a cordon has nothing to hold back."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from assay.actions.workloads import Job, Spare, Standing
from assay.model.errors import Trouble


class NoWorkloads:
    """The adapter `none`. Nothing can be cordoned, so nothing ever reads as cordoned."""

    places = False

    def __init__(self, variables: Mapping[str, Any]) -> None:
        del variables

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NoWorkloads)

    def __hash__(self) -> int:
        return hash(NoWorkloads)

    def jobs(self, node: str) -> tuple[Job, ...]:  # noqa: ARG002 — the signature is Workloads'
        """Return no jobs."""
        return ()

    def cordoned(self, node: str) -> str:  # noqa: ARG002
        """Return "": there is no scheduler that could place anything."""
        return ""

    def cordon(self, node: str, reason: str) -> None:
        """Do nothing: no scheduler places jobs here."""

    def uncordon(self, node: str) -> None:
        """Do nothing: there is no cordon."""

    def drain(self, node: str, reason: str, now: bool = False) -> None:
        """Do nothing: no job runs here."""

    def standings(self, nodes: Collection[str]) -> dict[str, Standing]:
        """Return that every node is free, and that nothing places jobs there."""
        return dict.fromkeys(nodes, Standing(places=False))

    def cordon_many(self, reasons: Mapping[str, str]) -> None:
        """Do nothing: no scheduler places jobs here."""

    def spare(self, node: str, command: Sequence[str], given: bytes, deadline_s: float) -> Spare:  # noqa: ARG002
        """Raise Trouble: without a scheduler nobody could say when customers want the node back."""
        raise Trouble("no scheduler places jobs on this node, so it has no spare time", where=node)
