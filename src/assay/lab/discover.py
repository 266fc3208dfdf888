"""`python -m assay.lab.discover LABDIR`: what ibnetdiscover says about the lab's fabric as it is cabled now.

A private ibsim is loaded with the lab's cabling and the real ibnetdiscover run on it (see `assay.lab.ibsim` for the one
thing that is translated); where those are not installed, a recorded discovery is replayed with the changes.
"""

from __future__ import annotations

import sys
from pathlib import Path

from assay.lab import ibsim
from assay.lab.fabric import links, wiring
from assay.lab.netfile import net
from assay.lab.replay import replay
from assay.lab.world import World
from assay.model.errors import Trouble


def discover(world: World, tools: ibsim.Tools | None) -> tuple[str, str]:
    """Return the discovery and its stderr, by ibsim with `tools`, by replay without. Raises Trouble."""
    now = wiring(world)
    up = links(world, now)
    if tools is None:
        return replay(now, up), ""
    switches = sum(device.kind == "switch" for device in now.devices.values())
    return ibsim.discover(tools, net(now.devices, up), len(now.devices), switches)


def main(arguments: list[str]) -> int:
    """Print the discovery as ibnetdiscover would; exit code 1 with a reason on stderr where there is none."""
    if len(arguments) != 1:
        print("usage: python -m assay.lab.discover LABDIR", file=sys.stderr)  # noqa: T201
        return 2
    try:
        out, err = discover(World(Path(arguments[0])), ibsim.installed())
    except Trouble as trouble:
        print(trouble, file=sys.stderr)  # noqa: T201
        return 1
    sys.stdout.write(out)
    sys.stderr.write(err)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
