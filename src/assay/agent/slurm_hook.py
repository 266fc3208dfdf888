"""Slurm's hooks on a node: `python3 -I assay-slurm-hook.pyz health|prolog|epilog [ORDERS]`.

They look at what the orders name, for at most a second, and drain the node for the faults that the fleet's policy
takes a node out of service for (`assay slurm orders NODE` writes them). What they could not tell drains nothing, and is
told: on stderr, and in the log.

Exit codes: 0 well; 1 something was found, or could not be told; 3 the node was found unfit. deploy/assay-slurm-hook
makes of them what Slurm understands.

What a hook tells Slurm: that its node drains, with our reason, where nobody has closed it before.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from typing import Any

from assay.agent.slurm_hook_checks import UNKNOWN_FAULT, HookFinding, find_hardware_faults, find_leftover_processes
from assay.model.slurm_reason import tag_reason
from assay.probe.node_access import NodeRoot

SCONTROL_TIMEOUT_S = 5.0
CLOSED_STATES = ("DRAIN", "DOWN", "FAIL")


def drain_node(node: str, why: str) -> str:
    """Drain a node. Returns what came of it, in words. Raises OSError where Slurm cannot be told."""
    shown = _scontrol("--oneliner", "show", "node", node)
    state = next((word for word in shown.split() if word.startswith("State=")), "")
    if not state:
        raise OSError(f"scontrol tells no state of {node}")
    if any(closed in state for closed in CLOSED_STATES):
        return f"{node} is closed already: {state}"
    _scontrol("update", f"nodename={node}", "state=drain", f"reason={tag_reason(why)}")
    return f"{node} drains"


def _scontrol(*words: str) -> str:
    try:
        done = subprocess.run(
            ["scontrol", *words], capture_output=True, text=True, timeout=SCONTROL_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise OSError(f"scontrol does not answer within {SCONTROL_TIMEOUT_S:g} s") from None
    if done.returncode:
        raise OSError(f"scontrol: {done.stderr.strip() or done.returncode}")
    return done.stdout


DEFAULT_ORDERS_FILE = "/etc/assay-agent/slurm-hook.json"
CHECK_DEADLINE_S = 0.8
HOOKS = ("health", "prolog", "epilog")


def main() -> None:
    """Look, tell and leave."""
    hook, path = (*sys.argv[1:], DEFAULT_ORDERS_FILE)[:2] if len(sys.argv) > 1 else ("", DEFAULT_ORDERS_FILE)
    if hook not in HOOKS:
        sys.exit(f"assay: the hook is one of {', '.join(HOOKS)}, not {hook!r}")
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123
            orders = json.load(file)
        found, log, drains = _check_node(hook, orders), orders["log"], frozenset(orders["drains"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        found, log, drains = [HookFinding(UNKNOWN_FAULT, f"anything: {path}: {error!r}")], "", frozenset()
    unfit = [one for one in found if one.fault in drains]
    _write_log(log, hook, [*map(_format_finding, found), *_drain_unfit(unfit)])
    os._exit(3 if unfit else int(bool(found)))  # a look that hangs is not waited for


def _check_node(hook: str, orders: dict[str, Any]) -> list[HookFinding]:
    """Return what was found in time. What hangs in the kernel is told, and left behind."""
    root, found = NodeRoot(orders["root"]), list[HookFinding]()

    def look() -> None:
        try:
            found.extend(
                find_leftover_processes(NodeRoot(), os.environ.get("SLURM_JOB_ID", "")) if hook == "epilog" else ()
            )
            for one in find_hardware_faults(root, orders):
                found.append(one)
        except Exception as error:  # whatever it is, it is told
            found.append(HookFinding(UNKNOWN_FAULT, f"the rest: {error!r}"))

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    looking.join(CHECK_DEADLINE_S)
    late = (
        [HookFinding(UNKNOWN_FAULT, f"the rest: no answer within {CHECK_DEADLINE_S:g} s")] if looking.is_alive() else []
    )
    return [*found, *late]


def _format_finding(one: HookFinding) -> str:
    return f"{one.fault}: {one.description}" if one.fault else f"cannot tell {one.description}"


def _drain_unfit(unfit: list[HookFinding]) -> Iterable[str]:
    """Drain the node for what makes it unfit, and yield what came of that."""
    if unfit:
        try:
            yield drain_node(os.environ.get("SLURMD_NODENAME", ""), "; ".join(map(_format_finding, unfit)))
        except OSError as error:
            yield f"cannot drain: {error}"


def _write_log(log: str, hook: str, lines: list[str]) -> None:
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    text = "".join(f"{when} assay {hook}: {line}\n" for line in lines)
    sys.stderr.write(text)
    sys.stderr.flush()
    if text and log:
        try:
            with open(log, "a", encoding="utf-8") as file:  # noqa: PTH123
                file.write(text)
        except OSError as error:
            sys.stderr.write(f"assay {hook}: cannot write {log}: {error.strerror}\n")
            sys.stderr.flush()


if __name__ == "__main__":
    main()
