"""The host's memory: its modules, what they got wrong, and what the processors reported."""

from __future__ import annotations

from functools import partial

from assay.probe.dimms import read_dimms
from assay.probe.edac import read_edac
from assay.probe.files import Root
from assay.probe.lazy import Lazy
from assay.probe.machine_check import read_machine_checks


def read_memory(root: Root) -> Lazy:
    """Return the `memory` branch."""
    return {
        "firmware": partial(read_dimms, root),
        "edac": partial(read_edac, root),
        "machine_checks": partial(read_machine_checks, root),
    }
