"""What a Slurm hook sees of a node in a fraction of a second: small files of the kernel, no driver is asked.

Every finding is a fault of the catalogue, or says what could not be told.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from assay.probe.files import Root
from assay.probe.hca import CLASS
from assay.probe.pci import DEVICES

NOT_TOLD = ""
OFF_THE_BUS = b"\xff\xff"
"""What a device that fell off the bus answers for its vendor (PCI Local Bus Specification)."""
ACTIVE = "4: ACTIVE"
IDLE = ("1: DOWN", "2: INIT", "3: ARMED")
"""States of a port that carries nothing (InfiniBand Architecture Specification, PortInfo), in the kernel's words."""
JOB = b"SLURM_JOB_ID="


class Finding(NamedTuple):
    """One thing that is wrong: its fault class, NOT_TOLD where it could not be told, and in words."""

    fault: str
    words: str


def findings(root: Root, orders: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what is not as the orders say: GPUs on the bus, adapters there, their links active."""
    for name, address in orders["gpus"].items():
        yield from _gpu(root, name, f"{DEVICES}/{address}")
    for name in orders["hcas"]:
        yield from _hca(root, name)


def left_over(root: Root, job: str) -> Iterator[Finding]:
    """Yield the processes of a job that is over and that still hold a GPU open."""
    closed = []
    for pid in [name for name in root.names("/proc") if name.isdecimal()]:
        try:
            devices = _devices(root, pid)
            if devices and _of_job(root, pid, job):
                yield Finding("gpu.process.left", f"{root.text(f'/proc/{pid}/comm')} ({pid}) holds {devices} open")
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended meanwhile
        except OSError:
            closed.append(pid)
    if closed:
        many = f"whether {len(closed)} processes, such as {closed[0]}, hold a GPU"
        yield Finding(NOT_TOLD, f"{many}: they let nobody look")


def _gpu(root: Root, name: str, device: str) -> Iterator[Finding]:
    address = device.rpartition("/")[2]
    try:
        vendor = root.start(f"{device}/config", 2)
    except FileNotFoundError:
        if root.exists(DEVICES):
            yield Finding("gpu.missing", f"{name} at {address} is not on the PCI bus")
        else:
            yield Finding(NOT_TOLD, f"whether {name} is there: there is no {DEVICES}")
    except OSError as error:
        yield Finding(NOT_TOLD, f"whether {name} at {address} answers: {error.strerror}")
    else:
        if vendor == OFF_THE_BUS:
            yield Finding("gpu.missing", f"{name} at {address} fell off the PCI bus")
        elif len(vendor) < len(OFF_THE_BUS):
            yield Finding(NOT_TOLD, f"whether {name} at {address} answers: its configuration is empty")


def _hca(root: Root, name: str) -> Iterator[Finding]:
    folder = f"{CLASS}/{name}"
    try:
        state = root.text(f"{folder}/ports/1/state")
    except FileNotFoundError:
        if not root.exists(CLASS):
            yield Finding(NOT_TOLD, f"whether {name} is there: there is no {CLASS}")
        elif not root.exists(folder):
            yield Finding("ib.hca.missing", f"{name} is not there")
        else:
            yield Finding(NOT_TOLD, f"the state of {name}: its port has none")
    except OSError as error:
        yield Finding(NOT_TOLD, f"the state of {name}: {error.strerror}")
    else:
        if state in IDLE:
            yield Finding("ib.link.down", f"the link of {name} is {state.partition(': ')[2]}")
        elif state != ACTIVE:
            yield Finding(NOT_TOLD, f"the state of {name}: cannot make sense of {state[:40]!r}")


def _devices(root: Root, pid: str) -> str:
    """Return the GPUs whose device files a process has open, "" for none."""
    folder = root.here(f"/proc/{pid}/fd")
    opened = {os.readlink(f"{folder}/{one}") for one in root.names(f"/proc/{pid}/fd")}  # noqa: PTH115
    names = {path.rpartition("/")[2] for path in opened if path.rpartition("/")[0].endswith("/dev")}
    return ", ".join(sorted(name for name in names if name.startswith("nvidia") and name[6:].isdecimal()))


def _of_job(root: Root, pid: str, job: str) -> bool:
    with open(root.here(f"/proc/{pid}/environ"), "rb") as file:  # noqa: PTH123
        return JOB + job.encode() in file.read().split(b"\0")
