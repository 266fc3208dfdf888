"""`assay agent`, or `python -m assay.node.agent`: follow this node's kernel log and GPU events, and deliver them.

Standard library only, and nvidia-ml-py where it is installed. Exit codes: 0 after SIGTERM or SIGINT, 2 if the agent
cannot start.
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

from assay.node.agent.batch_sender import DeliveryPace
from assay.node.agent.controller_connection import ControllerConnection
from assay.node.agent.node_agent import AgentOptions, NodeAgent
from assay.node.probe.kernel_log import KMSG

STATE_FOLDER = "/var/lib/assay-agent"


class AgentHelpFormatter(argparse.HelpFormatter):
    """Prints help in the form of assay's other verbs."""

    def add_usage(self, usage: str | None, actions: Any, groups: Any, prefix: str | None = None) -> None:
        """Add the usage line, with their prefix."""
        super().add_usage(usage, actions, groups, prefix or "Usage: ")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the agent until SIGTERM. Raises SystemExit where it cannot start."""
    options = _parse_arguments(arguments)
    try:
        with _lock_state_folder(options.state):
            connection = ControllerConnection(
                options.server, _token_reader(options), ca=options.ca, pin=options.fingerprint
            )
            NodeAgent(_agent_options(options), connection).run()
    except (ValueError, OSError) as error:
        print(f"assay: the agent cannot work: {error}", file=sys.stderr)  # noqa: T201 — for a person
        sys.exit(2)
    sys.stderr.flush()
    os._exit(0)  # do not wait for a thread that hangs in NVML


def _agent_options(options: argparse.Namespace) -> AgentOptions:
    return AgentOptions(
        node=options.node or _host_name(options.root),
        state=options.state,
        root=options.root.rstrip("/"),
        log=options.log,
        buffer_bytes=int(options.buffer_mib * 1024 * 1024),
        probe_s=options.probe_every,
        events=not options.no_events,
        pace=DeliveryPace(options.linger, options.beat),
    )


def _parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    summary = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser("assay agent", description=summary, formatter_class=AgentHelpFormatter)
    state = Path(os.environ.get("STATE_DIRECTORY", STATE_FOLDER))  # systemd sets STATE_DIRECTORY
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
    parser.add_argument("--no-events", action="store_true", help="do not follow NVML's events")
    parser.add_argument("--beat", type=float, default=15.0, metavar="S", help="longest silence (default: 15)")
    parser.add_argument("--linger", type=float, default=0.05, metavar="S", help="least time between two deliveries")
    return parser.parse_args(arguments)


def _token_reader(options: argparse.Namespace) -> Callable[[], str]:
    """Return the function that reads the token. It runs for each request, so that the token can be changed.

    Raises ValueError or OSError where the token cannot be used now.
    """

    def read() -> str:
        if options.token_env:
            token = os.environ.get(options.token_env, "")
        else:
            with Path(options.token_file).open(encoding="utf-8") as file:
                token = file.readline().strip()
        if not token.isascii() or not token.isprintable() or not token:
            raise ValueError("the token is empty or not printable ASCII")
        return token

    read()
    return read


def _host_name(root: str) -> str:
    try:
        return Path(root, "proc/sys/kernel/hostname").read_text(encoding="utf-8").strip()
    except OSError:
        return socket.gethostname()


def _lock_state_folder(state: Path) -> IO[str]:
    """Lock a state folder and return the lock's file. Raises OSError where another agent holds it."""
    state.mkdir(parents=True, exist_ok=True)
    lock = (state / "lock").open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise BlockingIOError(f"another agent uses {state}") from None
    return lock


if __name__ == "__main__":
    main()
