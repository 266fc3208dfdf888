"""Asks a node about its burn-in, or starts and ends it there, through the node's transport."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from assay.model.errors import AssayError
from assay.model.node import Node
from assay.model.reading import parse_reading
from assay.observe.transports.transport_choice import TransportRegistry

BURN_IN_DEADLINE_S = 60.0
BurnInOrder = Literal["start", "read", "stop"]


@dataclass(frozen=True, slots=True)
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
