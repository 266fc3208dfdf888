"""Slurm's hooks on a node: `python3 -I assay-slurm-hook.pyz health|prolog|epilog [ORDERS]`.

A hook checks the parts that its orders name, for at most a second (`assay slurm orders NODE` writes the orders). It
drains the node for the faults that the policy takes nodes out of service for. Findings go to stderr and to the log.
Exit codes: 0 nothing found; 1 a finding, or a part could not be checked; 3 the node is unfit. The script
deploy/assay-slurm-hook translates them for Slurm.
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

from assay.model.cordon_ownership import tag_reason
from assay.model.text.printable_text import escape_line
from assay.node.agent.slurm_hook_checks import UNKNOWN_FAULT, HookFinding, find_hardware_faults, find_leftover_processes
from assay.node.probe.node_access import NodeRoot

SCONTROL_TIMEOUT_S = 5.0
CLOSED_STATES = ("DRAIN", "DOWN", "FAIL")

DEFAULT_ORDERS_FILE = "/etc/assay-agent/slurm-hook.json"
CHECK_DEADLINE_S = 0.8
HOOKS = ("health", "prolog", "epilog")


def main() -> None:
    """Run one hook: check the node, write the log, drain the node if it is unfit, and exit."""
    hook, path = (*sys.argv[1:], DEFAULT_ORDERS_FILE)[:2] if len(sys.argv) > 1 else ("", DEFAULT_ORDERS_FILE)
    if hook not in HOOKS:
        sys.exit(f"assay: the hook is one of {', '.join(HOOKS)}, not {hook!r}")
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123
            orders = json.load(file)
        findings, log, drains = _check_node(hook, orders), orders["log"], frozenset(orders["drains"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        findings, log, drains = [HookFinding(UNKNOWN_FAULT, f"anything: {path}: {error!r}")], "", frozenset()
    unfit = [finding for finding in findings if finding.fault in drains]
    _write_log(log, hook, [*map(_format_finding, findings), *_drain_unfit(unfit)])
    os._exit(3 if unfit else int(bool(findings)))  # do not wait for a check that hangs


def _check_node(hook: str, orders: dict[str, Any]) -> list[HookFinding]:
    """Return the findings within `CHECK_DEADLINE_S`. A check that hangs in the kernel is a finding, and left behind."""
    root, findings = NodeRoot(orders["root"]), list[HookFinding]()

    def check() -> None:
        try:
            if hook == "epilog":
                findings.extend(find_leftover_processes(NodeRoot(), os.environ.get("SLURM_JOB_ID", "")))
            for finding in find_hardware_faults(root, orders):
                findings.append(finding)
        except Exception as error:  # any error means that the rest is unchecked, which is a finding
            findings.append(HookFinding(UNKNOWN_FAULT, f"the rest: {error!r}"))

    thread = threading.Thread(target=check, daemon=True)
    thread.start()
    thread.join(CHECK_DEADLINE_S)
    if thread.is_alive():
        return [*findings, HookFinding(UNKNOWN_FAULT, f"the rest: no answer within {CHECK_DEADLINE_S:g} s")]
    return findings


def _format_finding(finding: HookFinding) -> str:
    return f"{finding.fault}: {finding.description}" if finding.fault else f"cannot tell {finding.description}"


def _drain_unfit(unfit: list[HookFinding]) -> Iterable[str]:
    """Drain the node for the findings that make it unfit; yield a line with the result."""
    if unfit:
        try:
            yield drain_node(os.environ.get("SLURMD_NODENAME", ""), "; ".join(map(_format_finding, unfit)))
        except OSError as error:
            yield f"cannot drain: {error}"


def drain_node(node: str, reason: str) -> str:
    """Drain a node unless it is closed already; return a text of what was done. Raises OSError where scontrol fails."""
    output = _scontrol("--oneliner", "show", "node", node)
    state = next((word for word in output.split() if word.startswith("State=")), "")
    if not state:
        raise OSError(f"scontrol shows no state of {node}")
    if any(closed in state for closed in CLOSED_STATES):
        return f"{node} is closed already: {state}"
    _scontrol("update", f"nodename={node}", "state=drain", f"reason={tag_reason(reason)}")
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


def _write_log(log: str, hook: str, lines: list[str]) -> None:
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    text = "".join(f"{when} assay {hook}: {escape_line(line)}\n" for line in lines)
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
