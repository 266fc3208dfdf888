"""What is told of a comparison, in sections: what is worse first, what changed alike together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from assay.harness.results.compare import KINDS, WORSE, Comparison, Kind
from assay.harness.results.differences import Differences
from assay.harness.results.flapping import MOST_KEYS, looked_at_all
from assay.harness.results.gathered import TITLES
from assay.harness.results.lines import short
from assay.model.spans import counted, folded, listed


@dataclass(frozen=True)
class Section:
    """A part of what is told; `worse`: nobody had to know of it before."""

    title: str
    lines: list[str]
    worse: bool = False


def headline(found: Differences) -> str:
    """Return how much changed, as a sentence."""
    comparison = found.comparison
    parts = [f"{comparison.counts[kind]} {TITLES[kind]}" for kind in KINDS if comparison.counts[kind]]
    said = ", ".join(parts) or "nothing changed"
    return f"{counted(comparison.both, 'outcome')} in both: {said}{_apart(comparison)}"


def sections(found: Differences) -> Iterator[Section]:
    """Yield the sections that have something to say."""
    for kind in KINDS:
        lines = [one.line for one in found.gathered if one.kind == kind]
        if lines and kind != "appeared":
            yield Section(_title(found.comparison, kind), lines, worse=kind in WORSE)
    if found.flapping:
        part = "" if looked_at_all(found.comparison) else f", among the first {MOST_KEYS} that changed"
        yield Section(f"flapping{part}", [one.line for one in found.flapping])
    if found.moved:
        yield Section("measurements that moved more than their noise", [one.line for one in found.moved])
    if lines := list(_came_and_went(found.comparison)):
        yield Section("only in one of the runs", lines)


def _title(comparison: Comparison, kind: Kind) -> str:
    count = comparison.counts[kind]
    excused = count - comparison.deciding[kind] if kind in ("new_failure", "unseen", "still_failing") else 0
    known = f", {excused} of them known or on trial" if excused else ""
    return f"{TITLES[kind]}: {counted(count, 'outcome')}{known}"


def _apart(comparison: Comparison) -> str:
    old, new = comparison.apart
    parts = [f"{old} only in the older run"] * bool(old) + [f"{new} only in the newer"] * bool(new)
    return f"; {' and '.join(parts)}, as the other was not asked for them" if parts else ""


def _came_and_went(comparison: Comparison) -> Iterator[str]:
    for word, names in (("new check", comparison.appeared), ("check that is gone", comparison.vanished)):
        for name in names:
            yield f"{word}: {short(name)}"
    for word, nodes in (("newer", comparison.nodes_appeared), ("older", comparison.nodes_vanished)):
        if nodes:
            yield f"{counted(len(nodes), 'node')} only in the {word} run: {listed(folded(nodes), 6)}"
