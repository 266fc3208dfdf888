"""The lab's world: a folder with a state file per node. Every virtual part reads it and changes it.

```
LAB/clock.json            origin, anchor, rate of the compressed clock
LAB/inventory.yml         overlay: addresses of the virtual BMCs, nodes and fabric (Ansible format)
LAB/nodes/N/state.json    the state of node N (assay.lab.node.virtual_node documents its keys)
LAB/nodes/N/new.json      its state when it was new: what replaced parts are like
LAB/nodes/N/bmc.pem       key and certificate of its BMC, once its chassis was replaced
LAB/nodes/N/root/         the node's own file tree: sysfs, proc, kernel log, tools
LAB/nodes/N/nvml.json     the answers of the stub libnvidia-ml.so.1
```

Changes are made under a lock and land by rename. No process needs to run for the world to exist.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from assay.lab.virtual_node_state import VirtualNodeState, write_json
from assay.ledger.file_locks import hold_file_lock
from assay.model.clock import ScaledClock


class LabWorld:
    """The lab in folder `home`."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def nodes(self) -> list[str]:
        """Return the names of the virtual nodes, sorted."""
        return sorted(path.parent.name for path in self.home.glob("nodes/*/state.json"))

    def folder(self, node: str) -> Path:
        """Return the folder of a node."""
        return self.home / "nodes" / node

    def load(self, node: str) -> VirtualNodeState:
        """Return a node's present state."""
        state: VirtualNodeState = json.loads((self.folder(node) / "state.json").read_text())
        return state

    @contextmanager
    def change(self, node: str, *, is_in_files: bool = True) -> Iterator[VirtualNodeState]:
        """Yield a node's state to edit; after a clean exit, write it, and the files that hold what has changed."""
        folder = self.folder(node)
        folder.mkdir(parents=True, exist_ok=True)
        with hold_file_lock(folder / "lock"):
            state = self.load(node) if (folder / "state.json").exists() else {}
            yield state
            if is_in_files:
                from assay.lab.node.virtual_node import render_node  # brings pydantic: 0.2 CPU s

                render_node(state, folder)
            write_json(folder / "state.json", state)

    def clock(self) -> ScaledClock:
        """Return the lab's clock. After a jump, call again: a clock does not see later jumps."""
        plain = json.loads((self.home / "clock.json").read_text())
        return ScaledClock(datetime.fromisoformat(plain["origin"]), plain["anchor"], plain["rate"])

    def set_clock(self, origin: datetime, rate: float) -> None:
        """Start the lab's time at `origin`; it passes `rate` times as fast as real time."""
        plain = {"origin": origin.astimezone(UTC).isoformat(), "anchor": time.time(), "rate": rate}
        write_json(self.home / "clock.json", plain)

    def jump(self, step: timedelta) -> None:
        """Move the lab's clock forward by `step` at once."""
        clock = self.clock()
        self.set_clock(clock.now() + step, clock.rate)
