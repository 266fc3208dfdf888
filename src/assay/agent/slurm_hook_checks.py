"""What a Slurm hook sees of a node in a fraction of a second: small files of the kernel, no driver is asked.

Every finding is a fault of the catalogue, or says what could not be told.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from assay.probe.devices.hca import INFINIBAND_CLASS
from assay.probe.devices.pci import PCI_DEVICES
from assay.probe.node_access import NodeRoot

UNKNOWN_FAULT = ""
OFF_THE_BUS = b"\xff\xff"
"""What a device that fell off the bus answers for its vendor (PCI Local Bus Specification)."""
PORT_ACTIVE = "4: ACTIVE"
PORT_IDLE_STATES = ("1: DOWN", "2: INIT", "3: ARMED")
"""States of a port that carries nothing (InfiniBand Architecture Specification, PortInfo), in the kernel's words."""
JOB_VARIABLE = b"SLURM_JOB_ID="


class HookFinding(NamedTuple):
    """One thing that is wrong: its fault class, NOT_TOLD where it could not be told, and in words."""

    fault: str
    description: str


def find_hardware_faults(root: NodeRoot, orders: Mapping[str, Any]) -> Iterator[HookFinding]:
    """Yield what is not as the orders say: GPUs on the bus, adapters there, their links active."""
    for name, address in orders["gpus"].items():
        yield from _gpu(root, name, f"{PCI_DEVICES}/{address}")
    for name in orders["hcas"]:
        yield from _hca(root, name)


def find_leftover_processes(root: NodeRoot, job: str) -> Iterator[HookFinding]:
    """Yield the processes of a job that is over and that still hold a GPU open."""
    closed = []
    for pid in [name for name in root.list_names("/proc") if name.isdecimal()]:
        try:
            devices = _devices(root, pid)
            if devices and _of_job(root, pid, job):
                yield HookFinding(
                    "gpu.process.left", f"{root.read_text(f'/proc/{pid}/comm')} ({pid}) holds {devices} open"
                )
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended meanwhile
        except OSError:
            closed.append(pid)
    if closed:
        many = f"whether {len(closed)} processes, such as {closed[0]}, hold a GPU"
        yield HookFinding(UNKNOWN_FAULT, f"{many}: they let nobody look")


def _gpu(root: NodeRoot, name: str, device: str) -> Iterator[HookFinding]:
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


def _hca(root: NodeRoot, name: str) -> Iterator[HookFinding]:
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


def _devices(root: NodeRoot, pid: str) -> str:
    """Return the GPUs whose device files a process has open, "" for none."""
    folder = root.local_path(f"/proc/{pid}/fd")
    opened = {os.readlink(f"{folder}/{one}") for one in root.list_names(f"/proc/{pid}/fd")}  # noqa: PTH115
    names = {path.rpartition("/")[2] for path in opened if path.rpartition("/")[0].endswith("/dev")}
    return ", ".join(sorted(name for name in names if name.startswith("nvidia") and name[6:].isdecimal()))


def _of_job(root: NodeRoot, pid: str, job: str) -> bool:
    with open(root.local_path(f"/proc/{pid}/environ"), "rb") as file:  # noqa: PTH123
        return JOB_VARIABLE + job.encode() in file.read().split(b"\0")
