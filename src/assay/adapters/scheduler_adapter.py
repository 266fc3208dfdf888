"""What a scheduler adapter is: one module, and an entry point of the group `assay.schedulers` that names its class.

The inventory variable `workloads` names the entry point. A plug-in finds its own settings in the node's
`other_variables`; if its class has a `settings_model` (pydantic), `assay check` validates them. An adapter writes its
reasons with the prefix `assay:` and undoes only cordons that have it (model/cordon_ownership.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from assay.model.cordon_ownership import is_our_reason
from assay.model.errors import AssayError
from assay.model.node import Node
from assay.model.plugins import SCHEDULERS

if TYPE_CHECKING:  # loads pydantic
    from assay.model.specs.node_settings import NodeSettings

VERIFY_UNDRAIN = "assay:verify-undrain"
"""In the reason of somebody else's drain: undo this drain after the next verification that the node passes."""


@dataclass(frozen=True, slots=True)
class CustomerJob:
    """One customer's job on a node.

    `since` is ISO 8601 UTC. `blocked_by` is what prevents the job from being ended, "" for nothing. A job `is_lost` if
    the scheduler ended it but its node does not answer: only a restart of the node ends it.
    """

    id: str
    name: str
    owner: str
    since: str
    blocked_by: str = ""
    is_lost: bool = False

    def __str__(self) -> str:
        blocker = f"; {self.blocked_by}" if self.blocked_by else ""
        return f"job {self.id} ({self.name}, {self.owner}{blocker})"


@dataclass(frozen=True, slots=True)
class SchedulerNodeStatus:
    """How a scheduler sees a node: the customers' jobs on it, and the reason of its cordon ("" for none).

    `is_self_clearing`: the scheduler closed the node itself, and opens it as soon as the node answers. `places_jobs`:
    whether anything places jobs on the node at all. `others_cordon` is the reason of somebody else's cordon or drain
    beside ours; without one, a cordon without our prefix is somebody else's. `others_taints` are others' taints,
    which close the node to jobs that do not tolerate them: `tainted KEY=VALUE:EFFECT; tainted …`.
    """

    jobs: tuple[CustomerJob, ...] = ()
    cordon: str = ""
    is_self_clearing: bool = False
    places_jobs: bool = True
    others_cordon: str = ""
    others_taints: str = ""

    @property
    def foreign_cordon(self) -> str:
        """Why somebody else keeps the node closed, "" if nobody else does."""
        foreign = self.others_cordon or ("" if is_our_reason(self.cordon) else self.cordon)
        return "; ".join(filter(None, (foreign if self.is_closed else "", self.others_taints)))

    @property
    def is_closed(self) -> bool:
        """Whether no job starts on the node until somebody lifts its cordon."""
        return bool(self.cordon) and not self.is_self_clearing


@dataclass(frozen=True, slots=True)
class SpareRunResult:
    """The result of a command in a node's spare time.

    `exit_code` is None if the command did not end by itself: customers took its place (`preempted_by` names them), or
    the node was not free in time (`stderr` says why). `gone_ms`: how long at most the customers waited until nothing of
    the command was left, in milliseconds; None if that is not known.
    """

    exit_code: int | None
    output: bytes = b""
    stderr: str = ""
    preempted_by: str = ""
    gone_ms: int | None = None


class SchedulerAdapter(Protocol):
    """One scheduler. Every method raises AssayError if the scheduler does not answer or refuses.

    Adapters of the same scheduler compare equal, so that one request reads many nodes. A node has one name, in the
    inventory and in its scheduler.
    """

    def __init__(self, settings: NodeSettings) -> None:
        """Create the adapter for a node's settings. May raise AssayError."""

    @property
    def places_jobs(self) -> bool:
        """Whether anything places jobs on the node. If not, it cannot be cordoned."""

    def list_jobs(self, node: str) -> tuple[CustomerJob, ...]:
        """Return the customers' jobs that run on the node now."""

    def read_cordon_reason(self, node: str) -> str:
        """Return why no job may start on the node, "" if jobs may."""

    def cordon(self, node: str, reason: str) -> None:
        """Let no new job start. A cordon that somebody else set stays as it is, with its reason."""

    def uncordon(self, node: str) -> None:
        """Undo our own cordon. A cordon that somebody else set stays."""

    def drain(self, node: str, reason: str, now: bool = False) -> None:
        """Cordon the node. With `now`, also end its jobs; the scheduler requeues what it can start again."""

    def read_statuses(self, nodes: Collection[str]) -> dict[str, SchedulerNodeStatus]:
        """Return the status of these nodes with as few requests as possible. Unknown nodes are missing from it."""

    def cordon_many(self, reasons: Mapping[str, str]) -> None:
        """Cordon each node for its reason, with as few requests as possible."""

    def run_spare(self, node: str, command: Sequence[str], given: bytes, deadline_s: float) -> SpareRunResult:
        """Run a command on the node at the lowest priority, with `given` as its standard input.

        It does not start on a node in use, and makes room at once for any customer's job. Raises AssayError if the
        node has no scheduler.
        """


@runtime_checkable
class VerifiedUndrain(Protocol):
    """A scheduler in which somebody can drain a node until its next passed verification (VERIFY_UNDRAIN)."""

    def undrain_verified(self, node: str, began: datetime) -> str:
        """Undo a drain that asks for it and was set before the verification `began`. Return its reason, or ""."""


def load_scheduler_adapter(node: Node) -> SchedulerAdapter:
    """Return the adapter that the node's inventory variable `workloads` names.

    Raises AssayError if no distribution provides it, or if it cannot be loaded.
    """
    adapter: SchedulerAdapter = SCHEDULERS.load(node.settings.workloads, node.name)(node.settings)
    return adapter


def undrain_if_supported(adapter: SchedulerAdapter, node: str, began: datetime) -> str:
    """Tell a scheduler that a node passed a verification. Return the reason of the drain that this ended, or ""."""
    return adapter.undrain_verified(node, began) if isinstance(adapter, VerifiedUndrain) else ""


def read_node_status(adapter: SchedulerAdapter, node: str) -> SchedulerNodeStatus:
    """Return the status of one node. Raises AssayError if the scheduler does not answer or does not know the node."""
    statuses = adapter.read_statuses([node])
    if node not in statuses:
        raise AssayError("the scheduler does not know this node", where=node)
    return statuses[node]


def format_jobs(jobs: Iterable[CustomerJob]) -> str:
    """Return the jobs as one line of text."""
    return ", ".join(str(job) for job in jobs)
