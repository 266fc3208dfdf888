"""The adapter `slurm`: Slurm's picture of nodes and jobs, and orders to it.

A cordon is a drain with a sealed reason (`model/sealed.py`), or a reservation that only we may use, where the inventory
says `slurm_cordon: reservation`. Slurm can neither look and change in one step nor keep two reasons: who drains a node
in the milliseconds between our look and our order is overwritten. Whatever stood before that stays.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from assay.actions.slurm import reservation
from assay.actions.slurm.programs import Programs
from assay.actions.slurm.reading import SlurmJob, SlurmNode, jobs_of, nodes_of
from assay.actions.slurm.spare import Errand, errand
from assay.actions.slurm.standing import cordon_of, customers, is_ours, on_a_node, stands
from assay.actions.workloads import VERIFY_UNDRAIN, Job, Spare, Standing, named, ours
from assay.model.errors import Trouble
from assay.model.sealed import sealed


@dataclass(frozen=True, slots=True)
class SlurmWorkloads:
    """One Slurm. `partition` is where spare work goes; `reserves`: nodes are closed by a reservation, not a drain."""

    programs: Programs = field(default_factory=Programs)
    partition: str = ""
    reserves: bool = False

    @property
    def places(self) -> bool:
        """Slurm places jobs."""
        return True

    def jobs(self, node: str) -> tuple[Job, ...]:
        """Return the customers' jobs that are on the node."""
        return self._standing(node).jobs

    def cordoned(self, node: str) -> str:
        """Return why no job may start on the node, or ""."""
        return self._standing(node).cordon

    def cordon(self, node: str, reason: str) -> None:
        """Close the node, unless it is closed already."""
        self.cordon_many({node: reason})

    def uncordon(self, node: str) -> None:
        """Undo our drain and our reservation, as far as they are as we made them."""
        known = self._known(node)
        if ours(cordon_of(known)):
            self._open(known)
        if node in self._reserved([known]):
            self.programs.order(reservation.undone(known))

    def drain(self, node: str, reason: str, now: bool = False) -> None:
        """Close the node; with `now` requeue what Slurm can start again, and cancel the rest. Our own jobs go on."""
        self.cordon(node, reason)
        if now:
            jobs = [j for j in self._jobs() if node in j.nodes and on_a_node(j) and not is_ours(j)]
            again = {job.job_id for job in jobs if job.requeue and job.batch_flag}
            if rest := [str(job.job_id) for job in jobs if job.job_id not in again]:
                self.programs.lines("scancel", *rest)
            self.programs.order(f"requeue {number}" for number in sorted(again))

    def standings(self, nodes: Collection[str]) -> dict[str, Standing]:
        """Return how these nodes stand, by one sinfo and one squeue."""
        known = {name: node for name, node in self._nodes().items() if name in set(nodes)}
        on = _by_node(self._jobs())
        closed = self._reserved(known.values())
        return {name: _stands(node, customers(on[name], name), name in closed) for name, node in known.items()}

    def cordon_many(self, reasons: Mapping[str, str]) -> None:
        """Close nodes: one look, and one order for each reason that differs. Raises Trouble for unknown ones, last."""
        known = self._nodes()
        wanted = [(known[name], reason) for name, reason in reasons.items() if name in known]
        opened = [(node, reason) for node, reason in wanted if not stands(node)]
        if self.reserves:
            closed = self._reserved(known.values())
            self.programs.order(reservation.made(pair for pair in opened if pair[0].name not in closed))
        else:
            self.programs.order(_drained(opened))
        if strange := sorted(reasons.keys() - known.keys()):
            raise _unknown(*strange)

    def spare(self, node: str, command: Sequence[str], given: bytes, deadline_s: float) -> Spare:
        """Run a command at the lowest priority, on a node that no customer uses. Trouble where none is set up."""
        if not self.partition:
            fix = "give the inventory variable `slurm_spare_partition` (docs/slurm.md says how it must be set up)"
            raise Trouble("no partition for spare work is declared", where=node, fix=fix)
        known = self._known(node)
        if jobs := customers(self._jobs(), node):
            return Spare(None, yielded=named(jobs))
        if closed := cordon_of(known):
            return Spare(None, errors=f"no job starts on {node}: {closed}")
        reserved = f"{reservation.NAME}{node}" if node in self._reserved([known]) else ""
        return errand(self.programs, Errand(node, self.partition, reserved, tuple(command), given, deadline_s))

    def undrain_verified(self, node: str, began: datetime) -> str:
        """Undo a drain that asks for it by its reason and was set before a verification `began`; return its reason."""
        known = self._known(node)
        asked = "DRAIN" in known.states and VERIFY_UNDRAIN in known.reason and known.changed <= began.timestamp()
        if asked:
            self._open(known)
        return known.reason if asked else ""

    def _open(self, node: SlurmNode) -> None:
        """Resume a node. A fresh slurmctld refuses that for nodes that it has not heard, and does it (22.05)."""
        try:
            self.programs.order([f"update nodename={node.name} state=resume"])
        except Trouble:
            if cordon_of(self._known(node.name)):
                raise

    def _standing(self, node: str) -> Standing:
        standings = self.standings([node])
        if node not in standings:
            raise _unknown(node)
        return standings[node]

    def _known(self, node: str) -> SlurmNode:
        nodes = self._nodes()
        if node not in nodes:
            raise _unknown(node)
        return nodes[node]

    def _nodes(self) -> dict[str, SlurmNode]:
        return nodes_of(self.programs.read("sinfo", "--all"))

    def _jobs(self) -> list[SlurmJob]:
        return jobs_of(self.programs.read("squeue", "--all"))

    def _reserved(self, nodes: Iterable[SlurmNode]) -> set[str]:
        """Return the nodes that are reserved by us; asked only where there can be one."""
        asked = self.reserves or any(ours(node.comment) for node in nodes)
        return reservation.reserved(self.programs) if asked else set()


def slurm_workloads(variables: Mapping[str, Any]) -> SlurmWorkloads:
    """Return the adapter for a node's inventory variables."""
    partition, cordon = variables.get("slurm_spare_partition", ""), variables.get("slurm_cordon", "drain")
    return SlurmWorkloads(Programs(str(variables.get("slurm_conf", ""))), str(partition), cordon == "reservation")


def _stands(node: SlurmNode, jobs: tuple[Job, ...], reserved: bool) -> Standing:
    """Return how a node stands; a DOWN of slurmctld's own is passing, but where a reservation of ours lies below."""
    cordon = cordon_of(node) or (reservation.reason_of(node) if reserved else "")
    return Standing(jobs, cordon, passing=bool(cordon) and not (reserved or stands(node)))


def _drained(wanted: Iterable[tuple[SlurmNode, str]]) -> Iterable[str]:
    by_reason = defaultdict[str, list[str]](list)
    for node, reason in wanted:
        by_reason[sealed(reason)].append(node.name)
    return (f'update nodename={",".join(n)} state=drain reason="{reason}"' for reason, n in by_reason.items())


def _by_node(jobs: Iterable[SlurmJob]) -> dict[str, list[SlurmJob]]:
    on = defaultdict[str, list[SlurmJob]](list)
    for job in jobs:
        for name in job.nodes:
            on[name].append(job)
    return on


def _unknown(*nodes: str) -> Trouble:
    fix = "a node has one name, in the inventory and in slurm.conf"
    return Trouble(f"Slurm knows no node {', '.join(nodes)}", where="Slurm", fix=fix)
