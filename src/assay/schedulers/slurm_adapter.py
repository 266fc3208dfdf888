"""The adapter `slurm`: Slurm's picture of nodes and jobs, and orders to it.

A cordon is a drain with a sealed reason (`model/slurm_reason.py`), or a reservation that only we may use, where the inventory
says `slurm_cordon: reservation`. Slurm can neither look and change in one step nor keep two reasons: who drains a node
in the milliseconds between our look and our order is overwritten. Whatever stood before that stays.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from assay.model.errors import AssayError
from assay.model.slurm_reason import tag_reason
from assay.model.specs.node_settings import NodeSettings
from assay.schedulers import slurm_reservation
from assay.schedulers.scheduler_adapter import (
    VERIFY_UNDRAIN,
    CustomerJob,
    SchedulerNodeStatus,
    SpareRunResult,
    format_jobs,
    is_our_reason,
)
from assay.schedulers.slurm_client import SlurmClient
from assay.schedulers.slurm_json import SlurmJob, SlurmNode, parse_jobs, parse_nodes
from assay.schedulers.slurm_node_status import (
    find_slurm_cordon,
    is_closed_in_slurm,
    is_our_job,
    list_customer_jobs,
    occupies_node,
)
from assay.schedulers.slurm_spare_job import SlurmSpareJob, run_spare_job


@dataclass(frozen=True, slots=True)
class SlurmScheduler:
    """One Slurm. `partition` is where spare work goes; `reserves`: nodes are closed by a reservation, not a drain."""

    client: SlurmClient = field(default_factory=SlurmClient)
    partition: str = ""
    uses_reservation: bool = False

    @property
    def places_jobs(self) -> bool:
        """Slurm places jobs."""
        return True

    def list_jobs(self, node: str) -> tuple[CustomerJob, ...]:
        """Return the customers' jobs that are on the node."""
        return self._read_status(node).jobs

    def read_cordon_reason(self, node: str) -> str:
        """Return why no job may start on the node, or ""."""
        return self._read_status(node).cordon

    def cordon(self, node: str, reason: str) -> None:
        """Close the node, unless it is closed already."""
        self.cordon_many({node: reason})

    def uncordon(self, node: str) -> None:
        """Undo our drain and our reservation, as far as they are as we made them."""
        known = self._find_node(node)
        if is_our_reason(find_slurm_cordon(known)):
            self._resume(known)
        if node in self._list_reserved([known]):
            self.client.run_scontrol(slurm_reservation.make_release_orders(known))

    def drain(self, node: str, reason: str, now: bool = False) -> None:
        """Close the node; with `now` requeue what Slurm can start again, and cancel the rest. Our own jobs go on."""
        self.cordon(node, reason)
        if now:
            jobs = [j for j in self._jobs() if node in j.nodes and occupies_node(j) and not is_our_job(j)]
            again = {job.job_id for job in jobs if job.requeue and job.batch_flag}
            if rest := [str(job.job_id) for job in jobs if job.job_id not in again]:
                self.client.read_lines("scancel", *rest)
            self.client.run_scontrol(f"requeue {number}" for number in sorted(again))

    def read_statuses(self, nodes: Collection[str]) -> dict[str, SchedulerNodeStatus]:
        """Return how these nodes stand, by one sinfo and one squeue."""
        known = {name: node for name, node in self._nodes().items() if name in set(nodes)}
        on = _group_by_node(self._jobs())
        closed = self._list_reserved(known.values())
        return {
            name: _make_status(node, list_customer_jobs(on[name], name), name in closed) for name, node in known.items()
        }

    def cordon_many(self, reasons: Mapping[str, str]) -> None:
        """Close nodes: one look, and one order for each reason that differs. Raises Trouble for unknown ones, last."""
        known = self._nodes()
        wanted = [(known[name], reason) for name, reason in reasons.items() if name in known]
        opened = [(node, reason) for node, reason in wanted if not is_closed_in_slurm(node)]
        if self.uses_reservation:
            closed = self._list_reserved(known.values())
            self.client.run_scontrol(
                slurm_reservation.make_reservation_orders(pair for pair in opened if pair[0].name not in closed)
            )
        else:
            self.client.run_scontrol(_make_drain_orders(opened))
        if strange := sorted(reasons.keys() - known.keys()):
            raise _make_unknown_node_error(*strange)

    def run_spare(self, node: str, command: Sequence[str], given: bytes, deadline_s: float) -> SpareRunResult:
        """Run a command at the lowest priority, on a node that no customer uses. Trouble where none is set up."""
        if not self.partition:
            fix = "give the inventory variable `slurm_spare_partition` (docs/slurm.md says how it must be set up)"
            raise AssayError("no partition for spare work is declared", where=node, fix=fix)
        known = self._find_node(node)
        if jobs := list_customer_jobs(self._jobs(), node):
            return SpareRunResult(None, preempted_by=format_jobs(jobs))
        if closed := find_slurm_cordon(known):
            return SpareRunResult(None, stderr=f"no job starts on {node}: {closed}")
        reserved = f"{slurm_reservation.RESERVATION_PREFIX}{node}" if node in self._list_reserved([known]) else ""
        return run_spare_job(
            self.client, SlurmSpareJob(node, self.partition, reserved, tuple(command), given, deadline_s)
        )

    def undrain_verified(self, node: str, began: datetime) -> str:
        """Undo a drain that asks for it by its reason and was set before a verification `began`; return its reason."""
        known = self._find_node(node)
        asked = "DRAIN" in known.states and VERIFY_UNDRAIN in known.reason and known.changed <= began.timestamp()
        if asked:
            self._resume(known)
        return known.reason if asked else ""

    def _resume(self, node: SlurmNode) -> None:
        """Resume a node. A fresh slurmctld refuses that for nodes that it has not heard, and does it (22.05)."""
        try:
            self.client.run_scontrol([f"update nodename={node.name} state=resume"])
        except AssayError:
            if find_slurm_cordon(self._find_node(node.name)):
                raise

    def _read_status(self, node: str) -> SchedulerNodeStatus:
        standings = self.read_statuses([node])
        if node not in standings:
            raise _make_unknown_node_error(node)
        return standings[node]

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
        """Return the nodes that are reserved by us; asked only where there can be one."""
        asked = self.uses_reservation or any(is_our_reason(node.comment) for node in nodes)
        return slurm_reservation.list_reserved_nodes(self.client) if asked else set()


