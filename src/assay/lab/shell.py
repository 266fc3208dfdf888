"""Run a command on a virtual node as ssh would: `python -m assay.lab.shell LABDIR NODE COMMAND…`.

A node that is off or booting cannot be reached (exit 255, as ssh has it); one whose probe hangs never answers.
The command sees the node's root as $ASSAY_ROOT, its NVML and its tools; nothing else of the lab.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import NoReturn

from assay.lab.nvml.build import REPLAYED, build
from assay.lab.tools.launchers import install
from assay.lab.tree import started
from assay.lab.world import State, World

SSH_FAILED = 255
NO_COMMAND = 127


def main() -> None:
    """Become the command on the node, or fail as ssh does."""
    if len(sys.argv) < 4:
        sys.exit("usage: python -m assay.lab.shell LABDIR NODE COMMAND…")
    lab, node, *words = sys.argv[1:]
    world = World(Path(lab).resolve())
    if not (world.folder(node) / "state.json").exists():
        _ssh_fails(f"ssh: Could not resolve hostname {node}: Name or service not known")
    state, now = world.load(node), world.clock().now()
    if not reachable(state, now):
        _ssh_fails(f"ssh: connect to host {node} port 22: No route to host")
    while state["fails"]["probe_hangs"]:
        signal.pause()
    _run(world, state, now, _local(words))


def reachable(state: State, now: datetime) -> bool:
    """Say whether the node's operating system answers at `now`."""
    return state["power"]["state"] == "On" and now >= datetime.fromisoformat(state["boot"]["ready_at"])


def _ssh_fails(message: str) -> NoReturn:
    sys.stderr.write(f"{message}\n")
    sys.exit(SSH_FAILED)


def _local(words: Sequence[str]) -> list[str]:
    """Return the command with this Python for the node's; one word is a command line, as ssh takes it."""
    command = shlex.split(words[0]) if len(words) == 1 else list(words)
    return [sys.executable, *command[1:]] if command[0] == "python3" else command


def _run(world: World, state: State, now: datetime, command: list[str]) -> NoReturn:
    folder = world.folder(state["name"])
    _write_uptime(folder, state, now)
    library = build(world.home / "lib")
    environment = {**os.environ, **_environment(world, folder, now, library)}
    if library is None and _is_probe(command):
        _run_and_fill(command, environment, state)
    _become(command, environment)


def _is_probe(command: Sequence[str]) -> bool:
    """Say whether this is the probe, installed or brought along; nothing else comes through standard input."""
    return list(command[1:3]) == ["-m", "assay.probe"] or list(command[1:4]) == ["-I", "-S", "-"]


def _become(command: list[str], environment: Mapping[str, str]) -> NoReturn:
    """Replace this process, so that whoever kills it kills the command."""
    try:
        os.execvpe(command[0], command, environment)  # noqa: S606  # no shell: the words as they are
    except OSError:
        sys.stderr.write(f"{command[0]}: command not found\n")
        sys.exit(NO_COMMAND)


def _write_uptime(folder: Path, state: State, now: datetime) -> None:
    up_s = (now - started(state)).total_seconds()
    scratch = folder / f".uptime.{os.getpid()}"
    scratch.write_text(f"{up_s:.2f} {up_s:.2f}\n")
    scratch.replace(folder / "root/proc/uptime")


def _environment(world: World, folder: Path, now: datetime, library: Path | None) -> Mapping[str, str]:
    tools = install(world.home / "tools")
    return {
        "ASSAY_ROOT": str(folder / "root"),
        "ASSAY_AT": now.isoformat(),
        "ASSAY_LAB_STATE": str(folder / "state.json"),
        "NVML_STUB": str(folder / "nvml.json"),
        "LD_LIBRARY_PATH": str(library.parent) if library else "",
        "PATH": f"{tools}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
    }


def _run_and_fill(command: list[str], environment: Mapping[str, str], state: State) -> NoReturn:
    """Run the probe and put replayed NVML readings where it found no driver."""
    from assay.lab.nvml.replay import replay

    sys.stderr.write(f"{REPLAYED}\n")
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=False)
    try:
        document = json.loads(done.stdout)
    except ValueError:
        sys.stdout.buffer.write(done.stdout)
    else:
        document["probe"]["gpu"] = replay(state)
        sys.stdout.write(json.dumps(document) + "\n")
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
