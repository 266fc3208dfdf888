"""Reads the node's state for the tools of a virtual node. $ASSAY_LAB_STATE is its path."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from typing import Any

State = dict[str, Any]


def load_node_state() -> State:
    """Return the state of the node that this tool runs on."""
    with open(os.environ["ASSAY_LAB_STATE"]) as file:  # noqa: PTH123 — tools start often: few imports
        state: State = json.load(file)
    return state


def working_gpus(state: State) -> list[State]:
    """Return the GPUs that CUDA sees, in its order."""
    return [gpu for gpu in state["gpus"] if gpu["present"] and not gpu["lost"]]


def print_lines(lines: Iterable[str]) -> None:
    """Print lines on stdout, in one write."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
