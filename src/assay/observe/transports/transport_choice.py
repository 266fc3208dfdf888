"""Runs the probe on a node, whichever transport leads there, and tells the channels of its document apart.

Documents that the node's agent brings by itself: nothing is asked, the last one counts.

What every way to a node's readings offers.

Which transport reads a node, as its inventory says.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from assay.model.errors import AssayError
from assay.model.node import Node
from assay.model.reading import failed, parse_reading
from assay.observe.evidence_store import EvidenceStore
from assay.observe.json_command import RunningCommands, run_json_command
from assay.observe.prometheus.prometheus_transport import PrometheusTransport
from assay.observe.transports.slurm_and_kubernetes import KubectlExecTransport, wrap_srun
from assay.observe.transports.ssh_and_local import (
    CommandTransport,
    environment_without_lab,
    wrap_local,
    wrap_reach_prefix,
    wrap_ssh,
)


@dataclass(frozen=True)
class PushTransport:
    """Answers with the document that was pushed last. How old it may be is for those who judge it."""

    store: EvidenceStore | None

    def ask(self, node: Node, arguments: Sequence[str], deadline_s: float) -> dict[str, Any]:
        """Return the channels of the last document; an agent that only pushes runs nothing on request."""
        del deadline_s
        if "--active" in arguments:
            return failed(f"{node.name} only pushes: nothing can be started there")
        last = self.store.latest_pushed(node.name) if self.store else None
        return failed(f"the agent of {node.name} has pushed nothing yet") if last is None else dict(last.channels)


class ProbeTransport(Protocol):
    """Brings the document of a node's probe, in one round trip."""

    def ask(self, node: Node, arguments: Sequence[str], deadline_s: float) -> dict[str, Any]:
        """Return what the probe prints with these arguments, or one `failed` leaf, within `deadline_s`.

        Raises Trouble where the inventory says something that cannot be meant.
        """
        ...


@dataclass(frozen=True)
class TransportRegistry:
    """The transports of one pass: what runs for it, and what is asked once for all its nodes.

    `store` is where the agents' documents are kept; without one, nothing that was pushed is found. `scraped` knows what
    metrics mean; without it, no Prometheus is asked.
    """

    store: EvidenceStore | None = None
    prometheus: PrometheusTransport | None = None
    commands: RunningCommands = field(default_factory=RunningCommands)
    kubernetes: KubectlExecTransport = field(default_factory=KubectlExecTransport)

    def transport_for(self, node: Node) -> ProbeTransport:
        """Return the transport for a node: its `wrap_reach_prefix` where it has one, else its `transport`. Raises Trouble."""
        name = "reach" if node.settings.reach else node.settings.transport
        wraps = {
            "reach": wrap_reach_prefix,
            "ssh": wrap_ssh,
            "slurm": wrap_srun,
            "kubernetes": self.kubernetes.wrap_kubectl_exec,
        }
        if name in wraps:
            return CommandTransport(wraps[name], self.commands)
        if name == "local":
            return CommandTransport(wrap_local, self.commands, environment_without_lab())
        if name == "push":
            return PushTransport(self.store)
        if name == "prometheus" and self.prometheus:
            return self.prometheus
        others = "local, push, prometheus"
        raise AssayError(f"{node.name} cannot be read by {name!r}", fix=f"use one of {', '.join(wraps)}, {others}")


TRANSPORT_OVERHEAD_S = 2.0
"""What the way to a node and back may take of a deadline, but never more than a quarter."""


def run_remote_probe(
    node: Node, arguments: Sequence[str], deadline_s: float, transports: TransportRegistry | None = None
) -> dict[str, Any]:
    """Return the channels that the probe on `node` prints: `run_remote_probe`, and `active` where the arguments ask for it.

    A channel that did not come is a `failed` leaf with the reason.
    """
    in_time = (
        [] if "--active" in arguments else ["--deadline", f"{deadline_s - min(TRANSPORT_OVERHEAD_S, deadline_s / 4):g}"]
    )
    try:
        answer = (transports or TransportRegistry()).transport_for(node).ask(node, [*arguments, *in_time], deadline_s)
    except AssayError as trouble:
        answer = failed(trouble.what)
    return _channels(answer, arguments)


def run_local_probe(arguments: Sequence[str], deadline_s: float) -> dict[str, Any]:
    """Return what the probe reads on this machine itself, even where the caller lives in a lab's environment."""
    command = [sys.executable, "-m", "assay.probe", *arguments]
    return _channels(run_json_command(command, deadline_s, environment=environment_without_lab()), arguments)


def _channels(answer: dict[str, Any], arguments: Sequence[str]) -> dict[str, Any]:
    wanted = ["probe", "active"] if "--active" in arguments else ["probe"]
    if parse_reading(answer) is not None:
        return dict.fromkeys(wanted, answer)
    return {name: _tree(answer, name) for name in wanted}


def _tree(answer: dict[str, Any], name: str) -> dict[str, Any]:
    tree = answer.get(name)
    return tree if isinstance(tree, dict) else failed(f"the answer holds no {name}")
