"""Plants on the running node what the fault `load.provokes` announced.

A load tool starts it as a program of its own: changing a node needs site packages, which tools do without.
"""

from __future__ import annotations

from pathlib import Path

from assay.lab.faults.gpu_faults import gpu_xid
from assay.lab.node.shell import write_uptime
from assay.lab.tools.state_reader import find_state_file
from assay.lab.world import LabWorld


def main() -> None:
    """Plant the faults, once."""
    state_file = Path(find_state_file())
    world, node = LabWorld(state_file.parents[2]), state_file.parent.name
    now = world.clock().now()
    with world.change(node) as state:
        for fault in state.pop("provoked", []):
            gpu_xid(state, now, **fault)
    write_uptime(world.folder(node), world.load(node), now)


if __name__ == "__main__":
    main()
