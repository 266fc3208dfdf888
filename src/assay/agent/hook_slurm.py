"""What a hook tells Slurm: that its node drains, with our reason, where nobody has closed it before."""

from __future__ import annotations

import subprocess

from assay.model.sealed import sealed

ANSWER_WITHIN_S = 5.0
CLOSED = ("DRAIN", "DOWN", "FAIL")


def drain(node: str, why: str) -> str:
    """Drain a node. Returns what came of it, in words. Raises OSError where Slurm cannot be told."""
    shown = _scontrol("--oneliner", "show", "node", node)
    state = next((word for word in shown.split() if word.startswith("State=")), "")
    if not state:
        raise OSError(f"scontrol tells no state of {node}")
    if any(closed in state for closed in CLOSED):
        return f"{node} is closed already: {state}"
    _scontrol("update", f"nodename={node}", "state=drain", f"reason={sealed(why)}")
    return f"{node} drains"


def _scontrol(*words: str) -> str:
    try:
        done = subprocess.run(
            ["scontrol", *words], capture_output=True, text=True, timeout=ANSWER_WITHIN_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise OSError(f"scontrol does not answer within {ANSWER_WITHIN_S:g} s") from None
    if done.returncode:
        raise OSError(f"scontrol: {done.stderr.strip() or done.returncode}")
    return done.stdout
