"""What `assay observe` says of what it collected."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.model.evidence import Evidence
    from assay.model.fleet import Fleet
    from assay.model.reading import Reading

FEW = 3
CALM_S = 5.0
WHOLE = 2
"""Steps of a path, channel and area: what is missing that high up is missing as a whole."""


@contextmanager
def progress(total: int) -> Iterator[Callable[[str], None]]:
    """Show how far it is on standard error: a bar where a person is there to see it, else a line now and then."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _calm(console, total)
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("observing", total=total)
        yield lambda name: bar.update(task, advance=1, description=f"observed {name}")


def _calm(console: Any, total: int) -> Callable[[str], None]:
    done, said_at = 0, time.monotonic()

    def told(name: str) -> None:
        nonlocal done, said_at
        del name
        done += 1
        if time.monotonic() - said_at >= CALM_S and done < total:
            said_at = time.monotonic()
            console.print(f"observed {done} of {total}", highlight=False)

    return told


@dataclass(frozen=True)
class Observed:
    """What is to be said of one node, in a line and as JSON data; its evidence is kept and need not be held."""

    line: str
    plain: dict[str, Any]
    silent: bool
    heard: bool


def observed(fleet: Fleet, evidence: Evidence, digest: str) -> Observed:
    """Return what is to be said of a node."""
    from assay.model.reading import as_reading

    words = [_channel(name, tree) for name, tree in sorted(evidence.channels.items(), reverse=True)]
    heard = any(as_reading(tree) is None for tree in evidence.channels.values())
    said = f"{evidence.node}  {'; '.join(words)}"
    return Observed(said, _plain(fleet, evidence, digest), bool(silences(evidence)), heard)


def code(found: Sequence[Observed]) -> int:
    """Return the exit code: 0 all answered, 1 some did not, 2 nobody answered anything."""
    if not any(one.silent for one in found):
        return 0
    return 1 if any(one.heard for one in found) else 2


def silences(evidence: Evidence) -> dict[str, dict[str, str]]:
    """Return channel → branch → reason of what did not answer; the branch is "" for a whole channel."""
    from assay.observe.leaves import unanswered

    found = {name: unanswered(tree) for name, tree in evidence.channels.items()}
    return {name: reasons for name, reasons in found.items() if reasons}


def summary(found: Sequence[Observed], took_s: float) -> None:
    """Print a line for each node, with what did not answer and why, and one for all."""
    from rich.console import Console
    from rich.markup import escape

    console = Console(soft_wrap=True, highlight=False)
    for one in found:
        console.print(f"{'[red]✗[/]' if one.silent else '[green]✓[/]'} {escape(one.line)}")
    silent = sum(one.silent for one in found)
    console.print(f"{len(found)} observed in {took_s:g} s, {silent} with something that did not answer")


def _channel(name: str, tree: Any) -> str:
    from assay.model.reading import as_reading
    from assay.observe.leaves import unanswered

    whole = as_reading(tree)
    if whole is not None and whole.kind != "failed":
        return f"{name} {whole.kind}: {whole.reason}"
    missing = unanswered(tree)
    if not missing:
        return f"{name} ok{_deeper(tree)}"
    said = "; ".join(f"{name}{'.' if branch else ''}{branch} failed: {reason}" for branch, reason in missing.items())
    return said if whole is not None else said + _deeper(tree)


def _deeper(tree: Any) -> str:
    """Say which readings failed further down: the first few with their reasons, of the rest how many."""
    deep = {path: reason for path, reason in failures(tree).items() if "." in path}
    if not deep:
        return ""
    shown = "; ".join(f"{path}: {reason}" for path, reason in list(deep.items())[:FEW])
    more = f"; and {len(deep) - FEW} more" if len(deep) > FEW else ""
    return f" ({shown}{more})"


def failures(tree: Any) -> dict[str, str]:
    """Return every reading of a channel that failed, by its path."""
    from assay.observe.leaves import leaves

    return {".".join(path): leaf.reason for path, leaf in leaves(tree) if leaf.kind == "failed"}


def readings(evidence: Evidence) -> None:
    """Print a line for every reading, its whole path first, to look through with grep; what is not there is no zero."""
    from rich.console import Console
    from rich.markup import escape

    from assay.observe.leaves import leaves

    console = Console(soft_wrap=True, highlight=False)
    console.print(f"{evidence.node} at {evidence.at:%Y-%m-%d %H:%M:%S} UTC")
    for path, reading in leaves(evidence.channels):
        console.print(f"{escape('.'.join(path))}  {escape(_said(reading))}")


def counted(evidence: Evidence) -> None:
    """Print how many readings of each kind there are, and what is missing as a whole."""
    from rich.console import Console
    from rich.markup import escape

    from assay.observe.leaves import leaves

    console = Console(soft_wrap=True, highlight=False)
    found = list(leaves(evidence.channels))
    kinds = Counter(reading.kind for _, reading in found)
    many = ", ".join(f"{kinds[kind]} {kind}" for kind in ("value", "unsupported", "absent", "failed") if kinds[kind])
    console.print(f"{evidence.node} at {evidence.at:%Y-%m-%d %H:%M:%S} UTC: {len(found)} readings, {many}")
    groups: dict[tuple[str, str], list[str]] = {}
    for path, reading in found:
        if len(path) <= WHOLE and reading.kind != "value":
            groups.setdefault((reading.kind, reading.reason), []).append(".".join(path))
    for (kind, reason), paths in groups.items():
        console.print(f"  {kind}: {escape(', '.join(paths))}: {escape(reason)}")


def _said(reading: Reading) -> str:
    if isinstance(reading.value, list) and any(isinstance(one, dict) for one in reading.value):
        return f"{len(reading.value)} entries"
    return str(reading.value) if reading.kind == "value" else f"{reading.kind}: {reading.reason}"


def _plain(fleet: Fleet, evidence: Evidence, digest: str) -> dict[str, Any]:
    from assay.model.reading import as_reading
    from assay.observe.leaves import leaves

    wholes = {name: as_reading(tree) for name, tree in evidence.channels.items()}
    return {
        "node": evidence.node,
        "pool": fleet.nodes[evidence.node].pool,
        "at": evidence.at.isoformat(),
        "evidence": digest,
        "channels": {name: "value" if whole is None else whole.kind for name, whole in wholes.items()},
        "unanswered": silences(evidence),
        "readings": dict(Counter(reading.kind for _, reading in leaves(evidence.channels))),
        "failed": failures(evidence.channels),
    }
