"""What the nodes of a wave have in common and the others do not: a ranking of likely causes. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

NodeTrait = tuple[str, str]
"""What could be at fault, by kind and name: `("leaf", "leaf-03")`, `("spec commit", "1a2b3c4")`, `("rack", "r1")`."""
NodeTraits = frozenset[NodeTrait]
TRAIT_ORDER = ("leaf", "rack", "spec commit", "firmware")
"""Kinds in the order in which they are said where two fit alike; any other kind comes after them."""
MAX_NAMES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class CommonCause:
    """Traits of one kind that fit alike: `hit` of `of` nodes of the wave have them, `spared` of `others` as well."""

    kind: str
    names: tuple[str, ...]
    wave_hits: int
    wave_size: int
    other_hits: int
    others: int

    def __str__(self) -> str:
        more = f" and {len(self.names) - MAX_NAMES_SHOWN} more" if len(self.names) > MAX_NAMES_SHOWN else ""
        rest = f", and {self.other_hits} of the {self.others} others" if self.others else ""
        return (
            f"{self.kind} {', '.join(self.names[:MAX_NAMES_SHOWN])}{more} ({self.wave_hits} of {self.wave_size}{rest})"
        )


def rank_common_causes(wave: Sequence[NodeTraits], others: Sequence[NodeTraits]) -> list[CommonCause]:
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
        CommonCause(kind, tuple(sorted(names)), count, len(wave), rest, len(others))
        for (kind, count, rest), names in groups.items()
    ]
    return sorted(found, key=_rank)


def _rank(one: CommonCause) -> tuple[float, int, str]:
    contrast = one.wave_hits / one.wave_size - (one.other_hits / one.others if one.others else 0)
    return (-contrast, TRAIT_ORDER.index(one.kind) if one.kind in TRAIT_ORDER else len(TRAIT_ORDER), one.kind)


def _counted(nodes: Iterable[NodeTraits]) -> Counter[NodeTrait]:
    return Counter(trait for traits in nodes for trait in traits)
