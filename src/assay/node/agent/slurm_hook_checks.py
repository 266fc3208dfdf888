"""The checks of a Slurm hook: a fraction of a second, from small files of the kernel, without calls to a driver.

A finding is a fault of the catalogue, or says what could not be checked.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from assay.node.probe.devices.hca import INFINIBAND_CLASS
from assay.node.probe.devices.pci import PCI_DEVICES
from assay.node.probe.node_access import NodeRoot

UNKNOWN_FAULT = ""
OFF_THE_BUS = b"\xff\xff"
"""The vendor ID that reads from a device that fell off the bus (PCI Local Bus Specification)."""
PORT_ACTIVE = "4: ACTIVE"
PORT_IDLE_STATES = ("1: DOWN", "2: INIT", "3: ARMED")
"""States of a port that carries nothing (InfiniBand Architecture Specification, PortInfo), in the kernel's words."""
JOB_VARIABLE = b"SLURM_JOB_ID="


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
            if devices and _is_of_job(root, pid, job):
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


def _is_of_job(root: NodeRoot, pid: str, job: str) -> bool:
    with open(root.local_path(f"/proc/{pid}/environ"), "rb") as file:  # noqa: PTH123
        return JOB_VARIABLE + job.encode() in file.read().split(b"\0")
