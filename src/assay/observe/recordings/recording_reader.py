"""Reads files that other tools wrote into one evidence document; each format is recognised by its content.

`nvidia-smi -q -x` in a file: the branch `gpu`, as the probe reads it where NVML cannot be asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument, encode_canonical_json
from assay.model.reading import absent
from assay.observe.recordings.bmc_log_recording import REDFISH_LOG, SEL
from assay.observe.recordings.ibstat_recording import IBSTAT
from assay.observe.recordings.kernel_log_recording import KERNEL_LOG
from assay.observe.recordings.recording_format import Branches, BranchPath, RecordingError, RecordingFormat
from assay.probe.gpu.nvidia_smi import parse_nvidia_smi

NVIDIA_SMI_ROOT = b"<nvidia_smi_log"


def _is_nvidia_smi(content: bytes) -> bool:
    return NVIDIA_SMI_ROOT in content


def _read_nvidia_smi(content: bytes, _at: datetime) -> Branches:
    tree = parse_nvidia_smi(content)
    if set(tree) == {"failed"}:
        raise RecordingError(str(tree["failed"]))
    return {("probe", "gpu"): tree}


NVIDIA_SMI = RecordingFormat("nvidia-smi -q -x", _is_nvidia_smi, _read_nvidia_smi)


RECORDING_FORMATS: Sequence[RecordingFormat] = (NVIDIA_SMI, IBSTAT, SEL, REDFISH_LOG, KERNEL_LOG)
MAX_RECORDING_BYTES = 64 * 2**20
NOT_RECORDED = absent("not among the recordings")
AREAS = (
    *("host", "gpu", "hca", "nic", "nvme", "aer", "pci", "memory", "file_systems", "kernel", "time", "services"),
    "kernel_log",
)


def read_recordings(files: Sequence[Path], node: str, at: datetime | None = None) -> EvidenceDocument:
    """Return what the files say of a node, at `at` or else when the oldest of them was written.

    Every other branch reads absent. Raises Trouble for a file that cannot be read, is of no known format or not
    whole, and for two that tell of the same.
    """
    told: dict[BranchPath, Any] = {}
    by: dict[BranchPath, Path] = {}
    times = [_written(file) for file in files]
    for file, time in zip(files, times, strict=True):
        for place, tree in _branches(file, at or time).items():
            if place in by:
                what = f"both {by[place].name} and {file.name} tell of {'.'.join(place)}"
                raise AssayError(what, where=str(file), fix="give one of them")
            told[place], by[place] = tree, file
    return EvidenceDocument(node, at or min(times), _channels(told))


def parse_recording(content: bytes, at: datetime) -> tuple[RecordingFormat, Branches]:
    """Return the format that a content has, and what it says. Raises NotThis."""
    form = next((form for form in RECORDING_FORMATS if form.detects(content)), None)
    if form is None:
        raise RecordingError("no format that is known here")
    branches = form.read(content, at)
    try:
        encode_canonical_json(list(branches.values()))
    except ValueError:
        raise RecordingError("it holds a number without an end, or half a letter, which nothing can keep") from None
    return form, branches


def _branches(file: Path, at: datetime) -> Branches:
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_RECORDING_BYTES + 1)
    except OSError as error:
        raise AssayError(f"the file cannot be read: {error.strerror}", where=str(file)) from None
    if len(content) > MAX_RECORDING_BYTES:
        raise AssayError(
            f"more than {MAX_RECORDING_BYTES >> 20} MiB", where=str(file), fix="cut out what is of interest"
        )
    try:
        return parse_recording(content, at)[1]
    except RecordingError as wrong:
        known = ", ".join(form.name for form in RECORDING_FORMATS)
        raise AssayError(f"the file cannot be read in: {wrong}", where=str(file), fix=f"what can be: {known}") from None


def _written(file: Path) -> datetime:
    try:
        return datetime.fromtimestamp(file.stat().st_mtime, UTC)
    except OSError as error:
        raise AssayError(f"the file cannot be read: {error.strerror}", where=str(file)) from None


def _channels(told: Branches) -> dict[str, Any]:
    probe = {area: told.get(("probe", area), NOT_RECORDED) for area in AREAS}
    bmc = {branch: tree for (channel, branch), tree in told.items() if channel == "bmc"}
    return {"probe": probe, "bmc": bmc or NOT_RECORDED}
