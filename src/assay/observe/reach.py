"""Runs the probe on a node, whichever transport leads there, and tells the channels of its document apart."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from assay.model.errors import Trouble
from assay.model.fleet import Node
from assay.model.reading import as_reading, failed
from assay.observe.ask import ask
from assay.observe.transports.choice import Transports
from assay.observe.transports.command import outside_any_lab

WAY_S = 2.0
"""What the way to a node and back may take of a deadline, but never more than a quarter."""


def probe(
    node: Node, arguments: Sequence[str], deadline_s: float, transports: Transports | None = None
) -> dict[str, Any]:
    """Return the channels that the probe on `node` prints: `probe`, and `active` where the arguments ask for it.

    A channel that did not come is a `failed` leaf with the reason.
    """
    in_time = [] if "--active" in arguments else ["--deadline", f"{deadline_s - min(WAY_S, deadline_s / 4):g}"]
    try:
        answer = (transports or Transports()).to(node).ask(node, [*arguments, *in_time], deadline_s)
    except Trouble as trouble:
        answer = failed(trouble.what)
    return _channels(answer, arguments)


def probe_here(arguments: Sequence[str], deadline_s: float) -> dict[str, Any]:
    """Return what the probe reads on this machine itself, even where the caller lives in a lab's environment."""
    command = [sys.executable, "-m", "assay.probe", *arguments]
    return _channels(ask(command, deadline_s, environment=outside_any_lab()), arguments)


def _channels(answer: dict[str, Any], arguments: Sequence[str]) -> dict[str, Any]:
    wanted = ["probe", "active"] if "--active" in arguments else ["probe"]
    if as_reading(answer) is not None:
        return dict.fromkeys(wanted, answer)
    return {name: _tree(answer, name) for name in wanted}


def _tree(answer: dict[str, Any], name: str) -> dict[str, Any]:
    tree = answer.get(name)
    return tree if isinstance(tree, dict) else failed(f"the answer holds no {name}")
