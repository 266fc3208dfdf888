"""The answer of `assay observe`: for each node which channels answered, and for evidence all its readings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.cli.answers.evidence_answers import CollectedNode
    from assay.model.evidence import EvidenceDocument
    from assay.model.fleet import Fleet
    from assay.model.reading import EvidenceReading

MAX_FAILURES_SHOWN = 3
AREA_PATH_LENGTH = 2
"""Length of a path that names a channel and an area. A missing reading at this level is a missing area."""


@dataclass(frozen=True)
class CollectionReport:
    """The answer about one node, as a line and as JSON data, without the evidence itself."""

    line: str
    json_data: CollectedNode
    has_silent_channel: bool
    has_answer: bool


def describe_collection(fleet: Fleet, evidence: EvidenceDocument, digest: str) -> CollectionReport:
    """Return the report about a node's evidence; `digest` is that of the stored document."""
    from assay.model.reading import parse_reading

    channels = [_format_channel(name, tree) for name, tree in sorted(evidence.channels.items(), reverse=True)]
    has_answer = any(parse_reading(tree) is None for tree in evidence.channels.values())
    line = f"{evidence.node}  {'; '.join(channels)}"
    document = _collection_as_json(fleet, evidence, digest)
    return CollectionReport(line, document, bool(find_unanswered(evidence)), has_answer)


def exit_code_of(reports: Sequence[CollectionReport]) -> int:
    """Return the exit code: 0 all channels answered, 1 some did not, 2 none did on any node."""
    if not any(report.has_silent_channel for report in reports):
        return 0
    return 1 if any(report.has_answer for report in reports) else 2


def find_unanswered(evidence: EvidenceDocument) -> dict[str, dict[str, str]]:
    """Return channel → branch → reason for what did not answer. The branch is "" for a whole channel."""
    from assay.observe.unanswered_channels import find_unanswered_branches

    found = {name: find_unanswered_branches(tree) for name, tree in evidence.channels.items()}
    return {name: reasons for name, reasons in found.items() if reasons}


def print_collection_summary(reports: Sequence[CollectionReport], took_s: float) -> None:
    """Print a line a node, with what did not answer and why, and a summary."""
    from rich.console import Console

    from assay.cli.markup import escape

    console = Console(soft_wrap=True, highlight=False)
    for report in reports:
        console.print(f"{'[red]✗[/]' if report.has_silent_channel else '[green]✓[/]'} {escape(report.line)}")
    silent = sum(report.has_silent_channel for report in reports)
    console.print(f"{len(reports)} observed in {took_s:g} s, {silent} with channels that did not answer")


def _format_channel(name: str, tree: Any) -> str:
    from assay.model.reading import parse_reading
    from assay.observe.unanswered_channels import find_unanswered_branches

    whole = parse_reading(tree)
    if whole is not None and whole.kind != "failed":
        return f"{name} {whole.kind}: {whole.reason}"
    missing = find_unanswered_branches(tree)
    if not missing:
        return f"{name} ok{_format_failed_readings(tree)}"
    text = "; ".join(f"{name}{'.' if branch else ''}{branch} failed: {reason}" for branch, reason in missing.items())
    return text if whole is not None else text + _format_failed_readings(tree)


def _format_failed_readings(tree: Any) -> str:
    """Return the first few readings that failed below a branch, with reasons, and the number of the others."""
    deep = {path: reason for path, reason in find_failed_readings(tree).items() if "." in path}
    if not deep:
        return ""
    shown = "; ".join(f"{path}: {reason}" for path, reason in list(deep.items())[:MAX_FAILURES_SHOWN])
    more = f"; and {len(deep) - MAX_FAILURES_SHOWN} more" if len(deep) > MAX_FAILURES_SHOWN else ""
    return f" ({shown}{more})"


def find_failed_readings(tree: Any) -> dict[str, str]:
    """Return path → reason of all failed readings of a channel."""
    from assay.observe.unanswered_channels import iterate_leaves

    return {".".join(path): leaf.reason for path, leaf in iterate_leaves(tree) if leaf.kind == "failed"}


def print_readings(evidence: EvidenceDocument) -> None:
    """Print a line a reading, with its whole path, for use with grep. A reading without a value shows its reason."""
    from rich.console import Console

    from assay.cli.markup import escape
    from assay.observe.unanswered_channels import iterate_leaves

    console = Console(soft_wrap=True, highlight=False)
    console.print(f"{evidence.node} at {evidence.at:%Y-%m-%d %H:%M:%S} UTC")
    for path, reading in iterate_leaves(evidence.channels):
        console.print(f"{escape('.'.join(path))}  {escape(_format_reading(reading))}")


def print_recording(evidence: EvidenceDocument, foreign_hosts: Sequence[str]) -> None:
    """Print the number of readings of each kind, the areas without a value, and whose lines the files have instead."""
    from rich.console import Console

    from assay.cli.markup import escape
    from assay.observe.unanswered_channels import iterate_leaves

    console = Console(soft_wrap=True, highlight=False)
    found = list(iterate_leaves(evidence.channels))
    kinds = Counter(reading.kind for _, reading in found)
    many = ", ".join(f"{kinds[kind]} {kind}" for kind in ("value", "unsupported", "absent", "failed") if kinds[kind])
    console.print(f"{evidence.node} at {evidence.at:%Y-%m-%d %H:%M:%S} UTC: {len(found)} readings, {many}")
    groups: dict[tuple[str, str], list[str]] = {}
    for path, reading in found:
        if len(path) <= AREA_PATH_LENGTH and reading.kind != "value":
            groups.setdefault((reading.kind, reading.reason), []).append(".".join(path))
    for (kind, reason), paths in groups.items():
        console.print(f"  {kind}: {escape(', '.join(paths))}: {escape(reason)}")
    for host in foreign_hosts:
        console.print(f"  the lines are of the host {escape(host)}, not of {escape(evidence.node)}: is it that node?")


def _format_reading(reading: EvidenceReading) -> str:
    if isinstance(reading.value, list) and any(isinstance(item, dict) for item in reading.value):
        return f"{len(reading.value)} entries"
    return str(reading.value) if reading.kind == "value" else f"{reading.kind}: {reading.reason}"


def _collection_as_json(fleet: Fleet, evidence: EvidenceDocument, digest: str) -> CollectedNode:
    from assay.model.reading import parse_reading
    from assay.observe.unanswered_channels import iterate_leaves

    wholes = {name: parse_reading(tree) for name, tree in evidence.channels.items()}
    return {
        "node": evidence.node,
        "pool": fleet.nodes[evidence.node].pool,
        "at": evidence.at.isoformat(),
        "evidence": digest,
        "channels": {name: "value" if whole is None else whole.kind for name, whole in wholes.items()},
        "unanswered": find_unanswered(evidence),
        "readings": dict(Counter(reading.kind for _, reading in iterate_leaves(evidence.channels))),
        "failed": find_failed_readings(evidence.channels),
    }
