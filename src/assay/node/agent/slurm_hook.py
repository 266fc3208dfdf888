"""Slurm's hooks on a node: `python3 -I assay-slurm-hook.pyz health|prolog|epilog [ORDERS]`.

A hook checks the parts that its orders name, for at most a second (`assay slurm orders NODE` writes the orders). It
drains the node for the faults that the policy takes nodes out of service for. It reads small files of the kernel and
calls no driver. A finding is a fault of the catalogue, or says what could not be checked; it goes to stderr and to the
log. Exit codes: 0 nothing found; 1 a finding, or a part could not be checked; 3 the node is unfit. The script
deploy/assay-slurm-hook translates them for Slurm.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from assay.model.cordon_ownership import tag_reason
from assay.model.text.safe_text import escape_line
from assay.node.probe.devices.network_adapters import INFINIBAND_CLASS
from assay.node.probe.devices.pci import PCI_DEVICES
from assay.node.probe.node_access import NodeRoot

UNKNOWN_FAULT = ""
OFF_THE_BUS = b"\xff\xff"
"""The vendor ID that reads from a device that fell off the bus (PCI Local Bus Specification)."""
PORT_ACTIVE = "4: ACTIVE"
PORT_IDLE_STATES = ("1: DOWN", "2: INIT", "3: ARMED")
"""States of a port that carries nothing (InfiniBand Architecture Specification, PortInfo), in the kernel's words."""
JOB_VARIABLE = b"SLURM_JOB_ID="
SCONTROL_TIMEOUT_S = 5.0
CLOSED_STATES = ("DRAIN", "DOWN", "FAIL")
DEFAULT_ORDERS_FILE = "/etc/assay-agent/slurm-hook.json"
CHECK_DEADLINE_S = 0.8
HOOKS = ("health", "prolog", "epilog")


class HookFinding(NamedTuple):
    """One finding: its fault class (`UNKNOWN_FAULT` where a check could not be made) and its description."""

    fault: str
    description: str


def find_hardware_faults(root: NodeRoot, orders: Mapping[str, Any]) -> Iterator[HookFinding]:
    """Yield a finding for each GPU of the orders that is not on the bus, and each HCA that is missing or not active."""
    for name, address in orders["gpus"].items():
        yield from _check_gpu(root, name, f"{PCI_DEVICES}/{address}")
    for name in orders["hcas"]:
        yield from _check_hca(root, name)


def find_leftover_processes(root: NodeRoot, job: str) -> Iterator[HookFinding]:
    """Yield a finding for each process of an ended job that still holds a GPU open."""
    unreadable = []
    for pid in [name for name in root.list_names("/proc") if name.isdecimal()]:
        try:
            devices = _open_gpus(root, pid)
            if not devices:
                continue
            with open(root.local_path(f"/proc/{pid}/environ"), "rb") as file:  # noqa: PTH123
                is_of_job = JOB_VARIABLE + job.encode() in file.read().split(b"\0")
            if is_of_job:
                yield HookFinding(
                    "gpu.process.left", f"{root.read_text(f'/proc/{pid}/comm')} ({pid}) holds {devices} open"
                )
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
        except OSError:
            unreadable.append(pid)
    if unreadable:
        question = f"whether {len(unreadable)} processes, such as {unreadable[0]}, hold a GPU"
        yield HookFinding(UNKNOWN_FAULT, f"{question}: their files cannot be read")


def _check_gpu(root: NodeRoot, name: str, device: str) -> Iterator[HookFinding]:
    address = device.rpartition("/")[2]
    try:
        vendor = root.read_start(f"{device}/config", 2)
    except FileNotFoundError:
        if root.exists(PCI_DEVICES):
            yield HookFinding("gpu.missing", f"{name} at {address} is not on the PCI bus")
        else:
            yield HookFinding(UNKNOWN_FAULT, f"whether {name} is there: there is no {PCI_DEVICES}")
    except OSError as error:
        yield HookFinding(UNKNOWN_FAULT, f"whether {name} at {address} answers: {error.strerror}")
    else:
        if vendor == OFF_THE_BUS:
            yield HookFinding("gpu.missing", f"{name} at {address} fell off the PCI bus")
        elif len(vendor) < len(OFF_THE_BUS):
            yield HookFinding(UNKNOWN_FAULT, f"whether {name} at {address} answers: its configuration is empty")


def _check_hca(root: NodeRoot, name: str) -> Iterator[HookFinding]:
    folder = f"{INFINIBAND_CLASS}/{name}"
    try:
        state = root.read_text(f"{folder}/ports/1/state")
    except FileNotFoundError:
        if not root.exists(INFINIBAND_CLASS):
            yield HookFinding(UNKNOWN_FAULT, f"whether {name} is there: there is no {INFINIBAND_CLASS}")
        elif not root.exists(folder):
            yield HookFinding("ib.hca.missing", f"{name} is not there")
        else:
            yield HookFinding(UNKNOWN_FAULT, f"the state of {name}: its port has none")
    except OSError as error:
        yield HookFinding(UNKNOWN_FAULT, f"the state of {name}: {error.strerror}")
    else:
        if state in PORT_IDLE_STATES:
            yield HookFinding("ib.link.down", f"the link of {name} is {state.partition(': ')[2]}")
        elif state != PORT_ACTIVE:
            yield HookFinding(UNKNOWN_FAULT, f"the state of {name}: cannot make sense of {state[:40]!r}")


def _open_gpus(root: NodeRoot, pid: str) -> str:
    """Return the names of the GPU devices that a process has open, `nvidia0, nvidia3`, "" for none."""
    folder = root.local_path(f"/proc/{pid}/fd")
    opened = {os.readlink(f"{folder}/{name}") for name in root.list_names(f"/proc/{pid}/fd")}  # noqa: PTH115
    names = {path.rpartition("/")[2] for path in opened if path.rpartition("/")[0].endswith("/dev")}
    return ", ".join(sorted(name for name in names if name.startswith("nvidia") and name[6:].isdecimal()))


def main() -> None:
    """Run one hook: check the node, write the log, drain the node if it is unfit, and exit."""
    hook, path = (*sys.argv[1:], DEFAULT_ORDERS_FILE)[:2] if len(sys.argv) > 1 else ("", DEFAULT_ORDERS_FILE)
    if hook not in HOOKS:
        sys.exit(f"assay: the hook is one of {', '.join(HOOKS)}, not {hook!r}")
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123
            orders = json.load(file)
        findings = _check_node(hook, orders)
        log = orders["log"]
        drains = frozenset(orders["drains"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        findings = [HookFinding(UNKNOWN_FAULT, f"anything: {path}: {error!r}")]
        log = ""
        drains = frozenset()
    unfit = [finding for finding in findings if finding.fault in drains]
    _write_log(log, hook, [*map(_format_finding, findings), *_drain_unfit(unfit)])
    os._exit(3 if unfit else int(bool(findings)))  # do not wait for a check that hangs


def _check_node(hook: str, orders: dict[str, Any]) -> list[HookFinding]:
    """Return the findings within `CHECK_DEADLINE_S`. A check that hangs in the kernel is a finding, and left behind."""
    root = NodeRoot(orders["root"])
    findings: list[HookFinding] = []

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
        raise OSError(f"scontrol: {(done.stderr or done.stdout).strip() or done.returncode}")
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