def make_slurm_scheduler(settings: NodeSettings) -> SlurmScheduler:
    """Return the adapter for a node's inventory variables."""
    client = SlurmClient(settings.slurm_conf)
    return SlurmScheduler(client, settings.slurm_spare_partition, settings.slurm_cordon == "reservation")


def _make_status(node: SlurmNode, jobs: tuple[CustomerJob, ...], reserved: bool) -> SchedulerNodeStatus:
    """Return how a node stands; a DOWN of slurmctld's own is passing, but where a reservation of ours lies below."""
    cordon = find_slurm_cordon(node) or (slurm_reservation.read_reservation_reason(node) if reserved else "")
    return SchedulerNodeStatus(
        jobs, cordon, is_self_clearing=bool(cordon) and not (reserved or is_closed_in_slurm(node))
    )


def _make_drain_orders(wanted: Iterable[tuple[SlurmNode, str]]) -> Iterable[str]:
    by_reason = defaultdict[str, list[str]](list)
    for node, reason in wanted:
        by_reason[tag_reason(reason)].append(node.name)
    return (f'update nodename={",".join(n)} state=drain reason="{reason}"' for reason, n in by_reason.items())


def _group_by_node(jobs: Iterable[SlurmJob]) -> dict[str, list[SlurmJob]]:
    on = defaultdict[str, list[SlurmJob]](list)
    for job in jobs:
        for name in job.nodes:
            on[name].append(job)
    return on


def _make_unknown_node_error(*nodes: str) -> AssayError:
    fix = "a node has one name, in the inventory and in slurm.conf"
    return AssayError(f"Slurm knows no node {', '.join(nodes)}", where="Slurm", fix=fix)
