"""Runs the probe at intervals, in a process of its own, so that a probe that hangs does not stop the agent."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import assay.node.probe.__main__  # noqa: F401 — runs as a process; the import makes the packer include the probe

DEADLINE_S = 60.0
MAX_OUTPUT_BYTES = 4 * 1024 * 1024


class PeriodicProbe:
    """Runs the probe every `seconds` and passes its tree to `on_readings`; the first run is at a random time.

    `since` gives the kernel log cursor from which the probe reads, and `last_entry` the ledger's newest entry that the
    controller has told. The tree carries it as `after_entry`, since the probe starts after that.
    """

    def __init__(
        self,
        root: str,
        seconds: float,
        since: Callable[[], str],
        on_readings: Callable[[Any], None],
        last_entry: Callable[[], int | None] = lambda: None,
    ) -> None:
        self._root, self._seconds, self._since, self._on_readings = root, seconds, since, on_readings
        self._last_entry = last_entry

    def run(self, over: threading.Event) -> None:
        """Probe until `over` is set."""
        pause = random.uniform(0, min(self._seconds, 60.0))  # noqa: S311  # spreads the nodes over time
        while not over.wait(pause):
            self.read_once()
            pause = self._seconds

    def read_once(self) -> None:
        """Probe once, and pass the tree on."""
        after_entry = self._last_entry()
        tree = run_probe_process(self._root, self._since())
        self._on_readings(tree if after_entry is None else {**tree, "after_entry": {"value": after_entry}})


def run_probe_process(root: str, since: str) -> dict[str, Any]:
    """Run the probe and return its tree of this node, or a failed leaf."""
    command = [sys.executable, "-m", "assay.node.probe", "--root", root or "/", f"--since={since}"]
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(_package_root())},
        )
    except OSError as error:
        return {"failed": f"the probe cannot be started: {error.strerror}"}
    try:
        output, _ = child.communicate(timeout=DEADLINE_S)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        return {"failed": f"no answer within {DEADLINE_S:g} s"}
    if len(output) > MAX_OUTPUT_BYTES:
        return {"failed": f"the probe printed more than {MAX_OUTPUT_BYTES >> 20} MiB"}
    try:
        tree = json.loads(output)["probe"]
    except (ValueError, KeyError, TypeError):
        return {"failed": f"the probe printed no document and ended with exit code {child.returncode}"}
    return tree if isinstance(tree, dict) else {"failed": "the probe printed no readings"}


def _package_root() -> Path:
    """Return the folder or zip file that holds the package assay."""
    return Path(__file__).resolve().parents[2]
