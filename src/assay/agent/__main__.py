"""`assay agent`, or `python -m assay.agent`: follow this node's kernel log and GPU events, and deliver them.

Standard library only (and nvidia-ml-py, where it is installed). Exit 0: told to end; 2: cannot work.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from assay.agent.batch_sender import DeliveryPace
from assay.agent.controller_connection import ControllerConnection
from assay.agent.node_agent import AgentOptions, NodeAgent
from assay.probe.kernel_log import KMSG

STATE_FOLDER = "/var/lib/assay-agent"


class AgentHelpFormatter(argparse.HelpFormatter):
    """Help as assay's other verbs give it."""

    def add_usage(self, usage: str | None, actions: Any, groups: Any, prefix: str | None = None) -> None:
        """Begin as they do."""
        super().add_usage(usage, actions, groups, prefix or "Usage: ")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the agent until SIGTERM. Raises SystemExit where it cannot work."""
    asked = _parse_arguments(arguments)
    try:
        with _lock_state_folder(asked.state):
            NodeAgent(
                _agent_options(asked),
                ControllerConnection(asked.server, _token(asked), ca=asked.ca, pin=asked.fingerprint),
            ).run()
    except (ValueError, OSError) as error:
        print(f"assay: the agent cannot work: {error}", file=sys.stderr)  # noqa: T201 — for a person
        sys.exit(2)
    sys.stderr.flush()
    os._exit(0)  # a thread that NVML holds is not waited for


def _agent_options(asked: argparse.Namespace) -> AgentOptions:
    return AgentOptions(
        node=asked.node or _host(asked.root),
        state=asked.state,
        root=asked.root.rstrip("/"),
        log=asked.log,
        buffer_bytes=int(asked.buffer_mib * 1024 * 1024),
        probe_s=asked.probe_every,
        events=not asked.no_events,
        pace=DeliveryPace(asked.linger, asked.beat),
    )


def _parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    said = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser("assay agent", description=said, formatter_class=AgentHelpFormatter)
    state = Path(os.environ.get("STATE_DIRECTORY", STATE_FOLDER))  # as systemd hands it over
    parser.add_argument("--server", required=True, help="the controller, https://HOST[:PORT]")
    parser.add_argument("--node", default="", help="this node's name in the inventory; its host name by default")
    token = parser.add_mutually_exclusive_group(required=True)
    token.add_argument("--token-file", metavar="FILE", help="the file whose first line is this node's token")
    token.add_argument("--token-env", metavar="NAME", help="the environment variable that holds it")
    parser.add_argument("--ca", default="", metavar="FILE", help="PEM certificates to trust, instead of the system's")
    parser.add_argument("--fingerprint", default="", metavar="SHA256", help="trust exactly this certificate")
    parser.add_argument("--state", type=Path, default=state, metavar="DIR", help=f"where to buffer (default: {state})")
    parser.add_argument("--buffer-mib", type=float, default=64.0, metavar="N", help="how much to buffer (default: 64)")
    parser.add_argument("--log", default=KMSG, metavar="FILE", help=f"the kernel log (default: {KMSG})")
    parser.add_argument("--root", default=os.environ.get("ASSAY_ROOT", "/"), help="the node's file system")
    parser.add_argument("--probe-every", type=float, default=0.0, metavar="S", help="also push the probe's readings")
    parser.add_argument("--no-events", action="store_true", help="leave NVML's events alone")
    parser.add_argument("--beat", type=float, default=15.0, metavar="S", help="longest silence (default: 15)")
    parser.add_argument("--linger", type=float, default=0.05, metavar="S", help="least time between two deliveries")
    return parser.parse_args(arguments)


def _token(asked: argparse.Namespace) -> Callable[[], str]:
    """Return how to read the token: anew for each connection, so that it can be changed."""

    def read() -> str:
        if asked.token_env:
            token = os.environ.get(asked.token_env, "")
        else:
            with Path(asked.token_file).open(encoding="utf-8") as file:
                token = file.readline().strip()
        if not token.isascii() or not token.isprintable() or not token:
            raise ValueError("the token is empty or no plain text")
        return token

    read()
    return read


def _host(root: str) -> str:
    try:
        return Path(root, "proc/sys/kernel/hostname").read_text(encoding="utf-8").strip()
    except OSError:
        return socket.gethostname()


def _lock_state_folder(state: Path) -> IO[str]:
    """Return the lock of a state folder. Raises OSError where another agent holds it."""
    state.mkdir(parents=True, exist_ok=True)
    lock = (state / "lock").open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise BlockingIOError(f"another agent works in {state}") from None
    return lock


if __name__ == "__main__":
    main()
