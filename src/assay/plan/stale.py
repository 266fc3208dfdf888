"""Which checks' passes stop counting, because what they read is said otherwise or because the node is repaired."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from assay.fleet.reads import Reads
from assay.model.checks import Check
from assay.plan.declared import Declared
from assay.plan.pairs import Pair, PairKey

SLOTS = {"gpu": "gpus.pci", "hca": "hcas", "nic": "nics", "psu": "psus.count", "nvme": "nvme.count"}
"""What of a spec says over how many parts a check is repeated, and where they are."""
PARTS = {"gpu": "gpus", "hca": "hcas", "nic": "nics", "psu": "psus", "nvme": "nvme"}
FABRICS = {"link", "fabric"}
NOTHING = Reads(frozenset(), frozenset(), frozenset(), frozenset(), frozenset(), (), "")


@dataclass(frozen=True, slots=True)
class Stale:
    """A check that must be run again, and why. `certain`: it fails until somebody has worked on the node."""

    check: str
    phases: tuple[str, ...]
    fault: str
    because: tuple[str, ...]
    certain: bool


class Staleness:
    """Two revisions' checks. Answers are worked out once for all nodes that are changed alike."""

    def __init__(self, before: Declared, after: Declared) -> None:
        self._before, self._after = before, after
        self.rewritten = dict(self._rewritten())
        self.gone = tuple(sorted(before.checks.keys() - after.checks.keys()))
        self._known: dict[tuple[PairKey, frozenset[str]], tuple[Stale, ...]] = {}

    def of(self, key: PairKey, pair: Pair, said: frozenset[str]) -> tuple[Stale, ...]:
        """Return the checks that are stale on nodes of a pair, of which also `said` is said otherwise."""
        if (key, said) not in self._known:
            self._known[key, said] = tuple(self._stale(key, pair, said))
        return self._known[key, said]

    def _stale(self, key: PairKey, pair: Pair, said: frozenset[str]) -> Iterator[Stale]:
        for ident, check in self._after.checks.items():
            reads = self._after.reads.get(ident, NOTHING)
            certain = tuple(_certain(reads, pair))
            maybe = (*self.rewritten.get(ident, ()), *_inputs(check, reads, pair, said), *self._profile(key, reads))
            if because := tuple(dict.fromkeys((*certain, *maybe))):
                yield Stale(ident, tuple(check.phases), check.fault, because, bool(certain))

    def _profile(self, key: PairKey, reads: Reads) -> Iterator[str]:
        old, new = self._before.fleet.profiles[key[2]], self._after.fleet.profiles[key[3]]
        yield from (f"profile.{path}" for path in sorted(reads.profile) if _at(old, path) != _at(new, path))

    def _rewritten(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield the checks that are new, declared otherwise, or written otherwise."""
        for ident, check in self._after.checks.items():
            was = self._before.checks.get(ident)
            if was is None:
                yield ident, ("a new check",)
                continue
            reads = self._before.reads.get(ident, NOTHING), self._after.reads.get(ident, NOTHING)
            signs = {
                "declared otherwise": _judged_as(was) != _judged_as(check),
                "written otherwise": reads[0].digest != reads[1].digest,
            }
            if because := tuple(sign for sign, holds in signs.items() if holds):
                yield ident, because


def _judged_as(check: Check) -> Check:
    """Return a check without what is only said about its passes: they are the same at any stage, and for how long."""
    return check.model_copy(update={"stage": "decide", "valid_hours": None, "report_only": False})


def _certain(reads: Reads, pair: Pair) -> Iterator[str]:
    """Yield what a check reads that the node cannot yet be: versions and settings that nobody has brought to it."""
    if "bundle" in reads.fixtures and pair.moves:
        yield "the firmware bundle"
    for setting in pair.settings:
        if setting.how == "applied" and any(_root(path) == setting.field for path in reads.spec):
            yield f"spec.{setting.field}"


def _inputs(check: Check, reads: Reads, pair: Pair, said: frozenset[str]) -> Iterator[str]:
    if "bundle" in reads.fixtures and pair.bundle:
        yield "the firmware bundle"
    for threshold in pair.thresholds:
        if threshold.limit in reads.limits:
            yield f"limit {threshold.limit} {threshold.old or 'none'} → {threshold.new or 'none'}"
    parts = {PARTS[root] + "." + field for root, field in reads.declared if root in PARTS}
    for path in sorted({*reads.spec, *parts, *([SLOTS[check.subject]] if check.subject in SLOTS else [])}):
        if _at(pair.old, path) != _at(pair.new, path):
            yield f"spec.{path}".rstrip(".")
    for root, field in sorted(reads.declared):
        if (field if root == "node" else f"{root}_{field}s") in said:
            yield f"{root}.declared.{field}"
    if "cables" in said and FABRICS & reads.fixtures:
        yield "its cables"


def _root(path: str) -> str:
    return path.partition(".")[0]


def _at(value: Any, path: str) -> Any:
    """Return what is at a dotted path, as far as it leads: `kernel_cmdline.copy` ends at the list."""
    for step in path.split(".") if path else ():
        if isinstance(value, list | str | int | float | Mapping) or not hasattr(value, step):
            break
        value = getattr(value, step)
    return value
