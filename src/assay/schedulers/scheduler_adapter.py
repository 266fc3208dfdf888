"""Where workloads are: who uses a node, how it is taken out of service and given back, and work in spare time.

A scheduler's adapter is an entry point of the group `assay.workloads`, named by the inventory variable
`workloads`. Every adapter writes its reasons behind the prefix `assay:` and undoes only what carries it. A node has
one name, in the inventory and in its scheduler. Adapters with the same far end are equal, so that many nodes can be
asked for in one question.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol, runtime_checkable

from assay.model.errors import AssayError
from assay.model.node import Node
from assay.model.slurm_reason import REASON_PREFIX

ENTRY_POINT_GROUP = "assay.workloads"
VERIFY_UNDRAIN = "assay:verify-undrain"
"""In the reason of somebody's drain: give the node back after the next verification that it passes."""


@dataclass(frozen=True, slots=True)
class CustomerJob:
    """One customer's job on a node. `since` is ISO 8601 UTC; `kept_by` says what forbids to end it, "" for nothing.

    `lost`: it was to be gone by now, and its node no longer answers its scheduler: only a restart of the node ends it.
    """

    id: str
    name: str
    owner: str
    since: str
    blocked_by: str = ""
    is_lost: bool = False

    def __str__(self) -> str:
        kept = f"; {self.blocked_by}" if self.blocked_by else ""
        return f"job {self.id} ({self.name}, {self.owner}{kept})"


@dataclass(frozen=True, slots=True)
class SchedulerNodeStatus:
    """How a node stands with its scheduler: the customers' jobs on it, and the reason of its cordon ("" for none).

    `passing`: the scheduler closed the node itself, and opens it itself as soon as the node answers again. `places`:
    whether anything places jobs there at all.
    """

    jobs: tuple[CustomerJob, ...] = ()
    cordon: str = ""
    is_self_clearing: bool = False
    places_jobs: bool = True

    @property
    def is_closed(self) -> bool:
        """Whether no job starts there before somebody lifts what closes it."""
        return bool(self.cordon) and not self.is_self_clearing


@dataclass(frozen=True, slots=True)
class SpareRunResult:
    """What came of work in a node's spare time.

    `code` is its exit status; None where it did not end by itself: it made room for customers (`yielded` says for
    whom), or nothing was free for it in time.
    """

    exit_code: int | None
    output: bytes = b""
    stderr: str = ""
    preempted_by: str = ""


class SchedulerAdapter(Protocol):
    """One scheduler, as far as a node's lifecycle needs it. Every method raises Trouble when it cannot answer.

    `places` says whether anything places jobs on the node at all; where nothing does, nothing can be cordoned.
    """

    @property
    def places_jobs(self) -> bool:
        """Whether there is a scheduler."""

    def list_jobs(self, node: str) -> tuple[CustomerJob, ...]:
        """Return the customer jobs that run on the node now."""

    def read_cordon_reason(self, node: str) -> str:
        """Return the reason why no job may start on the node, or "" where one may."""

    def cordon(self, node: str, reason: str) -> None:
        """Let no new job start. A cordon that somebody else set stays as it is, with their reason."""

    def uncordon(self, node: str) -> None:
        """Undo our own cordon; one that somebody else set stays."""

    def drain(self, node: str, reason: str, now: bool = False) -> None:
        """Cordon the node; with `now` end its jobs as well, which the scheduler records and requeues."""

    def read_statuses(self, nodes: Collection[str]) -> dict[str, SchedulerNodeStatus]:
        """Return how each of these nodes stands, by as few questions as the scheduler allows.

        A node that the scheduler does not know is left out: it cannot be told.
        """

    def cordon_many(self, reasons: Mapping[str, str]) -> None:
        """Cordon each node for its reason, by as few orders as the scheduler allows."""

    def run_spare(self, node: str, command: Sequence[str], given: bytes, deadline_s: float) -> SpareRunResult:
        """Run a command on the node at the lowest priority, with `given` as its input.

        It makes room at once for whatever a customer starts, and does not begin on a node that is in use. Where
        nothing is placed by a scheduler there is no such thing: raises Trouble.
        """


@runtime_checkable
class VerifiedUndrain(Protocol):
    """A scheduler in which somebody can drain a node until its next passed verification (VERIFY_UNDRAIN)."""

    def undrain_verified(self, node: str, began: datetime) -> str:
        """Undo a drain that asks for it and was set before the verification `began`; return its reason, or ""."""


def undrain_if_supported(workloads: SchedulerAdapter, node: str, began: datetime) -> str:
    """Tell a scheduler that a node passed a verification; return the reason of the drain that this ended, or ""."""
    return workloads.undrain_verified(node, began) if isinstance(workloads, VerifiedUndrain) else ""


def read_node_status(workloads: SchedulerAdapter, node: str) -> SchedulerNodeStatus:
    """Return how one node stands. Raises Trouble where its scheduler cannot tell, or does not know it."""
    standings = workloads.read_statuses([node])
    if node not in standings:
        raise AssayError("the scheduler does not know this node", where=node)
    return standings[node]


def is_our_reason(reason: str) -> bool:
    """Say whether a cordon's reason is one of ours."""
    return reason.startswith(REASON_PREFIX)


def prefix_reason(text: str) -> str:
    """Return `text` behind our prefix."""
    return text if is_our_reason(text) else f"{REASON_PREFIX} {text}"


def load_scheduler_adapter(node: Node) -> SchedulerAdapter:
    """Return the adapter that the node's inventory variable `workloads` names (default `none`).

    An adapter is called with the node's settings, where it finds its address. Raises Trouble for an unknown name.
    """
    name = node.settings.workloads
    if name not in _list_adapters():
        raise AssayError(
            f"no workloads adapter is called {name!r}",
            where=node.name,
            fix=f"set the inventory variable `workloads` to one of: {', '.join(sorted(_list_adapters())) or 'none at all'}",
        )
    adapter: SchedulerAdapter = _list_adapters()[name].load()(node.settings)
    return adapter


@cache
def _list_adapters() -> dict[str, EntryPoint]:
    """Return the adapters by name; to look for them opens a file of every installed package."""
    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def format_jobs(jobs: Iterable[CustomerJob]) -> str:
    """Return the jobs in one line for people."""
    return ", ".join(str(job) for job in jobs)
