"""Reads files that other tools wrote into one evidence document. The content of a file shows its format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument, encode_canonical_json
from assay.model.reading import PROBE_AREAS, absent, failed
from assay.model.specs.log_patterns import KernelLogMatcher
from assay.model.text.packed_text import read_up_to
from assay.node.probe.gpu.nvidia_smi import parse_nvidia_smi
from assay.observe.logs.log_reader import unpack_text
from assay.observe.recordings.ibstat_recording import IBSTAT
from assay.observe.recordings.logs import (
    REDFISH_LOG,
    SEL,
    XIDS_ONLY,
    Branches,
    BranchPath,
    RecordingError,
    RecordingFormat,
    make_kernel_log_format,
)

NVIDIA_SMI_ROOT = b"<nvidia_smi_log"
SHOWN_LENGTH = 200
MAX_RECORDING_BYTES = 64 * 2**20
NOT_RECORDED = absent("not among the recordings")
HOST_LEAVES = (("probe", "host", "hostname"), ("bmc", "log_host"))
"""Where a recording stores the host that its lines name."""


def _read_nvidia_smi(content: bytes, _at: datetime) -> Branches:
    tree = parse_nvidia_smi(content)
    if set(tree) == {"failed"}:
        raise RecordingError(str(tree["failed"]))
    return {("probe", "gpu"): tree}


NVIDIA_SMI = RecordingFormat("nvidia-smi -q -x", lambda content: NVIDIA_SMI_ROOT in content, _read_nvidia_smi)
RECORDING_FORMATS: Sequence[RecordingFormat] = (NVIDIA_SMI, IBSTAT, SEL, REDFISH_LOG, make_kernel_log_format(XIDS_ONLY))


def read_recordings(
    files: Sequence[Path], node: str, at: datetime | None = None, matcher: KernelLogMatcher = XIDS_ONLY
) -> EvidenceDocument:
    """Return the evidence of a node in files, dated `at` or else by the file that was written first.

    `matcher` finds the kernel's messages behind whatever stands before them in a line. Every other branch is absent.
    Raises AssayError for a file that cannot be read or has no known format, and for two files with the same branch.
    """
    branches: dict[BranchPath, Any] = {}
    sources: dict[BranchPath, Path] = {}
    times = [_modified_at(file) for file in files]
    for file, time in zip(files, times, strict=True):
        for path, tree in _read_branches(file, at or time, matcher).items():
            if path in sources:
                message = f"both {sources[path].name} and {file.name} hold {'.'.join(path)}"
                raise AssayError(message, where=str(file), fix="give one of them")
            branches[path] = tree
            sources[path] = file
    return EvidenceDocument(node, at or min(times), _build_channels(branches))


def parse_recording(
    content: bytes, at: datetime, matcher: KernelLogMatcher = XIDS_ONLY
) -> tuple[RecordingFormat, Branches]:
    """Return the format of a content, and its branches. Raises RecordingError."""
    formats = (*RECORDING_FORMATS[:-1], make_kernel_log_format(matcher))
    recording_format = next((known for known in formats if known.detects(content)), None)
    if recording_format is None:
        shown = content.strip()[:SHOWN_LENGTH].decode(errors="replace").partition("\n")[0]
        raise RecordingError(f"no format that is known here; it begins with {shown!r}")
    branches = recording_format.read(content, at)
    try:
        encode_canonical_json(list(branches.values()))
    except ValueError:
        raise RecordingError("it holds an infinite number or invalid Unicode, which cannot be stored") from None
    return recording_format, branches


def _read_branches(file: Path, at: datetime, matcher: KernelLogMatcher) -> Branches:
    content, broken = _read_text(file)
    cut = AssayError(f"the file cannot be read: {broken}", where=str(file), fix="fetch it again")
    if broken and not content:
        raise cut
    try:
        known, branches = parse_recording(content, at, matcher)
    except RecordingError as error:
        if broken:
            raise cut from None
        names = ", ".join(known_format.name for known_format in RECORDING_FORMATS)
        raise AssayError(f"the file cannot be read in: {error}", where=str(file), fix=f"what can be: {names}") from None
    if not broken:
        return branches
    if known.broken is None:
        raise cut
    return {**branches, known.broken: failed(f"{file.name} was read in part only: {broken}")}


def _read_text(file: Path) -> tuple[bytes, str]:
    """Return the text of a file, and why the rest of it is missing, "" if nothing is."""
    try:
        with file.open("rb") as opened:
            text = unpack_text(opened)
            content = read_up_to(text, MAX_RECORDING_BYTES + 1)
    except OSError as error:
        raise AssayError(f"the file cannot be read: {error.strerror or error}", where=str(file)) from None
    if len(content) > MAX_RECORDING_BYTES:
        raise AssayError(
            f"more than {MAX_RECORDING_BYTES >> 20} MiB", where=str(file), fix="cut out what is of interest"
        )
    return content, text.broken


def _modified_at(file: Path) -> datetime:
    try:
        return datetime.fromtimestamp(file.stat().st_mtime, UTC)
    except OSError as error:
        raise AssayError(f"the file cannot be read: {error.strerror}", where=str(file)) from None


def _build_channels(branches: Branches) -> dict[str, Any]:
    probe: dict[str, Any] = dict.fromkeys(PROBE_AREAS, NOT_RECORDED)
    probe |= {branch: tree for (channel, branch), tree in branches.items() if channel == "probe"}
    bmc = {branch: tree for (channel, branch), tree in branches.items() if channel == "bmc"}
    return {"probe": probe, "bmc": bmc or NOT_RECORDED}


def find_foreign_hosts(evidence: EvidenceDocument, nodes: Iterable[str]) -> list[str]:
    """Return the hosts that recorded files name, and that have not their node's name.

    Raises AssayError where such a host is another one of `nodes`.
    """
    read = [evidence.read(*path) for path in HOST_LEAVES]
    named = {str(leaf.value) for leaf in read if leaf.kind == "value"}
    foreign = sorted(host for host in named if not _is_same(host, evidence.node))
    for host in foreign:
        if other := next((node for node in nodes if _is_same(host, node)), None):
            message = f"the lines of the files are of {host}, which is another node than {evidence.node}"
            raise AssayError(message, fix=f"--node {other}, or files of {evidence.node}")
    return foreign


def _is_same(host: str, node: str) -> bool:
    """Whether two names are of one machine: the case of letters and a domain do not count."""
    return host.lower() == node.lower() or host.lower().partition(".")[0] == node.lower().partition(".")[0]
