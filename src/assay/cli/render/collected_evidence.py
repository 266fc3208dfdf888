"""What `assay observe` says of what it collected."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.model.evidence import EvidenceDocument
    from assay.model.fleet import Fleet
    from assay.model.reading import EvidenceReading

MAX_FAILURES_SHOWN = 3
LOG_EVERY_S = 5.0
AREA_PATH_LENGTH = 2
"""Steps of a path, channel and area: what is missing that high up is missing as a whole."""


@contextmanager
def show_collection_progress(total: int) -> Iterator[Callable[[str], None]]:
    """Show how far it is on standard error: a bar where a person is there to see it, else a line now and then."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _log_progress(console, total)
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("observing", total=total)
        yield lambda name: bar.update(task, advance=1, description=f"observed {name}")


def _log_progress(console: Any, total: int) -> Callable[[str], None]:
    done, said_at = 0, time.monotonic()

    def told(name: str) -> None:
        nonlocal done, said_at
        del name
        done += 1
        if time.monotonic() - said_at >= LOG_EVERY_S and done < total:
            said_at = time.monotonic()
            console.print(f"observed {done} of {total}", highlight=False)

    return told


@dataclass(frozen=True)
class CollectionReport:
    """What is to be said of one node, in a line and as JSON data; its evidence is kept and need not be held."""

    line: str
    json_data: dict[str, Any]
    has_silent_channel: bool
    has_answer: bool


def describe_collection(fleet: Fleet, evidence: EvidenceDocument, digest: str) -> CollectionReport:
    """Return what is to be said of a node."""
    from assay.model.reading import parse_reading

    words = [_format_channel(name, tree) for name, tree in sorted(evidence.channels.items(), reverse=True)]
    heard = any(parse_reading(tree) is None for tree in evidence.channels.values())
    said = f"{evidence.node}  {'; '.join(words)}"
    return CollectionReport(said, _collection_as_json(fleet, evidence, digest), bool(find_unanswered(evidence)), heard)


def exit_code_of(found: Sequence[CollectionReport]) -> int:
    """Return the exit code: 0 all answered, 1 some did not, 2 nobody answered anything."""
    if not any(one.has_silent_channel for one in found):
        return 0
    return 1 if any(one.has_answer for one in found) else 2


def find_unanswered(evidence: EvidenceDocument) -> dict[str, dict[str, str]]:
    """Return channel → branch → reason of what did not answer; the branch is "" for a whole channel."""
    from assay.observe.unanswered_channels import find_unanswered_branches

    found = {name: find_unanswered_branches(tree) for name, tree in evidence.channels.items()}
    return {name: reasons for name, reasons in found.items() if reasons}


def print_collection_summary(found: Sequence[CollectionReport], took_s: float) -> None:
    """Print a line for each node, with what did not answer and why, and one for all."""
    from rich.console import Console
    from rich.markup import escape

    console = Console(soft_wrap=True, highlight=False)
    for one in found:
        console.print(f"{'[red]✗[/]' if one.has_silent_channel else '[green]✓[/]'} {escape(one.line)}")
    silent = sum(one.has_silent_channel for one in found)
    console.print(f"{len(found)} observed in {took_s:g} s, {silent} with something that did not answer")


def _format_channel(name: str, tree: Any) -> str:
    from assay.model.reading import parse_reading
    from assay.observe.unanswered_channels import find_unanswered_branches

    whole = parse_reading(tree)
    if whole is not None and whole.kind != "failed":
        return f"{name} {whole.kind}: {whole.reason}"
    missing = find_unanswered_branches(tree)
    if not missing:
        return f"{name} ok{_format_failed_readings(tree)}"
    said = "; ".join(f"{name}{'.' if branch else ''}{branch} failed: {reason}" for branch, reason in missing.items())
    return said if whole is not None else said + _format_failed_readings(tree)


def _format_failed_readings(tree: Any) -> str:
    """Say which readings failed further down: the first few with their reasons, of the rest how many."""
    deep = {path: reason for path, reason in find_failed_readings(tree).items() if "." in path}
    if not deep:
        return ""
    shown = "; ".join(f"{path}: {reason}" for path, reason in list(deep.items())[:MAX_FAILURES_SHOWN])
    more = f"; and {len(deep) - MAX_FAILURES_SHOWN} more" if len(deep) > MAX_FAILURES_SHOWN else ""
    return f" ({shown}{more})"


def find_failed_readings(tree: Any) -> dict[str, str]:
    """Return every reading of a channel that failed, by its path."""
    from assay.observe.unanswered_channels import iterate_leaves

    return {".".join(path): leaf.reason for path, leaf in iterate_leaves(tree) if leaf.kind == "failed"}


def print_readings(evidence: EvidenceDocument) -> None:
    """Print a line for every reading, its whole path first, to look through with grep; what is not there is no zero."""
    from rich.console import Console
    from rich.markup import escape

    from assay.observe.unanswered_channels import iterate_leaves

    console = Console(soft_wrap=True, highlight=False)
    console.print(f"{evidence.node} at {evidence.at:%Y-%m-%d %H:%M:%S} UTC")
    for path, reading in iterate_leaves(evidence.channels):
        console.print(f"{escape('.'.join(path))}  {escape(_format_reading(reading))}")


def print_reading_counts(evidence: EvidenceDocument) -> None:
    """Print how many readings of each kind there are, and what is missing as a whole."""
    from rich.console import Console
    from rich.markup import escape

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


def _format_reading(reading: EvidenceReading) -> str:
    if isinstance(reading.value, list) and any(isinstance(one, dict) for one in reading.value):
        return f"{len(reading.value)} entries"
    return str(reading.value) if reading.kind == "value" else f"{reading.kind}: {reading.reason}"


def _collection_as_json(fleet: Fleet, evidence: EvidenceDocument, digest: str) -> dict[str, Any]:
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
