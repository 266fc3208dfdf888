"""Which transport reads a node, as its inventory says."""

from __future__ import annotations

from dataclasses import dataclass, field

from assay.model.errors import Trouble
from assay.model.fleet import Node
from assay.observe.ask import Running
from assay.observe.store import EvidenceStore
from assay.observe.transports.command import ByCommand, local, outside_any_lab, reach
from assay.observe.transports.kubernetes import Kubernetes
from assay.observe.transports.prometheus import Scraped
from assay.observe.transports.push import Pushed
from assay.observe.transports.slurm import srun
from assay.observe.transports.ssh import ssh
from assay.observe.transports.transport import Transport

DEFAULT = "ssh"


@dataclass(frozen=True)
class Transports:
    """The transports of one pass: what runs for it, and what is asked once for all its nodes.

    `store` is where the agents' documents are kept; without one, nothing that was pushed is found. `scraped` knows what
    metrics mean; without it, no Prometheus is asked.
    """

    store: EvidenceStore | None = None
    scraped: Scraped | None = None
    running: Running = field(default_factory=Running)
    kubernetes: Kubernetes = field(default_factory=Kubernetes)

    def to(self, node: Node) -> Transport:
        """Return the transport for a node: its `reach` where it has one, else its `transport`. Raises Trouble."""
        name = "reach" if node.variables.get("reach") else str(node.variables.get("transport") or DEFAULT)
        wraps = {"reach": reach, "ssh": ssh, "slurm": srun, "kubernetes": self.kubernetes.exec}
        if name in wraps:
            return ByCommand(wraps[name], self.running)
        if name == "local":
            return ByCommand(local, self.running, outside_any_lab())
        if name == "push":
            return Pushed(self.store)
        if name == "prometheus" and self.scraped:
            return self.scraped
        others = "local, push, prometheus"
        raise Trouble(f"{node.name} cannot be read by {name!r}", fix=f"use one of {', '.join(wraps)}, {others}")
