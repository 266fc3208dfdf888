"""What the tools of a virtual node read: the node's state, named by $ASSAY_LAB_STATE."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from assay.lab.world import State


def node_state() -> State:
    """Return the state of the node that this tool runs on."""
    state: State = json.loads(Path(os.environ["ASSAY_LAB_STATE"]).read_text())
    return state


def working_gpus(state: State) -> list[State]:
    """Return the GPUs that CUDA would see, in its order."""
    return [gpu for gpu in state["gpus"] if gpu["present"] and not gpu["lost"]]


def say(lines: Iterable[str]) -> None:
    """Print lines as a tool does."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
