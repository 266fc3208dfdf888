"""Reads the node's state for the tools of a virtual node: it lies beside the node's root, $ASSAY_ROOT."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from typing import Any

State = dict[str, Any]


def load_node_state() -> State:
    """Return the state of the node that this tool runs on."""
    with open(find_state_file()) as file:  # noqa: PTH123 — tools start often: few imports
        state: State = json.load(file)
    return state


def find_state_file() -> str:
    """Return the path of the state. A load tool sees only $ASSAY_ROOT of the lab's variables."""
    return f"{os.environ['ASSAY_ROOT'].removesuffix('/root')}/state.json"


def working_gpus(state: State) -> list[State]:
    """Return the GPUs that CUDA sees, in its order."""
    return [gpu for gpu in state["gpus"] if gpu["present"] and not gpu["lost"] and state["driver"]]


def print_lines(lines: Iterable[str]) -> None:
    """Print lines on stdout, in one write."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
