"""`python -m assay.probe`: print this node's readings as one JSON document, on time, whatever hangs."""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from assay.probe.aer import read_aer
from assay.probe.apart import gather
from assay.probe.bond import read_bonds
from assay.probe.file_systems import read_file_systems
from assay.probe.files import Root, Tree
from assay.probe.gpu import read_gpus
from assay.probe.hca import read_hcas
from assay.probe.host import read_host
from assay.probe.kernel import read_kernel
from assay.probe.kernel_log import Since, read_kernel_log
from assay.probe.lazy import Timed
from assay.probe.memory import read_memory
from assay.probe.nic import read_nics
from assay.probe.nvme import read_drives
from assay.probe.pci import read_pci
from assay.probe.services import SERVICES_S, read_services
from assay.probe.timekeeping import read_timekeeping

DEADLINE_S = 8.0
PLAIN_S = 3.0  # for an area that is read as one question
MOST_BYTES = 512 * 2**20
GPU_S = 6.0  # without persistence mode, NVML wakes eight GPUs first


def main() -> None:
    """Print `{"probe": TREE}`, with `--active` also `"active": TREE`, and leave."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a caller that ignores its children must not make us ignore ours
    asked = _arguments()
    root = Root(asked.root)
    document: Tree = {"probe": _passive(root, asked.since, asked.deadline)}
    if asked.active:
        from assay.probe.active import run_active

        document["active"] = run_active(root, asked.active.split(","), asked.seconds, asked.at)
    sys.stdout.write(json.dumps(document, indent=1 if asked.pretty else None) + "\n")
    sys.stdout.flush()
    os._exit(0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m assay.probe", description=__doc__)
    parser.add_argument("--root", default=os.environ.get("ASSAY_ROOT", "/"), help="the node's file system")
    parser.add_argument("--since", type=Since.parse, default=Since(), metavar="SEQ[@BOOT_ID]", help="kernel log cursor")
    parser.add_argument("--active", default="", metavar="LIST", help="all_reduce,gpu_burn,nvme_read,memory")
    parser.add_argument("--seconds", type=int, default=60, help="how long each active part loads the node")
    parser.add_argument("--at", default=os.environ.get("ASSAY_AT", ""), help="the asker's time now, ISO 8601")
    parser.add_argument("--deadline", type=float, default=DEADLINE_S, metavar="S", help="for the passive part")
    parser.add_argument("--pretty", action="store_true", help="indent the document")
    return parser.parse_args()


def _passive(root: Root, since: Since, deadline_s: float) -> Tree:
    areas: dict[str, Callable[[], Any] | Timed] = {
        "host": Timed(PLAIN_S, partial(read_host, root)),
        "gpu": Timed(GPU_S, partial(read_gpus, root)),
        "hca": partial(read_hcas, root),
        "nic": partial(read_nics, root),
        "bond": partial(read_bonds, root),
        "nvme": partial(read_drives, root),
        "aer": partial(read_aer, root),
        "pci": partial(read_pci, root),
        "memory": partial(read_memory, root),
        "file_systems": partial(read_file_systems, root),
        "kernel": partial(read_kernel, root),
        "time": partial(read_timekeeping, root),
        "services": Timed(SERVICES_S, read_services),
        "kernel_log": partial(read_kernel_log, root, since),
    }
    with _little_memory():
        return gather(areas, deadline_s)


@contextmanager
def _little_memory() -> Iterator[None]:
    """Let no reader take more than `MOST_BYTES` of memory, whatever a file or a driver answers without end."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    least = min((limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY), default=MOST_BYTES)
    resource.setrlimit(resource.RLIMIT_DATA, (min(MOST_BYTES, least), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


if __name__ == "__main__":
    main()
