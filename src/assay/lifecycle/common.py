"""What the nodes of a wave have in common and the others do not: a ranking of likely causes. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Trait = tuple[str, str]
"""What could be at fault, by kind and name: `("leaf", "leaf-03")`, `("spec commit", "1a2b3c4")`, `("rack", "r1")`."""
Traits = frozenset[Trait]
KINDS = ("leaf", "rack", "spec commit", "firmware")
"""Kinds in the order in which they are said where two fit alike; any other kind comes after them."""
MOST = 3


@dataclass(frozen=True, slots=True)
class Suspect:
    """Traits of one kind that fit alike: `hit` of `of` nodes of the wave have them, `spared` of `others` as well."""

    kind: str
    names: tuple[str, ...]
    hit: int
    of: int
    spared: int
    others: int

    def __str__(self) -> str:
        more = f" and {len(self.names) - MOST} more" if len(self.names) > MOST else ""
        rest = f", and {self.spared} of the {self.others} others" if self.others else ""
        return f"{self.kind} {', '.join(self.names[:MOST])}{more} ({self.hit} of {self.of}{rest})"


def suspects(wave: Sequence[Traits], others: Sequence[Traits]) -> list[Suspect]:
    """Return what may be behind a wave, the likeliest first.

    A trait is one where most of the wave have it (80 %) and their share is at least twice that of the others. Where
    there are no others nothing tells traits apart, and all are returned that the whole wave shares.
    """
    hit, spared = _counted(wave), _counted(others)
    groups: dict[tuple[str, int, int], list[str]] = defaultdict(list)
    for (kind, name), count in hit.items():
        share, rest = count / len(wave), spared[kind, name] / len(others) if others else 0.0
        if share >= (0.8 if others else 1) and share >= 2 * rest:
            groups[kind, count, spared[kind, name]].append(name)
    found = [
        Suspect(kind, tuple(sorted(names)), count, len(wave), rest, len(others))
        for (kind, count, rest), names in groups.items()
    ]
    return sorted(found, key=_rank)


def _rank(one: Suspect) -> tuple[float, int, str]:
    contrast = one.hit / one.of - (one.spared / one.others if one.others else 0)
    return (-contrast, KINDS.index(one.kind) if one.kind in KINDS else len(KINDS), one.kind)


def _counted(nodes: Iterable[Traits]) -> Counter[Trait]:
    return Counter(trait for traits in nodes for trait in traits)
