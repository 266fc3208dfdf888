"""Slurm's hooks on a node: `python3 -I assay-slurm-hook.pyz health|prolog|epilog [ORDERS]`.

They look at what the orders name, for at most a second, and drain the node for the faults that the fleet's policy
takes a node out of service for (`assay slurm orders NODE` writes them). What they could not tell drains nothing, and is
told: on stderr, and in the log.

Exit codes: 0 well; 1 something was found, or could not be told; 3 the node was found unfit. deploy/assay-slurm-hook
makes of them what Slurm understands.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterable
from typing import Any

from assay.agent.hook_findings import NOT_TOLD, Finding, findings, left_over
from assay.agent.hook_slurm import drain
from assay.probe.files import Root

ORDERS = "/etc/assay-agent/slurm-hook.json"
LOOK_S = 0.8
HOOKS = ("health", "prolog", "epilog")


def main() -> None:
    """Look, tell and leave."""
    hook, path = (*sys.argv[1:], ORDERS)[:2] if len(sys.argv) > 1 else ("", ORDERS)
    if hook not in HOOKS:
        sys.exit(f"assay: the hook is one of {', '.join(HOOKS)}, not {hook!r}")
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123
            orders = json.load(file)
        found, log, drains = _looked(hook, orders), orders["log"], frozenset(orders["drains"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        found, log, drains = [Finding(NOT_TOLD, f"anything: {path}: {error!r}")], "", frozenset()
    unfit = [one for one in found if one.fault in drains]
    _tell(log, hook, [*map(_said, found), *_drained(unfit)])
    os._exit(3 if unfit else int(bool(found)))  # a look that hangs is not waited for


def _looked(hook: str, orders: dict[str, Any]) -> list[Finding]:
    """Return what was found in time. What hangs in the kernel is told, and left behind."""
    root, found = Root(orders["root"]), list[Finding]()

    def look() -> None:
        try:
            found.extend(left_over(Root(), os.environ.get("SLURM_JOB_ID", "")) if hook == "epilog" else ())
            for one in findings(root, orders):
                found.append(one)
        except Exception as error:  # whatever it is, it is told
            found.append(Finding(NOT_TOLD, f"the rest: {error!r}"))

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    looking.join(LOOK_S)
    late = [Finding(NOT_TOLD, f"the rest: no answer within {LOOK_S:g} s")] if looking.is_alive() else []
    return [*found, *late]


def _said(one: Finding) -> str:
    return f"{one.fault}: {one.words}" if one.fault else f"cannot tell {one.words}"


def _drained(unfit: list[Finding]) -> Iterable[str]:
    """Drain the node for what makes it unfit, and yield what came of that."""
    if unfit:
        try:
            yield drain(os.environ.get("SLURMD_NODENAME", ""), "; ".join(map(_said, unfit)))
        except OSError as error:
            yield f"cannot drain: {error}"


def _tell(log: str, hook: str, lines: list[str]) -> None:
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
