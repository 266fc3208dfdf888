"""The scheduler `slurm`: cordons, drains and reads nodes with Slurm's own programs.

A cordon is a drain with a tagged reason (model/cordon_ownership.py). With `slurm_cordon: reservation` it is a
reservation that only we may use, `assay-suspicious-NODE`: customers' jobs do not start there, our own checks can, and
running jobs go on. Slurm 22.05 keeps no comment of a reservation. So the reason is in the node's comment, unless
somebody else uses that.

Slurm can neither compare and set, nor keep two reasons: a drain that somebody sets in the milliseconds between our
reading and our order is overwritten. Earlier ones stay.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from assay.adapters.scheduler import (
    VERIFY_UNDRAIN,
    CustomerJob,
    NodeNotice,
    PlannedWindow,
    SchedulerNodeStatus,
    SpareRunResult,
    format_jobs,
)
from assay.adapters.slurm.client import SlurmClient, SlurmJob, SlurmNode, parse_jobs, parse_nodes
from assay.adapters.slurm.cordon import (
    RESERVATION_PREFIX,
    NoticeField,
    find_misranked,
    find_missing_notices,
    find_slurm_cordon,
    is_closed_in_slurm,
    is_our_notice,
    list_unreserved,
    make_drain_orders,
    make_notice_orders,
    make_rank_orders,
    make_release_orders,
    make_reservation_orders,
    make_window_orders,
    read_reservation_reason,
    read_reservations,
    read_windows,
)
from assay.adapters.slurm.jobs import is_our_job, list_customer_jobs, occupies_node, split_requeued_and_cancelled
from assay.adapters.slurm.spare_run import SlurmSpareJob, run_spare_job
from assay.model.cordon_ownership import is_our_reason
from assay.model.errors import AssayError
from assay.model.specs.node_settings import NodeSettings


class SlurmScheduler:
    """One Slurm cluster. Adapters of the same cluster and settings are equal.

    `partition` is for spare work, "" for none. With `uses_reservation`, a cordon is a reservation, else a drain.
    """

    places_jobs = True

    def __init__(self, settings: NodeSettings) -> None:
        self.client = SlurmClient(settings.slurm_conf)
        self.partition = settings.slurm_spare_partition
        self.uses_reservation = settings.slurm_cordon == "reservation"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SlurmScheduler) and other._key() == self._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[SlurmClient, str, bool]:
        return self.client, self.partition, self.uses_reservation

    def list_jobs(self, node: str) -> tuple[CustomerJob, ...]:
        """Return the customers' jobs on the node."""
        return self._read_status(node).jobs

    def read_cordon_reason(self, node: str) -> str:
        """Return why no job may start on the node, or ""."""
        return self._read_status(node).cordon

    def cordon(self, node: str, reason: str) -> None:
        """Close the node, unless it is closed already."""
        self.cordon_many({node: reason})

    def uncordon(self, node: str) -> None:
        """Undo our drain and our reservation, unless somebody changed them."""
        known = self._find_node(node)
        if is_our_reason(find_slurm_cordon(known)):
            self._resume(known)
        if node in self._list_reserved([known]):
            self.client.run_scontrol(make_release_orders(known))

    def drain(self, node: str, reason: str, now: bool = False) -> None:
        """Close the node. With `now`, requeue jobs that Slurm can start again and cancel the rest, except our own."""
        self.cordon(node, reason)
        if now:
            self._end_jobs(job for job in self._jobs() if node in job.nodes)

    def end_jobs(self, node: str, jobs: Collection[str]) -> None:
        """End these customers' jobs of the node, as a drain does."""
        self._end_jobs(job for job in self._jobs() if node in job.nodes and str(job.job_id) in jobs)

    def _end_jobs(self, jobs: Iterable[SlurmJob]) -> None:
        theirs = [job for job in jobs if occupies_node(job) and not is_our_job(job)]
        requeued, cancelled = split_requeued_and_cancelled(theirs)
        if cancelled:
            self.client.read_lines("scancel", *map(str, cancelled))
        self.client.run_scontrol(f"requeue {number}" for number in requeued)

    def read_statuses(self, nodes: Collection[str]) -> dict[str, SchedulerNodeStatus]:
        """Return the status of these nodes, with one sinfo and one squeue."""
        every = self._nodes()
        known = {name: every[name] for name in nodes if name in every}
        jobs_by_node = defaultdict[str, list[SlurmJob]](list)
        for job in self._jobs():
            for name in job.nodes:
                jobs_by_node[name].append(job)
        reserved = self._list_reserved(known.values())
        statuses = {}
        for name, node in known.items():
            cordon = find_slurm_cordon(node) or (read_reservation_reason(node) if name in reserved else "")
            # A node that slurmctld itself set DOWN clears itself, unless we reserved it.
            is_self_clearing = bool(cordon) and not (name in reserved or is_closed_in_slurm(node))
            jobs = list_customer_jobs(jobs_by_node[name], name)
            statuses[name] = SchedulerNodeStatus(jobs, cordon, is_self_clearing)
        return statuses

    def cordon_many(self, reasons: Mapping[str, str]) -> None:
        """Close nodes with one sinfo and one scontrol. Raises AssayError for unknown nodes after closing the others."""
        known = self._nodes()
        wanted = [(known[name], reason) for name, reason in reasons.items() if name in known]
        still_open = [(node, reason) for node, reason in wanted if not is_closed_in_slurm(node)]
        if self.uses_reservation:
            reserved = self._list_reserved(known.values())
            todo = [(node, reason) for node, reason in still_open if node.name not in reserved]
            self.client.run_scontrol(make_reservation_orders(todo))
        else:
            self.client.run_scontrol(make_drain_orders(still_open))
        if unknown := sorted(reasons.keys() - known.keys()):
            raise _make_unknown_node_error(*unknown)

    def run_spare(self, node: str, command: Sequence[str], given: bytes, deadline_s: float) -> SpareRunResult:
        """Run a command at the lowest priority, on a node without customers. Raises AssayError without a partition."""
        if not self.partition:
            fix = "set the inventory variable `slurm_spare_partition` (docs/slurm.md says how to set the partition up)"
            raise AssayError("no partition for spare work is declared", where=node, fix=fix)
        known = self._find_node(node)
        if jobs := list_customer_jobs(self._jobs(), node):
            return SpareRunResult(None, preempted_by=format_jobs(jobs))
        if cordon := find_slurm_cordon(known):
            return SpareRunResult(None, stderr=f"no job starts on {node}: {cordon}")
        reservation = f"{RESERVATION_PREFIX}{node}" if node in self._list_reserved([known]) else ""
        work = SlurmSpareJob(node, self.partition, reservation, tuple(command), given, deadline_s)
        return run_spare_job(self.client, work)

    def undrain_verified(self, node: str, began: datetime) -> str:
        """Undo a drain whose reason asks for it, if it was set before the verification `began`. Return the reason."""
        known = self._find_node(node)
        is_due = "DRAIN" in known.states and VERIFY_UNDRAIN in known.reason and known.changed <= began.timestamp()
        if is_due:
            self._resume(known)
        return known.reason if is_due else ""

    def show_notices(self, notices: Mapping[str, NodeNotice]) -> None:
        """Show customers what they are told of nodes that are out of service, with one sinfo and one scontrol."""
        self.client.run_scontrol(make_notice_orders(self._nodes(), notices, self._notice_field))

    def find_missing_notices(self, notices: Mapping[str, NodeNotice]) -> dict[str, str]:
        """Return why a notice is not shown, by node."""
        return find_missing_notices(self._nodes(), notices, self._notice_field)

    def rank_nodes(self, is_last: Mapping[str, bool]) -> dict[str, str]:
        """Let jobs come last to these nodes, or as before, by their weights. Return which nodes have another one."""
        self.client.run_scontrol(make_rank_orders(self._nodes(), is_last))
        return find_misranked(self._nodes(), is_last)

    def reserve_windows(self, windows: Mapping[str, PlannedWindow]) -> dict[str, str]:
        """Keep a reservation for each window, `assay-planned-ID`; with one scontrol if nothing changed."""
        reserved, refusal = read_windows(self.client), "Slurm does not show its reservation"
        if orders := list(make_window_orders(reserved, windows, time.time())):
            try:
                self.client.run_scontrol(orders)
            except AssayError as error:
                refusal = error.what
            reserved = read_windows(self.client)
        return dict.fromkeys(list_unreserved(reserved, windows), refusal)

    @property
    def _notice_field(self) -> NoticeField:
        """Where notices are: the comment, unless it has the reasons of reservations."""
        return "extra" if self.uses_reservation else "comment"

    def _resume(self, node: SlurmNode) -> None:
        """Resume a node. A restarted slurmctld reports a failure for nodes that have not registered, but does it."""
        try:
            self.client.run_scontrol([f"update nodename={node.name} state=resume"])
        except AssayError:
            if find_slurm_cordon(self._find_node(node.name)):
                raise

    def _read_status(self, node: str) -> SchedulerNodeStatus:
        statuses = self.read_statuses([node])
        if node not in statuses:
            raise _make_unknown_node_error(node)
        return statuses[node]

    def _find_node(self, node: str) -> SlurmNode:
        nodes = self._nodes()
        if node not in nodes:
            raise _make_unknown_node_error(node)
        return nodes[node]

    def _nodes(self) -> dict[str, SlurmNode]:
        return parse_nodes(self.client.read_json("sinfo", "--all"))

    def _jobs(self) -> list[SlurmJob]:
        return parse_jobs(self.client.read_json("squeue", "--all"))

    def _list_reserved(self, nodes: Iterable[SlurmNode]) -> set[str]:
        """Return the nodes that we reserved. Slurm is asked only if there can be one."""
        reasons = (node.comment for node in nodes if not is_our_notice(node.comment))
        possible = self.uses_reservation or any(map(is_our_reason, reasons))
        return set(read_reservations(self.client, RESERVATION_PREFIX)) if possible else set()


def _make_unknown_node_error(*nodes: str) -> AssayError:
    fix = "give the node the same name in the inventory and in slurm.conf"
    return AssayError(f"Slurm knows no node {', '.join(nodes)}", where="Slurm", fix=fix)
