"""Reads files that other tools wrote into one evidence document; each format is recognised by its content."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from assay.model.errors import Trouble
from assay.model.evidence import Evidence, canonical
from assay.model.reading import absent
from assay.observe.recorded.form import Branches, Form, NotThis, Place
from assay.observe.recorded.ibstat import IBSTAT
from assay.observe.recorded.kernel_log import KERNEL_LOG
from assay.observe.recorded.nvidia_smi import NVIDIA_SMI
from assay.observe.recorded.redfish_log import REDFISH_LOG
from assay.observe.recorded.sel import SEL

FORMS: Sequence[Form] = (NVIDIA_SMI, IBSTAT, SEL, REDFISH_LOG, KERNEL_LOG)
MOST_BYTES = 64 * 2**20
NOT_RECORDED = absent("not among the recordings")
AREAS = (
    *("host", "gpu", "hca", "nic", "nvme", "aer", "pci", "memory", "file_systems", "kernel", "time", "services"),
    "kernel_log",
)


def read_in(files: Sequence[Path], node: str, at: datetime | None = None) -> Evidence:
    """Return what the files say of a node, at `at` or else when the oldest of them was written.

    Every other branch reads absent. Raises Trouble for a file that cannot be read, is of no known format or not
    whole, and for two that tell of the same.
    """
    told: dict[Place, Any] = {}
    by: dict[Place, Path] = {}
    times = [_written(file) for file in files]
    for file, time in zip(files, times, strict=True):
        for place, tree in _branches(file, at or time).items():
            if place in by:
                what = f"both {by[place].name} and {file.name} tell of {'.'.join(place)}"
                raise Trouble(what, where=str(file), fix="give one of them")
            told[place], by[place] = tree, file
    return Evidence(node, at or min(times), _channels(told))


def read_content(content: bytes, at: datetime) -> tuple[Form, Branches]:
    """Return the format that a content has, and what it says. Raises NotThis."""
    form = next((form for form in FORMS if form.shows(content)), None)
    if form is None:
        raise NotThis("no format that is known here")
    branches = form.read(content, at)
    try:
        canonical(list(branches.values()))
    except ValueError:
        raise NotThis("it holds a number without an end, or half a letter, which nothing can keep") from None
    return form, branches


def _branches(file: Path, at: datetime) -> Branches:
    try:
        with file.open("rb") as opened:
            content = opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise Trouble(f"the file cannot be read: {error.strerror}", where=str(file)) from None
    if len(content) > MOST_BYTES:
        raise Trouble(f"more than {MOST_BYTES >> 20} MiB", where=str(file), fix="cut out what is of interest")
    try:
        return read_content(content, at)[1]
    except NotThis as wrong:
        known = ", ".join(form.name for form in FORMS)
        raise Trouble(f"the file cannot be read in: {wrong}", where=str(file), fix=f"what can be: {known}") from None


def _written(file: Path) -> datetime:
    try:
        return datetime.fromtimestamp(file.stat().st_mtime, UTC)
    except OSError as error:
        raise Trouble(f"the file cannot be read: {error.strerror}", where=str(file)) from None


def _channels(told: Branches) -> dict[str, Any]:
    probe = {area: told.get(("probe", area), NOT_RECORDED) for area in AREAS}
    bmc = {branch: tree for (channel, branch), tree in told.items() if channel == "bmc"}
    return {"probe": probe, "bmc": bmc or NOT_RECORDED}
