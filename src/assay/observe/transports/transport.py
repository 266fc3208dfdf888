"""Runs the probe on a node through the transport that its inventory names; asks about, starts and ends its burn-in."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.node import Node
from assay.model.plugins import TRANSPORTS
from assay.model.reading import ReadingTree, failed, parse_reading
from assay.observe.json_command import run_json_command
from assay.observe.transports.command import ReachTransport
from assay.observe.transports.transport_protocol import ProbeTransport, TransportContext

TRANSPORT_OVERHEAD_S = 2.0
"""The time of a deadline that is left for the way to a node and back, but never more than a quarter."""
BURN_IN_DEADLINE_S = 60.0
BurnInOrder = Literal["start", "read", "stop"]


class TransportRegistry:
    """The transports of one pass. Each is opened once, when the first node needs it."""

    def __init__(self, context: TransportContext | None = None) -> None:
        self.context = context or TransportContext()
        self._lock = threading.Lock()
        self._open: dict[str, ProbeTransport] = {}

    def transport_for(self, node: Node) -> ProbeTransport:
        """Return the transport of a node: by its argv prefix `reach` where it has one, else by its `transport`.

        Raises AssayError where no such transport is installed, or where it cannot be loaded.
        """
        if node.settings.reach:
            return ReachTransport(self.context)
        name = node.settings.transport
        with self._lock:
            if name not in self._open:
                self._open[name] = TRANSPORTS.load(name, node.name)(self.context)
            return self._open[name]


def run_remote_probe(
    node: Node, arguments: Sequence[str], deadline_s: float, transports: TransportRegistry | None = None
) -> dict[str, Any]:
    """Run the probe on `node` and return its channels: `probe`; with `--active` also `before` and `active`.

    A channel that did not come is a `failed` leaf with the reason.
    """
    overhead_s = min(TRANSPORT_OVERHEAD_S, deadline_s / 4)
    limit = [] if "--active" in arguments else ["--deadline", f"{deadline_s - overhead_s:g}"]
    try:
        answer = (transports or TransportRegistry()).transport_for(node).ask(node, [*arguments, *limit], deadline_s)
    except AssayError as error:
        answer = failed(error.what)
    if not (node.settings.reach or TRANSPORTS.is_own(node.settings.transport)):
        from assay.model.outside_documents import find_evidence_mistakes

        if mistakes := find_evidence_mistakes(answer, "tree"):
            answer = failed(f"the transport {node.settings.transport} gives no readings: {mistakes}")
    return _split_channels(answer, arguments)


def read_diagnostics(node: Node, silence: ReadingTree | None = None) -> dict[str, ReadingTree]:
    """Return the reports that a vendor asks for, by name, as the probe packs them; each is `failed` where none came.

    `silence`: why the node is not asked any more.
    """
    from assay.node.probe.diagnostics import ALL_REPORTS_S, REPORTS  # few passes ask for them

    overhead_s = 2 * TRANSPORT_OVERHEAD_S
    answer = silence or run_remote_probe(node, ["--areas", "diagnostics"], ALL_REPORTS_S + overhead_s)["probe"]
    nothing = failed("the probe says nothing of it")
    reports = answer if parse_reading(answer) else answer.get("diagnostics", nothing)
    return {name: reports if parse_reading(reports) else reports.get(name, nothing) for name in REPORTS}


def run_local_probe(arguments: Sequence[str], deadline_s: float) -> dict[str, Any]:
    """Run the probe on this machine itself, and return its channels."""
    command = [sys.executable, "-m", "assay.node.probe", *arguments]
    return _split_channels(run_json_command(command, deadline_s), arguments)


def _split_channels(answer: dict[str, Any], arguments: Sequence[str]) -> dict[str, Any]:
    names = ["before", "active", "probe"] if "--active" in arguments else ["probe"]
    if parse_reading(answer) is not None:
        return dict.fromkeys(names, answer)
    channels = {name: answer.get(name) for name in names}
    return {
        name: tree if isinstance(tree, dict) else failed(f"the answer holds no {name}")
        for name, tree in channels.items()
    }


@frozen
class BurnInAnswer:
    """What a node says of the burn-in `id` with so many `phases`: whether it is `running`, and `t` seconds done.

    `boot` and `m`: the boot that runs, and its monotonic time now. `lines`: those of the journal `log` after the
    cursor; `more` are left. `error`: why the supervisor ended, if it did.
    """

    id: str
    phases: int
    running: bool
    t: float
    boot: str
    m: float
    log: str
    lines: tuple[Mapping[str, Any], ...] = ()
    more: bool = False
    error: str = ""


def ask_burn_in(
    node: Node,
    order: BurnInOrder,
    transports: TransportRegistry,
    *,
    plan: Mapping[str, Any] | None = None,
    cursor: str = "",
) -> BurnInAnswer:
    """Give an order and return the answer. Raises AssayError if the node does not answer, or has an older probe."""
    arguments = ["--burn-in", order, "--lines-since", cursor]
    if plan is not None:
        arguments += ["--plan", json.dumps(plan, sort_keys=True)]
    document = transports.transport_for(node).ask(node, arguments, BURN_IN_DEADLINE_S)
    reading = parse_reading(document) or parse_reading(document.get("burn_in", {}))
    if reading is not None:
        raise AssayError(f"the burn-in of {node.name}: {reading.reason}", where=node.name)
    answer = document.get("burn_in")
    if not isinstance(answer, dict) or "running" not in answer:
        raise AssayError(
            f"{node.name} knows no burn-in", where=node.name, fix="install the probe of this version there"
        )
    names = ("id", "phases", "running", "t", "boot", "m", "log", "more", "error")
    return BurnInAnswer(lines=tuple(answer["lines"]), **{name: answer[name] for name in names})
