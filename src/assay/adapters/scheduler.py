"""What a scheduler adapter is: one module, and an entry point of the group `assay.schedulers` that names its class.

The inventory variable `workloads` names the entry point. A plug-in finds its own settings in the node's
`other_variables`; if its class has a `settings_model` (pydantic), `assay check` validates them. An adapter writes its
reasons with the prefix `assay:` and undoes only cordons that have it (model/cordon_ownership.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable

from assay.model.cordon_ownership import is_our_reason
from assay.model.errors import AssayError, describe_error
from assay.model.facts import frozen
from assay.model.node import Node
from assay.model.plugins import SCHEDULERS
from assay.model.specs.node_settings import NodeSettings

VERIFY_UNDRAIN = "assay:verify-undrain"
"""In the reason of somebody else's drain: undo this drain after the next verification that the node passes."""


@frozen
class CustomerJob:
    """One customer's job on a node. A process of which no scheduler knows has an `id` in words, and no name.

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
        if not self.name:
            return self.id
        return f"job {self.id} ({self.name}, {self.owner}{blocker})"


@frozen
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


@frozen
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


@runtime_checkable
class EndsJobs(Protocol):
    """A scheduler that can end some of a node's jobs, and leave the others alone."""

    def end_jobs(self, node: str, jobs: Collection[str]) -> None:
        """End these jobs: a number of Slurm, the UID of a pod. What can start again is requeued. Others go on."""


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


@frozen
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


@frozen
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


PLANNED = "Planned: "
"""How the text of a node in service begins on which work is planned. Of others in service there is nothing to tell."""


@frozen
class NodeNotice:
    """What customers are told of a node: one line of text.

    `move` is an id of the node's last way out of service or back, if customers are not told of it yet: such a move is
    announced once, however often it is shown. It is "" where only the text is new.
    """

    in_service: bool
    text: str
    move: str = ""

    @property
    def is_worth_a_comment(self) -> bool:
        """Whether a node that has no other place shows it: out of service, or with planned work."""
        return not self.in_service or self.text.startswith(PLANNED)


@runtime_checkable
class ShowsNotices(Protocol):
    """A scheduler whose nodes can carry a notice. Nothing that somebody else wrote is changed."""

    def show_notices(self, notices: Mapping[str, NodeNotice]) -> None:
        """Show each node's notice, as far as possible. To show one twice leaves one.

        Raises AssayError after all others have been shown.
        """

    def find_missing_notices(self, notices: Mapping[str, NodeNotice]) -> dict[str, str]:
        """Read the nodes again, and return why a notice is not shown, by node. Raises AssayError without an answer."""


@runtime_checkable
class RanksNodes(Protocol):
    """A scheduler that can place jobs on some nodes only where no other node is free."""

    def rank_nodes(self, is_last: Mapping[str, bool]) -> dict[str, str]:
        """Let jobs come last to these nodes, or as before. Return how a node differs from this when it is read again.

        To say it twice changes nothing.
        """


@frozen
class PlannedWindow:
    """A time (seconds since 1970) in which no job may run on nodes. No nodes: nobody waits for it any more."""

    nodes: tuple[str, ...]
    starts_at: int
    ends_at: int


@runtime_checkable
class ReservesWindows(Protocol):
    """A scheduler that can start no job on a node that would run into a window. Others' reservations stay."""

    def reserve_windows(self, windows: Mapping[str, PlannedWindow]) -> dict[str, str]:
        """Reserve these windows, by ids of operations. Return why one is not as it should be when it is read again."""


class NoScheduler:
    """The scheduler `none`: nothing places jobs on the node, so there are no customers, and nothing to cordon."""

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
