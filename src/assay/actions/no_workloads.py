"""Nodes without a scheduler: nobody's job is on them, and a cordon has nothing to hold back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.actions.workloads import Job


class NoWorkloads:
    """The adapter `none`. Nothing can be cordoned, so nothing ever reads as cordoned."""

    places = False

    def __init__(self, variables: Mapping[str, Any]) -> None:
        del variables

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
