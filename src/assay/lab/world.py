"""The lab's one truth: a folder with a state file per node, which every virtual part reads and changes.

```
LAB/clock.json            origin, anchor, rate of the compressed clock
LAB/inventory.yml         overlay: where the virtual BMCs, nodes and fabric answer (Ansible format)
LAB/nodes/N/state.json    what node N is (see NodeState in assay.lab.node.virtual_node)
LAB/nodes/N/root/         the node's own file tree: sysfs, proc, kernel log, tools
LAB/nodes/N/nvml.json     what the stub libnvidia-ml.so.1 answers
```

A change is made under a lock and lands by rename, so a reader never sees half of one and no process has to
be alive for the world to exist.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from assay.model.clock import ScaledClock

VirtualNodeState = dict[str, Any]


class LabWorld:
    """The lab in folder `home`."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def nodes(self) -> list[str]:
        """Return the names of the virtual nodes, sorted."""
        return sorted(path.parent.name for path in self.home.glob("nodes/*/state.json"))

    def folder(self, node: str) -> Path:
        """Return the folder that holds everything about a node."""
        return self.home / "nodes" / node

    def load(self, node: str) -> VirtualNodeState:
        """Return the node's state as it is now."""
        state: VirtualNodeState = json.loads((self.folder(node) / "state.json").read_text())
        return state

    @contextmanager
    def change(self, node: str) -> Iterator[VirtualNodeState]:
        """Yield the node's state to edit; on a clean exit write it and render the node's tree from it."""
        from assay.lab.node.virtual_node import (
            render_node,  # the node's tree is made of the state, never the other way round
        )

        folder = self.folder(node)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            state = self.load(node) if (folder / "state.json").exists() else {}
            yield state
            render_node(state, folder)
            write_json(folder / "state.json", state)

    def clock(self) -> ScaledClock:
        """Return the lab's clock as it stands; read it again after a jump."""
        plain = json.loads((self.home / "clock.json").read_text())
        return ScaledClock(datetime.fromisoformat(plain["origin"]), plain["anchor"], plain["rate"])

    def set_clock(self, origin: datetime, rate: float) -> None:
        """Start the lab's time at `origin`, passing `rate` times as fast as real time."""
        plain = {"origin": origin.astimezone(UTC).isoformat(), "anchor": time.time(), "rate": rate}
        write_json(self.home / "clock.json", plain)

    def jump(self, step: timedelta) -> None:
        """Let `step` of lab time pass at once."""
        clock = self.clock()
        self.set_clock(clock.now() + step, clock.rate)


def write_json(path: Path, plain: Any) -> None:
    """Replace `path` whole: readers see the old file or the new one."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.parent.mkdir(parents=True, exist_ok=True)
    scratch.write_text(json.dumps(plain, indent=1))
    scratch.replace(path)
